//! The console's pools in a real browser: on one node, on three of which one is killed, and with very many slots.

mod browser;
mod up;

use browser::Browser;
use up::places::Places;
use up::{Client, Up, Value, ok};

const SIZES: [(u32, u32); 2] = [(1280, 900), (390, 844)];

/// A client with an opened session of this name.
fn person(node: &Up, name: &str) -> Client {
    let mut client = node.client();
    client.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", name]);
    client
}

/// How many things of the page fit a selector.
fn count(browser: &Browser, selector: &str) -> u64 {
    let found = format!("return document.querySelectorAll('{selector}').length");
    browser.script(&found).as_u64().expect("a number")
}

/// Leaves pictures of a page at both widths, light and dark.
fn pictures(browser: &Browser, name: &str) {
    for dark in [false, true] {
        for (width, height) in SIZES {
            browser.resize(width, height);
            browser.darken(dark);
            settled(browser);
            browser.fits(name);
            let shade = if dark { "dark" } else { "light" };
            browser.picture(&format!("console-{name}-{width}-{shade}"));
        }
    }
    browser.darken(false);
    browser.resize(SIZES[0].0, SIZES[0].1);
    settled(browser);
}

/// Waits until cells are drawn for the width that the window has.
fn settled(browser: &Browser) {
    browser.until(
        "[...document.querySelectorAll('[data-page=pool]:not([hidden]) svg[data-width]')].every((grid) =>
           Number(grid.dataset.width) === grid.parentElement.clientWidth)",
    );
}

#[test]
fn the_console_shows_slots_who_has_them_and_who_waits() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    let names = ["10.0.0.7", "10.0.0.8", "10.0.0.9<b>"];
    let create = [&["POOL", "CREATE", "addresses", "NAMES", "3"], &names[..]].concat();
    assert_eq!(admin.call(&create), ok());
    assert_eq!(
        admin.call(&["POOL", "CREATE", "ports", "SLOTS", "40"]),
        ok()
    );
    let mut holder = person(&node, "web-1");
    holder.call(&["POOL", "TAKE", "addresses", "COUNT", "2"]);
    let mut waiter = person(&node, "night build");
    waiter.send(&["POOL", "TAKE", "addresses", "UPTO", "3", "WAIT", "60000"]);
    browser.go(&format!("{}#pools", node.console()));
    browser.shows("[data-pool=ports] .what", "40 slots, 40 free, 0 used");
    // One is free, and who comes for up to three has it at once.
    browser.shows(
        "[data-pool=addresses] .what",
        "3 named slots, 0 free, 3 used",
    );
    waiter.send(&["POOL", "TAKE", "addresses", "COUNT", "2", "WAIT", "60000"]);
    browser.shows("[data-pool=addresses] .what", "1 waiting");
    let words = browser.script(
        "return document.querySelector('[data-pool=addresses] svg').getAttribute('aria-label')",
    );
    assert_eq!(words, "3 slots of node 1, 3 used, 0 free");
    browser.shows("#pool-list .legend", "solid: used");
    let filter = |text: &str| {
        browser.script(&format!(
            "const filter = document.querySelector('#pool-filter');
             filter.value = '{text}';
             filter.dispatchEvent(new Event('input'))"
        ));
    };
    filter("nowhere");
    browser.shows("#pool-list .empty", "No pool has nowhere in its name.");
    filter("");
    pictures(&browser, "pools-one-node");

    browser.click("[data-pool=addresses] h3 a");
    browser.shows("#pool-title", "Pools / addresses");
    browser.shows("#pool-facts", "3 named slots, 0 free, 3 used");
    browser.shows("#pool-waits .waiting", "night build");
    browser.shows("#pool-waits .waiting", "for 2 slots, at node 1");
    browser.shows("#pool-taken td", "web-1");
    browser.shows("#pool-taken b", "10.0.0.9<b>");
    browser.until("document.querySelectorAll('#pool-grid [data-cell]').length === 3");
    // The keys go from slot to slot, and each is told in words.
    browser.script("document.querySelector('#pool-grid svg.slots[tabindex]').focus()");
    browser.keys("\u{e014}");
    browser.shows("#pool-cell", "slot 10.0.0.8: node 1, used; web-1");
    // It is read aloud when it changes, so nothing in it counts seconds.
    let words = browser.script("return document.querySelector('#pool-cell').textContent");
    let words = words.as_str().expect("words");
    assert!(
        words.contains("has it, fence") && !words.contains(" for "),
        "{words}"
    );
    pictures(&browser, "pool-one-node");
    // What is used is drawn with one thing more than what is free, and the page follows by itself.
    assert_eq!(count(&browser, "#pool-grid [data-cell] .slot-used"), 3);
    assert_eq!(
        holder.call(&["POOL", "GIVE", "addresses", "10.0.0.7"]),
        ok()
    );
    browser.until("document.querySelectorAll('#pool-grid [data-cell] .slot-used').length === 2");
    browser.shows("#pool-facts", "1 free, 2 used");
    // Labels are told where a pool has some, and who waits for which.
    browser.until("document.querySelector('#pool-labels').closest('section').hidden");
    let farm = [
        "POOL",
        "CREATE",
        "farm",
        "NAMES",
        "2",
        "amber:big,cuda",
        "birch:cuda",
    ];
    assert_eq!(admin.call(&farm), ok());
    let take = ["POOL", "TAKE", "farm", "WHERE", "big"];
    let mut trainer = person(&node, "training");
    trainer.call(&take);
    let mut next = person(&node, "next training");
    next.send(&[&take[..], &["WAIT", "60000"]].concat());
    browser.go(&format!("{}#pool/farm", node.console()));
    browser.shows("#pool-labels td", "cuda");
    browser.shows(
        "#pool-waits .waiting",
        "for 1 slot with the label big, at node 1",
    );
    browser.shows("#pool-waits .place", "1st");
    // However long a label is, short cells stay in one line.
    let mut talker = person(&node, &"a label that somebody chose, ".repeat(8));
    talker.call(&["POOL", "TAKE", "farm"]);
    browser.shows("#pool-taken td", "a label that somebody chose, a label");
    for (width, height) in SIZES {
        browser.resize(width, height);
        browser.until(
            "[...document.querySelectorAll('#pool-taken .short')].every((cell) => cell.getClientRects().length === 1)",
        );
    }
    browser.resize(SIZES[0].0, SIZES[0].1);
    // One sentence, and nothing empty below it.
    browser.go(&format!("{}#pool/nothing", node.console()));
    browser.shows("#pool-facts", "There is no pool nothing.");
    browser.until(
        "[...document.querySelectorAll('[data-page=pool] > section')]
           .filter((section) => !section.hidden).length === 1",
    );
}

/// Takes as many slots as a node can get.
fn take(client: &mut Client, pool: &str, count: &str) {
    let taken = client.call(&["POOL", "TAKE", pool, "COUNT", count, "WAIT", "60000"]);
    assert!(matches!(taken, Value::List(_)), "{taken:?}");
}

#[test]
fn the_console_shows_donations_and_a_lost_node_beside_the_others() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let places = Places::new(3);
    let lease = ["--lease-ms", "3000"];
    let join = [&lease[..], &["--join", &places.peers[0]]].concat();
    let [one, two, three] =
        [(1, &lease[..]), (2, &join), (3, &join)].map(|(id, more)| places.up(id, more));
    let mut admin = one.client();
    let create = ["POOL", "CREATE", "ports", "SLOTS", "90"];
    assert_eq!(admin.call(&create), ok());
    browser.go(&format!("{}#pool/ports", two.console()));
    browser.shows("#pool-sides h3", "All nodes answer: 90 slots");
    browser.shows("#pool-moves .empty", "No donation");
    // More than the first node owns: the others give it some, and every node tells of that.
    let mut hungry = person(&one, "hungry");
    take(&mut hungry, "ports", "50");
    browser.shows("#pool-moves td", "node 2 → node 1");
    browser.shows("#pool-moves td", "node 3 → node 1");
    let mut modest = person(&three, "modest");
    take(&mut modest, "ports", "7");
    browser.shows("[data-node='3']", "7 used");
    browser.shows("#pool-taken td", "hungry");
    browser.until("document.querySelectorAll('#pool-grid [data-cell]').length === 90");
    // Slots are coloured by owner: each node's cells have its class, and every class is drawn in a colour of its own.
    let colours = browser.script(
        "const cells = [...document.querySelectorAll('#pool-grid [data-cell] .slot-free')];
         const colour = (owner) => getComputedStyle(cells.find((cell) => cell.classList.contains(owner)) ?? document.body).color;
         const classes = cells.map((cell) => [...cell.classList].filter((name) => name.startsWith('owner-')).join());
         const owners = [...new Set(classes)].sort();
         return `${owners.join()} in ${new Set(owners.map(colour)).size} colours`",
    );
    assert_eq!(colours, "owner-0,owner-1,owner-2 in 3 colours");
    let owned = browser.script(
        "return [...document.querySelectorAll('#pool-grid [data-cell]')].filter((cell) => cell.querySelector('.owner-0')).length",
    );
    assert!(
        owned
            .as_u64()
            .is_some_and(|owned| (50..90).contains(&owned)),
        "{owned} cells of node 1"
    );
    pictures(&browser, "pool-three-nodes");

    drop(modest);
    three.kill();
    browser.shows("#pool-there [data-node='3']", "they come back with it");
    browser.shows("#pool-here [data-node='1']", "50 used");
    let unknown = "#pool-grid [data-cell] .slot-unknown";
    browser.until(&format!(
        "document.querySelectorAll('{unknown}').length > 0"
    ));
    pictures(&browser, "pool-one-killed");
    browser.go(&format!("{}#pools", two.console()));
    browser.shows("[data-pool=ports] .what", "out of reach with node 3");
    browser.shows("[data-pool=ports] .travel-node", ", out of reach");
    browser.shows("#pool-donations td", "node 2 → node 1");
    pictures(&browser, "pools-one-killed");

    // Without a majority a node shows what it has, and what the others had.
    one.kill();
    browser.go(&format!("{}#pool/ports", two.console()));
    browser.shows("#pool-there [data-node='1']", "owns");
    browser.shows("#pool-here [data-node='2']", "free slot");
    browser.shows("#pool-sides h3", "On this side");
    browser.shows("#pool-waits .empty", "Nobody waits at node 2.");
    // What a node said last is not taken for what is so now.
    two.kill();
    browser.script("window.dispatchEvent(new Event('resize'))");
    let old = "The node does not answer. What is shown below is older.";
    browser.shows("#pool-facts .bad", old);
}

#[test]
fn the_console_says_that_withheld_slots_may_be_in_use() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    assert_eq!(admin.call(&["POOL", "CREATE", "ports", "SLOTS", "3"]), ok());
    let mut holder = person(&node, "web-1");
    holder.call(&["POOL", "TAKE", "ports"]);
    node.kill();
    let node = Up::start(data.path(), &[]);
    browser.go(&format!("{}#pool/ports", node.console()));
    browser.shows("#pool-facts", "3 withheld");
    browser.shows(
        "#pool-cell",
        "withheld; an earlier session may still have it",
    );
    browser.shows(
        "#pool-taken td",
        "withheld: an earlier session may still have it",
    );
    pictures(&browser, "pool-withheld");
}

#[test]
fn a_hundred_thousand_slots_fold_into_few_cells_that_unfold() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    let create = ["POOL", "CREATE", "many", "SLOTS", "100000"];
    assert_eq!(admin.call(&create), ok());
    let mut holder = person(&node, "big");
    for count in ["10000", "10000", "10000", "3333"] {
        take(&mut holder, "many", count);
    }
    browser.resize(1280, 900);
    browser.go(&format!("{}#pool/many", node.console()));
    browser.shows("#pool-facts", "100000 slots, 66667 free, 33333 used");
    browser.until("document.querySelectorAll('#pool-grid [data-cell]').length > 500");
    assert!(count(&browser, "#pool-grid [data-cell]") <= 1024);
    assert!(
        count(&browser, "*") < 20_000,
        "a page that any machine can draw"
    );
    pictures(&browser, "pool-many");
    browser.shows("#pool-taken p", "the first 1,000 of 33,333 are listed");
    browser.click("#pool-grid [data-cell='3']");
    browser.shows("#pool-grid p", "one slot per cell");
    let first = browser.script("return document.querySelector('#pool-cell').textContent");
    assert!(
        first.as_str().is_some_and(|words| words.contains("used")),
        "{first}"
    );
    pictures(&browser, "pool-many-unfolded");
    browser.click("#pool-grid [data-do=whole]");
    browser.until("document.querySelectorAll('#pool-grid [data-cell]').length > 500");
}
