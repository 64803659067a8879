//! `testigo up`: what it prints, how it stops, what it refuses, and what is there after a crash.

mod up;

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use up::{Up, Value, refused};

#[test]
fn it_says_where_it_listens_and_what_to_try() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("new");
    let door = dir.path().join("door");
    let node = Up::start(&data, &["--unix", door.to_str().unwrap()]);
    let said = node.said.join("\n");
    assert!(said.contains(door.to_str().unwrap()), "{said}");
    let status = format!("try: redis-cli -p {} STATUS", node.address.port());
    assert!(said.contains(&status), "{said}");
    assert!(node.client().call(&["STATUS"]).list().len() > 10);
    // The second hint, typed as it stands.
    let hint = node
        .said
        .iter()
        .find_map(|line| line.trim().strip_prefix("testigo "));
    let testigo = env!("CARGO_BIN_EXE_testigo");
    let folder = std::path::Path::new(testigo).parent().unwrap();
    let mut words = hint.unwrap().split(' ');
    let shown = Command::new(testigo)
        .args(&mut words)
        .env("PATH", folder)
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("holders: 1"), "{shown}");
    assert_eq!(node.client().call(&["PING"]), Value::Simple("PONG".into()));
    assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    assert!(data.exists() && !door.exists());
}

#[test]
fn after_a_signal_holders_and_waiters_are_restored() {
    let dir = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let node = Up::start(dir.path(), &[]);
        let mut client = node.client();
        let session = client.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
        let fence = client.call(&["LOCK", "deploy"]).int();
        assert_eq!(node.signal(signal).code(), Some(0));
        assert!(client.is_closed());

        let node = Up::start(dir.path(), &[]);
        let mut client = node.client();
        assert_eq!(client.call(&["LOCK", "deploy", "WAIT", "0"]), Value::Nil);
        client.call(&["SESSION", "RESUME", &session.to_string()]);
        assert_eq!(
            client.call(&["FENCE", "CHECK", "deploy", &fence.to_string()]),
            Value::Int(1)
        );
        client.call(&["SESSION", "CLOSE"]);
        assert_eq!(node.signal(signal).code(), Some(0));
    }
}

#[test]
fn a_restored_backup_grants_higher_fences_than_were_granted_since() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
    assert_eq!(Up::start(&data, &[]).signal(Signal::TERM).code(), Some(0));
    let copy = |to: &std::path::Path| {
        let mut cp = Command::new("cp");
        let copied = cp.arg("-a").arg(&data).arg(to).status();
        assert!(copied.unwrap().success());
    };
    let again = dir.path().join("again");
    copy(&backup);
    copy(&again);
    let mut since = 0;
    for _ in 0..3 {
        let node = Up::start(&data, &[]);
        since = node.client().call(&["LOCK", "a"]).int();
        node.kill();
    }
    // The same copy a second time: it does not know what the first start on it has granted.
    for (backup, ahead_ms) in [(&backup, 40_000), (&again, 80_000)] {
        let node = Up::restored(backup, ahead_ms);
        let fence = node.client().call(&["LOCK", "a"]).int();
        assert!(fence > since, "{fence} is not above {since}");
        since = fence;
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
}

#[test]
fn after_a_kill_only_what_a_session_may_hold_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let (mut one, mut two) = (node.client(), node.client());
    let first = one.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    let second = two.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    let held = one.call(&["LOCK", "deploy"]).int();
    one.call(&["LOCK", "given-back"]);
    one.call(&["UNLOCK", "given-back"]);
    two.call(&["LOCKALL", "2", "left", "right"]);
    node.kill();

    // Twice: what the first start knew is there for the second.
    Up::start(dir.path(), &[]).kill();
    let node = Up::start(dir.path(), &[]);
    let said = node.said.iter().find(|line| line.starts_with("recovering"));
    let said = said.unwrap();
    assert!(said.contains("what earlier sessions may hold"), "{said}");
    assert!(
        said.ends_with(" s") && said.contains(", at most "),
        "{said}"
    );
    let (mut one, mut two, mut loose) = (node.client(), node.client(), node.client());
    let status = loose.call(&["STATUS"]);
    assert_eq!(status.at("recovering").int(), 1);
    assert_eq!(status.at("awaited").int(), 2);
    assert!(loose.call(&["LOCK", "free", "WAIT", "0"]).int() > held);
    for (gate, holder) in [
        ("deploy", first),
        ("given-back", first),
        ("left", second),
        ("right", second),
    ] {
        let refused = loose.call(&["LOCK", gate, "WAIT", "0"]);
        let named = format!("gate {gate} may still be held by session {holder}, ");
        assert!(refused.error().contains(&named), "{refused}");
    }
    loose.call(&["GATE", "CREATE", "deploy", "MUTEX"]);
    let view = loose.call(&["GATE", "SHOW", "deploy"]);
    assert_eq!(view.at("awaits").to_string(), format!("[{first}]"));

    // Who never was there cannot claim it, and who was gets it back.
    let (first, second) = (first.to_string(), second.to_string());
    let held = held.to_string();
    let claim = ["HOLDING", "1", "deploy", &held];
    let resumed = two.call(&[&["SESSION", "RESUME", &second][..], &claim].concat());
    assert_eq!(resumed.at("claims").to_string(), "[\"LOST\"]");
    assert!(loose.call(&["LOCK", "left", "WAIT", "0"]).int() > 0);
    let resumed = one.call(&[&["SESSION", "RESUME", &first][..], &claim].concat());
    assert_eq!(resumed.at("claims").to_string(), "[\"HELD\"]");
    assert_eq!(loose.call(&["STATUS"]).at("recovering").int(), 0);
    assert_eq!(loose.call(&["LOCK", "deploy", "WAIT", "0"]), Value::Nil);
    assert!(loose.call(&["LOCK", "given-back", "WAIT", "0"]).int() > 0);
}

#[test]
fn a_scratch_file_that_cannot_be_believed_makes_every_gate_wait() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    let damages: [&dyn Fn(); 4] = [
        &|| fs::remove_file(&scratch).unwrap(),
        &|| fs::write(&scratch, []).unwrap(),
        &|| {
            let mut bytes = fs::read(&scratch).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&scratch, bytes).unwrap();
        },
        &|| {
            // The last record is cut off.
            let bytes = fs::read(&scratch).unwrap();
            fs::write(&scratch, &bytes[..bytes.len() - 16]).unwrap();
        },
    ];
    for damage in damages {
        let node = Up::start(dir.path(), &[]);
        let mut client = node.client();
        let session = client.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
        client.call(&["LOCK", "deploy"]);
        node.kill();
        damage();
        let node = Up::start(dir.path(), &[]);
        let mut loose = node.client();
        let refused = loose.call(&["LOCK", "other", "WAIT", "0"]);
        assert!(refused.error().starts_with("UNAVAILABLE "), "{refused}");
        loose.call(&["SESSION", "END", &session.to_string()]);
        assert!(loose.call(&["LOCK", "other", "WAIT", "0"]).int() > 0);
        node.kill();
    }
}

#[test]
fn after_a_kill_no_gate_grants_before_every_session_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let (mut one, mut two, mut loose) = (node.client(), node.client(), node.client());
    let first = one.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    let second = two.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    let held = one.call(&["LOCK", "deploy"]).int();
    loose.call(&["LOCK", "loose"]);
    one.call(&["GATE", "CREATE", "made", "MUTEX"]);
    node.kill();
    // As after a crash of the machine.
    fs::remove_file(dir.path().join("scratch")).unwrap();

    let node = Up::start(dir.path(), &[]);
    assert!(node.said.iter().any(|line| line.starts_with("recovering")));
    let (mut one, mut two, mut loose) = (node.client(), node.client(), node.client());
    assert_eq!(loose.call(&["PING"]), Value::Simple("PONG".into()));
    assert_eq!(loose.call(&["STATUS"]).at("recovering").int(), 1);
    assert_eq!(loose.call(&["GATE", "LIST"]).list().len(), 1);
    assert_eq!(
        loose.call(&["GATE", "SHOW", "made"]).at("holders").list(),
        []
    );
    let refused = loose.call(&["LOCK", "loose", "WAIT", "0"]);
    assert!(refused.error().starts_with("UNAVAILABLE "), "{refused}");
    loose.send(&["LOCK", "loose"]);

    let (first, second) = (first.to_string(), second.to_string());
    let above = (held + (1 << 32)).to_string();
    let held = held.to_string();
    let resumed = two.call(&["SESSION", "RESUME", &second, "HOLDING", "1", "x", &above]);
    let claim = resumed.at("claims").list()[0].to_string();
    assert!(claim.starts_with("\"REFUSED "), "{claim}");
    let refused = two.call(&["LOCK", "deploy", "WAIT", "0"]);
    assert!(refused.error().starts_with("UNAVAILABLE "), "{refused}");
    let resumed = one.call(&["SESSION", "RESUME", &first, "HOLDING", "1", "deploy", &held]);
    assert_eq!(resumed.at("claims").to_string(), "[\"HELD\"]");

    // Recovered: who waited is let in, and every new fence is above every old one.
    assert!(loose.read().int() > held.parse::<i64>().unwrap());
    assert_eq!(two.call(&["LOCK", "deploy", "WAIT", "0"]), Value::Nil);
    assert_eq!(
        one.call(&["UNLOCK", "deploy", &held]),
        Value::Simple("OK".into())
    );
    assert!(two.call(&["LOCK", "deploy"]).int() >= 65 << 26);
}

#[test]
fn a_session_that_never_comes_back_delays_grants_by_its_ttl_only() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let mut client = node.client();
    client.call(&["SESSION", "OPEN", "TTL", "100"]);
    client.call(&["LOCK", "deploy"]);
    node.kill();
    let node = Up::start(dir.path(), &[]);
    assert!(node.client().call(&["LOCK", "deploy"]).int() > 1 << 32);
}

#[test]
fn without_sessions_a_killed_node_grants_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let mut client = node.client();
    let before = client.call(&["LOCK", "deploy"]).int();
    node.kill();
    let node = Up::start(dir.path(), &[]);
    let after = node.client().call(&["LOCK", "deploy", "WAIT", "0"]).int();
    assert!(after > before);
}

#[test]
fn what_cannot_start_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let node = Up::start(&data, &[]);
    let (code, said) = refused(&data, &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("in use by another process"), "{said}");

    let elsewhere = dir.path().join("elsewhere");
    let (code, said) = refused(&elsewhere, &["--resp", &node.address.to_string()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("is another node running there?"), "{said}");
    assert!(
        !elsewhere.exists(),
        "a start that fails leaves nothing behind"
    );

    let (code, said) = refused(&elsewhere, &["--resp", "0.0.0.0:0"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no password is set"), "{said}");

    let config = dir.path().join("testigo.conf");
    fs::write(&config, "resp = 0.0.0.0:0\nwaiters = 0\npassword = x\n").unwrap();
    let (code, said) = refused(&elsewhere, &["--config", config.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("the limit waiters is 0"), "{said}");

    fs::write(&config, "\nshine = 1\n").unwrap();
    let (code, said) = refused(&elsewhere, &["--config", config.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("line 2: the key \"shine\" is unknown"),
        "{said}"
    );
}

#[test]
fn a_configuration_file_sets_what_the_command_line_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("testigo.conf");
    let text = "# locks for the night\nresp = 127.0.0.1:0\npassword = \"secret\"\nlog = error\nconnections = 1\n";
    fs::write(&config, text).unwrap();
    let node = Up::start(dir.path(), &["--config", config.to_str().unwrap()]);
    let mut client = node.client();
    assert!(client.call(&["PING"]).error().starts_with("NOAUTH"));
    assert_eq!(client.call(&["AUTH", "secret"]), Value::Simple("OK".into()));
    assert_eq!(client.call(&["PING"]), Value::Simple("PONG".into()));
    assert!(node.client().read().error().starts_with("LIMIT "));
}
