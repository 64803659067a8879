//! The console's gates in a real browser, at phone and desktop width.

mod browser;
mod up;

use browser::Browser;
use up::Up;

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
