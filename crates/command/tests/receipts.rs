//! Claims after `kill -9` of a real node: what was granted and can be proven is kept, whatever others claim.

mod up;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testigo_client::{Address, Client as Rust, Lock, SessionOptions, State};
use up::{Client, Up, Value};

const OWN: &str = "4294967297";
/// The highest fence that could have been granted before the second start.
const FORGED: &str = "4362076159";

fn opened(client: &mut Client) -> String {
    let session = client.call(&["SESSION", "OPEN", "TTL", "60000"]);
    session.int().to_string()
}

/// Locks a gate and gives the receipt.
fn locked(client: &mut Client, words: &[&str]) -> String {
    match client.call(words).list() {
        [Value::Int(_), Value::Text(receipt)] => receipt.clone(),
        other => panic!("{words:?} was answered {other:?}"),
    }
}

/// Resumes a session with one claim and says what became of it.
fn claim(client: &mut Client, session: &str, words: &[&str]) -> String {
    let mut line = vec!["SESSION", "RESUME", session, "HOLDING", "1"];
    line.extend(words);
    let resumed = client.call(&line);
    match resumed.at("claims").list() {
        [Value::Text(end)] => end.clone(),
        other => panic!("{line:?} was answered {other:?}"),
    }
}

/// As after a crash of the machine: it is not known who was granted anything where, so that everybody may lie.
fn killed(node: Up, data: &Path) -> Up {
    node.kill();
    std::fs::remove_file(data.join("scratch")).unwrap();
    Up::start(data, &[])
}

#[test]
fn a_forged_claim_takes_nothing_before_or_after_the_holder_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let [mut holder, mut early, mut late] = [node.client(), node.client(), node.client()];
    let own = opened(&mut holder);
    let (first, second) = (opened(&mut early), opened(&mut late));
    let receipt = locked(&mut holder, &["LOCK", "prod", "RECEIPT"]);

    let node = killed(node, dir.path());
    let [mut holder, mut early, mut late] = [node.client(), node.client(), node.client()];
    early.call(&["HELLO", "3"]);
    // Nobody has it yet, so it gets it, until somebody proves better.
    assert_eq!(claim(&mut early, &first, &["prod", FORGED]), "HELD");
    let proof = ["prod", OWN, "RECEIPTS", &receipt];
    assert_eq!(claim(&mut holder, &own, &proof), "HELD");
    let lost = ["lost", "prod", FORGED, "claim"].map(|word| match word.parse() {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Text(word.into()),
    });
    assert_eq!(early.read(), Value::Push(lost.into()));
    assert_eq!(claim(&mut late, &second, &["prod", FORGED]), "LOST");
    let held = holder.call(&["FENCE", "CHECK", "prod", OWN]);
    assert_eq!(held, Value::Int(1));
    let unlocked = holder.call(&["UNLOCK", "prod", OWN]);
    assert_eq!(unlocked, Value::Simple("OK".into()));
}

#[test]
fn a_receipt_is_good_for_its_session_gate_mode_and_fence_only() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let (mut holder, mut thief) = (node.client(), node.client());
    let (own, others) = (opened(&mut holder), opened(&mut thief));
    let receipt = locked(&mut holder, &["LOCK", "prod", "SHARED", "RECEIPT"]);
    let refused = |node: &Up, session: &str, words: &[&str]| {
        let end = claim(&mut node.client(), session, words);
        assert!(end.starts_with("REFUSED the receipt"), "{words:?}: {end}");
    };
    let mut node = killed(node, dir.path());
    refused(
        &node,
        &others,
        &["prod", OWN, "SHARED", "RECEIPTS", &receipt],
    );
    for wrong in [
        ["test", OWN, "SHARED", "RECEIPTS", &receipt].as_slice(),
        &["prod", "4294967298", "SHARED", "RECEIPTS", &receipt],
        &["prod", OWN, "RECEIPTS", &receipt],
        &["prod", OWN, "SHARED", "RECEIPTS", "AAAA"],
    ] {
        refused(&node, &own, wrong);
        // A session is asked once per start.
        node = killed(node, dir.path());
    }
    // A second start later, by the same key.
    let proof = ["prod", OWN, "SHARED", "RECEIPTS", &receipt];
    assert_eq!(claim(&mut node.client(), &own, &proof), "HELD");
}

#[test]
fn a_lie_gets_no_receipt_and_an_old_grant_gives_way_to_the_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let [mut former, mut liar, mut holder] = [node.client(), node.client(), node.client()];
    let (old, lie) = (opened(&mut former), opened(&mut liar));
    let own = opened(&mut holder);
    let stale = locked(&mut former, &["LOCK", "prod", "RECEIPT"]);
    former.call(&["UNLOCK", "prod"]);
    let receipt = locked(&mut holder, &["LOCK", "prod", "RECEIPT"]);

    let node = killed(node, dir.path());
    let [mut former, mut liar, mut holder] = [node.client(), node.client(), node.client()];
    assert_eq!(claim(&mut liar, &lie, &["free", FORGED]), "HELD");
    let proof = ["prod", OWN, "RECEIPTS", &stale];
    assert_eq!(claim(&mut former, &old, &proof), "HELD");
    // Its fence is its old one, and a new one is not to be had before everybody was heard.
    let refused = former.call(&["DOWNGRADE", "prod", "RECEIPT"]).to_string();
    assert!(refused.contains("UNAVAILABLE"), "{refused}");
    let proof = ["prod", "4294967298", "RECEIPTS", &receipt];
    assert_eq!(claim(&mut holder, &own, &proof), "HELD");
    let gone = former.call(&["UNLOCK", "prod"]).to_string();
    assert!(gone.contains("NOTHELD"), "{gone}");
    let downgraded = liar.call(&["DOWNGRADE", "free", "RECEIPT"]);
    assert!(
        matches!(downgraded.list(), [Value::Int(_), Value::Nil]),
        "{downgraded}"
    );
}

#[test]
fn a_restored_backup_knows_its_receipts() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
    let node = Up::start(&data, &[]);
    let mut holder = node.client();
    let own = opened(&mut holder);
    let receipt = locked(&mut holder, &["LOCK", "prod", "RECEIPT"]);
    node.kill();
    let copied = Command::new("cp").arg("-a").args([&data, &backup]).status();
    assert!(copied.unwrap().success());
    let node = Up::restored(&backup, 40_000);
    let proof = ["prod", OWN, "RECEIPTS", &receipt];
    assert_eq!(claim(&mut node.client(), &own, &proof), "HELD");
}

#[tokio::test]
async fn the_rust_client_proves_what_it_holds_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (data, door) = (dir.path().join("data"), dir.path().join("door"));
    let door = door.to_str().unwrap();
    let node = Up::start(&data, &["--unix", door]);
    let forger = opened(&mut node.client());
    let address: Address = format!("unix:{door}").parse().unwrap();
    let client = Rust::connect(address).await.unwrap();
    let options = SessionOptions {
        ttl: Duration::from_secs(60),
        label: None,
    };
    let session = client.open(options).await.unwrap();
    let guard = session.lock(Lock::new("prod")).await.unwrap().unwrap();
    assert_eq!(guard.fence().to_string(), OWN);
    node.kill();
    assert_eq!(guard.changed(State::Held).await, State::Suspect);

    let node = Up::start(&data, &["--unix", door]);
    // Whether it comes before the client or after it, the client stays inside.
    claim(&mut node.client(), &forger, &["prod", FORGED]);
    assert_eq!(guard.changed(State::Suspect).await, State::Held);
    let shown = node.client().call(&["GATE", "SHOW", "prod"]);
    let [holder] = shown.at("holders").list() else {
        panic!("one is inside: {shown}");
    };
    assert_eq!(holder.at("session"), &Value::Int(session.id() as i64));
    assert_eq!(holder.at("proven"), &Value::Int(1));
    guard.release().await.unwrap();
}

const SCRIPT: &str = r#"
import sys, redis
step, port, protocol = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = redis.Redis(port=port, protocol=protocol, decode_responses=True)
if step == "lock":
    session = r.execute_command("SESSION", "OPEN", "TTL", 60000)
    fence = r.execute_command("LOCK", "plain")
    assert isinstance(fence, int)
    fence, receipt = r.execute_command("LOCK", "prod", "WAIT", 0, "RECEIPT")
    print(session, fence, receipt)
    sys.exit(0)
session, fence, receipt = sys.argv[4:]
answer = r.execute_command("SESSION", "RESUME", session, "HOLDING", 1, "prod", fence, "RECEIPTS", receipt)
if not isinstance(answer, dict):
    answer = dict(zip(answer[::2], answer[1::2]))
print(answer["claims"][0])
"#;

#[test]
fn redis_py_keeps_a_receipt_and_proves_with_it() {
    let python = |words: &[&str]| {
        let output = Command::new("python3")
            .args(["-c", SCRIPT])
            .args(words)
            .output();
        let output = output.unwrap();
        let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{wrong}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let found = Command::new("python3")
        .args(["-c", "import redis"])
        .output();
    if !found.is_ok_and(|found| found.status.success()) {
        eprintln!("SKIPPED: redis-py is not installed");
        return;
    }
    for protocol in ["2", "3"] {
        let dir = tempfile::tempdir().unwrap();
        let node = Up::start(dir.path(), &[]);
        let forger = opened(&mut node.client());
        let port = node.address.port().to_string();
        let said = python(&["lock", &port, protocol]);
        let node = killed(node, dir.path());
        assert_eq!(
            claim(&mut node.client(), &forger, &["prod", FORGED]),
            "HELD"
        );
        let port = node.address.port().to_string();
        let mut words = vec!["resume", &port, protocol];
        words.extend(said.split(' '));
        assert_eq!(python(&words), "HELD");
    }
}
