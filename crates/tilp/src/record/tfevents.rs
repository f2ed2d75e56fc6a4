//! Scalars over rounds for TensorBoard: protobuf messages in checksummed frames.

use super::RoundRow;
use super::metrics::improvement;

/// Writes success, its improvement, latency, energy, loss and violation over rounds.
#[derive(Clone, Debug)]
pub struct ScalarEvents {
    /// Wall time of the start of the run. Each round is stamped with it plus the simulated clock,
    /// so that TensorBoard's axis of relative time shows simulated seconds.
    start_s: f64,
    /// Success as last measured.
    success: Option<f64>,
}

impl ScalarEvents {
    /// Before the first round of a run that started at this wall time, in seconds since 1970.
    pub fn new(start_s: u64) -> Self {
        Self { start_s: start_s as f64, success: None }
    }

    /// The bytes with which a file begins.
    pub fn start(&self) -> Vec<u8> {
        let mut version = double(1, self.start_s);
        version.extend(bytes(3, b"brain.Event:2"));
        frame(&version)
    }

    /// The bytes of the next round.
    pub fn round(&mut self, row: &RoundRow) -> Vec<u8> {
        let improvement = match (self.success, row.report_success) {
            (Some(before), Some(now)) => Some(improvement(before, now)),
            _ => None,
        };
        self.success = row.report_success.or(self.success);
        let scalars = [
            ("success", row.report_success),
            ("success_improvement", improvement),
            ("latency_s", Some(row.latency_s)),
            ("energy_j", Some(row.energy_j)),
            ("loss", row.loss),
            ("violation", Some(row.violation)),
        ];
        let values = scalars.iter().filter_map(|(tag, value)| Some(scalar(tag, (*value)?)));
        let mut event = double(1, self.start_s + row.clock_s);
        event.extend(field(2, 0));
        event.extend(varint(row.round));
        event.extend(bytes(5, &values.flatten().collect::<Vec<_>>()));
        frame(&event)
    }
}

/// One value of a summary message.
fn scalar(tag: &str, value: f64) -> Vec<u8> {
    let mut message = bytes(1, tag.as_bytes());
    message.extend(field(2, 5));
    message.extend((value as f32).to_le_bytes());
    bytes(1, &message)
}

/// Length, its checksum, the data, its checksum.
fn frame(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let check = |data: &[u8]| masked(crc32c(data)).to_le_bytes();
    [&length[..], &check(&length), data, &check(data)].concat()
}

/// Number and wire type of a protobuf field: 0 varint, 1 eight bytes, 2 counted, 5 four bytes.
fn field(number: u64, wire_type: u64) -> Vec<u8> {
    varint(number << 3 | wire_type)
}

fn double(number: u64, value: f64) -> Vec<u8> {
    let mut message = field(number, 1);
    message.extend(value.to_le_bytes());
    message
}

fn bytes(number: u64, data: &[u8]) -> Vec<u8> {
    let mut message = field(number, 2);
    message.extend(varint(data.len() as u64));
    message.extend(data);
    message
}

/// Seven bits a byte, the lowest first.
fn varint(mut value: u64) -> Vec<u8> {
    let mut message = Vec::new();
    while value >= 128 {
        message.push(value as u8 | 128);
        value >>= 7;
    }
    message.push(value as u8);
    message
}

/// Checksums are stored rotated and shifted, since data with checksums in it weakens them.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C, Castagnoli's polynomial.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, byte| CRC[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::history;

    /// The data of each frame, checksums verified.
    fn frames(mut file: &[u8]) -> Vec<&[u8]> {
        let mut found = Vec::new();
        while !file.is_empty() {
            let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
            let (header, rest) = file.split_at(12);
            assert_eq!(header[8..], masked(crc32c(&header[..8])).to_le_bytes());
            let (data, rest) = rest.split_at(length);
            assert_eq!(rest[..4], masked(crc32c(data)).to_le_bytes());
            found.push(data);
            file = &rest[4..];
        }
        found
    }

    #[test]
    fn the_checksum_has_its_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn a_varint_has_seven_bits_a_byte() {
        assert_eq!(varint(0), [0]);
        assert_eq!(varint(300), [0b1010_1100, 0b10]);
        assert_eq!(varint(u64::MAX).len(), 10);
    }

    #[test]
    fn each_round_is_one_event_with_the_values_it_has() {
        let mut scalars = ScalarEvents::new(1_000_000_000);
        let mut file = scalars.start();
        history(4).rounds.iter().for_each(|row| file.extend(scalars.round(row)));
        let frames = frames(&file);
        assert_eq!(frames.len(), 5);
        let has = |n: usize, tag: &str| frames[n].windows(tag.len()).any(|w| w == tag.as_bytes());
        assert!(has(0, "brain.Event:2"));
        assert!(has(1, "latency_s") && !has(1, "success") && !has(1, "loss"));
        assert!(
            has(2, "success") && !has(2, "success_improvement") && has(4, "success_improvement")
        );
        assert_eq!(frames[4][1..9], (1e9f64 + 8.0).to_le_bytes());
    }
}
