// Fuzz targets: every decoder of untrusted bytes. A target must neither panic nor
// allocate by a number in its input. The fuzzer and an ordinary test
// (crates/tilp-testbed/tests/corpora.rs) include this file.

use tilp_core::compress::{self, Packing};
use tilp_core::message::{Activation, CutGradient, LayerWeights, peek};
use tilp_split::split::control::{
    Aggregated, Collect, Done, HandOver, MovedCopies, Notice, TrainOrder,
};
use tilp_testbed::adapters::{Actuator, Hello, Meter, Probe, Robot, parse_answer};
use tilp_testbed::adapters::{ActuatorAsk, MeterAsk, ProbeAsk, Request as Question, RobotAsk};
use tilp_testbed::enrol::{CheckedRequest, JoinToken, PeerIdentity, Request, parse_deny_list};
use tilp_testbed::proxy::{Command, ReplayedChannel};

/// Reads untrusted bytes, which must not panic.
type Target = fn(&[u8]);

/// Every target by its name, which is that of its corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("frames", frames),
    ("payloads", payloads),
    ("certificates", certificates),
    ("enrolment", enrolment),
    ("adapter_lines", adapter_lines),
    ("proxy_control", proxy_control),
    ("channel_tables", channel_tables),
];

/// Parameters per layer of a small model.
const SIZES: [usize; 4] = [6, 0, 65, 3];

/// Message frames of the split engine. What is read is written again as the same bytes.
pub fn frames(bytes: &[u8]) {
    let Ok((kind, context)) = peek(bytes) else {
        assert!(Activation::from_bytes(bytes).is_err());
        return;
    };
    if let Ok(message) = Activation::from_bytes(bytes) {
        assert_eq!(message.to_bytes(), bytes);
        payloads(&message.payload);
    }
    if let Ok(message) = CutGradient::from_bytes(bytes) {
        assert_eq!(message.to_bytes(), bytes);
        payloads(&message.payload);
    }
    if let Ok(message) = LayerWeights::from_bytes(bytes, &SIZES) {
        assert!(message.layers.len() <= SIZES.len());
    }
    if let Ok(message) = TrainOrder::from_bytes(bytes, SIZES.len()) {
        assert_eq!(message.to_bytes(), bytes);
    }
    if let Ok(message) = Done::from_bytes(bytes) {
        assert_eq!(message.to_bytes(), bytes);
    }
    if let Ok(message) = Collect::from_bytes(bytes, SIZES.len()) {
        assert_eq!(message.to_bytes(), bytes);
    }
    if let Ok(message) = HandOver::from_bytes(bytes, SIZES.len()) {
        assert_eq!(message.to_bytes(), bytes);
    }
    if let Ok(message) = Aggregated::from_bytes(bytes) {
        assert_eq!(message.to_bytes(), bytes);
    }
    if let Ok(message) = Notice::from_bytes(kind, bytes) {
        assert_eq!(message.context, context);
    }
    if let Ok(message) = MovedCopies::from_bytes(bytes, &SIZES) {
        assert_eq!(message.to_bytes(), bytes);
    }
}

/// Compressed activations and gradients.
pub fn payloads(bytes: &[u8]) {
    let mut values = Vec::new();
    for elements in [1, 8, 96] {
        let Ok(packing) = compress::decode(bytes, elements, 64, &mut values) else { continue };
        assert!(values.len().is_multiple_of(elements) && values.len() <= 64 * elements);
        let samples = values.len() / elements;
        let _ = compress::decode_gradient(bytes, &packing, elements, samples, &mut values);
    }
    let _ = compress::decode_gradient(bytes, &Packing::Dense, 8, 4, &mut values);
}

/// Certificates and certificate requests, DER and PEM.
pub fn certificates(bytes: &[u8]) {
    let _ = PeerIdentity::of(bytes);
    let _ = CheckedRequest::from_der(bytes);
    let _ = CheckedRequest::from_pem(&String::from_utf8_lossy(bytes));
}

/// Requests as JSON, join tokens, deny lists.
pub fn enrolment(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(request) = Request::parse(&text) {
        let _ = CheckedRequest::from_pem(&request.csr);
        assert_eq!(Request::parse(&request.to_json()).unwrap(), request);
    }
    if let Ok(token) = JoinToken::parse(&text) {
        let shown = token.reveal();
        assert_eq!(JoinToken::parse(&shown).unwrap().reveal(), shown);
    }
    let _ = parse_deny_list(&text, std::path::Path::new("denied.txt"));
}

/// Lines of adapters, both ways.
pub fn adapter_lines(bytes: &[u8]) {
    let _ = Hello::parse::<Probe>(bytes);
    let _ = parse_answer::<Probe>(bytes, 1);
    let _ = parse_answer::<Actuator>(bytes, 1);
    let _ = parse_answer::<Meter>(bytes, 1);
    let _ = parse_answer::<Robot>(bytes, 1);
    let _ = Question::<ProbeAsk>::parse(bytes);
    let _ = Question::<ActuatorAsk>::parse(bytes);
    let _ = Question::<MeterAsk>::parse(bytes);
    let _ = Question::<RobotAsk>::parse(bytes);
}

/// Commands to the proxy.
pub fn proxy_control(bytes: &[u8]) {
    if let Ok(Command::Grant { bandwidth_hz, power_w, .. }) = Command::parse(bytes) {
        assert!(bandwidth_hz.is_finite() && power_w.is_finite());
    }
}

/// Tables of rates that the proxy replays.
pub fn channel_tables(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(channel) = ReplayedChannel::from_rates_csv(&text, 60.0) {
        let (steps, _) = channel.terminal(0);
        assert!(!steps.is_empty() && steps[0].start_s == 0.0);
    }
}
