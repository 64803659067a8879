//! Elections in the state: leaders, candidates, and ended terms.

use serde::Serialize;
use testigo_core::{GateView, Name, WaiterView};

use super::state::ROWS_MAX;
use crate::house::{House, Leader, Slice, Term, vacancy_word};

/// How many characters of a value are shown.
const VALUE_CHARS: usize = 200;

#[derive(Serialize)]
pub(super) struct Election {
    name: String,
    /// The member that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<u64>,
    leader: Option<Leads>,
    /// The next one first.
    candidates: Vec<Candidate>,
    /// How many there are, shown or not.
    waiting: usize,
    /// Newest first.
    terms: Vec<Ended>,
}

#[derive(Serialize)]
struct Leads {
    session: u64,
    label: Option<String>,
    term: u64,
    rank: i64,
    value: String,
    since: u64,
}

#[derive(Serialize)]
struct Candidate {
    session: u64,
    label: Option<String>,
    rank: i64,
    value: String,
    since: u64,
}

#[derive(Serialize)]
struct Ended {
    session: u64,
    term: u64,
    rank: i64,
    value: String,
    since: u64,
    until: u64,
    why: &'static str,
}

impl Election {
    /// An election of this node, with its leader and candidates, if any.
    pub(super) fn of(house: &House, name: &Name, slice: &mut Slice) -> Election {
        let view = house.gate_view(name, ROWS_MAX).ok();
        let candidates = view.iter().flat_map(|view| &view.waiters);
        let candidates: Vec<Candidate> = candidates.map(Candidate::from).collect();
        let terms: Vec<Ended> = house.terms_of(name).map(Ended::from).collect();
        slice.spend(1 + candidates.len() + terms.len());
        Election {
            name: name.as_election().unwrap_or_default().to_owned(),
            owner: house.member_number(),
            waiting: view.as_ref().map_or(0, |view| view.waiting),
            leader: view.as_ref().and_then(leads),
            candidates,
            terms,
        }
    }
}

fn leads(view: &GateView) -> Option<Leads> {
    let leader = Leader::of(view)?;
    Some(Leads {
        session: leader.session.number(),
        label: leader.label,
        term: leader.term.0,
        rank: leader.rank,
        value: shown(&leader.value),
        since: leader.since,
    })
}

impl From<&WaiterView> for Candidate {
    fn from(view: &WaiterView) -> Candidate {
        let candidacy = view.mode.candidacy();
        Candidate {
            session: view.session.number(),
            label: view.label.clone(),
            rank: candidacy.map_or(0, |of| of.rank),
            value: candidacy.map_or_else(String::new, |of| shown(&of.value)),
            since: view.since,
        }
    }
}

impl From<&Term> for Ended {
    fn from(term: &Term) -> Ended {
        Ended {
            session: term.session.number(),
            term: term.term.0,
            rank: term.candidacy.rank,
            value: shown(&term.candidacy.value),
            since: term.since,
            until: term.until,
            why: vacancy_word(term.why),
        }
    }
}

/// A value for people.
pub(super) fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    match text.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
