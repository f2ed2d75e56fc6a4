//! LIBERO's predicate `In` for a thing and a region that is marked by a site.

use crate::linear::{apply, subtract};
use crate::world::{Body, Site, World};

/// How far below the region a thing may be and still count, in metres.
const BELOW_M: f64 = 0.01;

/// Whether the thing's origin is within the region, held or let go.
///
/// LIBERO turns the region's half edges like a vector and takes the upright box around that: too
/// small for a region turned by an odd angle, and kept as it is.
pub(super) fn is_in(world: &World, thing: Body, region: Site) -> bool {
    let half = apply(&world.site_rotation(region), &world.site_size_m(region)).map(f64::abs);
    let way = subtract(&world.pose(thing).position_m, &world.site_position_m(region));
    let within =
        |axis: usize, below: f64| way[axis] < half[axis] && way[axis] > -half[axis] - below;
    within(0, 0.0) && within(1, 0.0) && within(2, BELOW_M)
}
