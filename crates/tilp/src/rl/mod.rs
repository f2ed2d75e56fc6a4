//! SAC
