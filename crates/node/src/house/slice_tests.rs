//! Long work without sockets: how much of it is done at once, and in which turn.

use super::slices::LONG_MAX;
use super::tests::Stage;
use super::*;

/// Makes more gates than one slice looks at.
fn lock_many(stage: &mut Stage, gates: usize) {
    let holder = stage.client();
    for at in 0..gates {
        stage.say(holder, &format!("LOCK g{at}"));
    }
}

#[test]
fn a_slice_looks_at_a_thousand_rows_and_no_more() {
    let mut stage = Stage::new();
    lock_many(&mut stage, 3 * SLICE_ROWS);
    let client = stage.client();
    stage.begin(client, "GATE LIST");
    let mut slices = 0;
    while stage.hear(client).is_empty() {
        stage.house.make_slice();
        slices += 1;
    }
    // Each gate is looked at and then written, and each slice begins with one row's worth of work.
    assert_eq!(slices, 7);
}

#[test]
fn what_is_short_is_answered_before_what_is_long() {
    let mut stage = Stage::new();
    lock_many(&mut stage, 5 * SLICE_ROWS);
    let (long, short) = (stage.client(), stage.client());
    stage.begin(long, "GATE LIST");
    stage.house.make_slice();
    stage.begin(short, "CLIENT LIST");
    for _ in 0..2 {
        stage.house.make_slice();
    }
    assert!(!stage.hear(short).is_empty());
    assert!(stage.hear(long).is_empty());
}

#[test]
fn a_session_whose_answer_is_made_is_not_silent() {
    let mut stage = Stage::new();
    let client = stage.client();
    stage.say(client, "SESSION OPEN TTL 1000");
    stage.deliver();
    stage.hear(client);
    stage.say(client, "LOCK held");
    stage.begin(client, "GATE LIST");
    stage.at(stage.house.now + 5_000);
    while stage.house.has_long_work() {
        stage.house.make_slice();
    }
    assert!(stage.hear(client).starts_with("*1\r\n"));
    assert_eq!(stage.say(client, "UNLOCK held"), "+OK\r\n");
}

#[test]
fn too_much_long_work_is_refused_and_a_closed_connections_is_forgotten() {
    let mut stage = Stage::new();
    let clients: Vec<ClientId> = (0..=LONG_MAX).map(|_| stage.client()).collect();
    for client in &clients {
        stage.begin(*client, "GATE LIST");
    }
    let refused = stage.hear(clients[LONG_MAX]);
    assert!(refused.starts_with("-BUSY 1000 long commands"), "{refused}");
    for client in clients {
        stage.house.farewell(client);
    }
    assert!(!stage.house.has_long_work());
}

/// Gives a queue an order while others' long work stands still.
fn apply_order(stage: &mut Stage, admin: ClientId, order: &str) {
    let flow = format!("intake -> [orders] -> bill\\nqueue orders {{ order {order} }}");
    stage.begin(admin, &format!("FLOW APPLY shop \"{flow}\""));
    assert_eq!(stage.hear(admin), "");
    stage.deliver();
    assert_eq!(stage.hear(admin), "+OK\r\n");
    while stage.house.local().is_reordering() {
        stage.house.services.reorder();
    }
}

#[test]
fn a_list_is_of_one_order() {
    let mut stage = Stage::new();
    let [admin, client] = [(); 2].map(|()| stage.client());
    apply_order(&mut stage, admin, "arrival");
    let jobs = SLICE_ROWS + SLICE_ROWS / 2;
    for at in 0..jobs {
        let (name, class) = (at * 7 % jobs, at % 3);
        let create = format!("JOB CREATE shop/orders job-{name} body CLASS {class}");
        assert!(stage.logged(admin, &create).starts_with(':'));
    }
    for [before, after] in [
        ["arrival", "key"],
        ["key", "arrival"],
        ["arrival", "priority"],
        ["priority", "key"],
    ] {
        apply_order(&mut stage, admin, before);
        let page = stage.say(client, "JOB LIST shop/orders CURSOR 0 LIMIT 10");
        let next = page.lines().nth(2).unwrap();
        let next = format!("JOB LIST shop/orders CURSOR {next} LIMIT 10000");
        let rest = stage.say(client, &next);
        assert!(rest.contains(&format!("\r\n*{}\r\n", jobs - 10)));
        let other_cursor = format!(
            "-BADARG the cursor is of order {before}, which queue shop/orders has no more; begin again with CURSOR 0\r\n"
        );
        let changed =
            "-BUSY the order of queue shop/orders changed while it was listed; ask again\r\n";

        // Lists that are under way.
        for (list, refused) in [
            ("JOB LIST shop/orders LIMIT 10000", changed),
            ("JOB LIST shop/orders CURSOR 0 LIMIT 10000", changed),
            (&next, &other_cursor),
        ] {
            stage.begin(client, list);
            stage.house.make_slice();
            assert_eq!(stage.hear(client), "", "that was one slice");
            apply_order(&mut stage, admin, after);
            while stage.house.has_long_work() {
                stage.house.make_slice();
            }
            assert_eq!(stage.hear(client), refused, "{before}, {after}: {list}");
            apply_order(&mut stage, admin, before);
        }

        // The next page.
        apply_order(&mut stage, admin, after);
        assert_eq!(stage.say(client, &next), other_cursor);
        apply_order(&mut stage, admin, before);
        assert_eq!(stage.say(client, &next), rest);
    }
}

/// The names of the jobs that wait in shop/orders, the next one first.
fn listed(stage: &mut Stage, client: ClientId) -> Vec<String> {
    let list = stage.say(client, "JOB LIST shop/orders LIMIT 10000");
    let names = list.lines().filter(|line| line.starts_with("job-"));
    names.map(str::to_owned).collect()
}

#[test]
fn many_jobs_are_brought_into_another_order_turn_by_turn() {
    let mut stage = Stage::new();
    let [admin, client] = [(); 2].map(|()| stage.client());
    apply_order(&mut stage, admin, "arrival");
    let jobs = 3 * SLICE_ROWS;
    let create = |stage: &mut Stage, number: usize| {
        let create = format!("JOB CREATE shop/orders job-{number:05} body");
        stage.begin(admin, &create);
        stage.deliver();
        assert!(stage.hear(admin).starts_with(':'));
    };
    for at in 0..jobs {
        create(&mut stage, at * 7 % jobs);
    }
    let flow = "intake -> [orders] -> bill\\nqueue orders { order key }";
    stage.begin(admin, &format!("FLOW APPLY shop \"{flow}\""));
    stage.deliver();
    assert_eq!(stage.hear(admin), "+OK\r\n");
    let mut turns = 0;
    while stage.house.local().is_reordering() {
        // Meanwhile jobs go, in the former order, and others come.
        stage.begin(client, "JOB TAKE shop/orders WAIT 0");
        let taken = stage.hear(client);
        let next = format!("job-{:05}", turns * 7);
        let former = turns < 3;
        assert_eq!(taken.contains(&next), former, "turn {turns}: {taken}");
        create(&mut stage, jobs + 10 - turns);
        stage.house.make_slice();
        turns += 1;
    }
    // The jobs' way into the new order, and then the end of the former one.
    assert!((4..=7).contains(&turns), "{turns} turns");
    let names = listed(&mut stage, client);
    assert!(names.is_sorted(), "in the new order");
    assert_eq!(names.len(), jobs);
}
