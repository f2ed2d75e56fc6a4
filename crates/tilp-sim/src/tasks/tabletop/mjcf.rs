//! World files with named places to fill in.

use crate::tasks::tabletop::geometry::{self, BLOCK_HALF_HEIGHT, PEG_PLAY};
use crate::tasks::tabletop::{Family, Variant};

const CELL: &str = include_str!("worlds/cell.xml");

impl Variant {
    /// This cell as a complete MJCF document, which MuJoCo reads too.
    pub fn mjcf(&self) -> String {
        let mut text = CELL.replace("{objects}", inner(world(self.family)));
        for (name, value) in self.places() {
            text = text.replace(&format!("{{{name}}}"), &format!("{value}"));
        }
        text
    }

    fn places(&self) -> Vec<(&'static str, f32)> {
        let mass = self.mass + self.extra_mass;
        match self.family {
            Family::Bin => vec![("size", self.size), ("mass", mass)],
            Family::Shelf => vec![
                ("size", self.size),
                ("mass", mass),
                ("board", self.shelf_height - 0.006),
                ("post", self.shelf_height / 2.0 - 0.006),
            ],
            Family::Stack => {
                vec![("size", self.size), ("mass", mass), ("block", BLOCK_HALF_HEIGHT)]
            }
            Family::Push => vec![("radius", geometry::puck_radius(self)), ("mass", mass)],
            Family::DrawerOpen | Family::DrawerClose => vec![
                ("half_cos", (self.axis / 2.0).cos()),
                ("half_sin", (self.axis / 2.0).sin()),
                ("post", self.size * 0.5),
                ("damping", 10.0 * self.resistance),
                ("mass", 2.0 * self.mass + self.extra_mass),
            ],
            Family::Button => vec![
                ("base", geometry::button_base(self)),
                ("rest", geometry::button_rest(self)),
                ("cap", self.size + 0.005),
                ("stiffness", 400.0 * self.resistance),
            ],
            Family::Peg => self.hole_places(mass),
        }
    }

    fn hole_places(&self, mass: f32) -> Vec<(&'static str, f32)> {
        let outer = 0.06;
        let peg = geometry::peg_half(self);
        let hole = peg + PEG_PLAY;
        let wall = (outer - hole) / 2.0;
        vec![("peg", peg), ("mass", mass), ("hole", hole), ("wall", wall), ("wall_at", hole + wall)]
    }
}

fn world(family: Family) -> &'static str {
    match family {
        Family::Bin => include_str!("worlds/bin.xml"),
        Family::Shelf => include_str!("worlds/shelf.xml"),
        Family::Stack => include_str!("worlds/stack.xml"),
        Family::Push => include_str!("worlds/push.xml"),
        Family::DrawerOpen | Family::DrawerClose => include_str!("worlds/drawer.xml"),
        Family::Button => include_str!("worlds/button.xml"),
        Family::Peg => include_str!("worlds/peg.xml"),
    }
}

/// Text between the tags of an include file.
fn inner(text: &str) -> &str {
    text.trim().trim_start_matches("<mujocoinclude>").trim_end_matches("</mujocoinclude>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::tasks::tabletop::VariantRange;

    #[test]
    fn every_place_of_every_world_is_filled_in() {
        for family in Family::ALL {
            let mut rng = Seed::new(0).named(family.name()).rng();
            let text = Variant::draw(family, &VariantRange::WIDE, &mut rng).mjcf();
            assert!(!text.contains('{'), "{}: {text}", family.name());
            assert!(!text.contains("--"), "{}: {text}", family.name());
        }
    }
}
