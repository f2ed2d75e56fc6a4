//! Solids in an oblique projection, as SVG.

use std::fmt::Write;

use rapier3d::math::{Pose, Vector};
use rapier3d::prelude::SharedShape;

/// Shift of a point to the right and up on the page per metre of depth.
const OBLIQUE: [f32; 2] = [0.35, 0.45];
/// Corners of the polygon that approximates a circle.
const ROUND: usize = 16;

/// A flat face with a colour (red, green, blue) and its outward normal.
pub(super) struct Face {
    corners: Vec<Vector>,
    normal: Vector,
    colour: [f32; 3],
}

/// A window onto the table: its centre and how many pixels a metre takes.
pub(super) struct Window {
    pub centre: Vector,
    pub scale: f32,
    pub middle: [f32; 2],
}

impl Window {
    fn project(&self, point: Vector) -> [f32; 2] {
        let from = point - self.centre;
        [
            self.middle[0] + self.scale * (from.x + OBLIQUE[0] * from.y),
            self.middle[1] - self.scale * (from.z + OBLIQUE[1] * from.y),
        ]
    }

    /// The faces that look at the viewer, far ones first.
    pub(super) fn draw(&self, faces: &[Face], svg: &mut String) {
        let viewer = Vector::new(OBLIQUE[0], -1.0, OBLIQUE[1]);
        let mut seen: Vec<(f32, &Face)> = faces
            .iter()
            .filter(|face| face.normal.dot(viewer) > 1e-4)
            .map(|face| (face.middle().dot(viewer), face))
            .collect();
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, face) in seen {
            self.polygon(&face.corners, &face.shade(), svg);
        }
    }

    /// A flat polygon with a thin outline.
    pub(super) fn polygon(&self, corners: &[Vector], fill: &str, svg: &mut String) {
        let _ = write!(svg, "<polygon points=\"");
        for [x, y] in corners.iter().map(|corner| self.project(*corner)) {
            let _ = write!(svg, "{x:.1},{y:.1} ");
        }
        let _ = writeln!(svg, "\" fill=\"{fill}\" stroke=\"#333\" stroke-width=\"0.4\"/>");
    }
}

impl Face {
    fn middle(&self) -> Vector {
        self.corners.iter().copied().sum::<Vector>() / self.corners.len() as f32
    }

    /// Light from above and a little from the left.
    fn shade(&self) -> String {
        let light = 0.72 + 0.28 * self.normal.dot(Vector::new(-0.35, -0.2, 0.9));
        let [r, g, b] = self.colour.map(|part| (part * light).clamp(0.0, 255.0) as u8);
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// The faces of a box or a cylinder; other shapes are not drawn.
pub(super) fn faces(shape: &SharedShape, pose: &Pose, colour: [f32; 3]) -> Vec<Face> {
    if let Some(cuboid) = shape.as_cuboid() {
        return cuboid_faces(cuboid.half_extents, pose, colour);
    }
    if let Some(cylinder) = shape.as_cylinder() {
        return cylinder_faces(cylinder.radius, cylinder.half_height, pose, colour);
    }
    Vec::new()
}

/// The six faces of a box.
pub(super) fn cuboid_faces(half: Vector, pose: &Pose, colour: [f32; 3]) -> Vec<Face> {
    let axes = [Vector::X, Vector::Y, Vector::Z];
    let mut all = Vec::new();
    for axis in 0..3 {
        let [out, u, v] = [0, 1, 2].map(|turn| axes[(axis + turn) % 3] * half);
        for side in [out, -out] {
            let corners = [u + v, u - v, -u - v, v - u].map(|corner| *pose * (side + corner));
            let normal = (pose.rotation * side).normalize_or_zero();
            all.push(Face { corners: corners.to_vec(), normal, colour });
        }
    }
    all
}

/// Both ends and the mantle of a cylinder about its own y axis.
fn cylinder_faces(radius: f32, half: f32, pose: &Pose, colour: [f32; 3]) -> Vec<Face> {
    let rim = |index: usize, y: f32| {
        let angle = std::f32::consts::TAU * index as f32 / ROUND as f32;
        Vector::new(radius * angle.cos(), y, radius * angle.sin())
    };
    let mut all = Vec::new();
    for end in [half, -half] {
        let corners = (0..ROUND).map(|index| *pose * rim(index, end)).collect();
        let normal = pose.rotation * Vector::Y * end.signum();
        all.push(Face { corners, normal, colour });
    }
    for index in 0..ROUND {
        let next = index + 1;
        let corners = [rim(index, half), rim(next, half), rim(next, -half), rim(index, -half)];
        let outward = rim(index, 0.0) + rim(next, 0.0);
        let normal = pose.rotation * outward.normalize_or_zero();
        all.push(Face { corners: corners.map(|c| *pose * c).to_vec(), normal, colour });
    }
    all
}

/// The corners of a circle on the table.
pub(super) fn circle(centre: Vector, radius: f32) -> Vec<Vector> {
    let corner = |index: usize| {
        let angle = std::f32::consts::TAU * index as f32 / (2 * ROUND) as f32;
        Vector::new(centre.x + radius * angle.cos(), centre.y + radius * angle.sin(), 0.0)
    };
    (0..2 * ROUND).map(corner).collect()
}
