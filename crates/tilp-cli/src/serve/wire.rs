//! openpi's messages: MessagePack maps in binary frames, arrays of NumPy as maps in them.
//!
//! Nothing of a message is believed before it is checked: the socket bounds its size, here kinds, shapes
//! and lengths are held against what the policy reads.

use rmpv::Value;

/// Key of the robot's state in a request.
pub(super) const STATE: &str = "observation/state";

/// Largest depth of nested maps: an array within an observation, and a margin.
const DEPTH: usize = 16;

/// The first message of the server: the expected request and the answer.
pub(super) fn greeting(state: usize, action: usize) -> Vec<u8> {
    let entry = |name: &str, value: Value| (Value::from(name), value);
    encoded(&Value::Map(vec![
        entry("server", Value::from("tilp")),
        entry("state_key", Value::from(STATE)),
        entry("state_length", Value::from(state as u64)),
        entry("action_length", Value::from(action as u64)),
        entry("action_horizon", Value::from(1u64)),
    ]))
}

/// The state of the robot in a request. Pictures and words are accepted and not read.
pub(super) fn state(message: &[u8], length: usize) -> Result<Vec<f32>, String> {
    let mut rest = message;
    let value = rmpv::decode::read_value_with_max_depth(&mut rest, DEPTH)
        .map_err(|_| "message is no MessagePack, expected a map".to_owned())?;
    if !rest.is_empty() {
        return Err(format!("message has {} bytes too many, expected one map", rest.len()));
    }
    let Value::Map(entries) = value else {
        return Err("message is no map, expected one with `observation/state`".to_owned());
    };
    let state = entries.iter().find(|(key, _)| key.as_str() == Some(STATE));
    let (_, state) = state.ok_or_else(|| format!("`{STATE}` is missing, expected an array"))?;
    let numbers = numbers(state).map_err(|reason| format!("`{STATE}` {reason}"))?;
    if numbers.len() != length {
        return Err(format!("`{STATE}` has {} numbers, expected {length}", numbers.len()));
    }
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(at) => Err(format!("`{STATE}` is {} at {at}, expected finite numbers", numbers[at])),
        None => Ok(numbers),
    }
}

/// The answer: one action, and how long it took.
pub(super) fn answer(action: &[f32], milliseconds: f64) -> Vec<u8> {
    let data = action.iter().flat_map(|number| number.to_le_bytes()).collect();
    let shape = [1, action.len()].map(|n| Value::from(n as u64));
    let bytes = |text: &str| Value::Binary(text.as_bytes().to_vec());
    let actions = Value::Map(vec![
        (bytes("__ndarray__"), Value::Boolean(true)),
        (bytes("data"), Value::Binary(data)),
        (bytes("dtype"), Value::from("<f4")),
        (bytes("shape"), Value::Array(shape.to_vec())),
    ]);
    let timing = Value::Map(vec![(Value::from("infer_ms"), Value::from(milliseconds))]);
    encoded(&Value::Map(vec![
        (Value::from("actions"), actions),
        (Value::from("server_timing"), timing),
    ]))
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).expect("memory takes every message");
    bytes
}

/// Numbers out of a list or an array of NumPy, whatever its shape.
fn numbers(value: &Value) -> Result<Vec<f32>, String> {
    match value {
        Value::Array(list) => {
            let number = |one: &Value| one.as_f64().map(|number| number as f32);
            let numbers: Option<Vec<f32>> = list.iter().map(number).collect();
            numbers.ok_or_else(|| "is no list of numbers".to_owned())
        }
        Value::Map(entries) => array(entries),
        _ => Err("is no array of numbers".to_owned()),
    }
}

/// Keys of an array are bytes from openpi, text from others.
fn field<'a>(entries: &'a [(Value, Value)], name: &str) -> Option<&'a Value> {
    let is_it = |key: &Value| key.as_slice() == Some(name.as_bytes());
    entries.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value)
}

fn array(entries: &[(Value, Value)]) -> Result<Vec<f32>, String> {
    let missing = |name: &str| format!("has no `{name}`, expected an array of NumPy");
    let data = field(entries, "data").and_then(Value::as_slice).ok_or_else(|| missing("data"))?;
    let kind = field(entries, "dtype").and_then(Value::as_slice).ok_or_else(|| missing("dtype"))?;
    let shape = field(entries, "shape").and_then(Value::as_array);
    let shape = shape.ok_or_else(|| missing("shape"))?;
    let size = match kind {
        b"<f4" => 4,
        b"<f8" => 8,
        other => {
            let other = String::from_utf8_lossy(other).into_owned();
            return Err(format!("is made of `{other}`, expected `<f4` or `<f8`"));
        }
    };
    let lengths: Option<Vec<u64>> = shape.iter().map(Value::as_u64).collect();
    let count = lengths.and_then(|all| all.iter().try_fold(size, |bytes, n| n.checked_mul(bytes)));
    if count != Some(data.len() as u64) {
        return Err(format!("has {} bytes, which its shape does not", data.len()));
    }
    Ok(match size {
        4 => data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        _ => {
            data.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Value {
        Value::Binary(text.as_bytes().to_vec())
    }

    fn request(kind: &str, shape: &[u64], data: Vec<u8>) -> Vec<u8> {
        let array = Value::Map(vec![
            (bytes("__ndarray__"), Value::Boolean(true)),
            (bytes("data"), Value::Binary(data)),
            (bytes("dtype"), Value::from(kind)),
            (bytes("shape"), Value::Array(shape.iter().map(|n| Value::from(*n)).collect())),
        ]);
        encoded(&Value::Map(vec![
            (Value::from("prompt"), Value::from("pick up the cube")),
            (Value::from(STATE), array),
        ]))
    }

    #[test]
    fn a_state_comes_in_single_or_double_precision_or_as_a_list() {
        let single = [1.5f32, -2.0].iter().flat_map(|one| one.to_le_bytes()).collect();
        assert_eq!(state(&request("<f4", &[2], single), 2).unwrap(), [1.5, -2.0]);
        let double = [1.5f64, -2.0].iter().flat_map(|one| one.to_le_bytes()).collect();
        assert_eq!(state(&request("<f8", &[1, 2], double), 2).unwrap(), [1.5, -2.0]);
        let list = Value::Array(vec![Value::from(1.5), Value::from(-2)]);
        let message = encoded(&Value::Map(vec![(Value::from(STATE), list)]));
        assert_eq!(state(&message, 2).unwrap(), [1.5, -2.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_reason() {
        let good = request("<f4", &[2], vec![0; 8]);
        let cases: [(Vec<u8>, &str); 9] = [
            (b"\x81\xa5".to_vec(), "no MessagePack"),
            (good[..good.len() - 3].to_vec(), "no MessagePack"),
            ([&good[..], b"\x00"].concat(), "1 bytes too many"),
            (encoded(&Value::from("hello")), "no map"),
            (encoded(&Value::Map(Vec::new())), "`observation/state` is missing"),
            (request("<f4", &[3], vec![0; 8]), "which its shape does not"),
            (request("<f4", &[u64::MAX, u64::MAX], vec![0; 8]), "which its shape does not"),
            (request("|O", &[1], vec![0; 8]), "is made of `|O`"),
            (request("<f4", &[3], vec![0; 12]), "has 3 numbers, expected 2"),
        ];
        for (message, expected) in cases {
            let reason = state(&message, 2).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
        let not_finite = request("<f4", &[2], [[0; 4], f32::NAN.to_le_bytes()].concat());
        assert!(state(&not_finite, 2).unwrap_err().contains("expected finite numbers"));
        // A thousand lists within each other end at the depth that is allowed.
        let deep = [vec![0x91; 1000], vec![0xc0]].concat();
        assert!(state(&deep, 2).is_err());
    }

    #[test]
    fn an_answer_is_an_array_of_one_action() {
        let message = answer(&[0.5, -1.0], 0.25);
        let value = rmpv::decode::read_value(&mut &message[..]).unwrap();
        let (_, actions) = &value.as_map().unwrap()[0];
        assert_eq!(numbers(actions).unwrap(), [0.5, -1.0]);
        let shape = field(actions.as_map().unwrap(), "shape").unwrap().as_array().unwrap();
        assert_eq!(shape, &[Value::from(1), Value::from(2)]);
    }
}
