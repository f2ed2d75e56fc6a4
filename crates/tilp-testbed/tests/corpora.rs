//! The corpora of the fuzz targets, replayed: every input as it is, cut short and with turned bits.
//! `UPDATE_EXPECT=1` writes the inputs that the program itself can make.

#[path = "../../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;
use tilp_core::compress::Compressor;
use tilp_core::message::{Activation, Context, CutGradient, LayerWeights};
use tilp_core::rng::Seed;
use tilp_core::round::TerminalId;
use tilp_split::split::model::Weights;
use tilp_split::split::policy::{Architecture, Policy};
use tilp_testbed::contract::v1::{Answer, Down, Heartbeat, Key, Request, Up, Welcome, down, up};
use tilp_testbed::contract::{TerminalModel, VERSION, journal};
use tilp_testbed::enrol::{Authority, Device, Subject};
use tilp_testbed::station::{FileLog, Log};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

/// Inputs of a target, in the order of their names.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(corpus(name)).unwrap_or_else(|_| panic!("no corpus of {name}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn no_input_of_a_corpus_is_too_much_for_its_decoder() {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        write_seeds();
    }
    for (name, target) in targets::TARGETS {
        let inputs = inputs(name);
        assert!(inputs.len() >= 3, "{name} has {} inputs", inputs.len());
        for input in &inputs {
            target(input);
            // Every fifth length and every third bit keep the test short.
            (0..input.len()).step_by(5).for_each(|length| target(&input[..length]));
            for at in (0..8 * input.len()).step_by(3) {
                let mut turned = input.clone();
                turned[at / 8] ^= 1 << (at % 8);
                target(&turned);
            }
        }
    }
}

/// Puts a good input into a corpus.
fn put(target: &str, name: &str, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(corpus(target)).unwrap();
    fs::write(corpus(target).join(name), bytes).unwrap();
}

fn write_seeds() {
    let context = Context { round: 7, terminal: TerminalId(3), cut: 2 };
    let mut rng = Seed::new(1).rng();
    let values: Vec<f32> = (0..16).map(|n| n as f32 / 8.0 - 1.0).collect();
    let compressors = [
        ("quantize", Compressor::Quantize),
        ("top-k", Compressor::TopK),
        ("random-top-k", Compressor::RandomTopK),
    ];
    for (name, compressor) in compressors {
        for q in [0.0, 0.75] {
            let mut payload = Vec::new();
            compressor.encode(&values, 8, q, &mut rng, &mut payload);
            put("payloads", &format!("{name}-{q}"), &payload);
            let up = Activation { context, payload, labels: vec![0.5; 8] };
            put("frames", &format!("activation-{name}-{q}"), up.to_bytes());
        }
    }
    let down = CutGradient { context, loss: 0.25, payload: vec![9; 20] };
    put("frames", "gradient", down.to_bytes());
    let layers = vec![vec![0.5; 6], vec![]];
    let weights = LayerWeights { context, first: 1, layers };
    for encoding in tilp_core::compress::Exchange::ALL {
        put("frames", &format!("weights-{}", encoding.bits()), weights.encoded(encoding, &mut rng));
    }
    write_control_seeds(context);
    write_enrolment_seeds();
    write_text_seeds();
    write_stream_seeds();
}

fn write_control_seeds(context: Context) {
    use tilp_split::split::control::{Aggregated, Collect, Done, HandOver};
    use tilp_split::split::optimiser::StateAtAggregation;
    let done = Done { context, loss: 0.5, gradient_norm: 1.0, samples: 16 };
    put("frames", "done", done.to_bytes());
    let exchange = tilp_core::compress::Exchange::Half;
    put("frames", "collect", Collect { context, first: 1, exchange }.to_bytes());
    put("frames", "hand-over", HandOver { context, first: 1 }.to_bytes());
    let optimiser_state = StateAtAggregation::Keep;
    put("frames", "aggregated", Aggregated { context, optimiser_state }.to_bytes());
}

fn write_enrolment_seeds() {
    let folder = std::env::temp_dir().join(format!("tilp-seeds-{}", std::process::id()));
    let hosts = ["localhost".to_owned()];
    let now = 1_800_000_000;
    let authority = Authority::init(&folder.join("ca"), &hosts, 90, now).unwrap();
    let device = Device::at(&folder.join("device"));
    let token = authority.token(Subject::Terminal(TerminalId(3)), 60, now).unwrap();
    put("enrolment", "token", token.reveal());
    let request = device.request(&token).unwrap();
    put("enrolment", "request.json", request.to_json());
    put("certificates", "request.pem", &request.csr);
    let issued = authority.approve(&request, 7, now).unwrap();
    device.install(&issued.certificate, &issued.authority).unwrap();
    put("enrolment", "renewal.json", device.renewal().unwrap().to_json());
    put("enrolment", "denied.txt", format!("# lost\n{}\n", issued.peer.serial));
    let body = |pem: &str| {
        use rustls::pki_types::pem::PemObject;
        let items = rustls::pki_types::CertificateDer::pem_slice_iter(pem.as_bytes());
        items.map(|item| item.unwrap().to_vec()).next()
    };
    put("certificates", "certificate.der", body(&issued.certificate).unwrap());
    put("certificates", "authority.der", body(&issued.authority).unwrap());
    let request = <rustls::pki_types::CertificateSigningRequestDer<'_> as
        rustls::pki_types::pem::PemObject>::from_pem_slice(request.csr.as_bytes());
    put("certificates", "request.der", request.unwrap());
    fs::remove_dir_all(folder).unwrap();
}

fn write_text_seeds() {
    let lines = [
        ("hello", r#"{"version":1,"adapter":"probe","name":"x","modelled":true}"#),
        ("probe", r#"{"version":1,"id":1,"answer":{"gain_db":-93.5,"noise_dbm":-95}}"#),
        ("actuator", r#"{"version":1,"id":1,"answer":{"bandwidth_hz":1e6,"power_w":0.1}}"#),
        ("meter", r#"{"version":1,"id":1,"answer":{"compute_j":1.5,"modelled":false}}"#),
        ("robot", r#"{"version":1,"id":1,"answer":{"success":true}}"#),
        ("error", r#"{"version":1,"id":1,"error":"no antenna"}"#),
        ("ask", r#"{"version":1,"id":1,"ask":{"round":3,"bandwidth_hz":0,"power_w":0}}"#),
    ];
    lines.iter().for_each(|(name, line)| put("adapter_lines", name, line));
    let commands = [
        ("grant", r#"{"do":"grant","version":1,"terminal":3,"bandwidth_hz":1e6,"power_w":0.1}"#),
        ("round", r#"{"do":"round","version":1,"round":7}"#),
        ("cut", r#"{"do":"cut","version":1,"terminal":3,"on":true}"#),
    ];
    commands.iter().for_each(|(name, line)| put("proxy_control", name, line));
    let header = "terminal,start_s,rate_bps,delay_s,outage";
    put("channel_tables", "two", format!("{header}\n0,0,1e6,0.01,0\n0,2.5,0,0,1\n1,0,5e5,0,0\n"));
    put("channel_tables", "wrong", format!("{header}\n0,0,fast,0,0\n"));
    put("channel_tables", "header", header);
}

/// A frame behind its length, as the target of the contract reads it.
fn framed(frame: &impl Message) -> Vec<u8> {
    let bytes = frame.encode_to_vec();
    [&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat()
}

fn write_stream_seeds() {
    let up = |body| framed(&Up { body: Some(body) });
    let down = |body| framed(&Down { body: Some(body) });
    let key = Some(Key { round: 7, terminal: 3, step: 2 });
    let answer = Answer { key, n_bytes: 4, payload: vec![1; 4], ..Answer::default() };
    let beat = up::Body::Heartbeat(Heartbeat { count: 3, ..Heartbeat::default() });
    put("contract", "up", [up(up::Body::Answer(answer.clone())), up(beat)].concat());
    let model = TerminalModel {
        policy: Arc::new(Policy::new(small()).unwrap()),
        seed: Seed::new(1),
        minibatches: Seed::new(2),
        start: Weights::new(Vec::new()),
    };
    let work = model.to_message().encode_to_vec();
    let (version, n_bytes) = (VERSION, work.len() as u64);
    let welcome = Welcome { version, n_bytes, payload: work.clone(), ..Welcome::default() };
    let request = Request { key, n_bytes: 2, payload: vec![5; 2], ..Request::default() };
    let bodies = [down::Body::Welcome(welcome), down::Body::Request(request)];
    put("contract", "down", bodies.map(down).concat());
    put("contract", "training", work);
    let mut state = tilp_core::snapshot::Snapshot::default();
    state.put_u64("holds", vec![1, 0]);
    let state = tilp_testbed::contract::state_to_bytes(&state);
    let (run, payload) = ("run".to_owned(), vec![1; 4]);
    let step = journal::Step { run, membership: 1, key, answer: Some(answer), payload, state };
    put("journals", "state", &step.state);
    put("journals", "step", step.encode_to_vec());
    let path = std::env::temp_dir().join(format!("tilp-seed-log-{}", std::process::id()));
    let mut log = FileLog::open(&path, false).unwrap();
    let exchange = journal::Exchange { key, payload: vec![2; 9], ..journal::Exchange::default() };
    log.append(exchange).unwrap();
    put("journals", "log", fs::read(&path).unwrap());
    fs::remove_file(path).unwrap();
    let plain = "[testbed]\nscenario = \"tiny\"\nmethod = \"tilp\"\nseed = 0\nclock = \"wall\"\n\
        folder = \"lab\"\nlisten = \"127.0.0.1:7700\"\nterminals = \"all\"\nevaluator = true\n";
    put("testbed_files", "plain", plain);
    let some = plain.replace("\"all\"", "[0, 1]") + "silence_s = 9\ntls = { server = \"a/b\" }\n";
    put("testbed_files", "some", &some);
    let meter = "[adapters]\nmeter = { command = [\"meter\", \"{terminal}\"] }\n";
    put("testbed_files", "adapters", some + "proxy = \"proxy.sock\"\n" + meter);
}

/// The smallest policy.
fn small() -> Architecture {
    Architecture {
        tokens: vec![(0, 2), (2, 2)],
        width: 4,
        heads: 1,
        blocks: 1,
        hidden_ratio: 1,
        merge_after: vec![],
        actions: 2,
        loss_weights: vec![1.0; 2],
        cuts: vec![1],
    }
}
