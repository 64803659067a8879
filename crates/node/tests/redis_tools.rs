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
        ("LOCKALL 2 a b", "4294967300\n4294967301"),
        ("UNLOCK deploy", "NOTHELD session"),
        ("-3 STATUS", "epoch 1"),
        ("COMMAND COUNT", "25"),
        ("ECHO hello", "hello"),
    ] {
        let mut arguments = vec!["-h", "127.0.0.1", "-p", &port];
        arguments.extend(words.split(' '));
        let Some(output) = run("redis-cli", &arguments) else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected), "{words}: {said}");
    }
}

const SCRIPT: &str = r#"
import sys, threading, redis
port = int(sys.argv[1])
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
    assert fences == sorted(fences) and len(set(fences)) == 100
    r.close()
    back = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    resumed = back.execute_command("SESSION", "RESUME", session, "HOLDING", 1, "g0", fences[0])
    if not isinstance(resumed, dict):
        resumed = dict(zip(resumed[::2], resumed[1::2]))
    assert resumed["claims"] == ["HELD"] and len(resumed["holds"]) == 100, resumed
    assert back.execute_command("SESSION", "CLOSE") == "OK"
    assert back.client_id() > 0 and back.client_setname("x") and back.client_getname() == "x"
    other.close()
print("done")
"#;

#[test]
fn redis_py_does_what_it_is_told() {
    let house = House::open();
    let port = house.address().port().to_string();
    let Some(output) = run("python3", &["-c", "import redis"]) else {
        return;
    };
    if !output.status.success() {
        eprintln!("SKIPPED: redis-py is not installed");
        return;
    }
    let output = run("python3", &["-c", SCRIPT, &port]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "done", "{wrong}");
}
