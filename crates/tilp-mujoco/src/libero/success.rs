//! LIBERO's predicate `In` for a thing and a region that is marked by a site.

use crate::linear::{apply, subtract};
use crate::world::{Body, Site, World};

/// How far below the region a thing may be and still count, in metres.
const BELOW_M: f64 = 0.01;

/// Whether the object's origin is within the region, held or released.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A region of 20 x 20 x 20 cm around the origin, turned about z, and a thing above it.
    fn is_in_at(place: [f64; 3], region_quaternion: &str) -> bool {
        let text = format!(
            r#"<mujoco><option gravity="0 0 0"/><worldbody>
            <site name="region" type="box" size="0.1 0.1 0.1" quat="{region_quaternion}"/>
            <body name="thing"><freejoint/><geom size="0.01"/></body></worldbody></mujoco>"#
        );
        let mut world = World::from_mjcf(&text).expect("a world");
        let [x, y, z] = place;
        world.reset(0.0, &[x, y, z, 1.0, 0.0, 0.0, 0.0], &[0.0; 6]).expect("a state");
        let thing = world.body("thing").expect("the thing");
        is_in(&world, thing, world.site("region").expect("the region"))
    }

    #[test]
    fn a_thing_is_in_a_region_if_its_origin_is() {
        assert!(is_in_at([0.09, -0.09, 0.09], "1 0 0 0"));
        assert!(!is_in_at([0.11, 0.0, 0.0], "1 0 0 0"));
        assert!(!is_in_at([0.0, -0.11, 0.0], "1 0 0 0"));
        assert!(!is_in_at([0.0, 0.0, 0.11], "1 0 0 0"));
    }

    #[test]
    fn a_centimetre_below_the_region_still_counts() {
        assert!(is_in_at([0.0, 0.0, -0.109], "1 0 0 0"));
        assert!(!is_in_at([0.0, 0.0, -0.111], "1 0 0 0"));
    }

    #[test]
    fn a_region_turned_by_an_eighth_is_as_narrow_as_libero_makes_it() {
        // Turned by 45 degrees the half edge (0.1, 0.1) becomes (0, 0.141).
        let turned = "0.92387953 0 0 0.38268343";
        assert!(!is_in_at([0.01, 0.0, 0.0], turned));
    }
}
