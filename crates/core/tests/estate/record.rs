//! What must hold of jobs, whatever fails: one that was acknowledged is there exactly once or was deleted by somebody who had
//! it in hand; what settles a job comes from whoever was told of it last; attempts grow.

use std::collections::{BTreeMap, BTreeSet};

use testigo_core::{Fence, JobId, JobOutcome, Replicated, Taken};

use crate::visits::Words;

#[derive(Default)]
pub(crate) struct Record {
    /// Acknowledged creates.
    created: BTreeSet<JobId>,
    /// The last attempt that a worker was told of.
    told: BTreeMap<JobId, Fence>,
    /// What the log has said, by attempt.
    settled: BTreeMap<(JobId, Fence), u32>,
    deleted: BTreeSet<JobId>,
    /// Acknowledged settles, and those that were refused for good.
    done: BTreeSet<(JobId, Fence)>,
    refused: BTreeSet<(JobId, Fence)>,
    pub(crate) takes: u64,
    pub(crate) settles: u64,
}

impl Record {
    pub(crate) fn created(&mut self, job: JobId) {
        self.created.insert(job);
    }

    /// A worker is told that it has a job.
    pub(crate) fn told(&mut self, now: u64, taken: Taken) -> Result<(), String> {
        self.takes += 1;
        let Taken { job, attempt } = taken;
        let told = self.told.entry(job).or_default();
        if attempt <= *told {
            return Err(format!(
                "at {now}: job {job} was given out under attempt {attempt} after {told}"
            ));
        }
        *told = attempt;
        Ok(())
    }

    /// The log has changed jobs.
    pub(crate) fn logged(
        &mut self,
        outcomes: &[JobOutcome],
        deleted: Option<Fence>,
    ) -> Result<(), String> {
        for outcome in outcomes {
            let (job, attempt) = match outcome {
                JobOutcome::Created { .. } | JobOutcome::GivenBack { .. } => continue,
                JobOutcome::Passed { job, attempt, .. } | JobOutcome::Died { job, attempt, .. } => {
                    (*job, *attempt)
                }
                JobOutcome::Deleted(job) => {
                    self.deleted.insert(job.id);
                    (job.id, deleted.ok_or("nobody deletes this job")?)
                }
            };
            let told = self.told.get(&job).copied().unwrap_or_default();
            if told > attempt {
                return Err(format!(
                    "job {job} was settled under attempt {attempt} while {told} has it in hand"
                ));
            }
            let times = self.settled.entry((job, attempt)).or_default();
            *times += 1;
            if *times > 1 {
                return Err(format!("attempt {attempt} settled job {job} twice"));
            }
        }
        Ok(())
    }

    /// A worker hears that what it wanted is done, or that nothing came of it.
    pub(crate) fn answered(&mut self, words: Words, done: bool) {
        if let Words::Pass(taken, _) | Words::Delete(taken) | Words::Fail(taken) = words {
            self.settles += u64::from(done);
            let set = match done {
                true => &mut self.done,
                false => &mut self.refused,
            };
            set.insert((taken.job, taken.attempt));
        }
    }

    pub(crate) fn judge(&self, canon: &Replicated) -> Result<(), String> {
        for job in &self.created {
            if canon.job(*job).is_err() && !self.deleted.contains(job) {
                return Err(format!("job {job} was acknowledged and is lost"));
            }
        }
        for (job, attempt) in &self.done {
            if self.settled.get(&(*job, *attempt)) != Some(&1) {
                return Err(format!(
                    "attempt {attempt} at job {job} was acknowledged and not done"
                ));
            }
        }
        for (job, attempt) in &self.refused {
            if self.settled.contains_key(&(*job, *attempt)) {
                return Err(format!(
                    "attempt {attempt} at job {job} was refused and done"
                ));
            }
        }
        Ok(())
    }
}
