//! A job is never lost, never done after its end, and never held twice. Whoever drives the workers keeps the ledger, from
//! acknowledgements alone: it knows nothing of queues and lines, so it cannot share their mistakes.

use std::collections::BTreeMap;

/// What is known of every job.
#[derive(Clone, Debug, Default)]
pub struct JobLedger {
    jobs: BTreeMap<String, Known>,
    /// Who holds which job: worker and attempt.
    hands: BTreeMap<String, (u64, u64)>,
    /// Units of work without an answer: the job that each deletes, and the one that it creates instead.
    units: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    created: Fate,
    deleted: Fate,
    attempt_max: u64,
}

/// How certain a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was not requested, or was refused.
    No,
    /// It was requested and never answered.
    Unknown,
    /// It was acknowledged.
    Yes,
}

impl JobLedger {
    /// A create is about to be requested (`Unknown`), or was done, or was refused.
    pub fn created(&mut self, name: &str, fate: Fate) -> Result<(), String> {
        if let Some(known) = self.jobs.get_mut(name)
            && known.created == Fate::Unknown
        {
            known.created = fate;
            return Ok(());
        }
        if fate == Fate::No {
            return Ok(());
        }
        let known = Known {
            created: fate,
            deleted: Fate::No,
            attempt_max: 0,
        };
        match self.jobs.insert(name.to_owned(), known) {
            Some(before) if before.created == Fate::Yes && before.deleted == Fate::No => Err(
                format!("job {name} was created twice, and not deleted in between"),
            ),
            _ => Ok(()),
        }
    }

    /// A unit of work that deletes one job and creates another in its place is about to be requested (`Unknown`), or was
    /// done, or was refused. Without an answer exactly one of the two jobs may ever be seen again.
    pub fn replaced(&mut self, gone: &str, come: &str, fate: Fate) -> Result<(), String> {
        self.deleted(gone, fate);
        self.created(come, fate)?;
        match fate {
            Fate::Unknown => self.units.insert(gone.to_owned(), come.to_owned()),
            _ => self.units.remove(gone),
        };
        Ok(())
    }

    /// Seeing either job of an unanswered unit of work decides the fate of the other.
    fn resolve_unit(&mut self, seen: &str) {
        if let Some(come) = self.units.remove(seen)
            && let Some(known) = self.jobs.get_mut(&come)
        {
            known.created = Fate::No;
        }
        let unit = self.units.iter().find(|(_, come)| *come == seen);
        if let Some(gone) = unit.map(|(gone, _)| gone.clone()) {
            self.units.remove(&gone);
            self.deleted(&gone, Fate::Yes);
        }
    }

    /// A worker was given a job.
    pub fn taken(&mut self, name: &str, attempt: u64, worker: u64) -> Result<(), String> {
        self.resolve_unit(name);
        let known = self.jobs.get_mut(name);
        let Some(known) = known.filter(|known| known.created != Fate::No) else {
            return Err(format!("job {name} was taken and never created"));
        };
        if known.deleted == Fate::Yes {
            return Err(format!("job {name} was taken after its delete"));
        }
        if attempt <= known.attempt_max {
            return Err(format!(
                "job {name} was taken as attempt {attempt} after attempt {}",
                known.attempt_max
            ));
        }
        known.attempt_max = attempt;
        // If its delete had been done, it could not be taken.
        known.deleted = Fate::No;
        match self.hands.insert(name.to_owned(), (worker, attempt)) {
            Some((other, _)) => Err(format!(
                "job {name} is in the hands of worker {other} and of worker {worker}"
            )),
            None => Ok(()),
        }
    }

    /// A worker's change of its job was accepted, so that worker must have held it. It no longer does.
    pub fn accepted(&mut self, name: &str, attempt: u64, worker: u64) -> Result<(), String> {
        match self.hands.remove(name) {
            Some(held) if held == (worker, attempt) => Ok(()),
            held => Err(format!(
                "attempt {attempt} of worker {worker} at job {name} was accepted, while {held:?} held it"
            )),
        }
    }

    /// A worker no longer holds a job, for whatever reason.
    pub fn let_go(&mut self, name: &str) {
        self.hands.remove(name);
    }

    /// A delete is about to be requested (`Unknown`), or was done, or was refused.
    pub fn deleted(&mut self, name: &str, fate: Fate) {
        if let Some(known) = self.jobs.get_mut(name)
            && known.deleted != Fate::Yes
        {
            known.deleted = fate;
        }
    }

    /// A worker is dead, and the node knows it.
    pub fn died(&mut self, worker: u64) {
        self.hands.retain(|_, (holder, _)| *holder != worker);
    }

    /// The node was restarted: nobody holds anything.
    pub fn restarted(&mut self) {
        self.hands.clear();
    }

    /// Takes all living jobs, each as often as it was found, and checks that every job is accounted for exactly once.
    pub fn settle<'a>(&self, living: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let mut found: BTreeMap<&str, u32> = BTreeMap::new();
        for name in living {
            *found.entry(name).or_default() += 1;
        }
        for (gone, come) in &self.units {
            let count = |name: &String| found.get(name.as_str()).copied().unwrap_or(0);
            if count(gone) + count(come) != 1 {
                return Err(format!(
                    "a unit of work was done by half: {gone}, which it deletes, was found {} times, and {come}, \
                     which it creates, {} times",
                    count(gone),
                    count(come)
                ));
            }
        }
        for (name, known) in &self.jobs {
            let count = found.remove(name.as_str()).unwrap_or(0);
            let right = match (known.created, known.deleted) {
                (Fate::No, _) | (_, Fate::Yes) => count == 0,
                (Fate::Yes, Fate::No) => count == 1,
                _ => count <= 1,
            };
            if !right {
                return Err(format!(
                    "job {name} ({known:?}) was found {count} times at the end"
                ));
            }
        }
        match found.pop_first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("job {name} lives and was never created")),
        }
    }

    /// How many jobs it has heard of.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether it has heard of none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> JobLedger {
        let mut ledger = JobLedger::default();
        for name in ["a", "b", "c"] {
            ledger.created(name, Fate::Yes).unwrap();
        }
        ledger
    }

    #[test]
    fn a_right_history_passes() {
        let mut ledger = ledger();
        ledger.taken("a", 1, 7).unwrap();
        ledger.accepted("a", 1, 7).unwrap();
        ledger.deleted("a", Fate::Yes);
        ledger.taken("b", 2, 7).unwrap();
        ledger.died(7);
        ledger.taken("b", 3, 8).unwrap();
        ledger.created("d", Fate::Unknown).unwrap();
        ledger.deleted("c", Fate::Unknown);
        ledger.settle(["b"].into_iter()).unwrap();
        ledger.settle(["b", "c", "d"].into_iter()).unwrap();
    }

    #[test]
    fn a_unit_of_work_without_an_answer_was_done_or_not() {
        let mut ledger = ledger();
        ledger.replaced("a", "a2", Fate::Unknown).unwrap();
        ledger.replaced("b", "b2", Fate::Unknown).unwrap();
        ledger.replaced("c", "c2", Fate::Unknown).unwrap();
        ledger.settle(["a2", "b", "c"].into_iter()).unwrap();
        ledger.taken("a2", 1, 7).unwrap();
        ledger.taken("b", 2, 7).unwrap();
        ledger.replaced("c", "c2", Fate::Yes).unwrap();
        ledger.settle(["a2", "b", "c2"].into_iter()).unwrap();
        assert!(ledger.settle(["a2", "b", "b2", "c2"].into_iter()).is_err());
    }

    /// Each line is a flawed system; the ledger must catch every one.
    #[test]
    fn every_flaw_is_seen() {
        type Flaw = fn(&mut JobLedger) -> Result<(), String>;
        let flaws: [(&str, Flaw); 12] = [
            ("lost", |l| l.settle(["a", "b"].into_iter())),
            ("doubled", |l| l.settle(["a", "b", "c", "c"].into_iter())),
            ("from nowhere", |l| {
                l.settle(["a", "b", "c", "x"].into_iter())
            }),
            ("undead", |l| {
                l.deleted("a", Fate::Yes);
                l.settle(["a", "b", "c"].into_iter())
            }),
            ("two hands", |l| {
                l.taken("a", 1, 7)?;
                l.taken("a", 2, 8)
            }),
            ("an attempt that does not grow", |l| {
                l.taken("a", 2, 7)?;
                l.died(7);
                l.taken("a", 2, 8)
            }),
            ("a stale worker", |l| {
                l.taken("a", 1, 7)?;
                l.died(7);
                l.taken("a", 2, 8)?;
                l.accepted("a", 1, 7)
            }),
            ("half a unit: only the delete", |l| {
                l.replaced("a", "a2", Fate::Unknown)?;
                l.settle(["b", "c"].into_iter())
            }),
            ("half a unit: only the create", |l| {
                l.replaced("a", "a2", Fate::Unknown)?;
                l.settle(["a", "a2", "b", "c"].into_iter())
            }),
            ("half a unit, seen by who takes", |l| {
                l.replaced("a", "a2", Fate::Unknown)?;
                l.taken("a2", 1, 7)?;
                l.taken("a", 2, 7)
            }),
            ("half a refused unit", |l| {
                l.replaced("a", "a2", Fate::Unknown)?;
                l.replaced("a", "a2", Fate::No)?;
                l.settle(["b", "c", "a2"].into_iter())
            }),
            ("taken after its delete", |l| {
                l.deleted("a", Fate::Yes);
                l.taken("a", 1, 7)
            }),
        ];
        for (name, flaw) in flaws {
            assert!(flaw(&mut ledger()).is_err(), "{name}");
        }
    }
}
