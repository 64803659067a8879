//! The wire as it is spoken: each file in `transcripts/` is a conversation with a fresh node, command by command, with
//! every answer. Run with `TESTIGO_REWRITE=1` to write what the node says into the files.
//!
//! ```text
//! A> LOCK deploy          connection A sends a command
//! A< 4294967297           and is answered
//! B> LOCK deploy
//! B blocks                B is not answered yet
//! A< >["wanted", …]       A is sent something unasked
//! A closed                the node has closed A
//! A goes                  A closes
//! restart                 a clean stop and a start
//! ```
//!
//! In an answer `_` stands for anything, `$x` for anything that is called `$x` from then on.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use support::{Client, House, Value};

struct Stage {
    house: House,
    /// Looks at the others.
    eye: Client,
    clients: BTreeMap<String, (Client, i64)>,
    names: BTreeMap<String, String>,
}

/// A test for every transcript, named after what it shows, and one that finds a file that none of them plays.
macro_rules! transcripts {
    ($($test:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $test() {
                is_as_written($file);
            }
        )*

        #[test]
        fn every_transcript_is_played() {
            let mut files: Vec<_> = fs::read_dir(folder())
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            assert_eq!(files, [$($file),*]);
        }
    };
}

transcripts! {
    a_wait_without_blocking_is_granted_by_a_push: "async.txt",
    connections_are_told_named_and_listed: "client.txt",
    the_first_value_is_decided_for_everybody: "decide.txt",
    the_highest_rank_leads_and_its_term_is_told: "elect.txt",
    flows_are_applied_shown_and_kept_from_stranding_jobs: "flow.txt",
    gates_are_created_shown_listed_and_deleted: "gate.txt",
    what_a_member_sends_is_delivered_to_all_in_one_order: "group.txt",
    a_job_is_created_taken_passed_on_and_deleted: "job.txt",
    a_gate_is_locked_and_unlocked_in_order: "lock.txt",
    looking_matches_the_state_and_has_no_effect_on_it: "look.txt",
    a_key_is_done_once: "once.txt",
    without_the_password_nothing_is_answered: "password.txt",
    slots_of_a_pool_are_taken_and_given: "pool.txt",
    a_process_sees_its_own_flow_and_ends_its_own_session: "process.txt",
    what_happens_at_a_gate_is_published: "pubsub.txt",
    a_receipt_comes_with_the_fence_it_is_for: "receipts.txt",
    a_clean_stop_keeps_holders_and_waiters: "restart.txt",
    a_process_taken_out_of_its_flow_gets_nothing: "rights.txt",
    sessions_are_opened_resumed_and_ended: "session.txt",
    a_set_is_entered_all_or_none: "set.txt",
    readers_are_inside_together: "shared.txt",
    what_happens_to_jobs_is_counted: "stats.txt",
    a_queue_may_be_called_as_an_option_of_a_take: "take.txt",
    a_unit_of_work_is_one_answer: "unit.txt",
    every_user_may_do_what_its_rights_say: "users.txt",
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

fn is_as_written(file: &str) {
    let file = folder().join(file);
    let written = fs::read_to_string(&file).unwrap();
    let heard = play(&written);
    if heard != written && std::env::var_os("TESTIGO_REWRITE").is_some() {
        return fs::write(&file, heard).unwrap();
    }
    let lines = written.lines().zip(heard.lines());
    let wrong = lines.filter(|(old, new)| old != new);
    let wrong = wrong.map(|(old, new)| format!("  written {old}\n  heard   {new}"));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}\n{}", file.display(), wrong.join("\n"));
}

/// Plays a conversation and gives it as it was heard; lines that fit stay as they are written.
fn play(script: &str) -> String {
    let house = match script.lines().next() {
        Some("# needs a password") => House::with(support::with_password),
        Some("# needs users") => House::with(support::with_users),
        _ => House::open(),
    };
    let eye = eye(&house);
    let mut stage = Stage {
        house,
        eye,
        clients: BTreeMap::new(),
        names: BTreeMap::new(),
    };
    let lines = script.lines().map(|line| stage.line(line) + "\n");
    lines.collect()
}

fn eye(house: &House) -> Client {
    let mut eye = house.client();
    // Only a node that needs a password refuses this.
    eye.call(&["AUTH", "default", "secret"]);
    eye
}

impl Stage {
    fn line(&mut self, line: &str) -> String {
        if line.is_empty() || line.starts_with('#') {
            return line.to_owned();
        }
        if line == "restart" {
            self.clients.clear();
            self.house.restart();
            self.eye = eye(&self.house);
            return line.to_owned();
        }
        let (who, rest) = line.split_at(1);
        if let Some(command) = rest.strip_prefix("> ") {
            let command = self.filled(command);
            let (client, _) = self.client(who);
            client
                .send_bytes(format!("{command}\r\n").as_bytes())
                .unwrap();
            return line.to_owned();
        }
        if let Some(expected) = rest.strip_prefix("< ") {
            let heard = self.client(who).0.read();
            return match self.fits(expected, &heard.to_string()) {
                true => line.to_owned(),
                false => format!("{who}< {heard}"),
            };
        }
        match rest {
            " blocks" => self.until_blocked(who),
            " closed" => assert!(self.clients.remove(who).unwrap().0.is_closed(), "{line}"),
            " goes" => self.until_gone(who),
            _ => panic!("{line:?} means nothing"),
        }
        line.to_owned()
    }

    fn client(&mut self, who: &str) -> &mut (Client, i64) {
        let house = &self.house;
        let eye = &mut self.eye;
        self.clients.entry(who.into()).or_insert_with(|| {
            let before = newest(eye);
            let client = house.client();
            loop {
                let now = newest(eye);
                if now > before {
                    return (client, now);
                }
            }
        })
    }

    /// Looks until the node says that the connection is blocked.
    fn until_blocked(&mut self, who: &str) {
        let id = self.clients[who].1;
        loop {
            let list = clients(&mut self.eye);
            let row = list
                .lines()
                .find(|row| row.starts_with(&format!("id={id} ")));
            match row {
                Some(row) if row.contains("blocked=gate") => return,
                Some(row) if row.contains("blocked=") => {}
                _ => panic!("{who} is not there"),
            }
        }
    }

    fn until_gone(&mut self, who: &str) {
        let (client, id) = self.clients.remove(who).unwrap();
        drop(client);
        while clients(&mut self.eye).contains(&format!("id={id} ")) {}
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(name, value);
        }
        text
    }

    /// Whether an answer is as written, with `_` for anything and names for what they stand for.
    fn fits(&mut self, expected: &str, heard: &str) -> bool {
        let (mut rest, mut pattern) = (heard, expected);
        loop {
            let Some(at) = pattern.find(['_', '$']).filter(|at| is_sign(pattern, *at)) else {
                // Signs inside of words are words.
                let Some((plain, after)) = split_plain(pattern) else {
                    return rest == pattern;
                };
                let Some(tail) = rest.strip_prefix(plain) else {
                    return false;
                };
                (rest, pattern) = (tail, after);
                continue;
            };
            let Some(tail) = rest.strip_prefix(&pattern[..at]) else {
                return false;
            };
            let sign = &pattern[at..];
            let len = 1 + sign[1..]
                .find(|c: char| !c.is_alphanumeric())
                .unwrap_or(sign.len() - 1);
            let (sign, after) = sign.split_at(len);
            // Inside of a text, its end is the end of what stands for a part of it.
            let inside = !tail.starts_with('"');
            let ends = |c: char| matches!(c, ',' | ';' | ']' | '}' | ' ') || inside && c == '"';
            let end = tail.find(ends).unwrap_or(tail.len());
            let (value, tail) = tail.split_at(end);
            if sign.len() > 1 {
                let known = self.names.entry(sign.into()).or_insert(value.into());
                if known != value {
                    return false;
                }
            }
            (rest, pattern) = (tail, after);
        }
    }
}

fn is_sign(pattern: &str, at: usize) -> bool {
    !pattern[..at].ends_with(|c: char| c.is_alphanumeric())
}

/// What comes up to and with the first underscore inside of a word.
fn split_plain(pattern: &str) -> Option<(&str, &str)> {
    pattern.find(['_', '$']).map(|at| pattern.split_at(at + 1))
}

fn clients(eye: &mut Client) -> String {
    match eye.call(&["CLIENT", "LIST"]) {
        Value::Text(list) => list,
        other => panic!("{other}"),
    }
}

fn newest(eye: &mut Client) -> i64 {
    let list = clients(eye);
    let ids = list.lines().filter_map(|row| {
        let id = row.strip_prefix("id=")?.split(' ').next()?;
        id.parse().ok()
    });
    ids.max().unwrap_or(0)
}
