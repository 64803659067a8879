//! Unmodified `redis-cli` and redis-py against a node. They are skipped, loudly, where they are not installed.

mod support;

use std::process::{Command, Output};

use support::House;

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("SKIPPED: {program} cannot be run here: {error}");
            None
        }
    }
}

#[test]
fn redis_cli_does_what_it_is_told() {
    let house = House::open();
    let port = house.address().port().to_string();
    for (words, expected) in [
        ("PING", "PONG"),
        ("LOCK deploy WAIT 0", "4294967297"),
        // The connection of the line above is gone, and with it its session.
        ("LOCK deploy", "4294967298"),
        ("-3 LOCK deploy", "4294967299"),
        ("GATE CREATE seats PERMITS 3", "OK"),
        ("GATE LIST", "seats\nPERMITS 3\ncreated"),
        ("LOCKALL 2 a b", "4294967297\n4294967297"),
        ("UNLOCK deploy", "NOTHELD session"),
        ("-3 STATUS", "start 1"),
        ("COMMAND COUNT", "39"),
        ("FLOW APPLY f a->[q]->b", "OK"),
        ("JOB CREATE q first body-1", "1"),
        ("JOB CREATE q first again", "DUPLICATE job 1"),
        ("JOB COUNT", "1"),
        ("JOB TAKE q", "1\nfirst\nf/q\n"),
        // The connection that took it is gone: once the death is on disk, the job waits again.
        ("JOB FIND fir* IN f/q", "1\nfirst\nf/q\nwaiting\n1"),
        ("-3 QUEUE LIST", "waiting 1"),
        ("JOB DELETE 1", "OK"),
        ("JOB SHOW 1", "NOJOB"),
        ("FLOW DELETE f", "OK"),
        ("ECHO hello", "hello"),
        ("SET lock me NX PX 30000", "here use LOCK for a lock"),
        ("GET lock", "docs/redis.md#commands"),
        ("BRPOP jobs 5", "here use JOB TAKE"),
        ("xreadgroup GROUP g me STREAMS jobs >", "here use JOB TAKE"),
    ] {
        let mut arguments = vec!["-h", "127.0.0.1", "-p", &port];
        arguments.extend(words.split(' '));
        let mut said = String::new();
        // What the end of an earlier connection changes is flushed after that connection is gone: ask again.
        for _ in 0..MOST_ASKED {
            let Some(output) = run("redis-cli", &arguments) else {
                return;
            };
            said = String::from_utf8_lossy(&output.stdout).into_owned();
            if said.contains(expected) || !words.starts_with("JOB FIND") {
                break;
            }
        }
        assert!(said.contains(expected), "{words}: {said}");
    }
}

/// How often a question is put before its answer counts as wrong.
const MOST_ASKED: u32 = 2_000;

#[test]
fn redis_cli_does_a_unit_of_work() {
    let house = House::open();
    let port = house.address().port().to_string();
    let lines = "FLOW APPLY f a->[q]->b\nMULTI\nJOB CREATE q one 1\nJOB CREATE q two 2\nEXEC\n\
                 MULTI\nJOB CREATE q three 3\nJOB CREATE q one again\nEXEC\n\
                 MULTI\nJOB CREATE q four 4\nDISCARD\nJOB COUNT\n";
    let script =
        "command -v redis-cli > /dev/null || exit 44; printf '%s' \"$1\" | redis-cli -p \"$2\"";
    let output = run("sh", &["-c", script, "sh", lines, &port]).unwrap();
    if output.status.code() == Some(44) {
        eprintln!("SKIPPED: redis-cli is not installed");
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        said[..6],
        ["OK", "OK", "QUEUED", "QUEUED", "1", "2"],
        "{said:?}"
    );
    assert!(
        said[9].starts_with("EXECABORT DUPLICATE command 2: "),
        "{said:?}"
    );
    assert_eq!(said[10..], ["OK", "QUEUED", "OK", "2"], "{said:?}");
}

const SCRIPT: &str = r#"
import sys, threading, redis
port = int(sys.argv[1])
def admin(client, *words):
    return client.execute_command(*words)
def refused(client, *words):
    try:
        client.execute_command(*words)
    except redis.ResponseError as error:
        return str(error)
    raise SystemExit(f"an error was expected of {words}")
for protocol in (2, 3):
    r = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    assert r.ping() is True
    session = r.execute_command("SESSION", "OPEN", "TTL", 60000, "LABEL", "py")
    fence = r.execute_command("LOCK", "deploy", "REASON", "two words")
    assert r.execute_command("FENCE", "CHECK", "deploy", fence) == 1
    other = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    assert other.execute_command("LOCK", "deploy", "WAIT", 0) is None
    p = other.pubsub()
    p.subscribe("gate:deploy")
    assert p.get_message(timeout=30)["type"] == "subscribe"
    got = []
    thread = threading.Thread(target=lambda: got.append(other.execute_command("LOCK", "deploy")))
    thread.start()
    message = p.get_message(ignore_subscribe_messages=True, timeout=30)
    assert message["data"].startswith("waits "), message
    assert r.execute_command("UNLOCK", "deploy", fence) == "OK"
    thread.join()
    assert got[0] > fence, got
    try:
        r.execute_command("UNLOCK", "deploy")
        raise SystemExit("an error was expected")
    except redis.ResponseError as error:
        assert str(error).startswith("NOTHELD "), error
    with r.pipeline(transaction=False) as pipe:
        for gate in range(100):
            pipe.execute_command("LOCK", f"g{gate}")
        fences = pipe.execute()
    assert len(fences) == 100 and min(fences) > 0
    r.close()
    back = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    resumed = back.execute_command("SESSION", "RESUME", session, "HOLDING", 1, "g0", fences[0])
    if not isinstance(resumed, dict):
        resumed = dict(zip(resumed[::2], resumed[1::2]))
    assert resumed["claims"] == ["HELD"] and len(resumed["holds"]) == 100, resumed
    assert back.execute_command("SESSION", "CLOSE") == "OK"
    assert back.client_id() > 0 and back.client_setname("x") and back.client_getname() == "x"
    other.close()
    text = "intake -> [orders] -> price -> [priced] -> bill\nqueue priced { limit 1 }\n"
    assert admin(r, "FLOW", "APPLY", "shop", text) == "OK"
    raw = redis.Redis(port=port, protocol=protocol)
    job = raw.execute_command("JOB", "CREATE", "shop/orders", "o-1", bytes(range(256)))
    assert raw.execute_command("PRESENT", "shop", "price") == b"OK"
    taken = raw.execute_command("JOB", "TAKE", "orders", "WAIT", 30000)
    assert taken[:3] == [job, b"o-1", b"shop/orders"] and taken[4] == bytes(range(256)), taken
    assert refused(raw, "JOB", "DELETE", job, taken[3]).startswith("NORIGHT ")
    assert raw.execute_command("JOB", "PASS", job, taken[3], "priced", b"\xff\x00") == b"OK"
    assert refused(raw, "JOB", "PASS", job, taken[3], "priced").startswith("NOTYOURS ")
    assert refused(r, "JOB", "CREATE", "shop/priced", "*", "x").startswith("FULL ")
    bill = redis.Redis(port=port, protocol=protocol)
    bill.execute_command("PRESENT", "shop", "bill")
    taken = bill.execute_command("JOB", "TAKE", "priced")
    assert taken[4] == b"\xff\x00" and bill.execute_command("JOB", "TAKE", "priced") is None
    assert bill.execute_command("JOB", "DELETE", job, taken[3]) == b"OK"
    with r.pipeline(transaction=True) as pipe:
        for nth in range(3):
            pipe.execute_command("JOB", "CREATE", "shop/orders", f"u-{nth}", "unit")
        made = pipe.execute()
    assert made == [made[0], made[0] + 1, made[0] + 2], made
    first, second = (raw.execute_command("JOB", "TAKE", "orders") for _ in range(2))
    with raw.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB", "PASS", first[0], first[3], "priced", b"\x00")
        pipe.execute_command("JOB", "PASS", second[0], second[3], "priced")
        try:
            pipe.execute()
            raise SystemExit("a unit that does not fit was done")
        except redis.exceptions.ExecAbortError as error:
            assert str(error).startswith("FULL command 2: queue shop/priced has 1 jobs"), error
        pipe.execute_command("JOB", "PASS", first[0], first[3], "priced", b"\x00")
        pipe.execute_command("JOB", "BACK", second[0], second[3])
        assert pipe.execute() == [b"OK", b"OK"]
    with r.pipeline(transaction=True) as pipe:
        pipe.execute_command("JOB", "CREATE", "shop/orders", "never", "unit")
        pipe.execute_command("JOB", "TAKE", "shop/orders")
        try:
            pipe.execute()
            raise SystemExit("a take was part of a unit")
        except redis.ResponseError as error:
            assert "take first, then MULTI" in str(error), error
    assert r.execute_command("JOB", "FIND", "never") == []
    with r.pipeline(transaction=True) as pipe:
        for job in made:
            pipe.execute_command("JOB", "DELETE", job)
        assert pipe.execute() == ["OK"] * 3
    raw.close(), bill.close()
    assert admin(r, "FLOW", "DELETE", "shop") == "OK"
print("done")
"#;

/// Runs a program of redis-py against a node.
fn python(house: &House, script: &str) {
    let port = house.address().port().to_string();
    let Some(output) = run("python3", &["-c", "import redis"]) else {
        return;
    };
    if !output.status.success() {
        eprintln!("SKIPPED: redis-py is not installed");
        return;
    }
    let output = run("python3", &["-c", script, &port]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "done", "{wrong}");
}

#[test]
fn redis_py_does_what_it_is_told() {
    python(&House::open(), SCRIPT);
}

/// The program of docs/redis.md, whose connection breaks, and one that leaves the session out.
const RECONNECTS: &str = r#"
import os, sys
page = open(os.environ["PAGE"]).read().split("```python\n", 1)[1].split("```", 1)[0]
exec(page.replace("port=7600", "port=int(sys.argv[1])"))
def breaks(client):
    client.connection.disconnect()
def refused(call, *words):
    try:
        call(*words)
    except redis.ResponseError as error:
        return str(error)
    raise SystemExit(f"an error was expected of {words}")
fence = held.fences["deploy"]
assert fence > 0 and node.ping() is True
breaks(node)
assert node.ping() is True
assert node.execute_command("FENCE", "CHECK", "deploy", fence) == 1
assert node.execute_command("UNLOCK", "deploy", fence) in ("OK", b"OK")
careless = redis.Redis(port=int(sys.argv[1]), single_connection_client=True)
told = "DENIED user default must SESSION OPEN or SESSION RESUME on each connection first, by its setting session_first"
assert refused(careless.ping).startswith(told)
for words in (
    ("LOCK", "a"), ("LOCKALL", 1, "a"), ("UNLOCK", "a"), ("DOWNGRADE", "a"), ("CANCEL", 1), ("ELECT", "CAMPAIGN", "e", "v"),
    ("ELECT", "RESIGN", "e"), ("POOL", "TAKE", "p"), ("POOL", "GIVE", "p", "0"), ("GROUP", "JOIN", "g"), ("ONCE", "START", "k", 0),
    ("SESSION", "INFO"), ("JOB", "TAKE", "f/q"),
):
    if words[0] == "JOB":
        careless.execute_command("FLOW", "APPLY", "f", "a -> [q] -> b")
    assert refused(careless.execute_command, *words).startswith(told), words
careless.execute_command("SESSION", "OPEN")
assert careless.ping() is True and careless.execute_command("LOCK", "a") > 0
breaks(careless)
assert refused(careless.ping).startswith(told) and refused(careless.execute_command, "UNLOCK", "a").startswith(told)
listener = redis.Redis(port=int(sys.argv[1])).pubsub()
listener.subscribe("gate:a")
assert listener.get_message(timeout=30)["type"] == "subscribe"
listener.ping()
assert listener.get_message(timeout=30)["type"] == "pong"
worker = redis.Redis(port=int(sys.argv[1]), single_connection_client=True)
worker.execute_command("JOB", "CREATE", "f/q", "one", "x")
worker.execute_command("PRESENT", "f", "b")
taken = worker.execute_command("JOB", "TAKE", "f/q")
assert refused(worker.execute_command, "LOCK", "b").startswith(told), "an implicit session is for its jobs"
breaks(worker)
assert refused(worker.execute_command, "JOB", "DELETE", taken[0], taken[3]).startswith("NOTYOURS")
print("done")
"#;

#[test]
fn redis_py_connects_again_and_keeps_its_lock_or_is_told() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis.md");
    let script = RECONNECTS.replace("os.environ[\"PAGE\"]", &format!("{page:?}"));
    python(&House::with(|config| config.session_first = true), &script);
}
