//! Tensors, layers with an explicit backward pass, optimisers. The only room that names `gemm`.
