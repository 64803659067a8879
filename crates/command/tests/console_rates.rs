//! The rates of arrows on the console, in a real browser: each arrow has its own, also where several share a queue.

mod browser;
mod up;

use browser::Browser;
use up::{Up, Value, ok};

/// Takes jobs, and passes each to a queue or deletes it.
fn work(worker: &mut up::Client, from: &str, to: Option<&str>, jobs: usize) {
    for _ in 0..jobs {
        let Value::List(taken) = worker.call(&["JOB", "TAKE", from]) else {
            panic!("a job waits in {from}");
        };
        let (Value::Int(id), Value::Int(attempt)) = (&taken[0], &taken[3]) else {
            panic!("an id and an attempt: {taken:?}");
        };
        let (id, attempt) = (id.to_string(), attempt.to_string());
        let done = match to {
            Some(queue) => worker.call(&["JOB", "PASS", &id, &attempt, queue]),
            None => worker.call(&["JOB", "DELETE", &id, &attempt]),
        };
        assert_eq!(done, ok());
    }
}

#[test]
fn every_arrow_shows_its_own_rate_at_every_width() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(data.path(), &[]);
    let mut admin = node.client();
    // Arrows that share a queue at either side, that cross, and that go back.
    let text = "web -> [orders] -> pack -> [packed] -> ship\nphone -> [orders] -> give\n\
                web -> [urgent] -> pack\nphone -> [urgent] -> give\n\
                web -> [orders] -> pack -> [odd] -> mend -> [orders] -> pack -> [packed] -> ship\n\
                queue packed { limit 7 }\n";
    assert_eq!(admin.call(&["FLOW", "APPLY", "shop", text]), ok());
    browser.resize(1200, 900);
    browser.go(&format!("{}#flows", node.console()));
    browser.shows("[data-flow=shop] [data-from=web]", "0 jobs since");
    for (feeder, jobs) in [("web", 12), ("phone", 3)] {
        let mut feeder = node.worker("shop", feeder);
        for _ in 0..jobs {
            let created = feeder.call(&["JOB", "CREATE", "orders", "*", ""]);
            assert!(matches!(created, Value::Int(_)), "{created:?}");
        }
    }
    work(
        &mut node.worker("shop", "pack"),
        "orders",
        Some("packed"),
        7,
    );
    work(&mut node.worker("shop", "give"), "orders", None, 5);
    admin.call(&["JOB", "CREATE", "shop/urgent", "*", ""]);
    // Rates are those of ten seconds, so all must be there at once. What an administrator creates is said by the queue,
    // because no arrow does.
    let rates = [
        ("text[data-from=web][data-to=orders]", "1.2/s"),
        ("text[data-from=phone][data-to=orders]", "0.3/s"),
        ("text[data-from=orders][data-to=pack]", "0.7/s"),
        ("text[data-from=orders][data-to=give]", "0.5/s"),
        ("text[data-from=pack][data-to=packed]", "full 0.7/s"),
        ("text[data-from=web][data-to=urgent]", "0.0/s"),
        ("[data-queue=urgent] .below", "in 0.1/s"),
    ];
    let shown = rates.map(|(selector, says)| {
        format!("document.querySelector('{selector}').textContent.endsWith('{says}')")
    });
    browser.until(&shown.join(" && "));
    for (width, height) in [(1200, 900), (390, 844)] {
        browser.resize(width, height);
        let hidden = browser.script(
            "const box = (e) => e.getBoundingClientRect();
             const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
             const rates = [...document.querySelectorAll('text.rate')];
             const others = [...document.querySelectorAll('rect.queue, ellipse.process, .below'), ...rates];
             return rates.flatMap((rate) => others.filter((other) => other !== rate && !apart(box(rate), box(other)))
               .map((other) => `${rate.dataset.from} -> ${rate.dataset.to}: ${other.outerHTML}`));",
        );
        assert_eq!(hidden, serde_json::json!([]), "every rate can be read");
        browser.fits("rates");
        browser.picture(&format!("console-rates-{width}"));
    }
    for (from, to, jobs) in [
        ("web", "orders", 12),
        ("phone", "orders", 3),
        ("orders", "pack", 7),
        ("orders", "give", 5),
    ] {
        browser.shows(
            &format!("[data-from={from}][data-to={to}] title"),
            &format!(": {jobs} jobs since the node started"),
        );
    }
}
