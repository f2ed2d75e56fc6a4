//! Whole tasks against LIBERO's own data, which lies outside the project; see `data.rs`.
#![cfg(feature = "mujoco")]

mod data;
mod episodes;
mod expert;
mod files;
mod replay;
