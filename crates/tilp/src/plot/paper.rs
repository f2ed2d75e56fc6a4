//! Figures for a paper: every panel a figure of its own, as wide as a column, without a title, readable
//! without colours; and the data behind a figure.

use std::fmt::Write as _;

use super::{Figure, Mark, Panel, Series, Size};

/// The width of a figure on paper, in inches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperWidth(f64);

/// Units of a figure for each inch: letters of 12 units are 8 points high.
const UNITS: f64 = 108.0;

impl PaperWidth {
    /// Reads `3.5in`, `89mm` or `8.9cm`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = [("in", 1.0), ("mm", 1.0 / 25.4), ("cm", 1.0 / 2.54)].iter().find_map(|one| {
            let number: f64 = text.trim().strip_suffix(one.0)?.trim().parse().ok()?;
            Some(number * one.1)
        });
        match parsed {
            Some(inches) if (1.0..=20.0).contains(&inches) => Ok(Self(inches)),
            _ => Err(format!(
                "width is `{text}`, expected 1in to 20in, as in `3.5in`, `89mm`, `8.9cm`"
            )),
        }
    }

    /// In inches.
    pub fn inches(self) -> f64 {
        self.0
    }

    /// In units of a figure.
    pub(super) fn units(self) -> f64 {
        self.0 * UNITS
    }
}

impl Figure {
    /// Its panels as figures of their own, with the ends of their names.
    pub fn panels_apart(&self, width: PaperWidth) -> Vec<(String, Self)> {
        let wide = width.units();
        let size = Size { width: wide, height: (0.62 * wide).clamp(200.0, 420.0) };
        let apart = |panel: &Panel| {
            let title = panel.title.clone();
            let panel = Panel { title: String::new(), ..panel.clone() };
            let one = Self { title, panels: vec![panel], columns: 1, panel: size };
            (slug(&one.title), one)
        };
        self.panels.iter().map(apart).collect()
    }

    /// The data that are drawn, a line a point.
    pub fn to_csv(&self) -> String {
        let mut text = "panel,series,mark,x,y,low,high\n".to_owned();
        for panel in &self.panels {
            for series in &panel.series {
                let start = format!("{},{},", quoted(&panel.title), quoted(name(panel, series)));
                for (kind, x, values) in points(&series.mark) {
                    let _ = writeln!(text, "{start}{kind},{},{values}", place(panel, x));
                }
            }
        }
        text
    }

    /// Its files under this name: SVG, PNG, PDF and the data as CSV; with a width also every panel for a
    /// paper, in the folder `paper`.
    pub fn files(&self, name: &str, paper: Option<PaperWidth>) -> Vec<(String, Vec<u8>)> {
        let mut files = vec![
            (format!("{name}.svg"), self.to_svg().into_bytes()),
            (format!("{name}.png"), self.to_png()),
            (format!("{name}.pdf"), self.to_pdf()),
            (format!("{name}.csv"), self.to_csv().into_bytes()),
        ];
        let Some(width) = paper else { return files };
        for (end, one) in self.panels_apart(width) {
            let name = format!("paper/{name}-{end}");
            let svg = one.to_paper_svg(width);
            files.push((format!("{name}.png"), super::png::png(&svg, DOTS / 96.0)));
            files.push((format!("{name}.pdf"), super::pdf::pdf(&svg)));
            files.push((format!("{name}.csv"), one.to_csv().into_bytes()));
            files.push((format!("{name}.svg"), svg.into_bytes()));
        }
        files
    }
}

/// Dots of an inch of a picture for a paper.
const DOTS: f32 = 600.0;

/// The name of a series; a band or a whisker has that of the line or the dots in its colour.
fn name<'a>(panel: &'a Panel, series: &'a Series) -> &'a str {
    let same = |other: &&Series| other.colour == series.colour && !other.name.is_empty();
    match series.name.as_str() {
        "" => panel.series.iter().find(same).map_or("", |other| &other.name),
        name => name,
    }
}

/// Kind, place, and the cells of the value and of the ends of an interval.
fn points(mark: &Mark) -> Vec<(&'static str, f64, String)> {
    let plain = |kind: &'static str, all: &[(f64, f64)]| {
        all.iter().map(|&(x, y)| (kind, x, format!("{y},,"))).collect()
    };
    match mark {
        Mark::Cloud(all) | Mark::Dots(all) => plain("point", all),
        Mark::Line(all) | Mark::Dashes(all) => plain("line", all),
        Mark::Whisker(all) => plain("interval", all),
        Mark::Band(all) => {
            all.iter().map(|&(x, low, high)| ("band", x, format!(",{low},{high}"))).collect()
        }
    }
}

/// A horizontal place, by its name if it has one.
fn place(panel: &Panel, x: f64) -> String {
    let names = &panel.x.names;
    let named = (x >= 1.0).then(|| names.get(x as usize - 1)).flatten();
    named.map_or_else(|| x.to_string(), |name| quoted(name))
}

fn quoted(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// A title as the end of the name of a file.
fn slug(title: &str) -> String {
    let plain: String = title
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    if words.is_empty() { "figure".to_owned() } else { words.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Colour, Scale};

    fn figure() -> Figure {
        let series = |name: &str, mark| Series { name: name.into(), colour: Colour::Blue, mark };
        let panel = Panel {
            title: "success, over rounds".into(),
            x: Axis::new("round", Scale::Linear),
            y: Axis::new("success, %", Scale::Linear),
            series: vec![
                series("", Mark::Band(vec![(0.0, 1.0, 3.0), (1.0, 2.0, 4.0)])),
                series("a", Mark::Line(vec![(0.0, 2.0), (1.0, 3.0)])),
                series("", Mark::Dots(vec![(0.5, 2.5)])),
            ],
        };
        let panel_size = Size { width: 300.0, height: 200.0 };
        Figure { title: "t".into(), panels: vec![panel; 2], columns: 2, panel: panel_size }
    }

    #[test]
    fn a_width_is_read_in_three_units_and_nothing_else() {
        assert_eq!(PaperWidth::parse("3.5in").unwrap().inches(), 3.5);
        assert!((PaperWidth::parse("8.89 cm").unwrap().inches() - 3.5).abs() < 1e-12);
        assert!((PaperWidth::parse("88.9mm").unwrap().inches() - 3.5).abs() < 1e-12);
        for wrong in ["3.5", "in", "0.2in", "nanin", "1e9mm", "-3in"] {
            assert!(PaperWidth::parse(wrong).unwrap_err().contains("as in `3.5in`"), "{wrong}");
        }
    }

    #[test]
    fn a_figure_has_four_files_and_on_paper_four_for_each_panel() {
        assert_eq!(figure().files("f", None).len(), 4);
        let files = figure().files("f", PaperWidth::parse("3.5in").ok());
        assert_eq!(files.len(), 4 + 2 * 4);
        let find = |name: &str| &files.iter().find(|(found, _)| found == name).unwrap().1;
        let svg = String::from_utf8(find("paper/f-success-over-rounds.svg").clone()).unwrap();
        assert!(svg.contains("width=\"3.5in\""), "{svg}");
        assert!(!svg.contains(">success, over rounds</text>"), "no title inside");
        assert!(svg.contains("stroke-dasharray"), "lines differ without colours");
        let png = resvg::tiny_skia::Pixmap::decode_png(find("paper/f-success-over-rounds.png"));
        assert_eq!(png.unwrap().width(), 2100);
        let pdf = String::from_utf8_lossy(find("paper/f-success-over-rounds.pdf")).into_owned();
        assert!(pdf.starts_with("%PDF-1.4\n") && pdf.ends_with("%%EOF\n"));
        assert!(pdf.contains("/MediaBox [0 0 252.000 "), "{pdf}");
    }

    #[test]
    fn the_data_behind_a_figure_are_all_there_with_their_names() {
        let text = figure().to_csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 5);
        assert_eq!(lines[1], "\"success, over rounds\",a,band,0,,1,3");
        assert_eq!(lines[3], "\"success, over rounds\",a,line,0,2,,");
        assert_eq!(lines[5], "\"success, over rounds\",a,point,0.5,2.5,,");
    }
}
