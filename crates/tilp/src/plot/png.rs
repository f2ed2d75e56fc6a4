//! From a figure to the bytes of a PNG file.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::Figure;

/// Pixels for each unit of the figure: sharp in print and on dense screens.
const DENSITY: f32 = 2.0;

impl Figure {
    /// The figure on a light ground as the bytes of a PNG file. The letters come with the program, so
    /// that the picture is the same wherever it is made.
    pub fn to_png(&self) -> Vec<u8> {
        png(&self.to_light_svg(), DENSITY)
    }

    /// The figure on a light ground as the bytes of a PDF file.
    pub fn to_pdf(&self) -> Vec<u8> {
        super::pdf::pdf(&self.to_light_svg())
    }
}

/// An SVG file of this module, read.
pub(super) fn tree(svg: &str) -> Tree {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).expect("a figure is an SVG")
}

/// A picture of an SVG file of this module, with this number of pixels per unit.
pub(super) fn png(svg: &str, density: f32) -> Vec<u8> {
    let tree = tree(svg);
    let size = tree.size().to_int_size().scale_by(density).expect("a figure has a size");
    let mut pixels = Pixmap::new(size.width(), size.height()).expect("a figure fits the memory");
    resvg::render(&tree, Transform::from_scale(density, density), &mut pixels.as_mut());
    pixels.encode_png().expect("memory takes every picture")
}
