//! The split-learning engine: policy, cut, halves, messages, compression, aggregation.
