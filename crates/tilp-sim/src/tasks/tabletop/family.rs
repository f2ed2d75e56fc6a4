//! The eight families of tasks.

/// Task of a robot cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Pick a cube up and drop it into a bin.
    Bin,
    /// Set a cube on a raised shelf.
    Shelf,
    /// Set a cube on top of a loose block.
    Stack,
    /// Push a puck along the table to a marked place.
    Push,
    /// Pull a drawer open by its post.
    DrawerOpen,
    /// Push a drawer shut.
    DrawerClose,
    /// Press a spring-loaded button.
    Button,
    /// Put a peg into a hole.
    Peg,
}

impl Family {
    /// Every family, in the order of the one-hot token.
    pub const ALL: [Family; 8] = [
        Family::Bin,
        Family::Shelf,
        Family::Stack,
        Family::Push,
        Family::DrawerOpen,
        Family::DrawerClose,
        Family::Button,
        Family::Peg,
    ];

    /// The name in scenarios, tables and pictures.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Bin => "bin",
            Family::Shelf => "shelf",
            Family::Stack => "stack",
            Family::Push => "push",
            Family::DrawerOpen => "drawer-open",
            Family::DrawerClose => "drawer-close",
            Family::Button => "button",
            Family::Peg => "peg",
        }
    }

    /// The family with this name.
    pub fn from_name(name: &str) -> Option<Family> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Place in [`Family::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether the robot lifts the object, so that its weight matters.
    pub fn lifts(self) -> bool {
        matches!(self, Family::Bin | Family::Shelf | Family::Stack | Family::Peg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_found_by_its_name_and_its_index() {
        for (index, family) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family.index(), index);
            assert_eq!(Family::from_name(family.name()), Some(family));
        }
        assert_eq!(Family::from_name("juggle"), None);
    }
}
