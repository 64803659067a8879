//! Data directories that an older version left, one after a clean stop and one after `kill -9`. They hold gates, sessions with
//! what they hold, a waiter, jobs, a job in hand and once-keys; `clean.txt` and `killed.txt` say what was granted.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::{Client, House, Value};

/// A directory of before, and what its clients know.
struct Before {
    house: House,
    known: BTreeMap<String, String>,
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/before")
}

impl Before {
    fn open(how: &str) -> Before {
        let house = House::over(|data| copy(&folder().join(how), data));
        let known = fs::read_to_string(folder().join(format!("{how}.txt"))).unwrap();
        let known = known.lines().map(|line| line.split_once(' ').unwrap());
        let known = known.map(|(what, is)| (what.to_owned(), is.to_owned()));
        Before {
            house,
            known: known.collect(),
        }
    }

    fn number(&self, what: &str) -> i64 {
        self.known[what].parse().unwrap()
    }

    /// Resumes the session that holds, with its receipts.
    fn resume_keeper(&self) -> (Client, Value) {
        let mut client = self.house.client();
        let known = |what: &str| self.known[what].as_str();
        let resumed = client.call(&[
            "SESSION",
            "RESUME",
            known("keeper"),
            "HOLDING",
            "3",
            "plain",
            known("plain"),
            "made",
            known("made"),
            "PERMITS",
            "2",
            "pages",
            known("pages"),
            "SHARED",
            "RECEIPTS",
            known("plain_receipt"),
            known("made_receipt"),
            known("pages_receipt"),
        ]);
        (client, resumed)
    }

    /// What every start on such a directory must give, once the sessions are back.
    fn goes_on(&self, keeper: &mut Client) {
        let mut other = self.house.client();
        let job = self.known["held_job"].as_str();
        let attempt = self.number("held_attempt");
        // The worker's attempt is over, and the next one is above it.
        other.call(&["PRESENT", "shop", "price"]);
        let refused = other.call(&["JOB", "PASS", job, &attempt.to_string(), "priced"]);
        assert!(refused.to_string().contains("NOTYOURS"), "{refused}");
        let taken = other.call(&["JOB", "TAKE", "orders"]);
        let taken = taken.list();
        assert_eq!(taken[0].int().to_string(), job);
        assert!(taken[3].int() > attempt);
        let later = taken[3].int().to_string();
        assert_eq!(
            other.call(&["JOB", "PASS", job, &later, "priced"]),
            Value::Simple("OK".into())
        );
        // Every fence is above all that the older version gave out.
        let highest = ["plain", "made", "pages", "held_attempt"].map(|what| self.number(what));
        let highest = *highest.iter().max().unwrap();
        for gate in ["plain", "made", "other"] {
            let _ = keeper.call(&["UNLOCK", gate]);
            if gate == "plain" {
                continue;
            }
            let fence = keeper.call(&["LOCK", gate]).int();
            assert!(fence > highest, "gate {gate}: {fence} after {highest}");
        }
        let done = keeper.call(&["ONCE", "START", "nightly", "7", "99999999999999"]);
        assert_eq!(done.list()[0], Value::Text("DONE".into()));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn a_directory_of_before_goes_on_after_a_clean_stop() {
    let before = Before::open("clean");
    let mut waiter = before.house.client();
    let status = waiter.call(&["STATUS"]);
    assert_eq!(status.at("recovering").int(), 0);
    // The waiter stands where it stood, and gets the gate when the keeper gives it back.
    waiter.call(&["SESSION", "RESUME", &before.known["waiter"]]);
    waiter.send(&["LOCK", "plain", "ID", "mine", "WAIT", "3000000"]);
    let (mut keeper, resumed) = before.resume_keeper();
    assert_eq!(
        resumed.at("claims").to_string(),
        r#"["HELD", "HELD", "HELD"]"#
    );
    before.goes_on(&mut keeper);
    assert!(waiter.read().int() > before.number("plain"));
}

#[test]
fn a_directory_of_before_goes_on_after_kill_9() {
    let before = Before::open("killed");
    let mut waiter = before.house.client();
    let status = waiter.call(&["STATUS"]);
    assert_eq!(status.at("recovering").int(), 1);
    let refused = waiter.call(&["LOCK", "other", "WAIT", "0"]);
    assert!(refused.to_string().contains("UNAVAILABLE"), "{refused}");
    let (mut keeper, resumed) = before.resume_keeper();
    assert_eq!(
        resumed.at("claims").to_string(),
        r#"["HELD", "HELD", "HELD"]"#
    );
    waiter.call(&["SESSION", "RESUME", &before.known["waiter"]]);
    let status = waiter.call(&["STATUS"]);
    assert_eq!(status.at("recovering").int(), 0);
    before.goes_on(&mut keeper);
    assert!(waiter.call(&["LOCK", "plain"]).int() > before.number("plain"));
}
