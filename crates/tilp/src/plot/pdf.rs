//! From a figure to the bytes of a PDF file. Letters become outlines, so no font has to be embedded.

use std::fmt::Write as _;

use resvg::tiny_skia::{Color, PathSegment, Transform};
use resvg::usvg::{FillRule, Group, LineCap, LineJoin, Node, Paint, Path, Stroke};

use super::png::tree;

/// Points of a page for each unit of an SVG file.
const POINTS: f32 = 72.0 / 96.0;

/// A PDF of one page, from an SVG file of this module.
pub(super) fn pdf(svg: &str) -> Vec<u8> {
    let tree = tree(svg);
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut page = Page::default();
    // SVG counts from the top, PDF from the bottom.
    let _ = writeln!(page.content, "{POINTS} 0 0 -{POINTS} 0 {height:.3} cm");
    page.group(tree.root());
    let states: String = page
        .opacities
        .iter()
        .enumerate()
        .map(|(n, one)| format!("/G{n} << /ca {one:.3} /CA {one:.3} >> "))
        .collect();
    let Page { content, .. } = page;
    file(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.3} {height:.3}] /Contents 4 0 R \
             /Resources << /ExtGState << {states}>> >> >>"
        ),
        format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
    ])
}

/// Numbered objects with the table of their places.
fn file(objects: &[String]) -> Vec<u8> {
    let mut text = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        places.push(text.len());
        let _ = write!(text, "{} 0 obj\n{object}\nendobj\n", n + 1);
    }
    let (start, size) = (text.len(), objects.len() + 1);
    let _ = write!(text, "xref\n0 {size}\n0000000000 65535 f \n");
    for place in places {
        let _ = writeln!(text, "{place:010} 00000 n ");
    }
    let _ = write!(text, "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    text.into_bytes()
}

/// What is drawn, and the opacities that occur.
#[derive(Default)]
struct Page {
    content: String,
    opacities: Vec<f32>,
}

impl Page {
    fn group(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group),
                Node::Path(path) if path.is_visible() => self.path(path),
                Node::Text(text) => self.group(text.flattened()),
                _ => {}
            }
        }
    }

    fn path(&mut self, path: &Path) {
        let Transform { sx, kx, ky, sy, tx, ty } = path.abs_transform();
        if let Some(fill) = path.fill() {
            let _ = write!(self.content, "q {sx} {ky} {kx} {sy} {tx} {ty} cm ");
            self.opacity(fill.opacity().get());
            let _ = write!(self.content, "{} rg ", colour(fill.paint()));
            self.segments(path);
            let operator = if fill.rule() == FillRule::EvenOdd { "f*" } else { "f" };
            let _ = writeln!(self.content, "{operator} Q");
        }
        if let Some(stroke) = path.stroke() {
            let _ = write!(self.content, "q {sx} {ky} {kx} {sy} {tx} {ty} cm ");
            self.opacity(stroke.opacity().get());
            self.stroke(stroke);
            self.segments(path);
            self.content += "S Q\n";
        }
    }

    fn opacity(&mut self, opacity: f32) {
        let found = self.opacities.iter().position(|one| *one == opacity);
        let n = found.unwrap_or_else(|| {
            self.opacities.push(opacity);
            self.opacities.len() - 1
        });
        let _ = write!(self.content, "/G{n} gs ");
    }

    fn stroke(&mut self, stroke: &Stroke) {
        let cap = match stroke.linecap() {
            LineCap::Butt => 0,
            LineCap::Round => 1,
            LineCap::Square => 2,
        };
        let join = match stroke.linejoin() {
            LineJoin::Round => 1,
            LineJoin::Bevel => 2,
            _ => 0,
        };
        let dashes = stroke.dasharray().unwrap_or_default();
        let dashes: Vec<String> = dashes.iter().map(f32::to_string).collect();
        let (width, colour) = (stroke.width().get(), colour(stroke.paint()));
        let dashes = dashes.join(" ");
        let _ = write!(self.content, "{colour} RG {width} w {cap} J {join} j [{dashes}] 0 d ");
    }

    fn segments(&mut self, path: &Path) {
        let mut last = (0.0, 0.0);
        for segment in path.data().segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    let _ = write!(self.content, "{:.3} {:.3} m ", p.x, p.y);
                    last = (p.x, p.y);
                }
                PathSegment::LineTo(p) => {
                    let _ = write!(self.content, "{:.3} {:.3} l ", p.x, p.y);
                    last = (p.x, p.y);
                }
                PathSegment::QuadTo(c, p) => {
                    // A quadratic curve as a cubic one.
                    let third = |from: f32, to: f32| from + 2.0 / 3.0 * (to - from);
                    let (ax, ay) = (third(last.0, c.x), third(last.1, c.y));
                    let (bx, by) = (third(p.x, c.x), third(p.y, c.y));
                    self.curve([ax, ay, bx, by, p.x, p.y]);
                    last = (p.x, p.y);
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.curve([a.x, a.y, b.x, b.y, p.x, p.y]);
                    last = (p.x, p.y);
                }
                PathSegment::Close => self.content += "h ",
            }
        }
    }

    fn curve(&mut self, numbers: [f32; 6]) {
        for one in numbers {
            let _ = write!(self.content, "{one:.3} ");
        }
        self.content += "c ";
    }
}

/// Red, green and blue. Figures have plain colours only.
fn colour(paint: &Paint) -> String {
    let Paint::Color(colour) = paint else { return "0 0 0".to_owned() };
    let colour = Color::from_rgba8(colour.red, colour.green, colour.blue, 255);
    format!("{:.3} {:.3} {:.3}", colour.red(), colour.green(), colour.blue())
}
