//! Workers: they create jobs, take them and finish them, over connections with implicit sessions, so that a worker holds a
//! job as long as its connection is open.

use std::collections::{BTreeMap, BTreeSet};

use testigo_core::JobId;

use super::clients::{Asked, Hold};
use super::reply::Said;
use super::world::World;

/// The flow of all workers.
pub(super) const FLOW: &str = "FLOW APPLY f \"maker -> [q] -> taker\"";

/// The fate of the jobs, as far as any client was told.
#[derive(Default)]
pub(super) struct Jobs {
    named: u64,
    /// Names by ID: creates that were acknowledged.
    acknowledged: BTreeMap<u64, String>,
    done: BTreeSet<u64>,
    /// Jobs that a worker reported as done without getting an answer.
    perhaps_done: BTreeSet<u64>,
}

impl World {
    /// A worker does what it wants next.
    pub(super) fn work(&mut self, which: usize) {
        match self.clients[which].hold.clone() {
            Some(Hold {
                job: Some(job),
                fence,
                ..
            }) if self.chance.chance(0.4) => {
                self.leave(which);
                self.jobs.perhaps_done.insert(job);
                let done = format!("JOB DELETE {job} {fence}");
                self.ask(which, Asked::Done(job), &done);
            }
            Some(_) => self.ask(which, Asked::Ping, "PING"),
            None if self.chance.chance(0.4) && !self.healed => {
                self.jobs.named += 1;
                let name = format!("j{}", self.jobs.named);
                let create = format!("JOB CREATE f/q {name} body");
                self.ask(which, Asked::Create(name), &create);
            }
            None => {
                let wait_ms = self.chance.between(0, 1_500);
                self.ask(which, Asked::Take, &format!("JOB TAKE f/q WAIT {wait_ms}"));
            }
        }
    }

    pub(super) fn created(&mut self, name: String, said: &Said) -> Result<(), String> {
        let job = said.number().ok_or("a job has no id")?;
        let before = self.jobs.acknowledged.insert(job, name);
        match before {
            None => Ok(()),
            Some(name) => Err(format!("job {job} is {name} already")),
        }
    }

    pub(super) fn took(&mut self, which: usize, said: &Said) -> Result<(), String> {
        let [job, _, _, attempt, _] = said.list() else {
            return Ok(());
        };
        let (Some(job), Some(fence)) = (job.number(), attempt.number()) else {
            return Err(format!("a job without numbers: {said:?}"));
        };
        self.tally.takes += 1;
        if self.jobs.done.contains(&job) {
            return Err(format!("job {job} is done, and is taken again"));
        }
        let gate = format!("job {job}");
        self.clients[which].hold = Some(Hold::of_job(gate.clone(), fence, job));
        if self.clients[which].suspended {
            // The node that said so has been held up since.
            return Ok(());
        }
        self.lapse();
        self.monitors.enters(which, &gate, fence)
    }

    pub(super) fn finished(&mut self, job: u64) -> Result<(), String> {
        match self.jobs.done.insert(job) {
            true => Ok(()),
            false => Err(format!("job {job} is done twice")),
        }
    }

    /// Every acknowledged job is there, or a worker has finished it.
    pub(super) fn check_jobs(&self) -> Result<(), String> {
        let mut machines = self.machines.iter();
        let leading = machines.find_map(|machine| {
            let house = &machine.running.as_ref()?.house;
            let leads = house.member()?.standing().leads;
            (leads && house.acts()).then_some(house)
        });
        let Some(house) = leading else {
            return Ok(());
        };
        for (job, name) in &self.jobs.acknowledged {
            let is_there = house.replicated().job(JobId(*job)).is_ok();
            let done = self.jobs.done.contains(job);
            let perhaps = self.jobs.perhaps_done.contains(job);
            if done && is_there {
                return Err(format!("job {job} ({name}) is done, and still there"));
            }
            if !is_there && !done && !perhaps {
                return Err(format!("job {job} ({name}) is lost"));
            }
        }
        Ok(())
    }
}
