//! Reading and writing untrusted bytes.

/// Error in received bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}, expected {expected}")]
pub struct WireError {
    /// The field at fault.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// Expected value.
    pub expected: String,
}

impl WireError {
    /// An error about a field.
    pub fn new(field: &'static str, value: u64, expected: impl Into<String>) -> Self {
        Self { field, value, expected: expected.into() }
    }
}

/// `Ok` if the value is the expected one.
pub fn expect(field: &'static str, value: usize, expected: usize) -> Result<(), WireError> {
    if value == expected {
        return Ok(());
    }
    Err(WireError::new(field, value as u64, expected.to_string()))
}

/// Takes fields off the front of a slice, never past its end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// At the start of the bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The unread rest.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], WireError> {
        let left = self.0.len();
        let split = self.0.split_at_checked(count);
        let (taken, rest) = split.ok_or_else(|| {
            WireError::new(field, left as u64, format!("at least {count} more bytes"))
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(field, N)?);
        Ok(array)
    }

    /// The next byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// The next two bytes as a number, the lowest first, as all numbers here.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// The next four bytes as a number.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// The next eight bytes as a number.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// The next four bytes as a floating-point number.
    pub fn f32(&mut self, field: &'static str) -> Result<f32, WireError> {
        Ok(f32::from_le_bytes(self.array(field)?))
    }

    /// The next eight bytes as a floating-point number.
    pub fn f64(&mut self, field: &'static str) -> Result<f64, WireError> {
        Ok(f64::from_le_bytes(self.array(field)?))
    }

    /// `Ok` if nothing is left to read.
    pub fn end(self) -> Result<(), WireError> {
        expect("bytes after the last field", self.0.len(), 0)
    }
}

/// Appends numbers, four bytes each.
pub fn put_floats(values: &[f32], bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.resize(start + 4 * values.len(), 0);
    let (places, _) = bytes[start..].as_chunks_mut::<4>();
    for (place, value) in places.iter_mut().zip(values) {
        *place = value.to_le_bytes();
    }
}

/// Reads numbers of four bytes each into `values`, which is as long as the bytes say.
pub fn get_floats(bytes: &[u8], values: &mut Vec<f32>) {
    values.clear();
    values.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
}
