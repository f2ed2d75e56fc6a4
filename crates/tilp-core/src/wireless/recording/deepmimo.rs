//! Folders of DeepMIMO (version 4): one file for each quantity of the paths between a transmitter and a
//! set of receivers, such as `power_t001_tx000_r000.npz`.

use super::npz::{Array, Npz};
use super::{Recording, RecordingError};

/// The code of a path without interaction.
const IN_SIGHT: f64 = 0.0;

/// Reads the first pair of transmitter and receivers of a folder. There is one snapshot, so it is a
/// recording of one round. Receivers that no path reaches are left out: no round can serve them.
pub(super) fn read(
    names: &[String],
    read: &dyn Fn(&str) -> Result<Vec<u8>, RecordingError>,
) -> Result<Recording, RecordingError> {
    let pair = first_pair(names).ok_or_else(|| RecordingError::File {
        name: "power_*.npz".into(),
        reason: "is not there, expected a folder of DeepMIMO".into(),
    })?;
    let array = |key: &str| -> Result<Array, RecordingError> {
        let name = format!("{key}_{pair}.npz");
        let in_file = |error: RecordingError| RecordingError::File {
            name: name.clone(),
            reason: error.to_string(),
        };
        Npz::open(read(&name)?).and_then(|mut file| file.array(key)).map_err(in_file)
    };
    let (power, phase) = (array("power")?, array("phase")?);
    let (delay, kinds) = (array("delay")?, array("inter")?);
    let (places, station) = (array("rx_pos")?, array("tx_pos")?);
    let [n, most] = power.shape[..] else { return Err(odd("power", &power, "[receivers, paths]")) };
    for (key, other) in [("phase", &phase), ("delay", &delay), ("inter", &kinds)] {
        if other.shape != power.shape {
            return Err(odd(key, other, "that of power"));
        }
    }
    if places.shape != [n, 3] || station.values.len() < 3 {
        return Err(odd("rx_pos", &places, "[receivers, 3]"));
    }
    let links: Vec<Link> = (0..n)
        .filter_map(|rx| {
            let of = |array: &Array| array.values[rx * most..][..most].to_vec();
            let place = [0, 1, 2].map(|axis| places.values[3 * rx + axis]);
            Link::of(&of(&power), &of(&phase), &of(&delay), &of(&kinds), place)
        })
        .collect();
    let station = [0, 1, 2].map(|axis| station.values[axis]);
    Ok(Recording {
        scene: format!("DeepMIMO, {pair}"),
        gains_db: vec![links.iter().map(|link| link.gain_db).collect()],
        sight: Some(vec![links.iter().map(|link| link.sight).collect()]),
        places_m: Some(vec![links.iter().map(|link| link.place).collect()]),
        delay_spread_s: Some(vec![links.iter().map(|link| link.delay_spread_s).collect()]),
        station_m: Some(station),
        ..Recording::default()
    })
}

/// Name of the first pair that has powers.
fn first_pair(names: &[String]) -> Option<&str> {
    names.iter().filter_map(|name| name.strip_prefix("power_")?.strip_suffix(".npz")).min()
}

fn odd(key: &str, array: &Array, expected: &str) -> RecordingError {
    let reason = format!("has shape {:?}, expected {expected}", array.shape);
    RecordingError::Array { name: key.to_owned(), reason }
}

/// What the paths to a receiver make together.
struct Link {
    gain_db: f64,
    sight: bool,
    delay_spread_s: f64,
    place: [f64; 3],
}

impl Link {
    /// Powers in dB (for 0 dB sent), phases in degrees; paths that are not there are no numbers. None
    /// without a path.
    fn of(
        power_db: &[f64],
        phase_deg: &[f64],
        delay_s: &[f64],
        kinds: &[f64],
        place: [f64; 3],
    ) -> Option<Self> {
        let there = |path: &usize| {
            [power_db[*path], phase_deg[*path], delay_s[*path]].iter().all(|one| one.is_finite())
        };
        let paths: Vec<usize> = (0..power_db.len()).filter(there).collect();
        let power = |path: usize| crate::units::from_db(power_db[path]);
        let sum = |part: fn(f64) -> f64| -> f64 {
            paths.iter().map(|&p| power(p).sqrt() * part(phase_deg[p].to_radians())).sum()
        };
        let (real, imaginary) = (sum(f64::cos), sum(f64::sin));
        let total: f64 = paths.iter().map(|&path| power(path)).sum();
        let mean = paths.iter().map(|&p| power(p) * delay_s[p]).sum::<f64>() / total;
        let square =
            paths.iter().map(|&p| power(p) * (delay_s[p] - mean).powi(2)).sum::<f64>() / total;
        let gain = real * real + imaginary * imaginary;
        (gain > 0.0).then(|| Self {
            gain_db: crate::units::to_db(gain),
            sight: paths.iter().any(|&path| kinds[path] == IN_SIGHT),
            delay_spread_s: square.sqrt(),
            place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wireless::recording::npz::tests::{npy, npz};

    /// Three receivers with two paths at most: both in phase, one path, none.
    fn folder() -> Vec<(String, Vec<u8>)> {
        let none = f64::NAN;
        let two = |key: &str, values: [f64; 6]| (key.to_owned(), npy("3, 2", &values));
        let arrays = [
            two("power", [-80.0, -80.0, -100.0, none, none, none]),
            two("phase", [10.0, 10.0, 0.0, none, none, none]),
            two("delay", [1e-7, 3e-7, 1e-7, none, none, none]),
            two("inter", [0.0, 1.0, 2.0, none, none, none]),
            ("rx_pos".into(), npy("3, 3", &[0., 0., 1., 5., 0., 1., 9., 0., 1.])),
            ("tx_pos".into(), npy("3", &[0.0, 0.0, 10.0])),
        ];
        let file = |(key, bytes): (String, Vec<u8>)| {
            (format!("{key}_t001_tx000_r000.npz"), npz(&[(&key, bytes)]))
        };
        arrays.into_iter().map(file).collect()
    }

    fn read_folder(files: &[(String, Vec<u8>)]) -> Result<Recording, RecordingError> {
        let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        let bytes = |wanted: &str| {
            let found = files.iter().find(|(name, _)| name == wanted);
            found.map(|(_, bytes)| bytes.clone()).ok_or_else(|| RecordingError::File {
                name: wanted.to_owned(),
                reason: "is not there".into(),
            })
        };
        Recording::from_deepmimo(&names, &bytes)
    }

    #[test]
    fn paths_add_up_and_who_has_none_is_left_out() {
        let found = read_folder(&folder()).unwrap();
        assert_eq!(found.n_terminals(), 2);
        // Two equal paths in phase have four times the power of one.
        assert!((found.gains_db[0][0] + 80.0 - 6.0206).abs() < 1e-3);
        assert!((found.gains_db[0][1] + 100.0).abs() < 1e-9);
        assert_eq!(found.sight.unwrap()[0], [true, false]);
        assert!((found.delay_spread_s.unwrap()[0][0] - 1e-7).abs() < 1e-12);
        assert_eq!(found.places_m.unwrap()[0][1], [5.0, 0.0, 1.0]);
    }

    #[test]
    fn a_folder_that_misses_something_says_what() {
        let mut files = folder();
        files.retain(|(name, _)| !name.starts_with("delay"));
        let error = read_folder(&files).unwrap_err().to_string();
        assert_eq!(error, "delay_t001_tx000_r000.npz: is not there");
        assert!(read_folder(&[]).unwrap_err().to_string().contains("expected a folder"));
    }
}
