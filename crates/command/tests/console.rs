//! The console's gates in a real browser, at phone and desktop width.

mod browser;
mod up;

use browser::Browser;
use serde_json::json;
use up::places::Places;
use up::{Client, Up, ok};

#[test]
fn the_console_shows_gates_people_and_waits() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let (mut holder, mut waiter) = (node.client(), node.client());
    holder.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", "deployer"]);
    holder.call(&["LOCK", "deploy", "REASON", "release <b>4.2</b>"]);
    waiter.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", "night build"]);
    waiter.send(&["LOCK", "deploy", "CLASS", "2"]);

    for (width, height) in [(1200, 900), (390, 844)] {
        browser.resize(width, height);
        browser.go(&node.console());
        browser.shows("[data-gate=deploy] .inside", "deployer");
        browser.shows("[data-gate=deploy] .inside", "fence 4294967297");
        browser.shows("[data-gate=deploy] .inside", "release <b>4.2</b>");
        browser.shows("[data-gate=deploy] .waiting", "night build");
        browser.shows("[data-gate=deploy] .waiting", "class 2");
        browser.shows("#graph text", "deploy");
        browser.shows("#sessions td", "night build");
        browser.fits("the page of gates");
        browser.picture(&format!("console-{width}"));
    }
    // What a user writes is text on the page, never markup.
    let markup =
        browser.script("return document.querySelectorAll('main b b, main .inside b').length");
    assert_eq!(markup, 0);
    // A release and the next grant reach the page by themselves.
    holder.call(&["UNLOCK", "deploy"]);
    browser.shows("[data-gate=deploy] .inside", "night build");
}

#[test]
fn the_console_shows_leaders_candidates_and_past_terms() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut people = ["db-1", "db-2", "db-3"].map(|name| {
        let mut client = node.client();
        client.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", name]);
        client
    });
    let campaign = |name: &'static str, rank: &'static str| {
        ["ELECT", "CAMPAIGN", "primary", name, "RANK", rank]
    };
    let first = people[0].call(&campaign("10.0.0.1 <b>old</b>", "0")).int();
    people[0].call(&["ELECT", "RESIGN", "primary"]);
    let second = people[1].call(&campaign("10.0.0.2:5432", "-7")).int();
    people[2].send(&campaign("10.0.0.3:5432", "4"));
    people[0].send(&campaign("10.0.0.1:5432", "2"));
    for dark in [false, true] {
        for (width, height) in [(1280, 900), (390, 844)] {
            browser.resize(width, height);
            browser.darken(dark);
            browser.go(&format!("{}#elections", node.console()));
            let card = "[data-election=primary]";
            browser.shows(&format!("{card} .inside"), "10.0.0.2:5432 db-2");
            browser.shows(&format!("{card} .inside"), &format!("term {second}"));
            browser.shows(&format!("{card} .waiting:nth-child(2)"), "db-3");
            browser.shows(&format!("{card} .waiting:nth-child(3)"), "rank 2");
            browser.shows(&format!("{card} td"), &first.to_string());
            browser.shows(&format!("{card} td"), "10.0.0.1 <b>old</b>");
            browser.shows(&format!("{card} td"), "it resigned");
            browser.shows(&format!("{card} th"), "led for");
            browser.fits("the page of elections");
            let shade = if dark { "dark" } else { "light" };
            browser.picture(&format!("console-elections-{width}-{shade}"));
        }
    }
    // The next term reaches the page by itself, and the last one is history.
    people[1].call(&["ELECT", "RESIGN", "primary"]);
    browser.shows("[data-election=primary] .inside", "10.0.0.3:5432");
    browser.shows("[data-election=primary] td", &second.to_string());
    // An election is no gate.
    browser.click("nav [href='#gates']");
    browser.shows("#sessions td", "leads primary");
    browser.shows("#gate-list .empty", "No gates");
}

#[test]
fn the_console_shows_groups_what_they_deliver_and_decisions() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut people = ["ann", "ben <b>x</b>"].map(|name| {
        let mut client = node.client();
        client.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", name]);
        client.call(&["GROUP", "JOIN", "talk"]);
        client
    });
    let first = people[0].call(&["GROUP", "SEND", "talk", "hello <i>all</i>"]);
    people[1].call(&["GROUP", "SEND", "talk", &"long".repeat(100)]);
    people[1].call(&["DECIDE", "release", "7.1"]);
    people[1].call(&["DECIDE", "longer", &"value".repeat(100)]);
    for dark in [false, true] {
        for (width, height) in [(1280, 900), (390, 844)] {
            browser.resize(width, height);
            browser.darken(dark);
            browser.go(&format!("{}#groups", node.console()));
            let card = "[data-group-name=talk]";
            browser.shows(
                &format!("{card} .what"),
                "order TOTAL, using log, 2 members",
            );
            browser.shows(&format!("{card} .inside"), "ann");
            browser.shows(&format!("{card} .inside"), "ben <b>x</b>");
            browser.shows(&format!("{card} td"), &first.int().to_string());
            browser.shows(&format!("{card} td"), "hello <i>all</i>");
            browser.shows("#decision-list td", "release");
            browser.shows("#decision-list td", "7.1");
            browser.fits("the page of groups");
            let shade = if dark { "dark" } else { "light" };
            browser.picture(&format!("console-groups-{width}-{shade}"));
        }
    }
    // What is delivered, and who leaves, reaches the page by itself.
    people[1].call(&["GROUP", "SEND", "talk", "good day"]);
    browser.shows("[data-group-name=talk] td", "good day");
    people[1].call(&["GROUP", "LEAVE", "talk"]);
    browser.shows("[data-group-name=talk] .what", "1 member");
}

/// A session that holds a gate of its own and waits for another's.
fn session(node: &Up, name: &str, holds: &str, waits: Option<&str>) -> Client {
    let mut client = node.client();
    client.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", name]);
    client.call(&["LOCK", holds, "WAIT", "0"]);
    if let Some(gate) = waits {
        client.send(&["LOCK", gate]);
    }
    client
}

/// Whether two things that fit the selector lie on each other.
const OVERLAP: &str = "
    const seen = [...document.querySelectorAll(arguments)].map((e) => e.getBoundingClientRect());
    return seen.some((a, at) => seen.slice(0, at).some((b) =>
      a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));";

fn overlap(browser: &Browser, selector: &str) -> bool {
    let script = OVERLAP.replace("arguments", &json!(selector).to_string());
    browser.script(&script) == true
}

#[test]
fn who_waits_for_whom_is_drawn_gate_by_gate_and_listed_when_it_is_much() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    // Each of nine waits for the gate of an earlier one, four of them for the same.
    let mut people = vec![session(&node, "root", "g0", None)];
    for (at, waits) in [0, 1, 2, 2, 2, 2, 5, 6].into_iter().enumerate() {
        let (name, holds) = (format!("person {}", at + 1), format!("g{}", at + 1));
        people.push(session(&node, &name, &holds, Some(&format!("g{waits}"))));
    }
    browser.resize(1200, 900);
    browser.go(&node.console());
    browser.until("document.querySelectorAll('#graph [data-waited]').length === 5");
    browser.shows("#graph [data-waited=g2]", "4. person 6");
    assert!(!overlap(&browser, "#graph .gate-box"), "boxes");
    assert!(!overlap(&browser, "#graph text"), "labels");
    // One arrow for each that is inside a gate where somebody waits, and waits itself.
    let arrows = browser.script("return document.querySelectorAll('#graph path.edge').length");
    assert_eq!(arrows, 4);
    // What everything waits for stands at the left.
    let order = browser.script(
        "const left = (gate) => document.querySelector(`#graph [data-waited=${gate}] rect`).getBoundingClientRect().left;
         return left('g0') < left('g1') && left('g1') < left('g2') && left('g2') < left('g5') && left('g5') === left('g6');",
    );
    assert_eq!(order, true);
    browser.picture("console-waits");
    // Where the picture does not fit there is a table, and so when there are many gates.
    browser.resize(390, 844);
    browser.shows("#graph td", "4. person 6");
    browser.fits("the table of waits");
    browser.resize(1200, 900);
    browser.until("!!document.querySelector('#graph svg')");
    for at in 9..18 {
        let (holds, waits) = (format!("g{at}"), format!("g{}", at - 1));
        people.push(session(&node, &format!("late {at}"), &holds, Some(&waits)));
    }
    browser.shows("#graph td", "1. late 17");
}

#[test]
fn long_lists_come_in_pages_and_no_page_jumps() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    for at in 0..50 {
        let gate = format!("gate-{at:02}");
        assert_eq!(admin.call(&["GATE", "CREATE", &gate, "MUTEX"]), ok());
    }
    let wide: Vec<String> = (0..40).map(|at| format!("[q{at}] -> p{at}")).collect();
    let tall: String = (0..40)
        .map(|at| format!("a{at} -> [r{at}] -> b\n"))
        .collect();
    for (name, text) in [
        ("a-wide", format!("make -> {}\n", wide.join(" -> "))),
        ("b-tall", tall),
        ("small", "in -> [work] -> out\n".to_owned()),
    ] {
        assert_eq!(admin.call(&["FLOW", "APPLY", name, &text]), ok());
    }
    browser.resize(1200, 600);
    browser.go(&format!("{}#flows", node.console()));
    // Every flow has its name at the top, and none takes more than the window.
    browser.until("document.querySelectorAll('#flow-index button').length === 3");
    browser.until("document.querySelectorAll('#flow-list svg').length === 3");
    let heights = browser.script(
        "return [...document.querySelectorAll('#flow-list article')].every((e) => e.clientHeight < innerHeight)",
    );
    assert_eq!(heights, true);
    browser.click("#flow-index [data-flow=small]");
    browser.until("document.querySelector('article[data-flow=small]').getBoundingClientRect().bottom <= innerHeight");
    // What does not fit is scrolled, or made small enough.
    let wide = "document.querySelector('[data-flow=a-wide] .scroll')";
    browser.until(&format!("{wide}.scrollWidth > {wide}.clientWidth"));
    browser.click("[data-flow=a-wide] [data-do=fit]");
    browser.until(&format!("{wide}.scrollWidth <= {wide}.clientWidth"));
    browser.script("scrollTo(0, 0)");

    // The first press on Gates leaves the page at its top.
    browser.click("nav [href='#gates']");
    browser.shows("#gate-list button", "Show 20 more of 50");
    assert_eq!(browser.script("return scrollY"), 0);
    let cards = |count: usize| {
        browser.until(&format!(
            "document.querySelectorAll('[data-gate]').length === {count}"
        ));
    };
    cards(20);
    browser.click("#gate-list [data-do=show-more]");
    cards(40);
    browser.click("#gate-list [data-do=show-more]");
    cards(50);

    browser.script(
        "import('/dom.js').then(({ brief }) => {
           document.title = [0, 9999, 12345, 999499, 999950, 12345678, 2e9].map(brief).join(' ');
         })",
    );
    browser.until("document.title === '0 9999 12.3k 999k 1M 12.3M 2G'");
}

#[test]
fn large_counts_fit_into_their_boxes_and_are_exact_in_the_title() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    browser.go(&node.console());
    // As many jobs as no test could create.
    browser.script(
        "Promise.all([import('/picture.js'), import('/api.js')]).then(async ([{ livePicture }, { draw }]) => {
           const { drawing } = await draw('in -> [q] -> out');
           const queue = { name: 'q', waiting: 12345678, held: 87654321, limit: null, reject: null, age_ms: null,
             arrivals_per_second: 0, departures_per_second: 0 };
           const processes = [{ name: 'in', clients: 0, limit: null, takes: [] }, { name: 'out', clients: 0, limit: null, takes: ['q'] }];
           const picture = livePicture(drawing, { name: 'f', queues: [queue], processes, arrows: [] }, 800);
           picture.id = 'probe';
           document.body.append(picture);
         })",
    );
    browser.shows("#probe [data-queue=q] text", "12.3M");
    browser.shows("#probe [data-queue=q] text", "87.7M");
    browser.shows(
        "#probe [data-queue=q] title",
        "12345678 waiting, 87654321 held",
    );
    let inside = browser.script(
        "const queue = document.querySelector('#probe [data-queue=q]');
         const box = queue.querySelector('rect').getBBox();
         return [...queue.querySelectorAll('text')].every((text) => {
           const { x, width } = text.getBBox();
           return x >= box.x && x + width <= box.x + box.width;
         });",
    );
    assert_eq!(inside, true);
}

#[test]
fn the_console_shows_what_waits_for_a_lost_session_and_ends_it() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut lost = one.client();
    let open = [
        "SESSION",
        "OPEN",
        "TTL",
        "60000",
        "LABEL",
        "primary <b>db</b>",
    ];
    let session = lost.call(&open).int();
    lost.call(&["LOCK", "deploy", "WAIT", "10000"]).int();
    browser.resize(1280, 900);
    browser.go(&format!("{}#cluster", two.console()));
    browser.shows("#cluster-waits .empty", "every shard is open");
    one.kill();
    for (width, height) in [(1280, 900), (390, 844)] {
        browser.resize(width, height);
        browser.go(&format!("{}#cluster", two.console()));
        browser.shows(
            "#cluster-waits .warning",
            "it waits for 1 session whose home is lost",
        );
        browser.shows("#cluster-waits td", &session.to_string());
        browser.shows("#cluster-waits td", "primary <b>db</b>");
        browser.shows("#cluster-waits td", "node 1");
        browser.fits("the page of the cluster");
        browser.script("document.getElementById('cluster-waits').scrollIntoView()");
        browser.picture(&format!("console-cluster-waits-{width}"));
    }
    browser.click(&format!("#cluster-waits [data-session='{session}']"));
    browser.shows("dialog h2", "primary <b>db</b>?");
    browser.click("dialog [data-do=sure]");
    browser.shows("#news", "ended");
    browser.shows("#cluster-waits .empty", "every shard is open");
    // Without a majority the page says who led last, and that nothing is granted.
    three.kill();
    browser.shows("#cluster-facts .bad", "none known; the last one was node");
    browser.shows("#cluster-facts .bad", "does not hear from a majority");
    browser.shows("#cluster-waits .empty", "Not known");
    for (width, height) in [(1280, 900), (390, 844)] {
        browser.resize(width, height);
        browser.fits("the page of a cluster without a majority");
        browser.picture(&format!("console-cluster-cut-off-{width}"));
    }
}
