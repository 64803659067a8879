//! Flows on the console, in a real browser: draw one with the mouse, apply it, see a job move, send a rejected job back.

mod browser;
mod up;

use browser::{Browser, Point};
use up::{Up, Value, ok};

const ENTER: &str = "\u{E007}";
const TAB: &str = "\u{E004}";
const DELETE: &str = "\u{E017}";

/// A node with a flow and a job in each of three conditions: it waits, it is held, it was rejected.
fn node_with_jobs(data: &std::path::Path) -> (Up, up::Client) {
    let node = Up::start(data, &[]);
    let mut admin = node.client();
    let text = "flow { retries 0; reject [failed] }\nintake -> [orders] -> price -> [priced] -> bill\n\
                intake -> [orders] -> price -> [odd] -> mend -> [orders] -> price -> [priced] -> bill\n\
                [failed] -> clerk\nqueue priced { limit 1 }\n";
    assert_eq!(admin.call(&["FLOW", "APPLY", "shop", text]), ok());
    for name in ["rejected", "held", "<b>odd</b>"] {
        admin.call(&["JOB", "CREATE", "shop/orders", name, "3 <i>apples</i>"]);
    }
    admin.call(&["JOB", "CREATE", "shop/priced", "stuck", ""]);
    let mut dies = node.worker("shop", "price");
    dies.call(&["JOB", "TAKE", "orders"]);
    drop(dies);
    let mut works = node.worker("shop", "price");
    let mut asked = 0;
    while works.call(&["JOB", "COUNT", "orders"]) != Value::Int(2) {
        asked += 1;
        assert!(asked < 10_000, "the job was never rejected");
    }
    works.call(&["JOB", "TAKE", "orders"]);
    (node, works)
}

/// A point of the drawing's own paper.
fn on_canvas(browser: &Browser, x: f64, y: f64) -> Point {
    browser.until("!!document.querySelector('#canvas svg')");
    let place = browser.script(
        "const c = document.querySelector('#canvas');
         c.scrollIntoView({ block: 'start', behavior: 'instant' });
         const r = c.getBoundingClientRect();
         return [r.x, r.y];",
    );
    let at = |n: usize| place[n].as_f64().expect("a number");
    (at(0) + x, at(1) + y)
}

/// Places something with the mouse and gives it a name with the keys.
fn place(browser: &Browser, tool: &str, name: &str, (x, y): Point) {
    browser.click(&format!("[data-tool={tool}]"));
    browser.click_at(on_canvas(browser, x, y));
    give_name(browser, tool, name);
}

fn give_name(browser: &Browser, kind: &str, name: &str) {
    browser.until("document.activeElement.name === 'name'");
    browser.keys(&format!("{name}{ENTER}"));
    browser.until(&format!(
        "!!document.querySelector('.chosen[data-node=\"{kind}:{name}\"]')"
    ));
    settled(browser);
}

/// Pulls an arrow from a node to an empty place, where the next one comes to stand.
fn pull(browser: &Browser, from: &str, kind: &str, name: &str, (x, y): Point) {
    browser.click(&format!("[data-node=\"{from}\"] .name"));
    let to = on_canvas(browser, x, y);
    browser.drag(browser.middle(&format!("[data-handle=\"{from}\"]")), to);
    give_name(browser, kind, name);
}

/// Until text, findings and plan are those of the drawing: before that, what is below the drawing may still move.
fn settled(browser: &Browser) {
    browser.until("document.querySelector('#editor').dataset.settled === 'yes'");
}

fn text_of(browser: &Browser) -> String {
    let text = browser.script("return document.querySelector('#edit-text').value");
    text.as_str().expect("text").to_owned()
}

/// Where something stands in the drawing.
fn stands(browser: &Browser, key: &str) -> Point {
    let place = browser.script(&format!(
        "const name = document.querySelector('[data-node=\"{key}\"] .name');
         return ['x', 'y'].map((side) => Number(name.getAttribute(side)));"
    ));
    let number = |at: usize| place[at].as_f64().expect("a number");
    (number(0), number(1))
}

/// Places are kept in whole units of the layout.
fn same_place(one: Point, other: Point) -> bool {
    (one.0 - other.0).abs() < 1.0 && (one.1 - other.1).abs() < 1.0
}

#[test]
fn a_flow_is_drawn_applied_and_watched_and_a_rejected_job_is_sent_back() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    browser.resize(1200, 1000);
    browser.go(&format!("{}#edit", node.console()));
    // Gone if the page were ever loaded again.
    browser.script("window.samePage = true");
    settled(&browser);

    // Draw: intake -> [orders] -> price -> [priced] -> ship, and a reject queue.
    place(&browser, "process", "intake", (90.0, 90.0));
    browser.click("[data-node=\"process:intake\"] [data-mark=creates] .touch");
    settled(&browser);
    pull(&browser, "process:intake", "queue", "orders", (260.0, 90.0));
    pull(&browser, "queue:orders", "process", "price", (420.0, 90.0));
    pull(&browser, "process:price", "queue", "priced", (580.0, 90.0));
    pull(&browser, "queue:priced", "process", "ship", (750.0, 90.0));
    settled(&browser);
    browser.shows("#edit-findings .error", "R5");
    browser.shows("#edit-said", "Not a flow yet");
    browser.click("[data-node=\"process:ship\"] [data-mark=deletes] .touch");
    settled(&browser);
    place(&browser, "queue", "failed", (260.0, 230.0));
    browser.click_at(on_canvas(&browser, 600.0, 280.0));
    browser.click("[name=retries]");
    browser.keys(&format!("0{TAB}"));
    settled(&browser);
    browser.choose("[name=reject]", "failed");
    settled(&browser);
    browser.shows("#edit-said", "This is a flow.");
    let text = "intake -> [orders] -> price -> [priced] -> ship\n\n\
                flow { retries 0; reject [failed] }\nqueue failed\n";
    assert_eq!(text_of(&browser), text);

    // Moving things changes the drawing and not the text.
    let from = browser.middle("[data-node=\"queue:failed\"] .name");
    browser.drag(from, (from.0 + 90.0, from.1 + 20.0));
    settled(&browser);
    assert_eq!(text_of(&browser), text);
    browser.picture("console-drawn");

    // Apply.
    let drawn = stands(&browser, "queue:failed");
    browser.click("#edit-name");
    browser.keys(&format!("shop{TAB}"));
    settled(&browser);
    browser.shows("#edit-plan .added", "+ price -> [priced]");
    browser.click("#editor [data-do=apply]");
    browser.shows("#news.good", "The flow shop runs as drawn.");
    browser.click("nav [href='#flows']");
    let queue = |name: &str, says: &str| {
        browser.shows(&format!("[data-flow=shop] [data-queue={name}]"), says);
    };
    queue("orders", "0 waiting");

    // A job moves, and the page shows it by itself.
    let mut admin = node.client();
    admin.call(&["JOB", "CREATE", "shop/orders", "first", "3 apples"]);
    queue("orders", "1 waiting");
    let mut price = node.worker("shop", "price");
    let Value::List(taken) = price.call(&["JOB", "TAKE", "orders"]) else {
        panic!("a job waits");
    };
    let (Value::Int(id), Value::Int(attempt)) = (&taken[0], &taken[3]) else {
        panic!("an id and an attempt: {taken:?}");
    };
    queue("orders", "1 held");
    browser.shows("[data-flow=shop] [data-process=price]", "1 client");
    price.call(&[
        "JOB",
        "PASS",
        &id.to_string(),
        &attempt.to_string(),
        "priced",
    ]);
    queue("priced", "1 waiting");
    queue("orders", "0 waiting");

    // Its next worker dies: it is rejected, and sent back with the mouse.
    let mut ship = node.worker("shop", "ship");
    ship.call(&["JOB", "TAKE", "priced"]);
    queue("priced", "1 held");
    drop(ship);
    queue("failed", "1 waiting");
    browser.click("[data-flow=shop] [data-queue=failed] .name");
    browser.shows("#job-list td", "first");
    browser.click("#job-list input[type=checkbox]");
    browser.shows("#jobs-count", "1 chosen");
    browser.click("#job-deeds [data-do=retry]");
    browser.shows("dialog h2", "Retry 1 job?");
    browser.click("dialog [data-do=sure]");
    browser.shows("#news.good", "1 job sent back.");
    browser.click("nav [href='#flows']");
    queue("priced", "1 waiting");
    queue("failed", "0 waiting");

    // A text that would strand the job: the drawing follows it, the plan says so, and the node refuses it.
    browser.click("[data-flow=shop] a.button");
    // The drawing of before is still there, hidden, until the page turns: all three at one time.
    browser.until(
        "!document.querySelector('[data-page=edit]').hidden
         && document.querySelector('#editor').dataset.settled === 'yes'
         && !!document.querySelector('[data-node=\"queue:priced\"]')",
    );
    let opened = stands(&browser, "queue:failed");
    assert!(same_place(opened, drawn), "{opened:?} {drawn:?}");
    browser.click("#edit-text");
    browser.script("document.querySelector('#edit-text').select()");
    browser.keys("intake -> [orders] -> ship");
    browser.until("!document.querySelector('[data-node=\"queue:priced\"]')");
    settled(&browser);
    browser.shows(
        "#edit-plan .error",
        "the queue priced would be gone and has 1 job",
    );
    browser.click("#editor [data-do=apply]");
    browser.shows("dialog p", "queue priced");
    browser.click("dialog [data-do=sure]");
    browser.shows("#news.bad", "Not applied. BUSY");
    assert_eq!(admin.call(&["JOB", "COUNT", "shop/priced"]), Value::Int(1));
    assert_eq!(
        browser.script("return window.samePage"),
        true,
        "it was never loaded again"
    );
}

#[test]
fn what_a_person_placed_stands_there_again_until_it_is_laid_out_anew() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    let text = "# By hand.\nintake -> [orders] -> price -> [odd] -> mend\n";
    let shorter = "intake -> [orders] -> price\n";
    browser.resize(1200, 1000);
    let mut open = |text: &str| {
        assert_eq!(admin.call(&["FLOW", "APPLY", "shop", text]), ok());
        browser.go("about:blank");
        browser.go(&format!("{}#edit/shop", node.console()));
        browser.until("!!document.querySelector('[data-node=\"queue:orders\"]')");
        settled(&browser);
        assert_eq!(text_of(&browser), text);
    };
    let is_at = |key: &str, place: Point| {
        let stands = stands(&browser, key);
        assert!(same_place(stands, place), "{key}: {stands:?} {place:?}");
    };
    let drag = |key: &str, (dx, dy): Point| {
        let from = browser.middle(&format!("[data-node=\"{key}\"] .name"));
        browser.drag(from, (from.0 + dx, from.1 + dy));
        settled(&browser);
        assert_eq!(text_of(&browser), text, "places are no part of the text");
    };
    open(text);
    let laid_out = ["queue:orders", "queue:odd", "process:price"].map(|key| stands(&browser, key));
    let [orders, odd, price] = laid_out;
    // Only so many flows have their places kept; these are from before.
    browser.script(
        "const flows = Array.from({ length: 60 }, (_, nth) => [`old${nth}`, [['queue:q', [50, 50]]]]);
         localStorage.setItem('testigo.places', JSON.stringify(flows));",
    );
    drag("queue:orders", (30.0, 90.0));
    drag("queue:odd", (20.0, 60.0));
    let kept = browser.script(
        "const flows = JSON.parse(localStorage.getItem('testigo.places'));
         return [flows.length, flows[0][0], flows.at(-1)[0]];",
    );
    assert_eq!(kept, serde_json::json!([50, "old11", "shop"]));
    let moved = (orders.0 + 30.0, orders.1 + 90.0);
    open(text);
    is_at("queue:orders", moved);
    is_at("queue:odd", (odd.0 + 20.0, odd.1 + 60.0));
    is_at("process:price", price);
    // A place is forgotten with what stood there.
    open(shorter);
    is_at("queue:orders", moved);
    open(text);
    is_at("queue:orders", moved);
    is_at("queue:odd", odd);
    browser.click("[data-do=lay-out]");
    browser.until(&format!(
        "Number(document.querySelector('[data-node=\"queue:orders\"] .name').getAttribute('y')) === {}",
        orders.1
    ));
    assert_eq!(text_of(&browser), text);
    open(text);
    is_at("queue:orders", orders);
    // To be undone as everything else.
    drag("queue:orders", (0.0, 50.0));
    browser.click("[data-do=undo]");
    settled(&browser);
    open(text);
    is_at("queue:orders", orders);
    // What the browser keeps may be somebody else's, or broken.
    for broken in ["{", "5", "{}", "[null, 7]"] {
        browser.script(&format!(
            "localStorage.setItem('testigo.places', '{broken}')"
        ));
        open(text);
        is_at("queue:orders", orders);
    }
}

/// As whoever comes there with Tab.
fn focus(browser: &Browser, selector: &str) {
    let quoted = serde_json::json!(selector);
    browser.until(&format!("!!document.querySelector({quoted})"));
    browser.script(&format!("document.querySelector({quoted}).focus()"));
}

#[test]
fn a_flow_is_drawn_and_changed_by_keys_alone() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    browser.resize(1200, 1000);
    browser.go(&format!("{}#edit", node.console()));
    settled(&browser);
    browser.keys(TAB);
    let press = |selector: &str, keys: &str| {
        focus(&browser, selector);
        browser.keys(keys);
    };
    press("[data-tool=process]", ENTER);
    browser.until("!!document.querySelector('.chosen[data-node=\"process:process1\"]')");
    press("#edit-panel [name=creates]", " ");
    press("[data-tool=queue]", ENTER);
    browser.until("!!document.querySelector('.chosen[data-node=\"queue:queue1\"]')");
    press("#edit-panel [name=limit]", &format!("7{TAB}"));
    press("[data-tool=process]", ENTER);
    browser.until("!!document.querySelector('.chosen[data-node=\"process:process2\"]')");
    press("#edit-panel [name=deletes]", " ");
    press("[data-node=\"process:process1\"]", ENTER);
    press("#edit-panel [name=arrow]", "queue1");
    press("#edit-panel [data-do=connect]", ENTER);
    browser.until("document.querySelectorAll('[data-arrow]').length === 1");
    focus(&browser, "[data-node=\"queue:queue1\"]");
    browser.until("document.querySelector('#edit-panel h3').textContent === 'Queue'");
    press("#edit-panel [name=arrow]", "process2");
    press("#edit-panel [data-do=connect]", ENTER);
    browser.until("document.querySelectorAll('[data-arrow]').length === 2");
    browser.shows("#edit-said", "This is a flow.");
    settled(&browser);
    let text = "process1 -> [queue1] -> process2\n\nqueue queue1 { limit 7 }\n";
    assert_eq!(text_of(&browser), text);
    // What is removed comes back.
    press("[data-node=\"queue:queue1\"]", DELETE);
    browser.until("document.querySelectorAll('[data-arrow]').length === 0");
    browser.shows("#edit-said", "the text is the one of before");
    press("[data-do=undo]", ENTER);
    browser.shows("#edit-said", "This is a flow.");
    settled(&browser);
    assert_eq!(text_of(&browser), text);
}

#[test]
fn changes_are_undone_and_done_again_by_keys_and_arrows_go_around() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let text = "make -> [q1] -> p1 -> [q2] -> p2 -> [q3] -> p3 -> [q4] -> p4 -> [q5] -> p5 -> [q6] -> end\n\
                make -> [q1] -> p1 -> [odd] -> mend -> [q1] -> p1 -> [q2] -> p2 -> [late] -> p5 -> [q6] -> end\n\
                hand -> [q6] -> end\n";
    let mut admin = node.client();
    assert_eq!(admin.call(&["FLOW", "APPLY", "shop", text]), ok());
    browser.resize(1200, 1000);
    browser.go(&format!("{}#edit/shop", node.console()));
    let nodes = |count: usize| {
        browser.until(&format!(
            "document.querySelectorAll('[data-node]').length === {count}"
        ));
        settled(&browser);
    };
    nodes(17);
    let disabled =
        "['undo', 'redo'].map((name) => document.querySelector(`[data-do=${name}]`).disabled)";
    let is_disabled = || browser.script(&format!("return {disabled}"));
    assert_eq!(is_disabled(), serde_json::json!([true, true]));
    focus(&browser, "[data-node=\"process:hand\"]");
    browser.keys(DELETE);
    nodes(16);
    focus(&browser, "[data-node=\"process:mend\"]");
    browser.keys(DELETE);
    nodes(15);
    let (ctrl, shift) = ("\u{E009}", "\u{E008}");
    browser.chord(&[ctrl, "z"]);
    nodes(16);
    browser.chord(&[ctrl, "z"]);
    nodes(17);
    assert_eq!(text_of(&browser), text);
    assert_eq!(is_disabled(), serde_json::json!([true, false]));
    browser.chord(&[ctrl, shift, "Z"]);
    nodes(16);
    browser.chord(&[ctrl, "y"]);
    nodes(15);
    browser.chord(&[ctrl, "z"]);
    nodes(16);
    // What is changed after an undo cannot be done again.
    focus(&browser, "[data-node=\"process:p3\"]");
    browser.keys(DELETE);
    nodes(15);
    assert_eq!(is_disabled(), serde_json::json!([false, true]));

    // No arrow runs through what it does not lead to.
    browser.go("about:blank");
    browser.go(&format!("{}#edit/shop", node.console()));
    nodes(17);
    let through = browser.script(
        "const boxes = [...document.querySelectorAll('[data-node]')].map((node) => [node.dataset.node, node.querySelector('.process, .queue').getBBox()]);
         return [...document.querySelectorAll('[data-arrow]')].flatMap((arrow) => {
           const [, process, queue] = arrow.dataset.arrow.split(':');
           const path = arrow.querySelector('.arrow');
           const points = Array.from({ length: 200 }, (_, at) => path.getPointAtLength(path.getTotalLength() * at / 199));
           return boxes.filter(([key, b]) => key !== `process:${process}` && key !== `queue:${queue}`
             && points.some(({ x, y }) => x > b.x && x < b.x + b.width && y > b.y && y < b.y + b.height))
             .map(([key]) => `${arrow.dataset.arrow} runs through ${key}`);
         });",
    );
    assert_eq!(through, serde_json::json!([]));
    // Wider than the page, until it is made to fit.
    let canvas = "document.querySelector('#canvas')";
    browser.until(&format!("{canvas}.scrollWidth > {canvas}.clientWidth"));
    browser.click("[data-do=fit]");
    browser.until(&format!("{canvas}.scrollWidth <= {canvas}.clientWidth"));
    browser.picture("console-fitted");
}

#[test]
fn queues_jobs_clients_and_histories_are_shown_and_administered_at_every_width() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let (node, _works) = node_with_jobs(data.path());
    let console = node.console();
    for (width, height) in [(1200, 900), (390, 844)] {
        browser.resize(width, height);
        let page = |hash: &str| {
            browser.go("about:blank");
            browser.go(&format!("{console}#{hash}"));
        };
        let seen = |name: &str| {
            browser.fits(name);
            browser.picture(&format!("console-{name}-{width}"));
        };
        page("flows");
        // Back-pressure is red and has a word.
        browser.shows("[data-flow=shop] [data-to=priced] .pressed", "full");
        browser.shows("[data-queue=priced] .below.full", "full: 1");
        browser.shows("[data-process=mend]", "no client");
        browser.shows("[data-process=price]", "1 client");
        seen("flows");
        page("queues");
        browser.shows("#queue-list td .pressed", "1, full");
        seen("queues");
        page("jobs");
        browser.shows("#job-list td", "<b>odd</b>");
        seen("jobs");
        page("jobs/shop%2Ffailed");
        browser.shows("#jobs-count", "1 job");
        browser.click("#job-list a");
        browser.shows("#job-page pre", "3 <i>apples</i>");
        browser.shows("#job-page td", "rejected");
        browser.shows("#job-page button", "Retry in shop/orders");
        seen("job");
        page("clients");
        browser.shows("[data-group='shop/price']", "held of shop/orders");
        seen("clients");
        browser.click("[value=machine]");
        browser.shows("[data-group='127.0.0.1'] button", "End all of this machine");
        page("edit/shop");
        browser.until("document.querySelectorAll('[data-node]').length === 9");
        settled(&browser);
        seen("edit");
        let markup = browser
            .script("return document.querySelectorAll('main i, #job-list b, #canvas b').length");
        assert_eq!(markup, 0, "names and bodies are text");
    }
    // What is ended gives its job back, which has died once and is rejected.
    browser.resize(1200, 900);
    browser.go(&format!("{console}#clients"));
    browser.click("[data-group='shop/price'] [data-do=end]");
    browser.click("dialog [data-do=sure]");
    browser.shows("#news.good", "1 client ended.");
    browser.shows("#client-list", "Nobody works.");
    // Create, move and delete, each after a question where it cannot be taken back.
    browser.click("nav [href='#jobs']");
    browser.choose("#create-in", "shop/odd");
    browser.click("#create-name");
    browser.keys(&format!("made-here{ENTER}"));
    browser.shows("#news.good", "is created in shop/odd.");
    browser.click("#jobs-pattern");
    browser.keys("made-*");
    browser.shows("#jobs-count", "1 job");
    browser.click("#job-list input[type=checkbox]");
    browser.choose("#move-to", "shop/priced");
    browser.click("#job-deeds [data-do=move]");
    browser.click("dialog [data-do=sure]");
    browser.shows("#news.bad", "FULL");
    browser.choose("#move-to", "shop/orders");
    browser.click("#job-deeds [data-do=move]");
    browser.click("dialog [data-do=sure]");
    browser.shows("#job-list td", "shop/orders");
    browser.click("#job-deeds [data-do=delete]");
    browser.shows("dialog h2", "Delete 1 job?");
    browser.click("dialog [value=no]");
    browser.until("!document.querySelector('dialog')");
    browser.shows("#job-list td", "made-here");
    browser.click("#job-deeds [data-do=delete]");
    browser.click("dialog [data-do=sure]");
    browser.shows("#job-list", "No job fits.");
}

#[test]
fn long_names_old_searches_and_broken_addresses_are_no_trouble() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let (node, _works) = node_with_jobs(data.path());
    let name = "w".repeat(255);
    let id = node
        .client()
        .call(&["JOB", "CREATE", "shop/odd", &name, ""])
        .int();
    for width in [1200, 390] {
        browser.resize(width, 900);
        browser.go("about:blank");
        browser.go(&format!("{}#job/{id}", node.console()));
        browser.shows("#job-page h2", &name);
        browser.fits("a job with a long name");
        browser.script("location.hash = '#jobs'");
        browser.shows("#job-list td", &name);
        browser.fits("a list with a long name");
    }
    // Whoever comes to a queue from its drawing sees what is in it, whatever was looked for before.
    browser.click("#jobs-pattern");
    browser.keys("nothing-like-it");
    browser.shows("#job-list", "No job fits.");
    browser.script("location.hash = '#flows'");
    browser.until("!document.querySelector('[data-page=flows]').hidden");
    browser.script("location.hash = '#jobs/shop%2Fodd'");
    browser.shows("#job-list td", &name);
    browser.script("location.hash = '#job/%E0%A4%A'");
    browser.until("!document.querySelector('[data-page=job]').hidden");
    browser.shows("#job-page", "BADARG");
}
