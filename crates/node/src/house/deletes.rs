//! A deletion of a pool is answered when the nodes have voted, not when the log has the request.

use testigo_core::{Change, Index, Name, Outcome, Refusal, Word};

use super::client::ClientId;
use super::{Answers, House};
use crate::wire::refuse;

/// Pools that are being deleted, and who waits here for the outcome.
#[derive(Debug, Default)]
pub(super) struct Deletes(Vec<Delete>);

#[derive(Debug)]
struct Delete {
    tag: u64,
    answers: Answers,
    pool: Name,
    /// The entry with which the vote began.
    began: Index,
}

impl Deletes {
    /// The connections that wait.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.0.iter().filter_map(|delete| delete.answers.client())
    }
}

impl House {
    /// Keeps a request to delete a pool until the nodes have voted. Returns the answers if there is no vote to wait for.
    pub(super) fn answer_after_vote(
        &mut self,
        tag: u64,
        answers: Answers,
        change: &Change,
        outcome: &Result<Outcome, Refusal>,
    ) -> Option<Answers> {
        if let (Change::ClosePool { pool }, Ok(_)) = (change, outcome)
            && let Some(began) = self.replicated().closings().began(pool)
        {
            self.deletes.0.push(Delete {
                tag,
                answers,
                pool: pool.clone(),
                began,
            });
            return None;
        }
        Some(answers)
    }

    /// Answers the requests whose vote this entry has ended.
    pub(super) fn answer_deletes(&mut self, outcome: &Outcome) {
        let Some(ended) = self.ended_deletes() else {
            return;
        };
        for delete in ended {
            let pool = &delete.pool;
            let outcome = match outcome {
                Outcome::PoolDeleted { .. } => Ok(outcome.clone()),
                Outcome::PoolKept { by, .. } => Err(refuse(
                    Word::Busy,
                    format!("pool {pool} is in use at node {by}; POOL SHOW says by whom"),
                )),
                _ => Err(refuse(
                    Word::Busy,
                    format!(
                        "pool {pool} was not deleted: the cluster changed meanwhile; try again"
                    ),
                )),
            };
            self.answer_delete(delete, outcome);
        }
    }

    fn ended_deletes(&mut self) -> Option<Vec<Delete>> {
        if self.deletes.0.is_empty() {
            return None;
        }
        let closings = self.services.replicated().closings();
        let deletes = std::mem::take(&mut self.deletes.0).into_iter();
        let goes_on = |delete: &Delete| closings.began(&delete.pool) == Some(delete.began);
        let (wait, ended) = deletes.partition(goes_on);
        self.deletes.0 = wait;
        Some(ended)
    }

    /// Ends all waits: nobody here will hear how the votes end.
    pub(super) fn end_deletes(&mut self, unknown: &Refusal) {
        for delete in std::mem::take(&mut self.deletes.0) {
            self.answer_delete(delete, Err(unknown.clone()));
        }
    }

    fn answer_delete(&mut self, delete: Delete, outcome: Result<Outcome, Refusal>) {
        let Delete {
            tag, answers, pool, ..
        } = delete;
        self.answer_now(tag, answers, &Change::ClosePool { pool }, outcome);
    }
}
