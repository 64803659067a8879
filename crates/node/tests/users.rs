//! Users at both doors: who may come in, who may do what, and who sees what.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use base64::prelude::{BASE64_STANDARD, Engine};
use support::{Client, House, Value, with_users};
use testigo_node::{Secret, User};

fn house() -> House {
    House::with(|config| {
        with_users(config);
        config.http = Some("127.0.0.1:0".parse().unwrap());
    })
}

fn is(house: &House, user: &str) -> Client {
    let mut client = house.client();
    let answer = client.call(&["AUTH", user, &format!("{user}'s")]);
    assert_eq!(answer.to_string(), "+OK");
    client
}

/// What a path answers to a user: the status line and the body.
fn get(at: SocketAddr, path: &str, credentials: Option<&str>) -> (String, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    let basic = credentials.map(|text| BASE64_STANDARD.encode(text));
    let header = basic.map(|text| format!("Authorization: Basic {text}\r\n"));
    let header = header.unwrap_or_default();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    // An answer without end (events) is read as far as its first event goes.
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        answer.push_str(&String::from_utf8_lossy(&chunk[..read]));
        if path == "/api/events" && answer.contains("}\n\n") {
            break;
        }
    }
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().into(), body.into())
}

#[test]
fn a_queues_users_look_after_its_jobs_and_no_others() {
    let house = house();
    let mut admin = house.client();
    assert_eq!(admin.call(&["AUTH", "secret"]).to_string(), "+OK");
    let flow = "intake -> [orders] -> price -> [priced] -> bill\nqueue orders { rights alice; reject [failed] }\nqueue failed { rights alice }";
    assert_eq!(
        admin.call(&["FLOW", "APPLY", "shop", flow]).to_string(),
        "+OK"
    );
    for (queue, job) in [("orders", "a"), ("failed", "b"), ("priced", "c")] {
        let queue = format!("shop/{queue}");
        assert!(admin.call(&["JOB", "CREATE", &queue, job, "body"]).int() > 0);
    }
    let mut alice = is(&house, "alice");
    assert_eq!(alice.call(&["JOB", "LIST", "shop/failed"]).list().len(), 1);
    assert_eq!(alice.call(&["JOB", "FIND", "*"]).list().len(), 2);
    for allowed in [
        &["QUEUE", "SHOW", "shop/failed"][..],
        &["JOB", "SHOW", "2"],
        &["JOB", "HISTORY", "2"],
        &["JOB", "MOVE", "2", "shop/orders"],
        &["JOB", "DELETE", "2"],
    ] {
        let answer = alice.call(allowed);
        assert!(!matches!(answer, Value::Error(_)), "{allowed:?}: {answer}");
    }
    for denied in [
        &["QUEUE", "SHOW", "shop/priced"][..],
        &["JOB", "MOVE", "1", "shop/priced"],
    ] {
        let answer = alice.call(denied);
        assert!(answer.error().starts_with("DENIED"), "{denied:?}: {answer}");
    }
    for unseen in [&["JOB", "SHOW", "3"][..], &["JOB", "DELETE", "3"]] {
        let answer = alice.call(unseen);
        assert!(answer.error().starts_with("NOJOB"), "{unseen:?}: {answer}");
    }
    assert_eq!(admin.call(&["JOB", "LIST", "shop/priced"]).list().len(), 1);
}

#[test]
fn http_shows_what_a_user_may_see() {
    let house = house();
    let at = house.node.as_ref().unwrap().http_address().unwrap();
    let mut alice = is(&house, "alice");
    alice.call(&["LOCK", "deploy/web"]);
    let mut carol = is(&house, "carol");
    carol.call(&["LOCK", "report/today"]);
    for path in [
        "/",
        "/api/state",
        "/api/events",
        "/metrics",
        "/api/sessions",
    ] {
        for wrong in [
            None,
            Some("alice:wrong"),
            Some("mallory:alice's"),
            Some("carol:alice's"),
        ] {
            assert!(get(at, path, wrong).0.contains("401"), "{path} {wrong:?}");
        }
        assert!(
            get(at, path, Some("alice:alice's")).0.contains("200"),
            "{path}"
        );
    }
    for path in ["/api/state", "/api/events"] {
        let all = get(at, path, Some("bob:bob's")).1;
        assert!(
            all.contains("deploy/web") && all.contains("report/today"),
            "{all}"
        );
        let some = get(at, path, Some("alice:alice's")).1;
        assert!(
            some.contains("deploy/web") && !some.contains("report"),
            "{some}"
        );
        assert!(
            some.contains("\"user\":\"alice\"") && !some.contains("carol"),
            "{some}"
        );
    }
    let gate = |user| get(at, "/api/gates/report/today", Some(user));
    assert!(gate("carol:carol's").0.contains("200"));
    let (status, why) = gate("alice:alice's");
    assert!(status.contains("403"), "{status}");
    assert!(
        why.contains("user alice may not show report/today"),
        "{why}"
    );
    for path in ["/healthz", "/livez"] {
        assert!(get(at, path, None).0.contains("200"));
    }
}

#[test]
fn guessing_takes_time_and_has_an_end() {
    let house = House::with(|config| {
        with_users(config);
        config.wire.password_tries = 3;
        config.wire.password_delay_ms = 1;
    });
    for user in ["alice", "carol", "mallory"] {
        let mut guesser = house.client();
        for _ in 0..3 {
            let answer = guesser.call(&["AUTH", user, "guess"]).to_string();
            assert!(answer.starts_with("-WRONGPASS"), "{answer}");
        }
        assert!(guesser.is_closed(), "{user}");
    }
    // Others have not noticed, and a right password starts the count again.
    let mut alice = house.client();
    for round in 0..3 {
        let wrong = alice.call(&["AUTH", "alice", "guess"]).to_string();
        assert!(wrong.starts_with("-WRONGPASS"), "{round}: {wrong}");
        let right = alice.call(&["AUTH", "alice", "alice's"]).to_string();
        assert_eq!(right, "+OK", "{round}");
    }
}

#[test]
fn commands_behind_a_password_wait_for_it() {
    let house = house();
    let mut carol = house.client();
    let pipelined = "AUTH carol \"carol's\"\r\nLOCK report/x\r\nPING\r\n";
    carol.send_bytes(pipelined.as_bytes()).unwrap();
    assert_eq!(carol.read().to_string(), "+OK");
    assert!(matches!(carol.read(), Value::Int(_)));
    assert_eq!(carol.read().to_string(), "+PONG");
    // The second time nothing is worked out.
    assert_eq!(is(&house, "carol").call(&["PING"]).to_string(), "+PONG");
}

fn admin(house: &House, flow: &str, text: &str) -> Client {
    let mut admin = house.client();
    assert_eq!(admin.call(&["AUTH", "secret"]).to_string(), "+OK");
    let applied = admin.call(&["FLOW", "APPLY", flow, text]);
    assert_eq!(applied.to_string(), "+OK");
    admin
}

#[test]
fn who_looks_after_rejected_jobs_may_send_them_back() {
    let house = house();
    let flow = "intake -> [orders] -> price -> [priced] -> bill\nflow { retries 0; reject [failed] }\nqueue failed { rights alice }";
    let mut admin = admin(&house, "shop", flow);
    let mut alice = is(&house, "alice");
    for (to, allowed) in [("shop/priced", false), ("shop/orders", true)] {
        let job = admin
            .call(&["JOB", "CREATE", "shop/orders", "*", "x"])
            .int();
        let taken = admin.call(&["JOB", "TAKE", "shop/orders"]);
        let [id, attempt] = [0, 3].map(|at| taken.list()[at].int().to_string());
        admin.call(&["JOB", "BACK", &id, &attempt, "FAILED"]);
        let moved = alice.call(&["JOB", "MOVE", &job.to_string(), to]);
        match allowed {
            true => assert_eq!(moved.to_string(), "+OK"),
            false => assert!(
                moved.error().ends_with("the right * : admin is missing"),
                "{moved}"
            ),
        }
    }
}

#[test]
fn who_may_not_be_the_process_any_more_finishes_and_gets_nothing_new() {
    let house = house();
    let flow = "make -> [a] -> work -> [b] -> end";
    let mut admin = admin(&house, "deploy", flow);
    let [mut alice, mut waiting] = [(); 2].map(|()| {
        let mut alice = is(&house, "alice");
        let presented = alice.call(&["PRESENT", "deploy", "work"]);
        assert_eq!(presented.to_string(), "+OK");
        alice
    });
    admin.call(&["JOB", "CREATE", "deploy/a", "*", "x"]);
    let taken = alice.call(&["JOB", "TAKE", "a"]);
    let [id, attempt] = [0, 3].map(|at| taken.list()[at].int().to_string());
    waiting.send(&["JOB", "TAKE", "a", "WAIT", "60000"]);
    let takers = |admin: &mut Client| {
        admin
            .call(&["QUEUE", "SHOW", "deploy/a"])
            .at("takers")
            .clone()
    };
    while takers(&mut admin).list().is_empty() {}
    let others = format!("{flow}\nprocess work {{ rights bob }}");
    admin.call(&["FLOW", "APPLY", "deploy", &others]);
    assert_eq!(waiting.read(), Value::Nil);
    admin.call(&["JOB", "CREATE", "deploy/a", "*", "y"]);
    let refused = alice.call(&["JOB", "TAKE", "a"]);
    assert!(refused.error().starts_with("NORIGHT"), "{refused}");
    let passed = alice.call(&["JOB", "PASS", &id, &attempt, "b"]);
    assert_eq!(passed.to_string(), "+OK");
}

#[test]
fn an_author_does_not_reach_jobs_by_its_own_apply() {
    let house = House::with(|config| {
        with_users(config);
        let rights = "shop : define, shop/* : use".parse().unwrap();
        let eve = User::new("eve", Secret::read("eve's").unwrap(), rights);
        config.users.push(eve.unwrap());
    });
    let flow =
        "make -> [a] -> work -> [b] -> end\nqueue a { rights alice }\nprocess work { rights bob }";
    let mut admin = admin(&house, "shop", flow);
    admin.call(&["JOB", "CREATE", "shop/a", "one", "x"]);
    let mut eve = is(&house, "eve");
    let base = "make -> [a] -> work -> [b] -> end\n";
    for taking in [
        "queue a { rights alice, eve }\nprocess work { rights bob }",
        "queue b { rights eve }\nprocess work { rights bob }",
        "process work { rights bob, eve }",
        "",
        "process work { rights bob }\nmake -> [a] -> thief -> [b] -> end",
    ] {
        let text = format!("{base}{taking}");
        let answer = eve.call(&["FLOW", "APPLY", "shop", &text]);
        assert!(answer.error().starts_with("DENIED"), "{taking}: {answer}");
    }
    for data in ["/etc", "../elsewhere"] {
        let text = format!("{flow}\nqueue b {{ data \"{data}\" }}");
        for author in [&mut eve, &mut admin] {
            let answer = author.call(&["FLOW", "APPLY", "shop", &text]);
            assert!(answer.error().starts_with("BADFLOW"), "{data}: {answer}");
        }
    }
    let refused = eve.call(&["PRESENT", "shop", "work"]);
    assert!(refused.error().starts_with("NORIGHT"), "{refused}");
    // What stood there may stay, and what gives nobody more may change.
    let text = format!("{flow}\nmake -> [a] -> work -> [c] -> end");
    assert_eq!(
        eve.call(&["FLOW", "APPLY", "shop", &text]).to_string(),
        "+OK"
    );
}
