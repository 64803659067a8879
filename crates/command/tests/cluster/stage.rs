//! What all threads of a run share: the time, what was recorded, and whether it is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::check::Time;
use crate::check::exclusion::{self, Hold};
use crate::check::fences::{self, Grant};
use crate::check::jobs::Jobs;
use crate::check::linear::{Call, Definition, linearizable};
use crate::check::once::Once;
use crate::check::reigns::Reigns;
use crate::check::store::Store;
use crate::clients::Gates;

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) nodes: u8,
    pub(crate) seed: u64,
    pub(crate) gates: Gates,
    begin: Instant,
    round: AtomicU64,
    records: Mutex<Records>,
    over: Mutex<bool>,
    ended: Condvar,
}

/// What was recorded, and what was found wrong.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) store: Store,
    pub(crate) holds: Vec<Hold>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) definitions: BTreeMap<String, Vec<Call<Definition>>>,
    pub(crate) jobs: Jobs,
    pub(crate) once: Once,
    pub(crate) reigns: Reigns,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    failure: Option<String>,
}

/// Whoever was inside so long ago cannot be in the way of anybody new.
const REMEMBERED_US: Time = 180_000_000;

impl Records {
    /// Forgets what ended before, but the highest fences of each gate.
    fn forget(&mut self, before: Time) {
        self.holds.retain(|hold| hold.until > before);
        let mut highest: BTreeMap<(String, bool), i64> = BTreeMap::new();
        for grant in &self.grants {
            let key = (grant.gate.clone(), grant.exclusive);
            let fence = highest.entry(key).or_default();
            *fence = grant.fence.max(*fence);
        }
        self.grants.retain(|grant| {
            let key = (grant.gate.clone(), grant.exclusive);
            grant.received > before || highest.get(&key) == Some(&grant.fence)
        });
    }
}

impl Stage {
    pub(crate) fn new(nodes: u8, seed: u64, gates: Gates) -> Stage {
        Stage {
            nodes,
            seed,
            gates,
            begin: Instant::now(),
            round: AtomicU64::new(0),
            records: Mutex::default(),
            over: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        u64::try_from(self.begin.elapsed().as_micros()).unwrap_or(Time::MAX)
    }

    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_round(&self, round: u64) {
        self.round.store(round, Ordering::Relaxed);
    }

    pub(crate) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap()
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.records().counts.entry(what).or_default() += 1;
    }

    /// Something broke: the run is over.
    pub(crate) fn fail(&self, why: String) {
        let now = self.now() / 1_000;
        let round = self.round();
        let mut records = self.records();
        records
            .failure
            .get_or_insert_with(|| format!("round {round}, {now} ms: {why}"));
        drop(records);
        self.end();
    }

    /// As `fail`, where something could be found wrong.
    pub(crate) fn must<T>(&self, found: Result<T, String>) -> Option<T> {
        found.map_err(|why| self.fail(why)).ok()
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.records().failure.clone()
    }

    pub(crate) fn end(&self) {
        *self.over.lock().unwrap() = true;
        self.ended.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over.lock().unwrap()
    }

    /// Waits for the end of the run, for so long at most. Whether it goes on.
    pub(crate) fn goes_on_after(&self, ms: u64) -> bool {
        let over = self.over.lock().unwrap();
        let most = Duration::from_millis(ms);
        let (over, _) = self
            .ended
            .wait_timeout_while(over, most, |over| !*over)
            .unwrap();
        !*over
    }

    /// Holds all that was recorded of gates and definitions so far against what must be true. Definitions of earlier
    /// rounds are forgotten.
    pub(crate) fn judge(&self) {
        let mut records = self.records();
        let mut found = exclusion::exclusive(&records.holds);
        found = found.and_then(|()| fences::never_lowered(&records.grants));
        records.forget(self.now().saturating_sub(REMEMBERED_US));
        let now = self.round();
        let (old, new) = std::mem::take(&mut records.definitions)
            .into_iter()
            .partition(|(name, _)| round_of(name) + 1 < now);
        records.definitions = new;
        drop(records);
        let old: BTreeMap<String, Vec<Call<Definition>>> = old;
        found = found.and_then(|()| judge_definitions(&old));
        self.must(found);
    }

    /// Holds all definitions against what must be true, when nobody changes them any more.
    pub(crate) fn judge_all(&self) {
        self.judge();
        let rest = std::mem::take(&mut self.records().definitions);
        self.must(judge_definitions(&rest));
    }
}

fn judge_definitions(names: &BTreeMap<String, Vec<Call<Definition>>>) -> Result<(), String> {
    for (name, calls) in names {
        if !linearizable(calls) {
            let calls: Vec<String> = calls.iter().map(|call| format!("  {call:?}")).collect();
            let calls = calls.join("\n");
            return Err(format!("no order explains what {name} was:\n{calls}"));
        }
    }
    Ok(())
}

/// The name of something that is used in one round only.
pub(crate) fn in_round(what: &str, round: u64, number: u64) -> String {
    format!("{what}-{round}-{number}")
}

fn round_of(name: &str) -> u64 {
    let round = name.split('-').nth(1);
    round.and_then(|round| round.parse().ok()).unwrap_or(0)
}
