//! A real number in JSON that comes back bit for bit.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A real number. JSON has no infinities and no NaN: they are written as the texts `inf`, `-inf`
/// and `nan`. There is one NaN only, so that two equal events have equal bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Number(f64);

impl Number {
    /// Its value.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(if value.is_nan() { f64::NAN } else { value })
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let texts = ["inf", "-inf", "nan"];
        json_schema!({ "anyOf": [{ "type": "number" }, { "enum": texts }] })
    }
}

/// Bits are compared, so NaN equals itself.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            value if value.is_finite() => serializer.serialize_f64(value),
            value if value.is_nan() => serializer.serialize_str("nan"),
            value if value > 0.0 => serializer.serialize_str("inf"),
            _ => serializer.serialize_str("-inf"),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"inf\", \"-inf\" or \"nan\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number::from(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
        match text {
            "inf" => Ok(Number(f64::INFINITY)),
            "-inf" => Ok(Number(f64::NEG_INFINITY)),
            "nan" => Ok(Number(f64::NAN)),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use rand::Rng;

    fn back(value: f64) -> f64 {
        let text = serde_json::to_string(&Number::from(value)).unwrap();
        serde_json::from_str::<Number>(&text).unwrap().value()
    }

    #[test]
    fn every_number_comes_back_bit_for_bit() {
        let mut rng = Seed::new(5).stream("record/numbers");
        let drawn = (0..20_000).map(|_| f64::from_bits(rng.next_u64())).filter(|x| !x.is_nan());
        let ends = [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY, -f64::INFINITY];
        for value in drawn.chain(ends) {
            assert_eq!(back(value).to_bits(), value.to_bits(), "{value:e}");
        }
    }

    #[test]
    fn there_is_one_nan() {
        let negative = -f64::NAN;
        assert_eq!(back(negative).to_bits(), f64::NAN.to_bits());
        assert_eq!(Number::from(negative), Number::from(f64::NAN));
    }

    #[test]
    fn a_text_that_is_no_number_is_refused() {
        for text in ["\"infinity\"", "\"1.0\"", "null", "true", "[]"] {
            assert!(serde_json::from_str::<Number>(text).is_err(), "{text}");
        }
    }
}
