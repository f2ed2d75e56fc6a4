//! The part of Protocol Buffers that ONNX files need: whole numbers, bytes and nested messages.

/// A message that is being written.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A field with a whole number that is not negative.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// A field with a number of 32 bits.
    pub(super) fn float(mut self, field: u32, value: f32) -> Self {
        self.varint(u64::from(field) << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A field with text or bytes.
    pub(super) fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    /// A field with a message.
    pub(super) fn message(self, field: u32, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }

    /// A repeated field with messages.
    pub(super) fn messages(self, field: u32, values: impl IntoIterator<Item = Message>) -> Self {
        values.into_iter().fold(self, |own, value| own.message(field, &value))
    }

    /// A repeated field with text.
    pub(super) fn texts<T: AsRef<[u8]>>(
        self,
        field: u32,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        values.into_iter().fold(self, |own, value| own.bytes(field, value))
    }

    /// A repeated field with whole numbers that are not negative.
    pub(super) fn numbers(self, field: u32, values: impl IntoIterator<Item = u64>) -> Self {
        values.into_iter().fold(self, |own, value| own.number(field, value))
    }

    /// The bytes of the message.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation of the encoding.
    #[test]
    fn messages_are_encoded_as_the_documentation_says() {
        assert_eq!(Message::default().number(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().bytes(2, "testing").into_bytes();
        assert_eq!(text, [&[0x12, 0x07], &b"testing"[..]].concat());
        let inner = Message::default().number(1, 150);
        let outer = Message::default().message(3, &inner).into_bytes();
        assert_eq!(outer, [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }
}
