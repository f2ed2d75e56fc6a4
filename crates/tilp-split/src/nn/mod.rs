//! Layers with an explicit backward pass, and optimisers. The only room that names `gemm`.
//!
//! Every activation is *feature-major*: element `(c, t, b)` (channel, token, sample) stands at
//! `c * tokens * samples + t * samples + b`. So a linear layer on all tokens of all samples is one
//! matrix product, and everything else (normalisation, softmax, attention) runs with samples in
//! the vector lanes: no horizontal sums, no padding.
//!
//! Layers are shapes without state: parameters, caches and gradients are slices of the caller.
//! A backward pass *overwrites* the gradient of its parameters, since each belongs to one layer.

pub mod adapter;
pub mod attention;
pub mod block;
pub mod check;
pub mod embed;
pub mod head;
pub mod lanes;
pub mod linear;
pub mod loss;
pub mod matrix;
pub mod merge;
pub mod norm;
pub mod optimiser;
