//! A shaping proxy between terminals and server: every terminal's connections go through a link
//! whose rate, delay and outages follow a channel.
//!
//! A channel ([`ReplayedChannel`]) is a table of conditions over time, of a scenario, a recording or
//! a measured rate. Where it contains gains, the rate follows from the band and the power that the
//! control channel grants, by the uplink rate of [`tilp_core::wireless::rate`]. The arithmetic
//! ([`Shaper`]) takes the time as a number; only [`Proxy`] reads a clock.

mod channel;
mod control;
mod link;
mod serve;
mod shaper;

pub use channel::{ChannelError, Conditions, Quality, ReplayedChannel, Step};
pub use control::{Command, CommandError, MAX_LINE_BYTES, Reply, ask as ask_proxy};
pub use link::{Direction, Link, LinkSettings, Pace};
pub use serve::{Proxy, ProxySettings};
pub use shaper::{Shaper, Verdict};
