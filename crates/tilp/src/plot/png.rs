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
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
        let tree = Tree::from_str(&self.to_light_svg(), &options).expect("a figure is an SVG");
        let size = tree.size().to_int_size().scale_by(DENSITY).expect("a figure has a size");
        let mut pixels =
            Pixmap::new(size.width(), size.height()).expect("a figure fits the memory");
        resvg::render(&tree, Transform::from_scale(DENSITY, DENSITY), &mut pixels.as_mut());
        pixels.encode_png().expect("memory takes every picture")
    }
}
