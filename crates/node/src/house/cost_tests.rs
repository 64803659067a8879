//! What hostile commands cost, without sockets.

use super::tests::Stage;
use super::*;

#[test]
fn a_hostile_pattern_is_refused_by_every_command() {
    let mut stage = Stage::new();
    let client = stage.client();
    let (long, starry) = ("x".repeat(513), "*x".repeat(9));
    for command in [
        "GATE LIST",
        "ELECT LIST",
        "POOL LIST",
        "QUEUE LIST",
        "JOB FIND",
        "CLUSTER OWNERS",
        "STATE",
        "PSUBSCRIBE",
    ] {
        let heard = stage.say(client, &format!("{command} {starry}"));
        let wanted =
            "-BADARG a pattern has 9 stars; at most 8 are allowed, the limit pattern_stars";
        assert!(heard.starts_with(wanted), "{command}: {heard}");
        let heard = stage.say(client, &format!("{command} {long}"));
        let told = heard.contains("at most 512") && heard.starts_with("-BADARG ");
        assert!(told, "{command}: {heard}");
        assert!(!stage.house.has_long_work());
    }
    assert!(!stage.house.connections.channels.any());
    // A gate's name is no pattern.
    stage.say(client, &format!("LOCK {starry}"));
    let heard = stage.say(client, &format!("STATE {starry} GATE"));
    assert!(heard.contains(&starry), "{heard}");
}

/// How many slices a list takes.
fn slices(stage: &mut Stage, list: &str) -> usize {
    let client = stage.client();
    stage.begin(client, list);
    let mut slices = 0;
    while stage.hear(client).is_empty() {
        stage.house.make_slice();
        slices += 1;
    }
    slices
}

#[test]
fn every_list_of_names_is_made_in_slices() {
    let mut stage = Stage::new();
    let (admin, holder) = (stage.client(), stage.client());
    for at in 0..2 * SLICE_ROWS {
        stage.begin(admin, &format!("GATE CREATE g{at} MUTEX"));
        stage.begin(holder, &format!("ELECT CAMPAIGN e{at} value WAIT 0"));
        if at % 200 == 0 {
            stage.deliver();
        }
    }
    while stage.house.submissions.len() > 0 {
        stage.deliver();
    }
    assert!(slices(&mut stage, "CLUSTER OWNERS") > 1);
    // Looked at once, and then four rows' work for each row.
    assert!(slices(&mut stage, "ELECT LIST") >= 4 + 8);
    // A long pattern is more work for every name.
    let plain = slices(&mut stage, "GATE LIST x*y");
    let long = slices(&mut stage, &format!("GATE LIST *{}", "?".repeat(500)));
    assert!(long >= 6 * plain, "{long} slices instead of {plain}");
}

#[test]
fn what_is_dear_costs_more() {
    let mut stage = Stage::new();
    let client = stage.client();
    let cost = |stage: &mut Stage, command: &str| {
        let before = stage.house.connections.cost.spent();
        stage.say(client, command);
        stage.house.connections.cost.spent() - before
    };
    let ping = cost(&mut stage, "PING");
    assert_eq!(ping, 2, "one for the command, one for the answer");
    assert!(cost(&mut stage, &format!("ECHO {}", "x".repeat(50_000))) > 100 * ping);
    let words = format!("SUBSCRIBE {}", "gate:a ".repeat(900));
    assert!(cost(&mut stage, &words) > 300 * ping);
}

#[test]
fn who_is_only_told_something_comes_after_who_waits_for_an_answer() {
    let mut stage = Stage::new();
    let listeners = [(); 4].map(|()| stage.client());
    let holder = stage.client();
    for listener in listeners {
        stage.say(listener, "SUBSCRIBE gate:a");
    }
    stage.house.connections.take_unsent();
    stage.begin(listeners[0], "PING");
    stage.begin(holder, "LOCK a");
    stage.begin(listeners[2], "PING");
    let connections = &mut stage.house.connections;
    let answered = connections.take_unsent();
    assert_eq!(answered, [listeners[0], holder, listeners[2]]);
    assert!(!connections.are_told());
    assert_eq!(connections.take_told(1), [listeners[1]]);
    assert_eq!(connections.take_told(9), [listeners[3]]);
    assert!(connections.are_told());
    // The message is before the later answer.
    let heard = stage.hear(listeners[2]);
    assert!(heard.find("entered") < heard.find("pong"), "{heard}");
    assert!(heard.contains("pong"));
}
