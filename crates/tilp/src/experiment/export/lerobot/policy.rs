//! A trained policy as a policy folder of LeRobot, for the plug-in in `bindings/lerobot`.

use serde_json::{Value, json};

use crate::split::policy::Architecture;

/// The files of a policy folder. The weights are those of the run, byte for byte.
pub(super) fn policy_files(shape: &Architecture, model: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let text = |value: Value| {
        let text = serde_json::to_string_pretty(&value).expect("a table of plain values");
        (text + "\n").into_bytes()
    };
    vec![
        ("config.json".to_owned(), text(config(shape))),
        ("model.safetensors".to_owned(), model),
        ("policy_preprocessor.json".to_owned(), text(before(shape))),
        ("policy_postprocessor.json".to_owned(), text(after(shape))),
    ]
}

fn state(shape: &Architecture) -> Value {
    json!({ "type": "STATE", "shape": [shape.observation_width()] })
}

fn action(shape: &Architecture) -> Value {
    json!({ "type": "ACTION", "shape": [shape.actions] })
}

/// Nothing is normalised: observations and actions are bounded.
fn modes() -> Value {
    json!({ "STATE": "IDENTITY", "ACTION": "IDENTITY" })
}

fn config(shape: &Architecture) -> Value {
    json!({
        "type": "tilp",
        "n_obs_steps": 1,
        "input_features": { "observation.state": state(shape) },
        "output_features": { "action": action(shape) },
        "device": "cpu",
        "use_amp": false,
        "push_to_hub": false,
        "tokens": shape.tokens,
        "width": shape.width,
        "heads": shape.heads,
        "blocks": shape.blocks,
        "hidden_ratio": shape.hidden_ratio,
        "merge_after": shape.merge_after,
        "loss_weights": shape.loss_weights,
        "normalization_mapping": modes(),
    })
}

fn step(name: &str, settings: Value) -> Value {
    json!({ "registry_name": name, "config": settings })
}

fn device() -> Value {
    step("device_processor", json!({ "device": "cpu", "float_dtype": null }))
}

fn before(shape: &Architecture) -> Value {
    let features = json!({ "observation.state": state(shape), "action": action(shape) });
    let normal = json!({ "eps": 1e-8, "features": features, "norm_map": modes() });
    json!({
        "name": "policy_preprocessor",
        "steps": [
            step("rename_observations_processor", json!({ "rename_map": {} })),
            step("to_batch_processor", json!({})),
            device(),
            step("normalizer_processor", normal),
        ],
    })
}

fn after(shape: &Architecture) -> Value {
    let features = json!({ "action": action(shape) });
    let normal = json!({ "eps": 1e-8, "features": features, "norm_map": modes() });
    json!({
        "name": "policy_postprocessor",
        "steps": [step("unnormalizer_processor", normal), device()],
    })
}
