//! How far long work is, on one line of a terminal that the result then takes the place of.

use std::io::{IsTerminal, Write};

use testigo_lab::Progress;

/// How far a run is; nothing where nobody watches.
pub(super) fn of_run() -> fn(Progress) {
    match std::io::stderr().is_terminal() {
        true => |Progress { events, entries }| show(&format!("{entries} served, {events} events")),
        false => |_| {},
    }
}

/// How far a check is.
pub(super) fn of_check() -> fn(usize) {
    match std::io::stderr().is_terminal() {
        true => |states| show(&format!("{states} states")),
        false => |_| {},
    }
}

/// How many of several things are done.
pub(super) fn of_parts(done: usize, all: usize, what: &str) {
    if std::io::stderr().is_terminal() {
        show(&format!("{done} of {all} {what}"));
    }
}

/// As that, for hours: where there is no terminal, a line for every so many.
pub(super) fn of_long_parts((done, all): (usize, usize), what: &str, each: usize) {
    match std::io::stderr().is_terminal() {
        true => of_parts(done, all, what),
        false if done.is_multiple_of(each) => eprintln!("{done} of {all} {what}"),
        false => {}
    }
}

/// Takes the line away.
pub(super) fn clear() {
    if std::io::stderr().is_terminal() {
        eprint!("\r{:1$}\r", "", LINE);
    }
}

const LINE: usize = 60;

fn show(what: &str) {
    let line = format!("  {what} …");
    eprint!("\r{line:<LINE$}");
    let _ = std::io::stderr().flush();
}
