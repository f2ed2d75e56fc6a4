//! Arrays out of NumPy's `.npz` files. Nothing is believed before it is checked: sizes are bounded, and
//! an array is read only if its header fits the bytes that are there.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::RecordingError;

/// The most bytes that one array may have.
const MOST_BYTES: u64 = 256 << 20;

/// An archive of arrays.
pub(super) struct Npz(ZipArchive<Cursor<Vec<u8>>>);

/// Numbers with their shape, in C order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f64>,
}

fn wrong(name: &str, reason: impl Into<String>) -> RecordingError {
    RecordingError::Array { name: name.to_owned(), reason: reason.into() }
}

impl Npz {
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, RecordingError> {
        let archive = ZipArchive::new(Cursor::new(bytes));
        archive.map(Self).map_err(|error| RecordingError::NotAnArchive(error.to_string()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// The bytes of an array's file.
    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, RecordingError> {
        let entry = self.0.by_name(&format!("{name}.npy"));
        let entry = entry.map_err(|error| wrong(name, format!("cannot be read: {error}")))?;
        let mut bytes = Vec::new();
        let read = entry.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| wrong(name, format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(wrong(name, format!("is larger than {MOST_BYTES} bytes")));
        }
        Ok(bytes)
    }

    pub(super) fn array(&mut self, name: &str) -> Result<Array, RecordingError> {
        let bytes = self.bytes(name)?;
        parse(&bytes).map_err(|reason| wrong(name, reason))
    }

    /// An array of a shape; `None` means any length.
    pub(super) fn shaped(
        &mut self,
        name: &str,
        expected: &[Option<usize>],
    ) -> Result<Array, RecordingError> {
        let array = self.array(name)?;
        let fits = array.shape.len() == expected.len()
            && array.shape.iter().zip(expected).all(|(found, one)| one.is_none_or(|n| n == *found));
        if fits {
            return Ok(array);
        }
        let expected: Vec<String> =
            expected.iter().map(|one| one.map_or("any".into(), |n| n.to_string())).collect();
        let (found, expected) = (array.shape, expected.join(", "));
        Err(wrong(name, format!("has shape {found:?}, expected [{expected}]")))
    }

    /// An array of bytes as text.
    pub(super) fn text(&mut self, name: &str) -> Result<String, RecordingError> {
        let array = self.array(name)?;
        let bytes = array.values.iter().map(|value| *value as u8).collect();
        String::from_utf8(bytes).map_err(|_| wrong(name, "is no UTF-8"))
    }
}

/// What an array is made of.
#[derive(Clone, Copy)]
struct Kind {
    size: usize,
    read: fn(&[u8]) -> f64,
}

fn kind(name: &str) -> Option<Kind> {
    // Chunks have the size given with the reader.
    macro_rules! kind {
        ($number:ty) => {
            Kind {
                size: size_of::<$number>(),
                read: |bytes| <$number>::from_le_bytes(bytes.try_into().unwrap_or_default()) as f64,
            }
        };
    }
    Some(match name {
        "<f8" => kind!(f64),
        "<f4" => kind!(f32),
        "|u1" | "|b1" => kind!(u8),
        "|i1" => kind!(i8),
        "<u2" => kind!(u16),
        "<i2" => kind!(i16),
        "<u4" => kind!(u32),
        "<i4" => kind!(i32),
        "<i8" => kind!(i64),
        _ => return None,
    })
}

/// Reads a `.npy` file: magic, version, length of the header, header, data.
fn parse(bytes: &[u8]) -> Result<Array, String> {
    let short = || "is cut short".to_owned();
    let (start, rest) = bytes.split_at_checked(8).ok_or_else(short)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("is no array of NumPy".into());
    }
    let length = if start[6] == 1 { 2 } else { 4 };
    let (length, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let length = length.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "has a header that is no text")?;
    let name = quoted(header, "descr").ok_or("has no kind of number in its header")?;
    let kind = kind(name).ok_or_else(|| format!("is made of `{name}`, expected plain numbers"))?;
    if after(header, "fortran_order").is_none_or(|text| !text.starts_with("False")) {
        return Err("is in Fortran order, expected C order".into());
    }
    let shape = shape(header).ok_or("has no shape in its header")?;
    let count = shape.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
    let size = count.and_then(|count| count.checked_mul(kind.size));
    if size != Some(data.len()) {
        return Err(format!("has {} bytes, its header says {shape:?} of `{name}`", data.len()));
    }
    Ok(Array { shape, values: data.chunks_exact(kind.size).map(kind.read).collect() })
}

/// What follows a key of the header.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

fn quoted<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    after(header, key)?.strip_prefix('\'')?.split('\'').next()
}

fn shape(header: &str) -> Option<Vec<usize>> {
    let inside = after(header, "shape")?.strip_prefix('(')?.split(')').next()?;
    let numbers = inside.split(',').map(str::trim).filter(|text| !text.is_empty());
    numbers.map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;

    use super::*;

    /// A `.npy` file of numbers.
    pub(in crate::wireless) fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        bytes
    }

    /// An archive of such files.
    pub(in crate::wireless) fn npz(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn numbers_come_back_with_their_shape() {
        let mut file = Npz::open(npz(&[("a", npy("2, 3", &[1., 2., 3., 4., 5., 6.]))])).unwrap();
        let array = file.shaped("a", &[None, Some(3)]).unwrap();
        assert_eq!((array.shape, array.values[4]), (vec![2, 3], 5.0));
        let error = file.shaped("a", &[None, Some(2)]).unwrap_err().to_string();
        assert_eq!(error, "`a` has shape [2, 3], expected [any, 2]");
    }

    #[test]
    fn what_is_damaged_is_refused_with_a_reason() {
        let good = npy("2", &[1.0, 2.0]);
        let cases: [(Vec<u8>, &str); 6] = [
            (good[..good.len() - 1].to_vec(), "has 15 bytes"),
            (good[..9].to_vec(), "is cut short"),
            (b"PK and more text".to_vec(), "is no array of NumPy"),
            (npy("99999999999, 99999999999", &[]), "its header says"),
            (String::from_utf8_lossy(&good).replace("<f8", "|O8").into_bytes(), "is"),
            (npy("-3", &[]), "has no shape"),
        ];
        for (bytes, expected) in cases {
            let mut file = Npz::open(npz(&[("a", bytes)])).unwrap();
            let error = file.array("a").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Npz::open(b"no archive".to_vec()).is_err());
        assert!(Npz::open(npz(&[])).unwrap().array("a").is_err());
    }
}
