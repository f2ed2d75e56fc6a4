//! The figures of a channel: gains over time and a map.

use super::mean_gains_db;
use crate::plot::{Axis, Colour, Figure, Mark, Panel, Scale, Series, Size};
use crate::wireless::Recording;

/// Terminals whose gains are drawn: from the best to the worst, evenly.
const DRAWN: usize = 5;
const COLOURS: [Colour; DRAWN] =
    [Colour::Blue, Colour::Green, Colour::Orange, Colour::Vermilion, Colour::Purple];

/// Gains over time, and a map where places are known, with their names.
pub fn figures(channel: &Recording) -> Vec<(String, Figure)> {
    let mut drawn = vec![("gains".to_owned(), gains(channel))];
    drawn.extend(map(channel).map(|figure| ("map".to_owned(), figure)));
    drawn
}

fn gains(channel: &Recording) -> Figure {
    let means = mean_gains_db(channel);
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
    let picked = |k: usize| order.get(k * order.len().saturating_sub(1) / (DRAWN - 1)).copied();
    let mut shown: Vec<usize> = (0..DRAWN).filter_map(picked).collect();
    shown.dedup();
    let line = |terminal: usize| {
        let at = |(round, row): (usize, &Vec<f64>)| (round as f64 + 1.0, row[terminal]);
        Mark::Line(channel.gains_db.iter().enumerate().map(at).collect())
    };
    let over_time = shown.iter().zip(COLOURS).map(|(&terminal, colour)| Series {
        name: format!("terminal {terminal}"),
        colour,
        mark: line(terminal),
    });
    let sorted = order.iter().enumerate().map(|(at, &n)| (at as f64 + 1.0, means[n])).collect();
    let panels = vec![
        Panel {
            title: "gain over rounds".into(),
            x: Axis::new("round", Scale::Linear),
            y: Axis::new("gain, dB", Scale::Linear),
            series: over_time.collect(),
        },
        Panel {
            title: "mean gain of every terminal, best first".into(),
            x: Axis::new("terminals", Scale::Linear),
            y: Axis::new("gain, dB", Scale::Linear),
            series: vec![Series {
                name: String::new(),
                colour: Colour::Ink,
                mark: Mark::Dots(sorted),
            }],
        },
    ];
    Figure {
        title: format!("Channel: {}", channel.scene),
        panels,
        columns: 2,
        panel: Size { width: 480.0, height: 320.0 },
    }
}

/// Positions of terminals in the first round, and their paths.
fn map(channel: &Recording) -> Option<Figure> {
    let places = channel.places_m.as_ref()?;
    let first = places.first()?;
    let in_sight = |n: usize| channel.sight.as_ref().is_none_or(|sight| sight[0][n]);
    let dots = |wanted: bool| {
        let picked = first.iter().enumerate().filter(|(n, _)| in_sight(*n) == wanted);
        Mark::Dots(picked.map(|(_, place)| (place[0], place[1])).collect())
    };
    let mut series: Vec<Series> = Vec::new();
    for &[x0, y0, x1, y1] in &channel.walls_m {
        let around = vec![(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)];
        series.push(named("walls", Colour::Ink, Mark::Line(around)));
    }
    // The ways of all would cover the map.
    for n in 0..first.len().min(DRAWN) {
        let way: Vec<(f64, f64)> = places.iter().map(|row| (row[n][0], row[n][1])).collect();
        if way.iter().any(|place| *place != way[0]) {
            series.push(named("ways of the first five", Colour::Sky, Mark::Line(way)));
        }
    }
    series.push(named("in sight", Colour::Blue, dots(true)));
    series.push(named("out of sight", Colour::Vermilion, dots(false)));
    if let Some([x, y, _]) = channel.station_m {
        series.push(named("station", Colour::Green, Mark::Dots(vec![(x, y)])));
    }
    let (x, y, size) = to_scale(&series);
    let panel = Panel { title: String::new(), x, y, series };
    let title = format!("Map: {}", channel.scene);
    Some(Figure { title, panels: vec![panel], columns: 1, panel: size })
}

fn named(name: &str, colour: Colour, mark: Mark) -> Series {
    Series { name: name.to_owned(), colour, mark }
}

/// Axes and a panel with the same scale in both directions.
fn to_scale(series: &[Series]) -> (Axis, Axis, Size) {
    /// Margin for labels beside the data.
    const BESIDE: (f64, f64) = (78.0, 76.0);
    const WIDTH: f64 = 620.0;
    let points = || series.iter().flat_map(|one| one.mark.points());
    let range = |pick: fn(&(f64, f64)) -> f64| {
        let ends = points()
            .map(|point| pick(&point))
            .fold((f64::MAX, f64::MIN), |ends, value| (ends.0.min(value), ends.1.max(value)));
        let room = 0.04 * (ends.1 - ends.0).max(1.0);
        (ends.0 - room, ends.1 + room)
    };
    let (across, up) = (range(|point| point.0), range(|point| point.1));
    let ratio = ((up.1 - up.0) / (across.1 - across.0)).clamp(0.2, 1.5);
    let axis = |name: &str, (low, high)| Axis::new(name, Scale::Linear).over(low, high);
    let size = Size { width: WIDTH + BESIDE.0, height: ratio * WIDTH + BESIDE.1 };
    (axis("x, m", across), axis("y, m", up), size)
}
