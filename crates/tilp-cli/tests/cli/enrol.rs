//! `tilp enrol`: from an authority to a certificate, and what is refused.

use std::fs;
use std::path::Path;

use crate::bad_input::{assert_names, refused};
use crate::{Scratch, succeed, text, tilp};

/// Makes an authority and a token for terminal 3.
fn authority(scratch: &Scratch) -> String {
    succeed(scratch.path(), &["enrol", "init", "ca", "--host", "localhost"]);
    let token = succeed(scratch.path(), &["enrol", "token", "ca", "--terminal", "3"]);
    assert!(token.starts_with("tilp-join-1:terminal-3:"), "{token}");
    token
}

/// Brings what the authority issued to a device.
fn bring(folder: &Path, subject: &str, device: &str) {
    for name in ["ca.pem", "cert.pem"] {
        let issued = folder.join("ca/issued").join(subject).join(name);
        fs::copy(issued, folder.join(device).join(name)).unwrap();
    }
}

#[test]
fn a_terminal_joins_renews_and_is_revoked() {
    let scratch = Scratch::new("enrol");
    let folder = scratch.path();
    let token = authority(&scratch);
    scratch.put("token", &token);
    let said = succeed(folder, &["enrol", "request", "robot", "--token-file", "token"]);
    assert!(said.contains("robot/request.json"), "{said}");
    let said = succeed(folder, &["enrol", "approve", "ca", "robot/request.json", "--days", "2"]);
    assert!(said.starts_with("terminal-3 may take part until "), "{said}");
    bring(folder, "terminal-3", "robot");
    succeed(folder, &["enrol", "request", "robot", "--renew"]);
    succeed(folder, &["enrol", "approve", "ca", "robot/request.json"]);
    bring(folder, "terminal-3", "robot");
    // The renewed certificate is in use: it vouches for the next one.
    succeed(folder, &["enrol", "request", "robot", "--renew"]);
    succeed(folder, &["enrol", "approve", "ca", "robot/request.json"]);
    let revoked = succeed(folder, &["enrol", "revoke", "ca", "--terminal", "3"]);
    assert_eq!(revoked.lines().count(), 3, "{revoked}");
    let list = succeed(folder, &["enrol", "list", "ca"]);
    assert_eq!(list.matches("revoked").count(), 3, "{list}");
    let json = succeed(folder, &["enrol", "list", "ca", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["certificates"][0]["subject"], "server");
    assert_eq!(json["certificates"][0]["state"], "valid");
    let said = refused(&scratch, &["enrol", "approve", "ca", "robot/request.json"]);
    assert_names(&said, &["terminal-3", "revoked"]);
}

#[test]
fn a_token_works_from_the_environment_and_is_in_no_output() {
    let scratch = Scratch::new("enrol-token");
    let folder = scratch.path();
    let token = authority(&scratch);
    let secret = token.split(':').nth(2).unwrap();
    let mut request = tilp(folder);
    request.args(["enrol", "request", "robot"]).env("TILP_JOIN_TOKEN", token.trim());
    let output = request.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains(secret));
    succeed(folder, &["enrol", "approve", "ca", "robot/request.json"]);
    let said = refused(&scratch, &["enrol", "approve", "ca", "robot/request.json"]);
    assert_names(&said, &["terminal-3", "used before"]);
    for path in scratch.listing() {
        let content = fs::read_to_string(&path).unwrap_or_default();
        assert!(!content.contains(secret), "{}", path.display());
    }
    scratch.put("damaged", token.replace("terminal-3", "terminal-x"));
    let said = refused(&scratch, &["enrol", "request", "other", "--token-file", "damaged"]);
    assert!(!said.contains(secret), "{said}");
}

#[test]
fn what_cannot_be_enrolled_is_one_line() {
    let scratch = Scratch::new("enrol-refused");
    let cases: [(&[&str], &[&str]); 7] = [
        (&["enrol", "token", "nowhere", "--terminal", "1"], &["nowhere", "tilp enrol init"]),
        (&["enrol", "approve", "nowhere", "-"], &["request"]),
        (&["enrol", "list", "nowhere"], &["nowhere"]),
        (&["enrol", "request", "robot"], &["no join token"]),
        (&["enrol", "request", "robot", "--renew"], &["robot"]),
        (&["enrol", "revoke", "nowhere", "--serial", "XYZ"], &["serial = XYZ"]),
        (&["enrol", "init", "ca", "--days", "1000"], &["1000"]),
    ];
    for (arguments, words) in cases {
        assert_names(&refused(&scratch, arguments), words);
    }
    scratch.put("huge.json", "x".repeat(40_000));
    authority(&scratch);
    assert_names(&refused(&scratch, &["enrol", "approve", "ca", "huge.json"]), &["32768"]);
    scratch.put("other.json", r#"{"format": "other", "version": 1}"#);
    assert_names(&refused(&scratch, &["enrol", "approve", "ca", "other.json"]), &["line 1"]);
    assert_names(&refused(&scratch, &["enrol", "init", "ca"]), &["without an authority"]);
}
