//! Jobs: every acknowledged one is there exactly once until its acknowledged end, none is in two hands, and a unit of work
//! is done whole or not at all. Judged when the run is over, from what clients were answered, in any order.

use std::collections::{BTreeMap, BTreeSet};

use testigo_core::monitor::Fate;

use super::{NEVER, Time};

#[derive(Debug, Default)]
pub(crate) struct Jobs {
    created: BTreeMap<String, Fate>,
    takes: BTreeMap<String, Vec<Take>>,
    settles: Vec<Settle>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) client: u64,
    pub(crate) attempt: i64,
    pub(crate) sent: Time,
    pub(crate) received: Time,
}

/// A change by which a holder lets go of its job.
#[derive(Clone, Debug)]
pub(crate) struct Settle {
    pub(crate) job: String,
    pub(crate) attempt: i64,
    pub(crate) end: End,
    pub(crate) sent: Time,
    /// When the answer came, and what it was.
    pub(crate) received: Time,
    pub(crate) fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    Deleted,
    /// Deleted, and another one created, in one unit of work.
    Replaced(String),
}

impl Jobs {
    /// A job is to be created (`Unknown`, before it is asked for), or was, or was refused.
    pub(crate) fn created(&mut self, job: &str, fate: Fate) {
        self.created.insert(job.to_owned(), fate);
    }

    pub(crate) fn taken(&mut self, job: &str, take: Take) {
        self.takes.entry(job.to_owned()).or_default().push(take);
    }

    /// A change is about to be asked for. The number says which one it is.
    pub(crate) fn settles(&mut self, job: &str, attempt: i64, end: End, sent: Time) -> usize {
        self.settles.push(Settle {
            job: job.to_owned(),
            attempt,
            end,
            sent,
            received: NEVER,
            fate: Fate::Unknown,
        });
        self.settles.len() - 1
    }

    pub(crate) fn settled(&mut self, which: usize, fate: Fate, received: Time) {
        self.settles[which].fate = fate;
        self.settles[which].received = received;
    }

    pub(crate) fn len(&self) -> usize {
        self.created.len()
    }

    /// Holds everything against the jobs that live when all is over, each as often as it was found.
    pub(crate) fn judge(&self, living: &[String]) -> Result<(), String> {
        self.hands()?;
        let mut found: BTreeMap<&str, u32> = BTreeMap::new();
        for job in living {
            *found.entry(job).or_default() += 1;
        }
        let created = self.creations(&found)?;
        let ends = self.ends(&found)?;
        for (job, fate) in &created {
            let (count, ended) = (found.remove(job).unwrap_or(0), ends.get(job));
            let right = match (fate, ended) {
                (Fate::No, _) | (_, Some(Fate::Yes)) => count == 0,
                (Fate::Yes, None | Some(Fate::No)) => count == 1,
                _ => count <= 1,
            };
            if !right {
                return Err(format!(
                    "job {job} (created: {fate:?}, ended: {ended:?}) was found {count} times at the end"
                ));
            }
        }
        match found.pop_first() {
            Some((job, _)) => Err(format!("job {job} lives and was never created")),
            None => Ok(()),
        }
    }

    /// No job is in two hands: attempts rise, and only the latest one changes anything.
    fn hands(&self) -> Result<(), String> {
        for (job, takes) in &self.takes {
            let mut attempts = BTreeSet::new();
            for take in takes {
                if !attempts.insert(take.attempt) {
                    return Err(format!("job {job} was taken twice as {take:?}"));
                }
                let lower = |other: &&Take| other.attempt < take.attempt;
                let late = takes.iter().filter(lower).find(|o| o.sent > take.received);
                if let Some(late) = late {
                    return Err(format!("job {job} was taken as {take:?}, then as {late:?}"));
                }
            }
        }
        let mut accepted = BTreeSet::new();
        for settle in self.settles.iter().filter(|s| s.fate == Fate::Yes) {
            let Settle { job, attempt, .. } = settle;
            if !accepted.insert((job, attempt)) {
                return Err(format!("attempt {attempt} at job {job} changed it twice"));
            }
            let takes = self.takes.get(job).map_or(&[][..], Vec::as_slice);
            let next = |take: &&Take| take.attempt > *attempt && take.received < settle.sent;
            if let Some(next) = takes.iter().find(next) {
                return Err(format!(
                    "job {job} is in two hands: taken as {next:?}, then {settle:?}"
                ));
            }
            let late = |take: &&Take| take.sent > settle.received && settle.end != End::Passed;
            if let Some(late) = takes.iter().find(late) {
                return Err(format!(
                    "job {job} was taken as {late:?} after its end: {settle:?}"
                ));
            }
        }
        Ok(())
    }

    /// What is certain about the creation of every job, also of those that a unit of work creates.
    fn creations<'a>(
        &'a self,
        found: &BTreeMap<&str, u32>,
    ) -> Result<BTreeMap<&'a str, Fate>, String> {
        let mut created: BTreeMap<&str, Fate> = BTreeMap::new();
        created.extend(self.created.iter().map(|(job, fate)| (job.as_str(), *fate)));
        for settle in &self.settles {
            if let End::Replaced(next) = &settle.end {
                created.insert(next, self.replaced(settle, next, found)?);
            }
        }
        for job in self.takes.keys() {
            match created.get(job.as_str()) {
                Some(Fate::Yes | Fate::Unknown) => created.insert(job, Fate::Yes),
                _ => return Err(format!("job {job} was taken and never created")),
            };
        }
        Ok(created)
    }

    /// What is certain about the end of every job that somebody tried to end.
    fn ends<'a>(&'a self, found: &BTreeMap<&str, u32>) -> Result<BTreeMap<&'a str, Fate>, String> {
        let mut ends: BTreeMap<&str, Fate> = BTreeMap::new();
        for settle in &self.settles {
            let fate = match &settle.end {
                End::Passed => continue,
                End::Deleted => settle.fate,
                End::Replaced(next) => self.replaced(settle, next, found)?,
            };
            let end = ends.entry(&settle.job).or_insert(Fate::No);
            *end = match (*end, fate) {
                (Fate::Yes, _) | (_, Fate::Yes) => Fate::Yes,
                (Fate::Unknown, _) | (_, Fate::Unknown) => Fate::Unknown,
                _ => Fate::No,
            };
        }
        Ok(ends)
    }

    /// What became of a unit of work: an unanswered one is told by what was seen of its two jobs later.
    fn replaced(
        &self,
        settle: &Settle,
        next: &str,
        found: &BTreeMap<&str, u32>,
    ) -> Result<Fate, String> {
        let living = |job: &str| found.get(job).is_some_and(|count| *count > 0);
        let done = living(next) || self.takes.contains_key(next);
        let again = self.takes.get(&settle.job);
        let again =
            again.is_some_and(|takes| takes.iter().any(|take| take.attempt > settle.attempt));
        let undone = living(&settle.job) || again;
        match (settle.fate, done, undone) {
            (_, true, true) => Err(format!(
                "a unit of work was done by half: both jobs were seen after {settle:?}"
            )),
            (Fate::No, true, _) => Err(format!("refused, and done all the same: {settle:?}")),
            (Fate::Unknown, true, _) => Ok(Fate::Yes),
            (Fate::Unknown, _, true) => Ok(Fate::No),
            // The one or the other must be there.
            (Fate::Unknown, false, false) => {
                Err(format!("a unit of work lost both of its jobs: {settle:?}"))
            }
            (fate, ..) => Ok(fate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(client: u64, attempt: i64, at: Time) -> Take {
        Take {
            client,
            attempt,
            sent: at,
            received: at + 1,
        }
    }

    /// Three jobs, of which the first was taken at 10.
    fn jobs() -> Jobs {
        let mut jobs = Jobs::default();
        for job in ["a", "b", "c"] {
            jobs.created(job, Fate::Yes);
        }
        jobs.taken("a", take(7, 1, 10));
        jobs
    }

    fn settle(jobs: &mut Jobs, attempt: i64, end: End, at: Time, fate: Fate) {
        let which = jobs.settles("a", attempt, end, at);
        let received = if fate == Fate::Unknown { NEVER } else { at + 1 };
        jobs.settled(which, fate, received);
    }

    fn left(jobs: &Jobs, living: &[&str]) -> Result<(), String> {
        let living: Vec<String> = living.iter().map(|job| (*job).to_owned()).collect();
        jobs.judge(&living)
    }

    fn replaced() -> End {
        End::Replaced("a2".into())
    }

    #[test]
    fn right_histories_pass() {
        assert_eq!(left(&jobs(), &["a", "b", "c"]), Ok(()));
        let mut deleted = jobs();
        settle(&mut deleted, 1, End::Deleted, 20, Fate::Yes);
        assert_eq!(left(&deleted, &["b", "c"]), Ok(()));
        let mut unknown = jobs();
        settle(&mut unknown, 1, End::Deleted, 20, Fate::Unknown);
        unknown.created("d", Fate::Unknown);
        assert_eq!(left(&unknown, &["b", "c"]), Ok(()));
        assert_eq!(left(&unknown, &["a", "b", "c", "d"]), Ok(()));
        let mut unit = jobs();
        settle(&mut unit, 1, replaced(), 20, Fate::Unknown);
        assert_eq!(left(&unit, &["a", "b", "c"]), Ok(()));
        assert_eq!(left(&unit, &["a2", "b", "c"]), Ok(()));
        // Seen and gone: it was done.
        unit.taken("a2", take(8, 5, 30));
        let which = unit.settles("a2", 5, End::Deleted, 32);
        unit.settled(which, Fate::Yes, 33);
        assert_eq!(left(&unit, &["b", "c"]), Ok(()));
        // A late answer to somebody who has lost it meanwhile, but who had asked before.
        let mut late = jobs();
        late.taken("a", take(8, 2, 30));
        settle(&mut late, 1, End::Passed, 29, Fate::Yes);
        assert_eq!(left(&late, &["a", "b", "c"]), Ok(()));
    }

    #[test]
    fn every_flaw_is_seen() {
        type Flaw = fn(&mut Jobs) -> Result<(), String>;
        let flaws: [(&str, Flaw); 12] = [
            ("lost", |j| left(j, &["a", "b"])),
            ("doubled", |j| left(j, &["a", "b", "c", "c"])),
            ("from nowhere", |j| left(j, &["a", "b", "c", "x"])),
            ("undead", |j| {
                settle(j, 1, End::Deleted, 20, Fate::Yes);
                left(j, &["a", "b", "c"])
            }),
            ("refused and done", |j| {
                settle(j, 1, End::Deleted, 20, Fate::No);
                left(j, &["b", "c"])
            }),
            ("taken after its end", |j| {
                settle(j, 1, End::Deleted, 20, Fate::Yes);
                j.taken("a", take(8, 2, 30));
                left(j, &["b", "c"])
            }),
            ("an attempt given twice", |j| {
                j.taken("a", take(8, 1, 30));
                left(j, &["a", "b", "c"])
            }),
            ("an attempt that falls", |j| {
                j.taken("a", take(8, 0, 30));
                left(j, &["a", "b", "c"])
            }),
            ("two hands", |j| {
                j.taken("a", take(8, 2, 30));
                settle(j, 1, End::Passed, 40, Fate::Yes);
                left(j, &["a", "b", "c"])
            }),
            ("half a unit", |j| {
                settle(j, 1, replaced(), 20, Fate::Unknown);
                left(j, &["a", "a2", "b", "c"])
            }),
            ("a unit that lost both", |j| {
                settle(j, 1, replaced(), 20, Fate::Unknown);
                left(j, &["b", "c"])
            }),
            ("a unit refused and done", |j| {
                settle(j, 1, replaced(), 20, Fate::No);
                left(j, &["a2", "b", "c"])
            }),
        ];
        for (name, flaw) in flaws {
            assert!(flaw(&mut jobs()).is_err(), "{name}");
        }
    }
}
