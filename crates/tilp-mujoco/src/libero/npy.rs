//! LIBERO's fixed initial states: one NumPy array of doubles, a row for each state.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::Error;

/// The largest file that is read: LIBERO's have 50 rows and 44 KB.
const LIMIT_BYTES: u64 = 16 << 20;
/// Magic word and version 1.0, which NumPy writes unless a header exceeds 64 KB.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";

/// Reads a matrix with `columns` columns, row by row; every number must be finite.
pub(super) fn read_rows(path: &Path, columns: usize) -> Result<Vec<Vec<f64>>, Error> {
    let bytes = read_bounded(path)?;
    let (header, body) = split(path, &bytes)?;
    let rows = rows_of(path, header, columns)?;
    if body.len() != rows * columns * size_of::<f64>() {
        let expected = format!("{rows} x {columns} x 8");
        return Err(Error::value(path.display(), "data bytes", body.len(), expected));
    }
    let numbers: Vec<f64> = body.as_chunks().0.iter().map(|&raw| f64::from_le_bytes(raw)).collect();
    if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
        let field = format!("entry [{}, {}]", at / columns, at % columns);
        return Err(Error::value(path.display(), field, numbers[at], "a finite number"));
    }
    Ok(numbers.chunks(columns).map(<[f64]>::to_vec).collect())
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(|source| Error::read(path, source))?;
    let mut bytes = Vec::new();
    file.take(LIMIT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::read(path, source))?;
    if bytes.len() as u64 > LIMIT_BYTES {
        let place = path.display().to_string();
        return Err(Error::TooLarge { place, bytes: bytes.len() as u64, limit: LIMIT_BYTES });
    }
    Ok(bytes)
}

/// The text of the header and the data behind it.
fn split<'a>(path: &Path, bytes: &'a [u8]) -> Result<(&'a str, &'a [u8]), Error> {
    let wrong = |field: &str, expected: &str| {
        Error::value(path.display(), field, format!("{} bytes", bytes.len()), expected)
    };
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| wrong("file", "a NumPy array of format version 1.0"))?;
    let (length, rest) =
        rest.split_first_chunk().ok_or_else(|| wrong("file", "a header length"))?;
    let (header, body) = rest
        .split_at_checked(usize::from(u16::from_le_bytes(*length)))
        .ok_or_else(|| wrong("file", "the whole header"))?;
    let header = std::str::from_utf8(header).map_err(|_| wrong("header", "plain text"))?;
    Ok((header, body))
}

/// The number of rows, if the header promises doubles in rows of `columns`.
fn rows_of(path: &Path, header: &str, columns: usize) -> Result<usize, Error> {
    let header = header.trim_end();
    let wrong = || {
        let expected =
            format!("'descr': '<f8', 'fortran_order': False, 'shape': (rows, {columns})");
        Error::value(path.display(), "header", header.escape_debug(), expected)
    };
    if !header.contains("'descr': '<f8'") || !header.contains("'fortran_order': False") {
        return Err(wrong());
    }
    let (_, shape) = header.split_once("'shape': (").ok_or_else(wrong)?;
    let (shape, _) = shape.split_once(')').ok_or_else(wrong)?;
    let sizes: Option<Vec<usize>> = shape.split(',').map(|size| size.trim().parse().ok()).collect();
    match sizes.as_deref() {
        // No file below the limit has more rows, and the product below cannot overflow.
        Some(&[rows, found]) if found == columns && (1..=100_000).contains(&rows) => Ok(rows),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("tilp-npy-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file in the temporary folder");
        path
    }

    fn array(shape: &str, numbers: &[f64]) -> Vec<u8> {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u16::try_from(header.len()).expect("a short header").to_le_bytes();
        let data = numbers.iter().flat_map(|number| number.to_le_bytes());
        [MAGIC, &length, header.as_bytes()].concat().into_iter().chain(data).collect()
    }

    fn complaint(name: &str, bytes: &[u8]) -> String {
        let path = file(name, bytes);
        let error = read_rows(&path, 3).expect_err("a bad file").to_string();
        std::fs::remove_file(&path).expect("the file just written");
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    }

    #[test]
    fn a_matrix_is_read_row_by_row() {
        let path = file("good", &array("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let rows = read_rows(&path, 3).expect("a good file");
        std::fs::remove_file(&path).expect("the file just written");
        assert_eq!(rows, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    }

    #[test]
    fn a_file_cut_short_anywhere_is_refused() {
        let whole = array("(2, 3)", &[0.0; 6]);
        for length in 0..whole.len() {
            complaint("cut", &whole[..length]);
        }
    }

    #[test]
    fn a_file_of_another_shape_kind_or_size_is_refused() {
        for shape in ["(3, 2)", "(6,)", "()", "(2, 3, 1)", "(-2, 3)", "(2, 3"] {
            assert!(complaint("shape", &array(shape, &[0.0; 6])).contains("(rows, 3)"));
        }
        let huge = complaint("huge", &array("(18446744073709551615, 3)", &[0.0; 6]));
        assert!(huge.contains("header"), "{huge}");
        let mut single = array("(2, 3)", &[0.0; 6]);
        let at = single.windows(3).position(|three| three == b"<f8").expect("the kind");
        single[at + 2] = b'4';
        assert!(complaint("kind", &single).contains("<f8"));
        assert!(complaint("long", &array("(2, 3)", &[0.0; 7])).contains("data bytes = 56"));
        let oversized = vec![0; LIMIT_BYTES as usize + 1];
        assert!(complaint("oversized", &oversized).contains("expected at most 16777216"));
    }

    #[test]
    fn a_number_that_is_none_is_refused_with_its_place() {
        let bytes = array("(2, 3)", &[0.0, 0.0, 0.0, 0.0, f64::NAN, 0.0]);
        assert!(complaint("nan", &bytes).contains("entry [1, 1] = NaN"));
    }
}
