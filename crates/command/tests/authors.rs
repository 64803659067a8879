//! Several authors of one flow: who comes second is refused, and is shown what changed meanwhile.

mod browser;
mod up;

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;

use browser::Browser;
use serde_json::{Value as Json, json};
use up::http::{JSON, post};
use up::places::Places;
use up::{Up, Value, ok};

const FIRST: &str = "intake -> [orders] -> bill\n";
const ROUNDS: usize = 10;
const AUTHORS: usize = 6;

/// The text or the mark of the flow `shop`.
fn shown(node: &Up, field: &str) -> String {
    match node.client().call(&["FLOW", "SHOW", "shop"]).at(field) {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// Applies a text over a mark by the wire or by HTTP; gives whether it was applied, and panics unless it was refused as stale.
fn applies(node: &Up, by_http: bool, words: &[&str], barrier: &Barrier) -> bool {
    if by_http {
        let body = json!(words).to_string();
        barrier.wait();
        let (status, answer) = post(node.http(), "/api/command", JSON, &body);
        let stale = status.contains(" 409 ") && answer["error"]["code"] == "STALE";
        assert!(answer["answer"] == "OK" || stale, "{status}: {answer}");
        return answer["answer"] == "OK";
    }
    let mut client = node.client();
    client.call(&["PING"]);
    barrier.wait();
    match client.call(words) {
        applied if applied == ok() => true,
        Value::Error(why) if why.starts_with("STALE flow shop has been changed") => false,
        other => panic!("{other:?}"),
    }
}

/// In each round all authors have seen the same flow, and each applies one of its own, at whichever node.
fn exactly_one_succeeds(nodes: &[Up]) {
    for round in 0..ROUNDS {
        let seen = shown(&nodes[round % nodes.len()], "mark");
        let barrier = Barrier::new(AUTHORS);
        let applied: Vec<String> = thread::scope(|scope| {
            let authors: Vec<_> = (0..AUTHORS)
                .map(|author| {
                    let (node, barrier) = (&nodes[author % nodes.len()], &barrier);
                    let text = format!("intake -> [of-{round}-{author}] -> bill\n");
                    let seen = &seen;
                    scope.spawn(move || {
                        let words = ["FLOW", "APPLY", "shop", &text, "OVER", seen];
                        let applied = applies(node, author % 2 == 0, &words, barrier);
                        applied.then_some(text)
                    })
                })
                .collect();
            let ends = authors.into_iter().map(|author| author.join().unwrap());
            ends.flatten().collect()
        });
        assert_eq!(applied.len(), 1, "round {round}: {applied:?}");
        assert_eq!(shown(&nodes[0], "text"), applied[0]);
    }
}

#[test]
fn of_several_who_have_seen_the_same_flow_exactly_one_changes_it() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    assert_eq!(admin.call(&["FLOW", "APPLY", "shop", FIRST]), ok());
    exactly_one_succeeds(&[node]);
}

#[test]
fn in_a_cluster_exactly_one_changes_it_as_well() {
    let places = Places::new(3);
    let join = ["--join", &places.peers[0]];
    let nodes = [places.up(1, &[]), places.up(2, &join), places.up(3, &join)];
    let mut admin = nodes[0].client();
    assert_eq!(admin.call(&["FLOW", "APPLY", "shop", FIRST]), ok());
    exactly_one_succeeds(&nodes);
}

fn planned(at: SocketAddr, body: &Json) -> Json {
    let (status, answer) = post(at, "/api/flow/plan", JSON, &body.to_string());
    assert!(status.contains(" 200 "), "{status}: {answer}");
    answer
}

#[test]
fn a_plan_says_what_others_have_changed_and_who_works_on_what_it_removes() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    let now = "intake -> [orders] -> price -> [priced] -> bill\n";
    admin.call(&["FLOW", "APPLY", "shop", now]);
    admin.call(&["JOB", "CREATE", "shop/orders", "o-1", ""]);
    let mut price = node.client();
    price.call(&["CLIENT", "SETNAME", "till"]);
    price.call(&["PRESENT", "shop", "price"]);
    price.call(&["JOB", "TAKE", "orders"]);
    let body = json!({"name": "shop", "text": FIRST, "seen": FIRST});
    let told = planned(node.http(), &body);
    assert_eq!(told["mark"], shown(&node, "mark"));
    let changes = told["since"]["changes"].as_array().expect("changes");
    let added = json!({"kind": "added", "what": "queue priced"});
    assert!(changes.contains(&added), "{changes:?}");
    let losing = told["plan"]["losing"].as_array().expect("processes");
    let gone = losing.iter().find(|one| one["process"] == "price");
    let gone = gone.expect("it would be gone");
    assert_eq!(gone["arrows"], json!([]));
    let client = &gone["clients"][0];
    assert_eq!(
        (&client["name"], &client["machine"], &client["jobs"]),
        (&json!("till"), &json!("127.0.0.1"), &json!(["o-1"]))
    );
    let bill = losing.iter().find(|one| one["process"] == "bill");
    let bill = bill.expect("it would lose an arrow");
    assert_eq!(bill["clients"], json!([]));
    assert!(bill["arrows"].to_string().contains("[priced] -> bill"));
    // Nobody has changed what was seen last.
    let body = json!({"name": "shop", "text": FIRST, "seen": now});
    assert_eq!(planned(node.http(), &body)["since"], Json::Null);
}

fn settled(browser: &Browser) {
    browser.until("document.querySelector('#editor').dataset.settled === 'yes'");
}

fn types(browser: &Browser, text: &str) {
    browser.click("#edit-text");
    browser.script("document.querySelector('#edit-text').select()");
    browser.keys(text);
    browser.until(&format!(
        "document.querySelector('#edit-text').value === {}",
        json!(text)
    ));
    browser.shows("#edit-plan .added", "+ ");
    settled(browser);
}

#[test]
fn the_second_author_at_the_console_is_refused_and_sees_the_difference() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut other = node.client();
    assert_eq!(other.call(&["FLOW", "APPLY", "shop", FIRST]), ok());
    browser.resize(1200, 1000);
    browser.go(&format!("{}#edit/shop", node.console()));
    browser.until("!!document.querySelector('[data-node=\"queue:orders\"]')");
    settled(&browser);
    types(&browser, "intake -> [orders] -> mine -> [done] -> bill");
    let theirs = "intake -> [orders] -> bill\nintake -> [audit] -> bill\n";
    assert_eq!(other.call(&["FLOW", "APPLY", "shop", theirs]), ok());

    // The page says what the other has done, and that this drawing would undo it.
    browser.shows("#edit-since:not([hidden])", "+ queue audit");
    browser.shows("#edit-plan .removed", "- queue audit");
    settled(&browser);
    browser.click("#editor [data-do=apply]");
    browser.shows(
        "dialog p",
        "Others have changed the flow since you opened it",
    );
    browser.shows("dialog p", "queue audit");
    // Another change while the question is on the page: what was agreed to is no longer what would happen.
    let again = "intake -> [orders] -> bill\nintake -> [late] -> bill\n";
    assert_eq!(other.call(&["FLOW", "APPLY", "shop", again]), ok());
    browser.click("dialog [data-do=sure]");
    browser.shows("#news.bad", "Not applied. STALE");
    browser.shows("#edit-since-changes", "+ queue late");
    browser.shows("#edit-plan .removed", "- queue late");
    assert_eq!(shown(&node, "text"), again, "theirs is untouched");
    browser.picture("console-authors");

    // Who drops its own drawing sees what runs, and may change that.
    settled(&browser);
    browser.click("[data-do=start-again]");
    browser.until("!!document.querySelector('[data-node=\"queue:late\"]')");
    settled(&browser);
    browser.until("document.querySelector('#edit-since').hidden");
    types(
        &browser,
        "intake -> [late] -> bill\nintake -> [mine] -> bill",
    );
    browser.click("#editor [data-do=apply]");
    browser.click("dialog [data-do=sure]");
    browser.shows("#news.good", "The flow shop runs as drawn.");
    assert!(shown(&node, "text").contains("[mine]"));
}
