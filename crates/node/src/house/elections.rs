//! What is told about elections: who leads, and which terms have ended here. The books of an election are a gate's. For
//! people, this node remembers the last terms of the elections that it owns, until the node ends or the election belongs to
//! another one.

use std::collections::{BTreeMap, VecDeque};

use testigo_core::{
    Body, Candidacy, Event, Fence, GateView, Name, Refusal, SessionId, Shard, Vacancy,
};

use super::House;

/// Cap on remembered ended terms per election.
const TERMS_MAX: usize = 16;
/// Cap on elections with remembered terms; beyond it the one that has been quiet longest is forgotten.
const ELECTIONS_MAX: usize = 500;

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its term: a fence, which rises with every leader.
    pub term: Fence,
    /// Its session.
    pub session: SessionId,
    /// The session's label.
    pub label: Option<String>,
    /// The rank with which it was elected, or that it has named since.
    pub rank: i64,
    /// What it says of itself.
    pub value: Body,
    /// Since when it has led, as far as this node knows, in milliseconds of the node's clock.
    pub since: u64,
    /// How many others are candidates.
    pub candidates: usize,
}

impl Leader {
    pub(crate) fn of(view: &GateView) -> Option<Leader> {
        let holder = view.holders.first()?;
        let Candidacy { rank, value } = holder.mode.candidacy()?;
        Some(Leader {
            term: holder.fence,
            session: holder.session,
            label: holder.label.clone(),
            rank: *rank,
            value: value.clone(),
            since: holder.since,
            candidates: view.waiting,
        })
    }
}

/// A term that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) term: Fence,
    pub(crate) session: SessionId,
    pub(crate) candidacy: Candidacy,
    pub(crate) since: u64,
    pub(crate) until: u64,
    pub(crate) why: Vacancy,
}

/// The last terms of elections, newest first.
#[derive(Debug, Default)]
pub(super) struct Terms {
    ended: BTreeMap<Name, VecDeque<Term>>,
}

impl Terms {
    fn add(&mut self, election: &Name, term: Term) {
        if !self.ended.contains_key(election) && self.ended.len() >= ELECTIONS_MAX {
            let last = |terms: &VecDeque<Term>| terms.front().map(|term| term.until);
            let quiet = self.ended.iter().min_by_key(|(_, terms)| last(terms));
            let quiet = quiet.map(|(name, _)| name.clone());
            quiet.and_then(|name| self.ended.remove(&name));
        }
        let terms = self.ended.entry(election.clone()).or_default();
        terms.truncate(TERMS_MAX - 1);
        terms.push_front(term);
    }
}

impl House {
    /// A session leads, or no longer does: tells listeners, and remembers an ended term.
    pub(super) fn pass_on_election(&mut self, event: Event) {
        match event {
            Event::Elected {
                session,
                election,
                term,
                candidacy,
                again,
            } => {
                let what = if again { "changed" } else { "elected" };
                self.announce(&election, || {
                    let head = format!("{what} {term} {session} ");
                    [head.as_bytes(), &candidacy.value].concat()
                });
            }
            Event::Vacant {
                session,
                election,
                term,
                candidacy,
                since,
                why,
            } => {
                self.announce(&election, || {
                    format!("vacant {term} {session} {}", vacancy_word(why)).into()
                });
                let until = self.now;
                let ended = Term {
                    term,
                    session,
                    candidacy,
                    since,
                    until,
                    why,
                };
                self.terms.add(&election, ended);
            }
            _ => {}
        }
    }

    /// An election with at most `people_max` candidates; `None` if nobody leads and nobody campaigns. `UNAVAILABLE` while it
    /// is not known who leads.
    pub(crate) fn election(
        &self,
        election: &Name,
        people_max: usize,
    ) -> Result<Option<GateView>, Refusal> {
        let mut view = self.local().election(election, people_max)?;
        if let Some(view) = &mut view {
            self.label_people(view);
        }
        Ok(view)
    }

    /// The terms of an election that have ended here, newest first.
    pub(crate) fn terms_of(&self, election: &Name) -> impl Iterator<Item = &Term> {
        self.terms.ended.get(election).into_iter().flatten()
    }

    /// The elections of this node with ended terms.
    pub(crate) fn past_elections(&self) -> impl Iterator<Item = &Name> {
        let names = self.terms.ended.keys();
        names.filter(|name| self.services.owns(Shard::of(name)))
    }
}

/// Why a leader no longer leads, in a word.
pub(crate) fn vacancy_word(why: Vacancy) -> &'static str {
    match why {
        Vacancy::Resigned => "resigned",
        Vacancy::Ended => "ended",
        Vacancy::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(number: u64) -> Term {
        Term {
            term: Fence(number),
            session: SessionId::opened(1),
            candidacy: Candidacy {
                rank: 0,
                value: Body::default(),
            },
            since: number,
            until: number,
            why: Vacancy::Resigned,
        }
    }

    #[test]
    fn the_last_terms_of_the_last_elections_are_remembered() {
        let mut terms = Terms::default();
        let first = Name::election("first").unwrap();
        for number in 0..100 {
            terms.add(&first, term(number));
        }
        let kept: Vec<u64> = terms.ended[&first].iter().map(|t| t.term.0).collect();
        assert_eq!(kept, (84..100).rev().collect::<Vec<u64>>());
        for number in 0..ELECTIONS_MAX as u64 {
            let name = Name::election(&format!("e{number}")).unwrap();
            terms.add(&name, term(100 + number));
        }
        assert_eq!(terms.ended.len(), ELECTIONS_MAX);
        assert!(
            !terms.ended.contains_key(&first),
            "it was quiet for longest"
        );
    }
}
