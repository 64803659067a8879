//! Pictures of a small house, whole.

use super::*;
use crate::top::snapshot::{Holder, Waiter};

fn view() -> View {
    View {
        address: "127.0.0.1:7600".into(),
        page: Page::Gates,
        sort: Sort::Waiting,
        filter: String::new(),
        typing: false,
        paused: false,
        scrolled: 0,
        trouble: None,
    }
}

fn house() -> Snapshot {
    let holder = |label: &str, since| Holder {
        session: 77,
        label: Some(label.into()),
        mode: "exclusive".into(),
        fence: 4_294_967_297,
        since,
        ..Holder::default()
    };
    let waiter = |class, reason: &str| Waiter {
        session: 4_503_599_627_370_498,
        mode: "room blue team".into(),
        class,
        since: 8_000,
        until: 3_610_000,
        reason: Some(reason.into()),
        ..Waiter::default()
    };
    let gate = |name: &str, holders: Vec<Holder>, waiters: Vec<Waiter>| Gate {
        name: name.into(),
        rule: "MUTEX".into(),
        inside: holders.len(),
        waiting: waiters.len(),
        holders,
        waiters,
    };
    let session = Session {
        session: 77,
        label: Some("builder".into()),
        user: Some("alice".into()),
        heard: 9_000,
        holds: vec!["deploy/web".into()],
        waits: vec!["hall".into()],
        ..Session::default()
    };
    Snapshot {
        version: "0.1.0".into(),
        start: 3,
        now_ms: 10_000,
        gates: vec![
            gate("idle", vec![], vec![]),
            gate("deploy/web", vec![holder("builder", 1_000)], vec![]),
            gate(
                "hall",
                vec![holder("guests", 9_000)],
                vec![waiter(0, "a talk"), waiter(1, "x".repeat(99).as_str())],
            ),
        ],
        sessions: vec![session],
        ..Snapshot::default()
    }
}

fn text(lines: &[StyledLine]) -> String {
    lines.iter().map(|(_, text)| format!("{text}\n")).collect()
}

#[test]
fn gates_in_use_with_holders_and_waiters_in_order() {
    let lines = frame(&view(), None, &house(), 80, Some(24));
    assert_eq!(lines.len(), 24);
    assert!(lines.iter().all(|(_, text)| text.chars().count() <= 80));
    let expected = "\
testigo 0.1.0  127.0.0.1:7600  up 10s  start 3
gates 0  sessions 0  holds 0  waits 0  connections 0
per second: commands 0.0  grants 0.0  waits 0.0  losses 0.0  deadlocks 0.0
GATE                           MODE      CL        FENCE  TIME  LEFT REASON
hall  MUTEX, 1 inside, 2 waiting
  in  guests                   exclusive      4294967297    1s     -
  1.  4503599627370498         room blu~  0        waits    2s  1h00 a talk
  2.  4503599627370498         room blu~  1        waits    2s  1h00 xxxxxxxxxx~
deploy/web  MUTEX, 1 inside, 0 waiting
  in  builder                  exclusive      4294967297    9s     -
";
    let shown = text(&lines);
    assert!(
        shown.starts_with(&expected.replace(" 1h00  ", "  1h00 ")),
        "{shown}"
    );
    assert!(!shown.contains("idle"), "{shown}");
    let (_, foot) = &lines[23];
    assert!(
        foot.starts_with("q quit  p pause  s sort: waiting"),
        "{foot}"
    );
}

#[test]
fn order_filter_and_page_are_the_readers_choice() {
    let first = |view: &View| frame(view, None, &house(), 80, None)[4].1.clone();
    let mut view = view();
    view.sort = view.sort.next();
    assert!(first(&view).starts_with("deploy/web"), "held longest");
    view.filter = "hal".into();
    assert!(first(&view).starts_with("hall"));
    view.filter = "nothing".into();
    assert!(first(&view).starts_with("nobody"));
    view.page = Page::Sessions;
    view.filter = "alice".into();
    let row = first(&view);
    assert!(row.starts_with("77") && row.ends_with("hall"), "{row}");
    view.filter = "bob".into();
    assert_eq!(frame(&view, None, &house(), 80, None).len(), HEAD);
}

#[test]
fn queues_have_a_page_and_those_that_nobody_serves_stand_out() {
    let queue = |name: &str, waiting, takers| Queue {
        name: name.into(),
        waiting,
        takers,
        age_ms: Some(61_000),
        ..Queue::default()
    };
    let now = Snapshot {
        queues: vec![queue("shop/idle", 0, 1), queue("shop/orders", 7, 0)],
        ..house()
    };
    let mut view = view();
    view.page = view.page.next();
    let lines = frame(&view, None, &now, 80, None);
    let expected =
        "QUEUE                       WAITING  HELD  LIMIT   AGE TAKERS  IN/S OUT/S DEATHS";
    assert_eq!(lines[3].1, expected);
    let (style, orders) = &lines[4];
    assert!(orders.starts_with("shop/orders"), "{orders}");
    assert!(
        orders.contains(" 7 ") && orders.contains("1m01"),
        "{orders}"
    );
    assert_eq!((*style, lines[5].0), (Style::Alarm, Style::Plain));
}

#[test]
fn labels_keep_what_tells_clients_apart() {
    let label = "a-machine-with-a-long-name.example.org:12345 lock";
    assert_eq!(cut_front(label, 18), "~le.org:12345 lock");
    assert_eq!(cut_front("vm:1 lock", 18), "vm:1 lock");
}

#[test]
fn a_small_terminal_scrolls_and_a_tiny_one_does_not_panic() {
    let mut view = view();
    view.scrolled = 1_000;
    let lines = frame(&view, None, &house(), 80, Some(7));
    assert_eq!(lines.len(), 7);
    assert!(
        lines[5].1.contains("builder"),
        "the end of the list: {}",
        text(&lines)
    );
    for (width, height) in [(0, 0), (1, 1), (5, 3), (300, 100)] {
        let lines = frame(&view, None, &house(), width, Some(height));
        assert!(
            lines
                .iter()
                .all(|(_, text)| text.chars().count() <= width.max(1))
        );
    }
}

#[test]
fn trouble_recovery_and_pause_are_told() {
    let mut view = view();
    let mut now = house();
    let first = |view: &View, now: &Snapshot| frame(view, None, now, 120, None)[0].clone();
    view.paused = true;
    assert!(first(&view, &now).1.ends_with("PAUSED"));
    now.recovering = true;
    assert!(first(&view, &now).1.contains("RECOVERING"));
    view.trouble = Some("connection refused".into());
    assert_eq!(first(&view, &now).0, Style::Alarm);
    assert!(
        first(&view, &now)
            .1
            .ends_with("NO ANSWER: connection refused")
    );
}
