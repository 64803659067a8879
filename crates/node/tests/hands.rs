//! Jobs whose holders or takers go: by a resume, a reset, or the end of what they say.

mod support;

use support::{Client, House, Value};

fn house(text: &str) -> (House, Client) {
    let house = House::open();
    let mut client = house.client();
    let applied = client.call(&["FLOW", "APPLY", "f", text]);
    assert_eq!(applied, Value::Simple("OK".into()));
    (house, client)
}

fn queue(client: &mut Client, queue: &str, key: &str) -> Value {
    client.call(&["QUEUE", "SHOW", queue]).at(key).clone()
}

#[test]
fn a_take_that_waits_ends_when_its_session_is_resumed_elsewhere() {
    let (house, mut eye) = house("make -> [q] -> work");
    let (mut before, mut after) = (house.client(), house.client());
    let session = before.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    before.send(&["JOB", "TAKE", "q", "WAIT", "60000"]);
    while queue(&mut eye, "q", "takers").list().is_empty() {}
    after.call(&["HELLO", "3"]);
    after.call(&["SESSION", "RESUME", &session.to_string()]);
    assert!(matches!(before.read(), Value::Error(why) if why.starts_with("STALE ")));
    assert!(before.is_closed());
    assert_eq!(queue(&mut eye, "q", "takers").list().len(), 0);
    let job = eye.call(&["JOB", "CREATE", "q", "*", "x"]).int();
    assert_eq!(eye.call(&["JOB", "COUNT", "q"]).int(), 1);
    // The new connection was not bothered with it, and can have it.
    let taken = after.call(&["JOB", "TAKE", "q"]);
    assert_eq!(taken.list()[0].int(), job);
}

#[test]
fn a_reset_gives_back_in_good_order() {
    let (_house, mut client) =
        house("make -> [q] -> work\nqueue q { retries 0; reject [r] }\nqueue r");
    let job = client.call(&["JOB", "CREATE", "q", "*", "x"]).int();
    client.call(&["JOB", "TAKE", "q"]);
    assert_eq!(client.call(&["RESET"]), Value::Simple("RESET".into()));
    let shown = client.call(&["JOB", "SHOW", &job.to_string()]);
    assert_eq!(shown.at("deaths").int(), 0);
    assert_eq!(shown.at("queue"), &Value::Text("f/q".into()));
    assert_eq!(client.call(&["JOB", "COUNT", "q"]).int(), 1);
}

#[test]
fn full_is_counted_where_a_unit_of_work_found_no_room() {
    let (_house, mut client) =
        house("make -> [a] -> work -> [b] -> end\nmake -> [b] -> end\nqueue b { limit 1 }");
    client.call(&["MULTI"]);
    for queue in ["b", "b", "a"] {
        client.call(&["JOB", "CREATE", queue, "*", "x"]);
    }
    let refused = client.call(&["EXEC"]);
    assert!(matches!(refused, Value::Error(why) if why.contains("FULL")));
    let full = ["a", "b"].map(|name| queue(&mut client, name, "full").int());
    assert_eq!(full, [0, 1]);
}

#[test]
fn who_has_said_all_is_served_to_the_end() {
    let (house, mut eye) = house("make -> [q] -> work");
    let mut client = house.client();
    for name in ["a", "b", "c"] {
        client.send(&["JOB", "CREATE", "q", name, "x"]);
    }
    client.end_input();
    let ids = [(); 3].map(|()| client.read().int());
    assert!(ids.is_sorted());
    assert!(client.is_closed());
    assert_eq!(eye.call(&["JOB", "COUNT", "q"]).int(), 3);
    // Who waits is gone with the end of what it says.
    let mut waiting = house.client();
    waiting.send(&["JOB", "TAKE", "q", "NAME", "none", "WAIT", "60000"]);
    waiting.end_input();
    assert!(waiting.is_closed());
    assert_eq!(queue(&mut eye, "q", "takers").list().len(), 0);
}
