//! The live view of runs and studies.
//!
//! A [`Hub`] finds run folders and follows them as they grow. A [`Server`] shows them: it answers
//! GET requests and sends changes as server-sent events. It changes nothing, and the page that it
//! serves loads nothing from elsewhere. `docs/howto/dash.md` shows how to use it.
//!
//! | module | what |
//! |---|---|
//! | `discover` | folders that are shown |
//! | `run` | one run folder: rows, events, histories of terminals |
//! | `hub` | all runs, and the thread that looks for changes |
//! | `remote`, `relay` | dashboards elsewhere |
//! | `compare`, `metrics`, `export` | several runs side by side; numbers for Prometheus; one run as one file |
//! | `origin` | scenario and seed of a run |
//! | `robots`, `whatif`, `twin`, `map` | what is computed from them: episodes run again, other plans, other twins, places |
//! | `samples` | what a page in a file holds of such answers |
//! | `turns` | answers that take computing, one at a time |
//! | `stream`, `api`, `assets` | what is sent: changes, answers, the page |
//! | `http`, `access`, `server` | requests, who may ask, threads |

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]

mod access;
mod api;
mod assets;
mod bounded;
mod compare;
mod discover;
mod export;
#[cfg(test)]
mod fixture;
mod http;
mod hub;
mod map;
mod metrics;
mod origin;
mod relay;
mod remote;
mod robots;
mod run;
mod samples;
mod server;
mod stream;
mod turns;
mod twin;
mod whatif;

pub use access::{Access, NoToken, is_plain};
pub use export::{export, export_study};
pub use hub::Hub;
pub use remote::Remote;
pub use server::Server;
