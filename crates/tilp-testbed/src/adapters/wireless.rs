//! A probe that reads Linux's wireless statistics.

use std::fs;
use std::process::{Command, Stdio};

use super::kinds::ProbeAnswer;

/// Path of the wireless statistics in Linux.
const STATISTICS: &str = "/proc/net/wireless";
/// Most text of a statistic that is read.
const MAX_BYTES: usize = 64 << 10;

/// Power at the receiver of an interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// Received power in dBm.
    pub signal_dbm: f64,
    /// Noise power in dBm, where the driver reports it.
    pub noise_dbm: Option<f64>,
}

/// Why there is no signal to read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WirelessError {
    /// The statistics cannot be read.
    #[error("cannot read {what}: {reason}")]
    Unreadable {
        /// The file or program.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The interface is not among them, or is not connected.
    #[error("interface `{interface}` has no signal in {place}")]
    Absent {
        /// The interface.
        interface: String,
        /// The searched path.
        place: &'static str,
    },
}

impl Signal {
    /// From the text of `/proc/net/wireless`: two lines of header, then for every interface its name,
    /// a status, link quality, level and noise. Numbers may end with a dot. A noise of -256 says
    /// that the driver does not know it.
    pub fn from_statistics(text: &str, interface: &str) -> Option<Self> {
        let of_interface =
            |line: &&str| line.split_once(':').is_some_and(|(name, _)| name.trim() == interface);
        let (_, values) = text.lines().skip(2).find(of_interface)?.split_once(':')?;
        let number = |cell: &str| cell.trim_end_matches('.').parse::<f64>().ok();
        let mut cells = values.split_whitespace().skip(2);
        let (level, noise) = (number(cells.next()?)?, cells.next().and_then(number));
        let noise_dbm = noise.filter(|noise| *noise > -256.0 && *noise < 0.0);
        Some(Self { signal_dbm: level, noise_dbm }).filter(Self::is_dbm)
    }

    /// From what `iw dev INTERFACE link` prints.
    pub fn from_iw(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("signal:"))?;
        let value = line.trim().strip_suffix("dBm")?.trim();
        Some(Self { signal_dbm: value.parse().ok()?, noise_dbm: None }).filter(Self::is_dbm)
    }

    fn is_dbm(&self) -> bool {
        (-250.0..=50.0).contains(&self.signal_dbm)
    }
}

/// Reads the signal of an interface and turns it into a gain.
#[derive(Clone, Debug, PartialEq)]
pub struct WirelessProbe {
    /// The interface, such as `wlan0`.
    pub interface: String,
    /// Power that the base station sends with, in dBm: the gain is what is left of it.
    pub station_dbm: f64,
    /// Ask the program `iw` instead of reading the file, which newer kernels leave out.
    pub with_iw: bool,
}

impl WirelessProbe {
    /// The present channel.
    pub fn read(&self) -> Result<ProbeAnswer, WirelessError> {
        let (text, place) = match self.with_iw {
            true => (self.ask_iw()?, "the output of iw"),
            false => (read_statistics()?, STATISTICS),
        };
        let text: String = text.chars().take(MAX_BYTES).collect();
        let found = match self.with_iw {
            true => Signal::from_iw(&text),
            false => Signal::from_statistics(&text, &self.interface),
        };
        let absent = || WirelessError::Absent { interface: self.interface.clone(), place };
        Ok(self.answer(found.ok_or_else(absent)?))
    }

    /// The gain behind a signal.
    pub fn answer(&self, signal: Signal) -> ProbeAnswer {
        ProbeAnswer {
            gain_db: signal.signal_dbm - self.station_dbm,
            signal_dbm: Some(signal.signal_dbm),
            noise_dbm: signal.noise_dbm,
        }
    }

    fn ask_iw(&self) -> Result<String, WirelessError> {
        let wrong = |reason: String| WirelessError::Unreadable { what: "iw", reason };
        let mut command = Command::new("iw");
        command.args(["dev", &self.interface, "link"]).stdin(Stdio::null());
        let output = command.output().map_err(|error| wrong(error.to_string()))?;
        if !output.status.success() {
            return Err(wrong(output.status.to_string()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn read_statistics() -> Result<String, WirelessError> {
    let read = fs::read_to_string(STATISTICS);
    read.map_err(|error| WirelessError::Unreadable { what: STATISTICS, reason: error.to_string() })
}
