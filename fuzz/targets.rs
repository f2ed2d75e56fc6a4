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
use tilp_testbed::contract::v1::{
    Counts, Down, Evaluate, Evaluation, Hello as Greeting, Training, Up,
};
use tilp_testbed::contract::{TerminalModel, journal, state_from_bytes, state_to_bytes};
use tilp_testbed::description::Description;
use tilp_testbed::enrol::{CheckedRequest, JoinToken, PeerIdentity, Request, parse_deny_list};
use tilp_testbed::proxy::{Command, ReplayedChannel};
use tilp_testbed::session::{Incoming, Pace, StationEnd, TerminalEnd};
use tilp_testbed::station::read_log;

use prost::Message;
use std::time::Duration;

/// Reads untrusted bytes, which must not panic.
type Target = fn(&[u8]);

/// Every target by its name, which is that of its corpus.
pub const TARGETS: [(&str, Target); 10] = [
    ("frames", frames),
    ("payloads", payloads),
    ("certificates", certificates),
    ("enrolment", enrolment),
    ("adapter_lines", adapter_lines),
    ("proxy_control", proxy_control),
    ("channel_tables", channel_tables),
    ("contract", contract),
    ("journals", journals),
    ("testbed_files", testbed_files),
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

/// Most bytes that a payload of the contract may have here.
const MOST_PAYLOAD: u64 = 4096;

/// The frames in these bytes, each behind its length in two bytes.
fn split_frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        frames.push(frame);
        bytes = rest;
    }
    frames
}

/// Frames of the contract between base station and terminals, in the order of a stream, and the
/// messages that travel in their payloads.
pub fn contract(bytes: &[u8]) {
    let now = Duration::ZERO;
    let mut station = StationEnd::new(Pace::default(), MOST_PAYLOAD);
    station.attach(now, 1);
    let (mut terminal, _) = TerminalEnd::open(now, Greeting::default());
    for frame in split_frames(bytes) {
        if let Ok(up) = Up::decode(frame)
            && let Ok(Some(reply)) = station.receive(now, 1, up)
        {
            assert!(reply.payload.len() as u64 <= MOST_PAYLOAD);
        }
        if let Ok(down) = Down::decode(frame)
            && let Ok(Incoming::Welcome(_, payload) | Incoming::Request(_, payload)) =
                terminal.receive(now, down)
        {
            work(&payload);
        }
    }
    work(bytes);
}

/// Payloads of welcomes, of requests to the evaluator, and of its answers.
fn work(payload: &[u8]) {
    if let Ok(training) = Training::decode(payload) {
        let _ = TerminalModel::from_message(&training);
    }
    let _ = Evaluation::decode(payload);
    let _ = Evaluate::decode(payload);
    let _ = Counts::decode(payload);
}

/// Journals of a base station and of a terminal.
pub fn journals(bytes: &[u8]) {
    let (exchanges, length) = read_log(bytes);
    assert!(length <= bytes.len() && exchanges.len() <= length / 12);
    assert_eq!(read_log(&bytes[..length]).0, exchanges);
    // The checksum stops nearly everything, so a record is tried alone, too.
    let _ = journal::Exchange::decode(bytes);
    if let Ok(step) = journal::Step::decode(bytes)
        && let Ok(state) = state_from_bytes(&step.state)
    {
        let again = state_from_bytes(&state_to_bytes(&state)).unwrap();
        assert_eq!(again.0.len(), state.0.len());
    }
    let _ = state_from_bytes(bytes);
}

/// Files of a testbed, without the scenario that they name.
pub fn testbed_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Description::parse(&text, "bed.toml") {
        Ok(description) => assert!(description.silence_s >= 2.0 * description.heartbeat_s),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error:?}"),
    }
}
