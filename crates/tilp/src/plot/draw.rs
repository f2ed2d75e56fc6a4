//! From a figure to the text of an SVG file.

use std::fmt::Write as _;

use super::axis::Layout;
use super::{Colour, Figure, Mark, Panel, PaperWidth, Series, Size};

/// Room around the data of a panel: for labels on the left and below, for the title above.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const ABOVE: f64 = 28.0;
const BELOW: f64 = 48.0;
/// Height of the title and of a row of the legend.
const TITLE: f64 = 30.0;
const LEGEND: f64 = 20.0;
const MARGIN: f64 = 10.0;
/// Width of an average letter of the legend.
const LETTER: f64 = 7.0;

impl Figure {
    /// The figure as the text of an SVG file.
    pub fn to_svg(&self) -> String {
        let colours =
            format!("{}@media (prefers-color-scheme: dark){{\n{}}}\n", LIGHT.css(), DARK.css());
        self.svg(&colours, None)
    }

    /// The same on a light ground only, for files that cannot follow the reader's preference.
    pub(super) fn to_light_svg(&self) -> String {
        self.svg(&LIGHT.css(), None)
    }

    /// The same for a paper: as wide as asked, on a light ground, without its title.
    pub(super) fn to_paper_svg(&self, width: PaperWidth) -> String {
        self.svg(&(LIGHT.css() + &patterns()), Some(width))
    }

    fn svg(&self, colours: &str, paper: Option<PaperWidth>) -> String {
        let above = if paper.is_some() { 4.0 } else { TITLE };
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let rows = self.panels.len().div_ceil(columns);
        let margin = if paper.is_some() { 0.0 } else { MARGIN };
        let width = columns as f64 * self.panel.width + 2.0 * margin;
        let (legend, n_lines) = self.legend(width, above);
        let top = margin + above + LEGEND * n_lines as f64;
        let height = top + rows as f64 * self.panel.height + margin;
        let title = escaped(&self.title);
        let [wide, high] = match paper {
            None => [width, height].map(|size| format!("{size:.0}")),
            Some(paper) => {
                let inches = paper.inches();
                [inches, inches * height / width].map(|size| format!("{size}in"))
            }
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tilp-figure\" role=\"img\" \
             width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
             <title>{title}</title>\n<style>\n{}</style>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
            style(colours)
        );
        if paper.is_none() {
            let _ = writeln!(svg, "<text class=\"title\" x=\"{MARGIN}\" y=\"26\">{title}</text>");
        }
        svg += &legend;
        for (idx, panel) in self.panels.iter().enumerate() {
            let x = margin + (idx % columns) as f64 * self.panel.width;
            let y = top + (idx / columns) as f64 * self.panel.height;
            let _ = writeln!(svg, "<g transform=\"translate({x:.1} {y:.1})\">");
            svg += &drawn(panel, self.panel);
            svg += "</g>\n";
        }
        svg + "</svg>\n"
    }

    /// Each name once, bands after what they surround, in lines that fit the width; and how many
    /// lines that takes.
    fn legend(&self, width: f64, above: f64) -> (String, usize) {
        let mut names: Vec<&str> = vec![""];
        let (mut svg, mut x, mut line) = (String::new(), MARGIN, 0usize);
        let all = || self.panels.iter().flat_map(|panel| &panel.series);
        let is_band = |series: &&Series| matches!(series.mark, Mark::Band(_));
        for series in all().filter(|one| !is_band(one)).chain(all().filter(is_band)) {
            if names.contains(&series.name.as_str()) {
                continue;
            }
            names.push(&series.name);
            let long = 26.0 + LETTER * series.name.chars().count() as f64 + 18.0;
            if x > MARGIN && x + long > width - MARGIN {
                (x, line) = (MARGIN, line + 1);
            }
            let y = MARGIN + above + LEGEND * line as f64 + 6.0;
            let _ = writeln!(svg, "{}", key(&series.mark, series.colour, x, y));
            let name = escaped(&series.name);
            let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", x + 26.0, y + 4.0);
            x += long;
        }
        let n_lines = if names.len() > 1 { line + 1 } else { 0 };
        (svg, n_lines)
    }
}

/// Colours on one ground.
struct Ground {
    ground: &'static str,
    text: &'static str,
    grid: &'static str,
    look: fn(&(Colour, &'static str, &'static str)) -> &'static str,
}

const LIGHT: Ground =
    Ground { ground: "#ffffff", text: "#24292f", grid: "#e4e8ec", look: |look| look.1 };
const DARK: Ground =
    Ground { ground: "#0d1117", text: "#d7dde3", grid: "#262c34", look: |look| look.2 };

impl Ground {
    fn css(&self) -> String {
        let Self { ground, text, grid, look } = self;
        let mut css = format!(
            ".tilp-figure .ground{{fill:{ground}}}\n.tilp-figure text{{fill:{text}}}\n\
             .tilp-figure .grid{{stroke:{grid}}}\n.tilp-figure .frame{{stroke:{text}}}\n"
        );
        for one in &Colour::LOOKS {
            let _ = writeln!(css, ".tilp-figure .c{}{{color:{}}}", one.0.class(), look(one));
        }
        css
    }
}

/// A pattern of dashes for every colour, so that lines can be distinguished in grey. Dashed lines keep
/// their own.
fn patterns() -> String {
    const DASHES: [&str; 7] = ["1 2", "", "8 3", "8 3 2 3", "2 3", "4 2", "12 3 2 3 2 3"];
    let pattern = |(class, dashes): (usize, &&str)| match dashes.is_empty() {
        true => String::new(),
        false => format!(".tilp-figure .line.c{class}{{stroke-dasharray:{dashes}}}\n"),
    };
    DASHES.iter().enumerate().map(pattern).collect()
}

/// Shapes and letters, and the colours that are given. Everything is said of the figure's own class:
/// a page that holds the figure keeps its own looks.
fn style(colours: &str) -> String {
    format!(
        ".tilp-figure text{{font-family:system-ui,'DejaVu Sans',sans-serif;font-size:12px}}\n\
         .tilp-figure .title{{font-size:15px;font-weight:600}}\n\
         .tilp-figure .name{{font-weight:600}}\n\
         .tilp-figure .tick{{font-size:11px}}\n\
         .tilp-figure .grid,.tilp-figure .frame{{fill:none;stroke-width:1}}\n\
         .tilp-figure .cloud{{stroke:currentColor;stroke-width:3.4;stroke-linecap:round;\
         stroke-opacity:.4;fill:none}}\n\
         .tilp-figure .dots{{fill:currentColor;stroke:none}}\n\
         .tilp-figure .whisker{{stroke:currentColor;stroke-width:1;fill:none}}\n\
         .tilp-figure .line,.tilp-figure .dashes{{stroke:currentColor;stroke-width:2;fill:none;\
         stroke-linejoin:round}}\n\
         .tilp-figure .dashes{{stroke-dasharray:6 4}}\n\
         .tilp-figure .band{{fill:currentColor;fill-opacity:.2;stroke:none}}\n\
         {colours}"
    )
}

/// The sample of a mark in the legend.
fn key(mark: &Mark, colour: Colour, x: f64, y: f64) -> String {
    let path = match mark {
        Mark::Cloud(_) => {
            format!(
                "M{:.1} {:.1}h0M{:.1} {:.1}h0M{:.1} {y:.1}h0",
                x + 4.0,
                y + 2.0,
                x + 15.0,
                y - 2.0,
                x + 9.0
            )
        }
        Mark::Dots(_) => shape(colour, x + 9.0, y),
        Mark::Line(_) | Mark::Dashes(_) | Mark::Whisker(_) => format!("M{x:.1} {y:.1}h20"),
        Mark::Band(_) => format!("M{x:.1} {:.1}h20v10h-20Z", y - 5.0),
    };
    format!("<path class=\"{} c{}\" d=\"{path}\"/>", class(mark), colour.class())
}

/// A dot, with a shape for each colour.
fn shape(colour: Colour, x: f64, y: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{:.1} {:.1}", x + dx, y + dy)).collect();
        format!("M{}Z", corners.join("L"))
    };
    match colour {
        Colour::Blue => format!("M{:.1} {y:.1}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z", x - 3.5),
        Colour::Orange => polygon(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
        Colour::Green => polygon(&[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)]),
        Colour::Purple => polygon(&[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)]),
        Colour::Vermilion => polygon(&[(0.0, 4.4), (4.2, -3.2), (-4.2, -3.2)]),
        Colour::Sky => polygon(&[(-4.5, -1.6), (4.5, -1.6), (4.5, 1.6), (-4.5, 1.6)]),
        Colour::Ink => polygon(&[(-1.6, -4.5), (1.6, -4.5), (1.6, 4.5), (-1.6, 4.5)]),
    }
}

fn class(mark: &Mark) -> &'static str {
    match mark {
        Mark::Whisker(_) => "whisker",
        Mark::Cloud(_) => "cloud",
        Mark::Dots(_) => "dots",
        Mark::Line(_) => "line",
        Mark::Dashes(_) => "dashes",
        Mark::Band(_) => "band",
    }
}

/// A panel laid out: the axes, and the rectangle between them.
struct Plane<'a> {
    panel: &'a Panel,
    x: Layout,
    y: Layout,
    size: Size,
}

fn drawn(panel: &Panel, outer: Size) -> String {
    let points: Vec<(f64, f64)> =
        panel.series.iter().flat_map(|series| series.mark.points()).collect();
    let shown = |(x, y): &(f64, f64)| panel.x.shows(*x) && panel.y.shows(*y);
    let plane = Plane {
        panel,
        x: panel.x.laid_out(points.iter().filter(|p| shown(p)).map(|p| p.0)),
        y: panel.y.laid_out(points.iter().filter(|p| shown(p)).map(|p| p.1)),
        size: Size { width: outer.width - LEFT - RIGHT, height: outer.height - ABOVE - BELOW },
    };
    let series = panel.series.iter().map(|series| {
        let path = plane.path(&series.mark, series.colour);
        format!(
            "<path class=\"{} c{}\" d=\"{path}\"/>\n",
            class(&series.mark),
            series.colour.class()
        )
    });
    format!("{}{}{}", plane.axes(), series.collect::<String>(), plane.labels())
}

impl Plane<'_> {
    /// Pixels of a point; none if it has no place here.
    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let (x, y) = (
            self.panel.x.shows(x).then(|| self.x.share(x))?,
            self.panel.y.shows(y).then(|| self.y.share(y))?,
        );
        let inside = (-1e-6..=1.0 + 1e-6).contains(&x) && (-1e-6..=1.0 + 1e-6).contains(&y);
        inside.then_some((LEFT + x * self.size.width, ABOVE + (1.0 - y) * self.size.height))
    }

    /// A grid line and a label at each tick, and the frame.
    fn axes(&self) -> String {
        let Size { width, height } = self.size;
        let mut svg = String::new();
        for (value, label) in self.x.ticks() {
            let label = escaped(&label);
            let x = LEFT + self.x.share(value) * width;
            let (top, bottom) = (ABOVE, ABOVE + height);
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>");
            let (y, middle) = (bottom + 15.0, "text-anchor=\"middle\"");
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" {middle}>{label}</text>"
            );
        }
        for (value, label) in self.y.ticks() {
            let label = escaped(&label);
            let y = ABOVE + (1.0 - self.y.share(value)) * height;
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT:.1} {y:.1}h{width:.1}\"/>");
            let (x, y, end) = (LEFT - 6.0, y + 4.0, "text-anchor=\"end\"");
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" {end}>{label}</text>"
            );
        }
        let frame = format!("M{LEFT:.1} {ABOVE:.1}v{height:.1}h{width:.1}");
        svg + &format!("<path class=\"frame\" d=\"{frame}\"/>\n")
    }

    fn labels(&self) -> String {
        let Size { width, height } = self.size;
        let (title, x, y) = (
            escaped(&self.panel.title),
            escaped(&self.panel.x.label),
            escaped(&self.panel.y.label),
        );
        let (middle, bottom) = (LEFT + 0.5 * width, ABOVE + height + 36.0);
        let (left, centre) = (15.0, ABOVE + 0.5 * height);
        format!(
            "<text class=\"name\" x=\"{LEFT:.1}\" y=\"18\">{title}</text>\n\
             <text x=\"{middle:.1}\" y=\"{bottom:.1}\" text-anchor=\"middle\">{x}</text>\n\
             <text transform=\"translate({left:.1} {centre:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{y}</text>\n"
        )
    }

    fn path(&self, mark: &Mark, colour: Colour) -> String {
        match mark {
            Mark::Dots(points) => {
                let places = points.iter().filter_map(|&(x, y)| self.at(x, y));
                places.map(|(x, y)| shape(colour, x, y)).collect()
            }
            Mark::Cloud(points) => {
                let places = points.iter().filter_map(|&(x, y)| self.at(x, y));
                places.map(|(x, y)| format!("M{x:.1} {y:.1}h0")).collect()
            }
            Mark::Line(points) | Mark::Dashes(points) | Mark::Whisker(points) => self.line(points),
            Mark::Band(band) => self.band(band),
        }
    }

    /// A line, broken where a point is missing. A point without neighbours is a short stroke.
    fn line(&self, points: &[(f64, f64)]) -> String {
        let places: Vec<_> = points.iter().map(|&(x, y)| self.at(x, y)).collect();
        let part = |part: &[Option<(f64, f64)>]| {
            let part: Vec<(f64, f64)> = part.iter().flatten().copied().collect();
            match part[..] {
                [] => String::new(),
                [(x, y)] => format!("M{:.1} {y:.1}h6", x - 3.0),
                _ => {
                    let places: Vec<_> =
                        part.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
                    format!("M{}", places.join("L"))
                }
            }
        };
        places.split(Option::is_none).map(part).collect()
    }

    fn band(&self, band: &[(f64, f64, f64)]) -> String {
        let edge = |pick: fn(&(f64, f64, f64)) -> (f64, f64)| -> Vec<(f64, f64)> {
            let whole = |one: &&(f64, f64, f64)| {
                self.at(one.0, one.1).is_some() && self.at(one.0, one.2).is_some()
            };
            let edge = band.iter().filter(whole).map(pick);
            edge.filter_map(|(x, y)| self.at(x, y)).collect()
        };
        let (low, high) = (edge(|one| (one.0, one.1)), edge(|one| (one.0, one.2)));
        let corners = low.iter().chain(high.iter().rev());
        let path: Vec<String> = corners.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if path.is_empty() { String::new() } else { format!("M{}Z", path.join("L")) }
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            // Characters that XML does not allow.
            '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
