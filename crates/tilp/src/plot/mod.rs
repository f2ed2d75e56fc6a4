//! Figures as SVG, PNG and PDF: panels with axes, points, lines and bands, one legend above them.
//!
//! A figure is plain data; [`Figure::files`] draws it in every form. Colours can be distinguished by
//! colour-blind readers, and follow the reader's preference for light or dark. Dots have a shape for each
//! colour, and on paper lines have a pattern of dashes for each. The module does not depend on what is shown.

mod axis;
mod draw;
mod paper;
mod pdf;
mod png;

pub use axis::{Axis, Scale};
pub use paper::PaperWidth;

/// Panels side by side under one title.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What is shown.
    pub title: String,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// Size of a panel with its axes.
    pub panel: Size,
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// One pair of axes and what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What sets it apart from the other panels.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first at the back.
    pub series: Vec<Series>,
}

/// Data of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; no entry if it is empty or already present.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Its data and how they are drawn.
    pub mark: Mark,
}

/// How data are drawn. What is not finite is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Many small points, half transparent.
    Cloud(Vec<(f64, f64)>),
    /// Few large points.
    Dots(Vec<(f64, f64)>),
    /// A line.
    Line(Vec<(f64, f64)>),
    /// A dashed line.
    Dashes(Vec<(f64, f64)>),
    /// A thin line: the interval of a dot.
    Whisker(Vec<(f64, f64)>),
    /// A band between two values at each x.
    Band(Vec<(f64, f64, f64)>),
}

/// Colours of the palette of Okabe and Ito, and of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The colour of the text.
    Ink,
    /// Blue.
    Blue,
    /// Orange.
    Orange,
    /// Bluish green.
    Green,
    /// Reddish purple.
    Purple,
    /// Vermilion.
    Vermilion,
    /// Sky blue.
    Sky,
}

impl Colour {
    /// All colours, with their look on a light and on a dark ground.
    const LOOKS: [(Self, &'static str, &'static str); 7] = [
        (Self::Ink, "#30363d", "#d0d7de"),
        (Self::Blue, "#0072b2", "#4aa8e0"),
        (Self::Orange, "#e69f00", "#f0b840"),
        (Self::Green, "#009e73", "#2cc79a"),
        (Self::Purple, "#cc79a7", "#dd9cc2"),
        (Self::Vermilion, "#d55e00", "#f08440"),
        (Self::Sky, "#56b4e9", "#7cc7f0"),
    ];

    fn class(self) -> usize {
        self as usize
    }
}

impl Mark {
    /// Every point, the ends of a band apart.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Cloud(points) | Self::Dots(points) => points.clone(),
            Self::Line(points) | Self::Dashes(points) | Self::Whisker(points) => points.clone(),
            Self::Band(band) => band.iter().flat_map(|&(x, a, b)| [(x, a), (x, b)]).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(title: &str, points: Vec<(f64, f64)>) -> Figure {
        let panel = Panel {
            title: "a".into(),
            x: Axis::new("time, s", Scale::Linear),
            y: Axis::new("power, W", Scale::Log),
            series: vec![
                Series { name: "seen".into(), colour: Colour::Blue, mark: Mark::Cloud(points) },
                Series { name: "seen".into(), colour: Colour::Blue, mark: Mark::Line(vec![]) },
            ],
        };
        let size = Size { width: 300.0, height: 200.0 };
        Figure { title: title.into(), panels: vec![panel; 3], columns: 2, panel: size }
    }

    #[test]
    fn a_figure_has_its_panels_labels_and_each_name_once() {
        let svg = figure("t", vec![(0.0, 1.0), (1.0, 100.0)]).to_svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches(">time, s</text>").count(), 3);
        assert_eq!(svg.matches(">power, W</text>").count(), 3);
        assert_eq!(svg.matches(">seen</text>").count(), 1);
        assert!(svg.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn a_point_of_a_line_without_neighbours_is_a_short_stroke() {
        let mut one = figure("t", vec![(0.0, 1.0), (4.0, 100.0)]);
        let points = vec![(1.0, 10.0), (2.0, f64::NAN), (3.0, 10.0), (4.0, 10.0)];
        one.panels[0].series[1].mark = Mark::Line(points);
        let svg = one.to_svg();
        let line = svg.split("class=\"line c1\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(line.matches('M').count() == 2 && line.contains("h6M"), "{line}");
        assert_eq!(line.matches('L').count(), 1, "{line}");
    }

    #[test]
    fn what_a_name_holds_is_text_and_nothing_else_wherever_it_stands() {
        let name = "</text><script>&\u{ffff}\u{7}";
        let mut one = figure(name, vec![(1.0, 1.0)]);
        for panel in &mut one.panels {
            panel.title = name.into();
            panel.x = Axis::of_names(name, vec![name.into()]);
            panel.series[0].name = name.into();
        }
        assert!(!one.to_svg().contains("<script"), "{}", one.to_svg());
        assert!(one.to_svg().matches("&lt;script&gt;&amp;").count() >= 4 * 3);
        one.to_png();
    }

    #[test]
    fn a_picture_has_the_size_and_the_colours_of_the_figure_and_letters_too() {
        let one = figure("t", vec![(0.0, 1.0), (1.0, 100.0)]);
        let read = |one: &Figure| resvg::tiny_skia::Pixmap::decode_png(&one.to_png()).unwrap();
        let picture = read(&one);
        // Two columns of 300 and two rows of 200 with title, legend and margins, twice as dense.
        assert_eq!((picture.width(), picture.height()), (1240, 940));
        let blue = |pixel: &resvg::tiny_skia::PremultipliedColorU8| {
            i32::from(pixel.blue()) - i32::from(pixel.red()) > 50
        };
        assert!(picture.pixels().iter().any(blue));
        assert_ne!(picture.data(), read(&Figure { title: "u".into(), ..one }).data());
    }

    #[test]
    fn text_is_escaped_and_the_same_figure_gives_the_same_text() {
        let one = figure("a < b & \"c\"", vec![(0.0, 1.0)]);
        assert!(one.to_svg().contains("a &lt; b &amp; &quot;c&quot;"));
        assert_eq!(one.to_svg(), one.to_svg());
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        for points in [
            vec![],
            vec![(1.0, 1.0)],
            vec![(f64::NAN, 1.0), (f64::INFINITY, 2.0), (1.0, -3.0), (2.0, 0.0)],
            vec![(1e300, 1e300), (-1e300, 1e-300)],
        ] {
            let svg = figure("t", points).to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn every_colour_has_its_own_class_and_look() {
        for (class, (colour, light, dark)) in Colour::LOOKS.into_iter().enumerate() {
            assert_eq!(colour.class(), class);
            assert!(light.len() == 7 && dark.len() == 7 && light != dark);
        }
    }
}
