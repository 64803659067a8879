//! Flows and their jobs, as the log knows them: which queues exist, and which job lies where. Takes are not here; a held job
//! still lies in its queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::below;
use super::mark::FlowMark;
use crate::error::{Refusal, Word};
use crate::job::{Blocks, Job, JobId, QueueAct, QueueId, QueueRule, Scheme};
use crate::limits::{Limits, SharedLimits};
use crate::name::Name;
use crate::ownership::Shard;

/// A flow on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The text with which it was applied.
    pub text: Arc<str>,
    /// What the text means.
    pub scheme: Scheme,
    ids: BTreeMap<Name, QueueId>,
}

/// A queue of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Its flow.
    pub flow: Name,
    /// Its own name.
    pub name: Name,
    /// How it treats its jobs.
    pub rule: QueueRule,
    /// How many jobs lie in it, held ones included.
    pub jobs: u64,
}

/// All flows, queues and jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flows {
    pub(super) flows: BTreeMap<Name, Flow>,
    pub(super) queues: BTreeMap<QueueId, Queue>,
    pub(super) jobs: Blocks,
    /// The weight of all jobs.
    pub(super) bytes: u64,
    pub(super) last_job: u64,
    pub(super) last_place: u64,
    last_queue: u32,
}

/// Jobs by flow and name. Not in snapshots, because it follows from the jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<Name, BTreeMap<Name, JobId>>);

impl Queue {
    /// The shard that it belongs to.
    pub fn shard(&self) -> Shard {
        Shard::of_queue(&self.flow, &self.name)
    }
}

impl Flow {
    /// The mark of its text.
    pub fn mark(&self) -> FlowMark {
        FlowMark::of(&self.text)
    }

    /// The identity of one of its queues.
    pub fn queue(&self, name: &str) -> Option<QueueId> {
        self.ids.get(name).copied()
    }

    /// Its queues, by name.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = (&Name, QueueId)> {
        self.ids.iter().map(|(name, id)| (name, *id))
    }

    /// Whether the graph allows a process this act.
    pub fn allows(&self, process: &str, act: QueueAct, queue: &Queue) -> Result<(), Refusal> {
        let Some(role) = self.scheme.processes.get(process) else {
            return Err(Refusal::new(
                Word::NoRight,
                format!(
                    "flow {} has no process {process} any more; PRESENT again",
                    queue.flow
                ),
            ));
        };
        if role.may(act, &queue.name) {
            return Ok(());
        }
        Err(Refusal::new(
            Word::NoRight,
            format!(
                "process {process} of flow {} may not {} queue {}; the flow's graph says what it may",
                queue.flow,
                act.words(),
                queue.name
            ),
        ))
    }
}

impl Flows {
    /// Whether this flow could be applied.
    pub(super) fn check_apply(
        &self,
        limits: &SharedLimits,
        flow: &Name,
        text: &str,
        scheme: &Scheme,
        sees: &dyn Fn(QueueId) -> bool,
    ) -> Result<(), Refusal> {
        if flow.contains('/') {
            return Err(Refusal::new(
                Word::BadArg,
                format!("the flow name {flow:?} holds a slash, which parts a flow from its queue"),
            ));
        }
        if text.len() > Limits::FLOW_BYTES {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "the flow's text has {} bytes, which is above the limit flow_bytes of {}",
                    text.len(),
                    Limits::FLOW_BYTES
                ),
            ));
        }
        scheme.check(limits)?;
        let Some(existing) = self.flows.get(flow) else {
            return below("flows", self.flows.len(), limits.flows);
        };
        let gone = existing.ids.iter();
        let gone = gone.filter(|(name, _)| !scheme.queues.contains_key(*name));
        self.check_empty(gone, "apply the flow", sees)
    }

    /// Whether a flow is still the one that its author saw, or already the one that its author wants: a client that does not
    /// know whether it was applied may ask again.
    pub(super) fn check_over(
        &self,
        flow: &Name,
        text: &str,
        over: Option<FlowMark>,
    ) -> Result<(), Refusal> {
        let running = self.flows.get(flow);
        let is = running.map(Flow::mark);
        let why = match (over, is) {
            _ if running.is_some_and(|flow| *flow.text == *text) => return Ok(()),
            (over, is) if over == is => return Ok(()),
            (Some(_), Some(is)) => {
                format!("flow {flow} has been changed meanwhile: its mark is {is}")
            }
            (None, Some(is)) => format!("there is a flow {flow} meanwhile: its mark is {is}"),
            (_, None) => format!("flow {flow} has been deleted meanwhile"),
        };
        let sentence = format!("{why}; look at it with FLOW SHOW, then apply again");
        Err(Refusal::new(Word::Stale, sentence))
    }

    /// Whether a flow could be deleted.
    pub(super) fn check_delete(
        &self,
        flow: &Name,
        sees: &dyn Fn(QueueId) -> bool,
    ) -> Result<(), Refusal> {
        match self.flows.get(flow) {
            None => Err(no_flow(flow)),
            Some(existing) => self.check_empty(existing.ids.iter(), "delete the flow", sees),
        }
    }

    /// Checks that no job is stranded. The refusal lists every queue that would go while it has jobs, and the names of those
    /// that the caller may see.
    fn check_empty<'a>(
        &self,
        gone: impl Iterator<Item = (&'a Name, &'a QueueId)>,
        doing: &str,
        sees: &dyn Fn(QueueId) -> bool,
    ) -> Result<(), Refusal> {
        let full = |id: &QueueId| self.queues.get(id).is_some_and(|queue| queue.jobs > 0);
        let full: Vec<_> = gone.filter(|(_, id)| full(id)).collect();
        if full.is_empty() {
            return Ok(());
        }
        let ids = full.iter().map(|(_, id)| **id).filter(|id| sees(*id));
        let named = self.first_names(ids);
        let queues = full.iter().filter_map(|(name, id)| {
            let jobs = self.queues.get(id)?.jobs;
            let Some(first) = named.get(id) else {
                return Some(format!("{jobs} in queue {name}"));
            };
            let first: Vec<&str> = first.iter().map(|name| name.as_str()).collect();
            let more = match jobs - first.len() as u64 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let first = first.join(", ");
            Some(format!("{jobs} in queue {name} ({first}{more})"))
        });
        let queues = queues.collect::<Vec<_>>().join(", ");
        Err(Refusal::new(
            Word::Busy,
            format!("jobs would be stranded: {queues}; move or finish them, then {doing}"),
        ))
    }

    /// The names of the oldest jobs of each queue, at most [`Limits::STRANDED_NAMES`] per queue.
    pub(super) fn first_names(
        &self,
        queues: impl Iterator<Item = QueueId>,
    ) -> BTreeMap<QueueId, Vec<Name>> {
        let mut names: BTreeMap<_, _> = queues.map(|queue| (queue, Vec::new())).collect();
        let wanted = |id: &QueueId| {
            let jobs = self.queues.get(id).map_or(0, |queue| queue.jobs);
            (jobs as usize).min(Limits::STRANDED_NAMES)
        };
        let mut missing: usize = names.keys().map(wanted).sum();
        let mut jobs = self.jobs.iter();
        while missing > 0
            && let Some(job) = jobs.next()
        {
            if let Some(names) = names.get_mut(&job.queue)
                && names.len() < Limits::STRANDED_NAMES
            {
                names.push(job.name.clone());
                missing -= 1;
            }
        }
        names
    }

    /// Applies a checked flow. Queues that stay keep their jobs.
    pub(super) fn apply_flow(&mut self, flow: &Name, text: &Arc<str>, scheme: &Scheme) {
        let before = self.flows.remove(flow);
        let mut ids = BTreeMap::new();
        for (name, rule) in &scheme.queues {
            let known = before.as_ref().and_then(|before| before.queue(name));
            let id = known.unwrap_or_else(|| {
                self.last_queue += 1;
                QueueId(self.last_queue)
            });
            let queue = self.queues.entry(id).or_insert_with(|| Queue {
                flow: flow.clone(),
                name: name.clone(),
                rule: QueueRule::default(),
                jobs: 0,
            });
            queue.rule = rule.clone();
            ids.insert(name.clone(), id);
        }
        for (name, id) in before.iter().flat_map(|before| &before.ids) {
            if !ids.contains_key(name) {
                self.queues.remove(id);
            }
        }
        let (text, scheme) = (Arc::clone(text), scheme.clone());
        self.flows.insert(flow.clone(), Flow { text, scheme, ids });
    }

    /// Deletes a flow after the check.
    pub(super) fn delete_flow(&mut self, flow: &Name) {
        for id in self.flows.remove(flow).iter().flat_map(|f| f.ids.values()) {
            self.queues.remove(id);
        }
    }

    /// The queue that a text means: `flow/queue`, or a bare name in the given flow, or the only queue with that name.
    pub(super) fn resolve(&self, text: &str, flow: Option<&str>) -> Result<QueueId, Refusal> {
        if let Some((flow, queue)) = text.split_once('/') {
            let Some(found) = self.flows.get(flow) else {
                return Err(no_flow(flow));
            };
            return found.queue(queue).ok_or_else(|| no_queue(text));
        }
        if let Some(flow) = flow {
            let found = self.flows.get(flow).and_then(|flow| flow.queue(text));
            return found.ok_or_else(|| no_queue(&format!("{flow}/{text}")));
        }
        let mut all = self.flows.iter().filter_map(|(name, flow)| {
            let id = flow.queue(text)?;
            Some((name, id))
        });
        match (all.next(), all.next()) {
            (None, _) => Err(no_queue(text)),
            (Some((_, id)), None) => Ok(id),
            (Some((one, _)), Some((two, _))) => Err(ambiguous_queue(text, one, two)),
        }
    }
}

impl Names {
    pub(super) fn of(flows: &Flows) -> Names {
        let mut names = Names::default();
        for job in flows.jobs.iter() {
            if let Some(queue) = flows.queues.get(&job.queue) {
                names.insert(&queue.flow, job);
            }
        }
        names
    }

    pub(super) fn find(&self, flow: &str, name: &str) -> Option<JobId> {
        self.0.get(flow)?.get(name).copied()
    }

    pub(super) fn insert(&mut self, flow: &Name, job: &Job) {
        if !self.0.contains_key(flow) {
            self.0.insert(flow.clone(), BTreeMap::new());
        }
        if let Some(names) = self.0.get_mut(flow) {
            names.insert(job.name.clone(), job.id);
        }
    }

    pub(super) fn remove(&mut self, flow: &str, name: &str) {
        if let Some(names) = self.0.get_mut(flow) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(flow);
            }
        }
    }
}

pub(crate) fn no_flow(flow: &str) -> Refusal {
    Refusal::new(
        Word::NoFlow,
        format!("there is no flow {flow}; FLOW APPLY makes one, FLOW LIST shows them"),
    )
}

/// The refusal of a bare name shared by queues of several flows.
pub fn ambiguous_queue(text: &str, one: &str, two: &str) -> Refusal {
    Refusal::new(
        Word::BadArg,
        format!(
            "{text} is a queue of flow {one} and of flow {two}; say {one}/{text} or {two}/{text}"
        ),
    )
}

/// The refusal of a queue that does not exist.
pub fn no_queue(queue: &str) -> Refusal {
    Refusal::new(
        Word::NoQueue,
        format!("there is no queue {queue}; FLOW SHOW shows the queues of a flow"),
    )
}

/// The refusal of a job that does not exist.
pub fn no_job(job: JobId) -> Refusal {
    Refusal::new(
        Word::NoJob,
        format!("there is no job {job}; it was deleted, or never created"),
    )
}
