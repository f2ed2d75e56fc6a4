//! A picture of the expert at work: one row of frames for each cell.

use std::fmt::Write;

use rapier3d::math::{Pose, Vector};

use crate::rng::Seed;
use crate::tasks::tabletop::drawing::{self, Face, Window};
use crate::tasks::tabletop::engine::Owner;
use crate::tasks::tabletop::geometry::{PALM_HALF, PALM_HEIGHT, PUSH_TOLERANCE};
use crate::tasks::tabletop::{Family, Robot, SUITE, Workcell, expert};

const WIDTH: f32 = 170.0;
const HEIGHT: f32 = 130.0;
const LABEL: f32 = 110.0;

/// An SVG with `n_frames` frames of one expert episode for each cell.
pub fn strip(cells: &[Workcell], episode: Seed, n_frames: usize) -> String {
    let width = LABEL + WIDTH * n_frames as f32;
    let height = HEIGHT * cells.len() as f32;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (row, cell) in cells.iter().enumerate() {
        let top = row as f32 * HEIGHT;
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{:.0}\" font-size=\"14\">{}</text>",
            top + HEIGHT / 2.0,
            cell.variant.family.name()
        );
        draw_row(cell, episode.at(row as u64), n_frames, top, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Physics is deterministic, so the episode is run once for its length and once for its frames.
fn draw_row(cell: &Workcell, episode: Seed, n_frames: usize, top: f32, svg: &mut String) {
    let length = run(cell, episode, |_, _| ());
    let wanted = |frame: usize| frame * length / (n_frames - 1).max(1);
    let mut frame = 0;
    run(cell, episode, |step, robot| {
        while frame < n_frames && wanted(frame) == step {
            draw_frame(robot, step, [LABEL + frame as f32 * WIDTH, top], svg);
            frame += 1;
        }
    });
}

/// Runs the expert and passes each state on, including the first and the last.
fn run(cell: &Workcell, episode: Seed, mut show: impl FnMut(usize, &Robot)) -> usize {
    let mut robot = Robot::reset(cell, episode);
    let mut step = 0;
    show(step, &robot);
    while step < SUITE.demonstration_steps && !robot.succeeded() {
        robot.act(&expert(&robot));
        step += 1;
        show(step, &robot);
    }
    step
}

fn draw_frame(robot: &Robot, step: usize, corner: [f32; 2], svg: &mut String) {
    let [x, y] = corner;
    let middle = Vector::new(robot.variant().centre[0], robot.variant().centre[1], 0.0);
    let window =
        Window { centre: middle, scale: 260.0, middle: [x + WIDTH / 2.0, y + 0.7 * HEIGHT] };
    let table = [[-0.3, -0.13], [0.2, -0.13], [0.3, 0.2], [-0.2, 0.2]];
    let table = table.map(|[x, y]| middle + Vector::new(x, y, 0.0));
    let _ = writeln!(
        svg,
        "<svg x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"{x} {y} {WIDTH} {HEIGHT}\">"
    );
    window.polygon(&table, "#f1ede4", svg);
    if robot.variant().family == Family::Push {
        window.polygon(&drawing::circle(robot.state().goal, PUSH_TOLERANCE), "#cfe3c4", svg);
    }
    window.draw(&solids(robot), svg);
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" font-size=\"9\" fill=\"#666\">{:.2} s</text></svg>",
        x + 4.0,
        y + 12.0,
        step as f32 * 0.05
    );
}

fn solids(robot: &Robot) -> Vec<Face> {
    let mut faces: Vec<Face> = Vec::new();
    for (owner, shape, pose) in robot.physics.shapes() {
        let colour = match owner {
            Owner::Hand => [110.0, 120.0, 135.0],
            Owner::Object => [226.0, 110.0, 60.0],
            Owner::Fixture => [110.0, 160.0, 205.0],
        };
        faces.extend(drawing::faces(&shape, &pose, colour));
    }
    // The palm carries no contact, so the physics does not know its shape.
    let palm = Pose::from_translation(robot.state().hand + Vector::Z * PALM_HEIGHT);
    faces.extend(drawing::cuboid_faces(Vector::from_array(PALM_HALF), &palm, [70.0, 75.0, 85.0]));
    faces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::tabletop::{Variant, VariantRange};

    #[test]
    fn a_strip_has_the_frames_asked_for_and_each_family_by_name() {
        let draw = |family| {
            Workcell::new(Variant::draw(family, &VariantRange::WIDE, &mut Seed::new(51).rng()))
        };
        let svg = strip(&Family::ALL.map(draw), Seed::new(52), 3);
        assert_eq!(svg.matches("<svg").count(), 1 + 8 * 3);
        assert!(Family::ALL.iter().all(|family| svg.contains(family.name())));
        assert!(!svg.contains("NaN"));
    }
}
