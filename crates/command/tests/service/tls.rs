//! Commands over TLS: the node shows a certificate, and a command that does not believe it does not talk to it.

use crate::running::{Ended, Node, Running};

fn house() -> Node {
    let folder = tempfile::tempdir().expect("a folder");
    let own = rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()]);
    let own = own.expect("a certificate");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text);
    write("cert.pem", own.cert.pem()).expect("writable");
    write("key.pem", own.signing_key.serialize_pem()).expect("writable");
    Node::in_folder(folder, "tls_cert = cert.pem\ntls_key = key.pem\n")
}

fn run(node: &Node, line: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = node.command(line.split(' '));
    command.envs(variables.iter().copied());
    Running::start(command).end()
}

#[test]
fn a_command_believes_whom_it_is_told_to() {
    let node = house();
    for (line, variables) in [
        ("status --tls-ca cert.pem", &[][..]),
        ("status", &[("TESTIGO_TLS_CA", "cert.pem")]),
        ("lock deploy --tls-ca cert.pem -- true", &[]),
    ] {
        let ended = run(&node, line, variables);
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    }
}

#[test]
fn a_command_that_does_not_believe_does_not_talk() {
    let node = house();
    // A plain one cannot talk, either.
    let plain = run(&node, "status", &[]);
    assert_eq!(plain.code, 69, "{}", plain.stderr);
    let other = rcgen::generate_simple_self_signed(["localhost".into()]).expect("a certificate");
    std::fs::write(node.file("other.pem"), other.cert.pem()).expect("writable");
    let stranger = run(&node, "status --tls-ca other.pem", &[]);
    assert_eq!(stranger.code, 69, "{}", stranger.stderr);
    assert!(
        stranger.stderr.contains("certificate"),
        "{}",
        stranger.stderr
    );
    let missing = run(&node, "status --tls-ca missing.pem", &[]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("missing.pem"), "{}", missing.stderr);
}

#[test]
fn half_of_tls_is_none() {
    let node = house();
    let line = "up --resp 127.0.0.1:0 --http 127.0.0.1:0 --data other --tls-cert cert.pem";
    let ended = run(&node, line, &[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--tls-key"), "{}", ended.stderr);
}
