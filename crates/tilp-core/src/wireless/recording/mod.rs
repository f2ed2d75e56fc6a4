//! Recorded channels, from a ray tracer or a measurement.
//!
//! Three kinds are read: the `.npz` file of `tools/sionna`, a CSV table of gains, and a folder of
//! DeepMIMO. All of them become a [`Recording`], and that a [`Trace`] for the world.

mod deepmimo;
mod npz;

use super::Trace;
use super::trace::TraceError;
use npz::Npz;

/// A recorded channel: gains, and optional data. Lists over rounds contain lists over
/// terminals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Where it was recorded, in the words of the file.
    pub scene: String,
    /// Seconds between rounds.
    pub interval_s: Option<f64>,
    /// Total gains in decibels.
    pub gains_db: Vec<Vec<f64>>,
    /// Whether there is a line of sight to the base station.
    pub sight: Option<Vec<Vec<bool>>>,
    /// Places in metres.
    pub places_m: Option<Vec<Vec<[f64; 3]>>>,
    /// Place of the station in metres.
    pub station_m: Option<[f64; 3]>,
    /// Spread of the delays of the paths (root mean square) in seconds.
    pub delay_spread_s: Option<Vec<Vec<f64>>>,
    /// Largest Doppler shift of a path in hertz.
    pub doppler_hz: Option<Vec<Vec<f64>>>,
    /// Footprints of obstacles: x and y of two corners, in metres.
    pub walls_m: Vec<[f64; 4]>,
}

/// Error in a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file is no archive.
    #[error("no .npz archive: {0}")]
    NotAnArchive(String),
    /// An array of the file.
    #[error("`{name}` {reason}")]
    Array {
        /// Its name.
        name: String,
        /// The error.
        reason: String,
    },
    /// Description in the file.
    #[error("`meta` {0}, expected JSON with \"format\": \"tilp-channel\" and \"version\": 1")]
    Meta(String),
    /// A table or its numbers.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A file of a folder.
    #[error("{name}: {reason}")]
    File {
        /// Its name.
        name: String,
        /// The error.
        reason: String,
    },
}

impl Recording {
    /// Reads the file that `tools/sionna` writes.
    pub fn from_npz(bytes: Vec<u8>) -> Result<Self, RecordingError> {
        let mut file = Npz::open(bytes)?;
        let meta = described(&file.text("meta")?)?;
        let gains = file.shaped("gain_db", &[None, None])?;
        let (rounds, n) = (gains.shape[0], gains.shape[1]);
        let table = [Some(rounds), Some(n)];
        let mut optional = |name: &str| -> Result<Option<Vec<Vec<f64>>>, RecordingError> {
            if !file.has(name) {
                return Ok(None);
            }
            Ok(Some(rows(&file.shaped(name, &table)?.values, n)))
        };
        let sight = optional("los")?;
        let (delay_spread_s, doppler_hz) = (optional("delay_spread_s")?, optional("doppler_hz")?);
        let places = match file.has("position_m") {
            true => Some(file.shaped("position_m", &[Some(rounds), Some(n), Some(3)])?),
            false => None,
        };
        let station = match file.has("base_m") {
            true => Some(file.shaped("base_m", &[Some(3)])?.values),
            false => None,
        };
        let walls = match file.has("walls_m") {
            true => file.shaped("walls_m", &[None, Some(4)])?.values,
            false => Vec::new(),
        };
        let point = |xyz: &[f64]| [xyz[0], xyz[1], xyz[2]];
        let recording = Self {
            scene: meta["scene"].as_str().unwrap_or("unknown").to_owned(),
            interval_s: meta["interval_s"].as_f64(),
            gains_db: rows(&gains.values, n),
            sight: sight.map(|rows| truths(&rows)),
            places_m: places.map(|all| {
                let of_round = |row: &[f64]| row.chunks_exact(3).map(point).collect();
                all.values.chunks_exact(3 * n.max(1)).map(of_round).collect()
            }),
            station_m: station.map(|xyz| point(&xyz)),
            delay_spread_s,
            doppler_hz,
            walls_m: walls
                .chunks_exact(4)
                .map(|box_| [box_[0], box_[1], box_[2], box_[3]])
                .collect(),
        };
        recording.checked()
    }

    /// Reads a table of total gains in dB: a header line, then one line per round with one
    /// comma-separated value per terminal.
    pub fn from_csv(text: &str) -> Result<Self, RecordingError> {
        let mut gains_db = Vec::new();
        for (index, line) in text.lines().skip(1).filter(|line| !line.trim().is_empty()).enumerate()
        {
            gains_db.push(parsed(line, index + 1)?);
        }
        Self { scene: "table of gains".into(), gains_db, ..Self::default() }.checked()
    }

    /// Reads a folder of DeepMIMO; `read` gives the bytes of a file of it, `names` are its files.
    pub fn from_deepmimo(
        names: &[String],
        read: &dyn Fn(&str) -> Result<Vec<u8>, RecordingError>,
    ) -> Result<Self, RecordingError> {
        deepmimo::read(names, read)?.checked()
    }

    /// Number of terminals.
    pub fn n_terminals(&self) -> usize {
        self.gains_db.first().map_or(0, Vec::len)
    }

    /// The channel for a cell with this number of terminals.
    pub fn trace(&self, n_terminals: usize) -> Result<Trace, TraceError> {
        Trace::from_gains_db(&self.gains_db, n_terminals)
    }

    /// Refuses what no world can use.
    fn checked(self) -> Result<Self, RecordingError> {
        self.trace(self.n_terminals())?;
        Ok(self)
    }
}

/// Description in a file.
fn described(text: &str) -> Result<serde_json::Value, RecordingError> {
    let meta: serde_json::Value =
        serde_json::from_str(text).map_err(|error| RecordingError::Meta(error.to_string()))?;
    if meta["format"] != "tilp-channel" || meta["version"] != 1 {
        let (format, version) = (&meta["format"], &meta["version"]);
        return Err(RecordingError::Meta(format!("says format {format}, version {version}")));
    }
    Ok(meta)
}

fn rows(values: &[f64], n: usize) -> Vec<Vec<f64>> {
    values.chunks_exact(n.max(1)).map(<[f64]>::to_vec).collect()
}

fn truths(rows: &[Vec<f64>]) -> Vec<Vec<bool>> {
    rows.iter().map(|row| row.iter().map(|value| *value != 0.0).collect()).collect()
}

fn parsed(line: &str, row: usize) -> Result<Vec<f64>, TraceError> {
    let number = |(terminal, cell): (usize, &str)| {
        let wrong = || TraceError::Value { row, terminal, value: cell.trim().to_owned() };
        let number = cell.trim().parse::<f64>().ok();
        number.filter(|value| value.is_finite()).ok_or_else(wrong)
    };
    line.split(',').enumerate().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::npz::tests::{npy, npz};
    use super::*;

    fn meta(text: &str) -> Vec<u8> {
        let bytes: Vec<f64> = text.bytes().map(f64::from).collect();
        npy(&bytes.len().to_string(), &bytes)
    }

    const META: &str =
        r#"{"format": "tilp-channel", "version": 1, "scene": "hall", "interval_s": 5.0}"#;

    #[test]
    fn a_ray_traced_file_tells_gains_sight_places_and_walls() {
        let file = npz(&[
            ("meta", meta(META)),
            ("gain_db", npy("2, 2", &[-80.0, -90.0, -83.0, -90.0])),
            ("los", npy("2, 2", &[1.0, 0.0, 1.0, 1.0])),
            ("position_m", npy("2, 2, 3", &[0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11.])),
            ("base_m", npy("3", &[1.0, 2.0, 3.0])),
            ("walls_m", npy("1, 4", &[0.0, 0.0, 5.0, 6.0])),
        ]);
        let found = Recording::from_npz(file).unwrap();
        assert_eq!((found.scene.as_str(), found.interval_s), ("hall", Some(5.0)));
        assert_eq!(found.sight.as_ref().unwrap()[0], [true, false]);
        assert_eq!(found.places_m.as_ref().unwrap()[1][0], [6.0, 7.0, 8.0]);
        assert_eq!(found.walls_m, [[0.0, 0.0, 5.0, 6.0]]);
        assert_eq!(found.doppler_hz, None);
        let trace = found.trace(2).unwrap();
        assert!((trace.total(0, 1).0 / trace.total(0, 2).0 - 2.0).abs() < 0.01);
    }

    #[test]
    fn a_table_has_a_row_for_each_round_and_what_is_no_number_is_named() {
        let found = Recording::from_csv("a,b\n-100,-90\n\n-110, -90\n").unwrap();
        assert_eq!(found.gains_db, [[-100.0, -90.0], [-110.0, -90.0]]);
        let refused = |text: &str| Recording::from_csv(text).unwrap_err().to_string();
        assert!(refused("a,b\n-100,x\n").contains("trace row 1, terminal 1 is `x`"));
        assert!(refused("a,b\n-100,-90\n-100\n").contains("trace row 2 has 1 terminals"));
        assert!(refused("a,b\n").contains("has no row"));
    }

    #[test]
    fn a_file_of_another_kind_or_shape_is_refused() {
        let gains = || ("gain_db", npy("1, 2", &[-80.0, -90.0]));
        let cases = [
            (npz(&[gains()]), "`meta` cannot be read"),
            (npz(&[("meta", meta("{}")), gains()]), "says format null"),
            (npz(&[("meta", meta("no")), gains()]), "`meta`"),
            (npz(&[("meta", meta(META)), ("gain_db", npy("2", &[1.0, 2.0]))]), "shape [2]"),
            (
                npz(&[("meta", meta(META)), gains(), ("los", npy("1, 1", &[1.0]))]),
                "`los` has shape [1, 1], expected [1, 2]",
            ),
            (
                npz(&[("meta", meta(META)), ("gain_db", npy("1, 1", &[f64::NAN]))]),
                "trace row 1, terminal 0 is `NaN`",
            ),
            (npz(&[("meta", meta(META)), ("gain_db", npy("0, 2", &[]))]), "has no row"),
        ];
        for (file, expected) in cases {
            let error = Recording::from_npz(file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
