//! The log of exchanges since the last checkpoint.
//!
//! A station that was killed resumes from its checkpoint. Its exchanges since then are in this
//! log, so it does not ask again: it computes the same requests and finds their answers here.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use prost::Message;
use sha2::{Digest, Sha256};

use crate::contract::journal::Exchange;
use crate::contract::v1::Key;

/// Largest record of a log that is read.
const MOST_RECORD: usize = 128 * 1024 * 1024;

/// Length and checksum before each record.
const HEAD: usize = 12;

/// Keeps exchanges.
pub trait Log: Send {
    /// The exchange of this key.
    fn find(&self, key: &Key) -> Option<&Exchange>;
    /// Adds an exchange. Once this returns, it survives the process.
    fn append(&mut self, exchange: Exchange) -> io::Result<()>;
    /// Clears the log after a checkpoint.
    fn clear(&mut self) -> io::Result<()>;
}

/// Exchanges by terminal, round and step.
pub type Exchanges = BTreeMap<(u32, u64, u32), Exchange>;

fn place(key: &Key) -> (u32, u64, u32) {
    (key.terminal, key.round, key.step)
}

/// A log in memory: for simulations, and for what needs no survival.
#[derive(Clone, Debug, Default)]
pub struct MemoryLog(Exchanges);

impl Log for MemoryLog {
    fn find(&self, key: &Key) -> Option<&Exchange> {
        self.0.get(&place(key))
    }

    fn append(&mut self, exchange: Exchange) -> io::Result<()> {
        self.0.insert(exchange.key.as_ref().map(place).unwrap_or_default(), exchange);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.clear();
        Ok(())
    }
}

/// A log in a file that is appended to.
#[derive(Debug)]
pub struct FileLog {
    file: File,
    power_safe: bool,
    known: Exchanges,
}

impl FileLog {
    /// Opens or makes a log. A torn record at its end, which a killed process leaves, is cut off.
    pub fn open(path: &Path, power_safe: bool) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (known, length) = read_log(&bytes);
        file.set_len(length as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file, power_safe, known })
    }

    /// Number of exchanges.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// The exchanges in the bytes of a log by terminal, round and step, and the length of the records
/// that are whole.
pub fn read_log(bytes: &[u8]) -> (Exchanges, usize) {
    let (mut known, mut at) = (Exchanges::new(), 0);
    while let Some(record) = record(&bytes[at..]) {
        let Ok(exchange) = Exchange::decode(record) else { break };
        let Some(key) = exchange.key else { break };
        known.insert(place(&key), exchange);
        at += HEAD + record.len();
    }
    (known, at)
}

/// The first record of these bytes, if it is whole.
fn record(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let length = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
    let record = rest.get(..length).filter(|_| length <= MOST_RECORD)?;
    (checksum(record) == head[4..]).then_some(record)
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest[..8].try_into().expect("a digest has 32 bytes")
}

impl Log for FileLog {
    fn find(&self, key: &Key) -> Option<&Exchange> {
        self.known.get(&place(key))
    }

    fn append(&mut self, exchange: Exchange) -> io::Result<()> {
        let record = exchange.encode_to_vec();
        let length = u32::try_from(record.len()).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(HEAD + record.len());
        bytes.extend(length.to_le_bytes());
        bytes.extend(checksum(&record));
        bytes.extend(record);
        self.file.write_all(&bytes)?;
        if self.power_safe {
            self.file.sync_data()?;
        }
        // What this process has exchanged it will not ask for again: only what was read at the
        // start is kept in memory.
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.known.clear();
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(round: u64, step: u32) -> Exchange {
        let key = Some(Key { round, terminal: 3, step });
        Exchange { key, payload: vec![step as u8; 100], ..Exchange::default() }
    }

    fn path(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("tilp-log-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&folder);
        folder
    }

    #[test]
    fn a_log_is_there_again_after_it_was_closed() {
        let path = path("again");
        let mut log = FileLog::open(&path, false).unwrap();
        (1..=3).for_each(|step| log.append(exchange(7, step)).unwrap());
        drop(log);
        let log = FileLog::open(&path, false).unwrap();
        assert_eq!(log.len(), 3);
        let key = Key { round: 7, terminal: 3, step: 2 };
        assert_eq!(log.find(&key), Some(&exchange(7, 2)));
        assert_eq!(log.find(&Key { round: 8, ..key }), None);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_log_cut_anywhere_holds_the_whole_records_before_the_cut() {
        let path = path("cut");
        let mut log = FileLog::open(&path, false).unwrap();
        (1..=3).for_each(|step| log.append(exchange(7, step)).unwrap());
        let whole = std::fs::read(&path).unwrap();
        let length = whole.len() / 3;
        for cut in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut log = FileLog::open(&path, false).unwrap();
            assert_eq!(log.len(), cut / length, "cut at {cut}");
            log.append(exchange(9, 1)).unwrap();
            let again = FileLog::open(&path, false).unwrap();
            assert_eq!(again.len(), cut / length + 1, "cut at {cut}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_flipped_bit_ends_the_log_there() {
        let path = path("flip");
        let mut log = FileLog::open(&path, false).unwrap();
        (1..=3).for_each(|step| log.append(exchange(7, step)).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(FileLog::open(&path, false).unwrap().len(), 1);
        std::fs::remove_file(path).unwrap();
    }
}
