//! Tasks of LIBERO's suite libero_object: "pick up the (object) and place it in the basket".

mod episode;
mod npy;
mod observe;
mod success;
mod task;

pub use episode::Episode;
pub use observe::Observation;
pub use task::{OBJECTS, Task};
