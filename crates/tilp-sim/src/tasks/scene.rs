//! What of a robot and its work can be drawn: solids with their places, in metres.

/// A robot and what it works with at one moment, in the robot's frame: z up, the table's top at 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The solids. Over an episode their number, order, parts and forms stay the same.
    pub solids: Vec<Solid>,
    /// The point between the finger tips.
    pub hand: [f32; 3],
    /// The point at which the object is handled.
    pub object: [f32; 3],
    /// Where that point has to go.
    pub goal: [f32; 3],
}

/// A solid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solid {
    /// What it is part of.
    pub part: Part,
    /// Its form.
    pub form: Form,
    /// Its middle.
    pub position: [f32; 3],
    /// Its rotation as a quaternion x, y, z, w.
    pub rotation: [f32; 4],
}

/// What a solid is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The robot.
    Hand,
    /// What it moves.
    Object,
    /// Where the object belongs: bin, shelf, cabinet.
    Fixture,
    /// A mark on the table.
    Mark,
}

impl Part {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hand => "hand",
            Self::Object => "object",
            Self::Fixture => "fixture",
            Self::Mark => "mark",
        }
    }
}

/// The form of a solid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Half its edges.
    Box([f32; 3]),
    /// Radius and half its height. Its axis is y.
    Cylinder([f32; 2]),
}
