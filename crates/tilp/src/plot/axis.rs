//! Axes: from data to pixels, and positions of the ticks.

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences, equal lengths.
    Linear,
    /// Equal ratios, equal lengths; what is not positive is left out.
    Log,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label, with the unit.
    pub label: String,
    /// Its scale.
    pub scale: Scale,
    /// From where to where; from the data if not given.
    pub range: Option<(f64, f64)>,
    /// Names of the ticks at 1, 2, 3 and so on; numbers if empty.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis whose range follows the data.
    pub fn new(label: &str, scale: Scale) -> Self {
        Self { label: label.into(), scale, range: None, names: Vec::new() }
    }

    /// An axis of named items: the first is at 1.
    pub fn of_names(label: &str, names: Vec<String>) -> Self {
        let range = Some((0.5, names.len() as f64 + 0.5));
        Self { label: label.into(), scale: Scale::Linear, range, names }
    }

    /// The same with a range.
    pub fn over(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// Whether a value has a place on the axis at all.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The axis laid out for these values.
    pub(super) fn laid_out(&self, values: impl Iterator<Item = f64>) -> Layout {
        let found = values.filter(|value| self.shows(*value)).fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        });
        let range = self.range.or(found.map(|(low, high)| self.padded(low, high)));
        let (low, high) = range.unwrap_or((1.0, 10.0));
        Layout {
            scale: self.scale,
            low: place(self.scale, low),
            high: place(self.scale, high),
            names: self.names.clone(),
        }
    }

    /// A margin on both sides, also if all values are equal.
    fn padded(&self, low: f64, high: f64) -> (f64, f64) {
        let (a, b) = (place(self.scale, low), place(self.scale, high));
        let room = match self.scale {
            Scale::Linear if b <= a => a.abs().max(1.0) * 0.5,
            Scale::Log if b <= a => 0.5,
            _ => 0.04 * (b - a),
        };
        match self.scale {
            // An axis of nothing negative starts at nothing negative.
            Scale::Linear if low >= 0.0 => ((a - room).max(0.0), b + room),
            Scale::Linear => (a - room, b + room),
            Scale::Log => (10f64.powf(a - room), 10f64.powf(b + room)),
        }
    }
}

fn place(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => value.log10(),
    }
}

/// An axis with its range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    scale: Scale,
    /// In logarithms on a logarithmic axis.
    low: f64,
    high: f64,
    names: Vec<String>,
}

impl Layout {
    /// Position of a value, 0 at the start of the axis and 1 at its end.
    pub(super) fn share(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        if span > 0.0 { (place(self.scale, value) - self.low) / span } else { 0.5 }
    }

    /// Values with a tick, and their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            let named = |(at, name): (usize, &String)| (at as f64 + 1.0, name.clone());
            return self.names.iter().enumerate().map(named).collect();
        }
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high),
            Scale::Log => {
                let ticks = self.log_ticks();
                // Within a narrow range there may be no round ratio.
                let ends = [self.low, self.high].map(|end| 10f64.powf(end));
                if ticks.len() < 3 && ends[1] < 2.0 * ends[0] {
                    return linear_ticks(ends[0], ends[1]);
                }
                ticks
            }
        }
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = self.high - self.low;
        if !decades.is_finite() || decades <= 0.0 {
            return Vec::new();
        }
        let within: &[f64] = match decades {
            d if d < 0.6 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d < 1.1 => &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d < 2.2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (decades / 6.0).ceil().max(1.0) as i32;
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        (first..=last)
            .filter(|decade| decade.rem_euclid(every) == 0)
            .flat_map(|decade| within.iter().map(move |m| m * 10f64.powi(decade)))
            .filter(|value| (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10()))
            .map(|value| (value, log_label(value)))
            .collect()
    }
}

fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    let rough = span / 7.0;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|s| *s >= rough);
    let step = step.unwrap_or(10.0 * decade);
    let first = (low / step - 1e-9).ceil();
    let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    let label = |value: f64| match value.abs() >= 1e6 {
        true => format!("{value:.0e}"),
        false => format!("{value:.digits$}"),
    };
    (0..12)
        // Adding zero makes a negative zero a plain one.
        .map(|i| (first + f64::from(i)) * step + 0.0)
        .take_while(|value| *value <= high + 1e-9 * span)
        .map(|value| (value, label(value)))
        .collect()
}

/// Plain where that is short, a power of ten elsewhere.
fn log_label(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        let digits = (-value.log10().floor()).max(0.0) as usize + 1;
        let text = format!("{value:.digits$}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.0e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, low: f64, high: f64) -> Vec<String> {
        let layout = Axis::new("", scale).over(low, high).laid_out(std::iter::empty());
        layout.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_stand_at_round_values() {
        assert_eq!(labels(Scale::Linear, 0.0, 100.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(Scale::Linear, -0.1, 0.31), ["-0.1", "0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(Scale::Log, 0.01, 100.0), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(Scale::Log, 0.9, 21.0), ["1", "2", "5", "10", "20"]);
        let decade = ["300", "400", "500", "700", "1000", "2000", "3000"];
        assert_eq!(labels(Scale::Log, 260.0, 3100.0), decade);
        assert_eq!(labels(Scale::Log, 1e-6, 1e6).len(), 7);
        assert_eq!(labels(Scale::Log, 5.1, 5.9), ["5.2", "5.4", "5.6", "5.8"]);
    }

    #[test]
    fn things_with_names_stand_side_by_side() {
        let axis = Axis::of_names("", vec!["drop".into(), "wait".into()]);
        let layout = axis.laid_out(std::iter::empty());
        assert_eq!(layout.ticks(), [(1.0, "drop".to_owned()), (2.0, "wait".to_owned())]);
        assert_eq!((layout.share(1.0), layout.share(2.0)), (0.25, 0.75));
    }

    #[test]
    fn no_range_has_more_ticks_than_can_be_read() {
        for (low, high) in [(1e-300, 1e300), (1.0, 1.0 + 1e-9), (3.0, 3.2), (1.0, 1e5)] {
            for scale in [Scale::Linear, Scale::Log] {
                assert!(labels(scale, low, high).len() <= 12, "{scale:?} {low} {high}");
            }
        }
    }

    #[test]
    fn the_range_follows_the_values_with_a_little_room() {
        let axis = Axis::new("", Scale::Linear);
        let layout = axis.laid_out([3.0, f64::NAN, 1.0, 2.0].into_iter());
        assert!(layout.share(1.0) > 0.0 && layout.share(3.0) < 1.0);
        assert_eq!(layout.share(2.0), 0.5);
        assert_eq!(axis.laid_out([0.0, 4.0].into_iter()).share(0.0), 0.0);
        let log = Axis::new("", Scale::Log).laid_out([-1.0, 1.0, 100.0].into_iter());
        assert!((log.share(10.0) - 0.5).abs() < 1e-12);
    }
}
