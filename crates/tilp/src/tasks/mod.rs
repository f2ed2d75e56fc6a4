//! The robots: tabletop manipulation in physics, experts, demonstrations, success.
