//! One run, event by event.

use std::collections::VecDeque;

use testigo_sim::{Agenda, Generator, Time};

use super::tally::{Level, ProcessRun, QueueRun, Simulation};
use super::{EVENTS_MAX, JOBS_MAX, Span};
use crate::index::Index;
use crate::load::{Load, Out, Work};
use crate::{Flow, Name};

#[derive(Clone, Debug)]
struct Job {
    created: Time,
    /// When it began to wait where it is.
    since: Time,
    deaths: u32,
}

#[derive(Debug)]
enum Event {
    /// A job is due from this source.
    Create(usize),
    /// A worker is done with a job from this queue.
    Done(usize, usize, Job),
    /// A worker dies of a job from this queue.
    Dies(usize, usize, Job),
    /// A worker is there again.
    Returns(usize),
    /// Counting starts.
    Count,
}

/// Who stands before a full queue.
#[derive(Debug)]
enum Blocked {
    Source(usize),
    /// A worker of this process, with a job from this queue.
    Worker(usize, usize, Job),
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<Job>,
    /// Waiting and held.
    jobs: usize,
    blocked: VecDeque<Blocked>,
    level: Level,
    arrivals: u64,
    waited: f64,
    most: usize,
}

#[derive(Debug)]
struct ProcessState<'a> {
    work: Option<&'a Work>,
    idle: u32,
    busy: Level,
    blocked: Level,
    taken: u64,
    deaths: u64,
}

/// A process that creates into a queue.
#[derive(Debug)]
struct Source {
    queue: usize,
    /// Seconds between two jobs, in the mean.
    between: f64,
}

pub(super) struct Run<'a> {
    index: Index<'a>,
    outs: Vec<Vec<Vec<(Out, f64)>>>,
    limits: Vec<usize>,
    rejects: Vec<Option<usize>>,
    retries: Vec<u32>,
    queues: Vec<QueueState>,
    processes: Vec<ProcessState<'a>>,
    sources: Vec<Source>,
    agenda: Agenda<Event>,
    generator: Generator,
    span: Span,
    now: Time,
    inside: usize,
    created: u64,
    deleted: u64,
    rejected: u64,
    lived: f64,
}

fn ticks(seconds: f64) -> Time {
    Time((seconds * Time::UNIT as f64) as u64)
}

impl<'a> Run<'a> {
    pub(super) fn new(flow: &'a Flow, load: &'a Load, span: Span) -> Run<'a> {
        let index = Index::of(flow);
        let process = |(name, _): &(&Name, &crate::Process)| {
            let work = load.works.get(*name);
            ProcessState {
                work,
                idle: work.map_or(0, |work| work.workers),
                busy: Level::default(),
                blocked: Level::default(),
                taken: 0,
                deaths: 0,
            }
        };
        let outs = |process: usize| {
            let takes = index.takes[process].iter();
            takes
                .map(|queue| load.outs(&index, process, *queue))
                .collect()
        };
        let source = |((_, queue), rate): (&(Name, Name), &f64)| {
            let queue = index.queue(queue).filter(|_| *rate > 0.0)?;
            let between = 1.0 / rate;
            Some(Source { queue, between })
        };
        let names = || index.queues.iter();
        Run {
            outs: (0..index.processes.len()).map(outs).collect(),
            limits: names()
                .map(|name| {
                    flow.queues[*name]
                        .limit
                        .map_or(usize::MAX, |limit| limit as usize)
                })
                .collect(),
            rejects: names()
                .map(|name| flow.reject(name).and_then(|name| index.queue(name)))
                .collect(),
            retries: names().map(|name| flow.retries(name)).collect(),
            queues: names().map(|_| QueueState::default()).collect(),
            processes: index.processes.iter().map(process).collect(),
            sources: load.creates.iter().filter_map(source).collect(),
            index,
            agenda: Agenda::default(),
            generator: Generator::new(span.seed),
            span,
            now: Time::ZERO,
            inside: 0,
            created: 0,
            deleted: 0,
            rejected: 0,
            lived: 0.0,
        }
    }

    pub(super) fn run(mut self) -> Simulation {
        let end = ticks(self.span.warm_up + self.span.seconds);
        self.agenda.plan(ticks(self.span.warm_up), Event::Count);
        for source in 0..self.sources.len() {
            self.plan_source(source);
        }
        let (mut events, mut overflowed, mut stood_still) = (0, false, None);
        loop {
            let Some((at, event)) = self.agenda.pop() else {
                stood_still = Some(self.now.as_units());
                self.now = end;
                break;
            };
            if at > end {
                self.now = end;
                break;
            }
            self.now = at;
            self.step(event);
            events += 1;
            if self.inside > JOBS_MAX || events == EVENTS_MAX {
                overflowed = true;
                break;
            }
        }
        self.tally(stood_still, overflowed)
    }

    fn plan(&mut self, seconds: f64, event: Event) {
        self.agenda.plan(self.now + ticks(seconds), event);
    }

    fn plan_source(&mut self, source: usize) {
        let seconds = self.generator.exponential(self.sources[source].between);
        self.plan(seconds, Event::Create(source));
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Create(source) => {
                let queue = self.sources[source].queue;
                match self.has_room(queue) {
                    true => self.create(source),
                    false => self.queues[queue]
                        .blocked
                        .push_back(Blocked::Source(source)),
                }
            }
            Event::Done(process, queue, job) => self.done(process, queue, job),
            Event::Dies(process, queue, job) => self.dies(process, queue, job),
            Event::Returns(process) => {
                self.processes[process].busy.add(self.now, -1);
                self.free(process);
            }
            Event::Count => self.count(),
        }
    }

    fn has_room(&self, queue: usize) -> bool {
        self.queues[queue].jobs < self.limits[queue]
    }

    fn create(&mut self, source: usize) {
        let queue = self.sources[source].queue;
        self.created += 1;
        self.inside += 1;
        self.plan_source(source);
        let job = Job {
            created: self.now,
            since: self.now,
            deaths: 0,
        };
        self.enter(queue, job);
    }

    /// A job comes into a queue, and to a worker if one is idle.
    fn enter(&mut self, queue: usize, mut job: Job) {
        job.since = self.now;
        let state = &mut self.queues[queue];
        state.jobs += 1;
        state.arrivals += 1;
        state.waiting.push_back(job);
        self.waiting_changed(queue);
        self.offer(queue);
    }

    fn waiting_changed(&mut self, queue: usize) {
        let state = &mut self.queues[queue];
        state.level.set(self.now, state.waiting.len() as u64);
        state.most = state.most.max(state.waiting.len());
    }

    /// Gives the first job of a queue to the taker with the most idle workers.
    fn offer(&mut self, queue: usize) {
        let idle = |process: &&usize| self.processes[**process].idle;
        let taker = self.index.takers[queue].iter().max_by_key(idle).copied();
        if let Some(process) = taker.filter(|process| self.processes[*process].idle > 0) {
            self.take(process, queue);
        }
    }

    fn take(&mut self, process: usize, queue: usize) {
        let Some(job) = self.queues[queue].waiting.pop_front() else {
            return;
        };
        self.waiting_changed(queue);
        self.queues[queue].waited += self.now.since(job.since).as_units();
        let state = &mut self.processes[process];
        let Some(work) = state.work else { return };
        state.idle -= 1;
        state.taken += 1;
        state.busy.add(self.now, 1);
        let service = work.service.draw(&mut self.generator);
        if self.generator.chance(work.deaths) {
            let until = service * self.generator.unit();
            self.plan(until, Event::Dies(process, queue, job));
        } else {
            self.plan(service, Event::Done(process, queue, job));
        }
    }

    /// A worker is idle: it takes the job that waits longest among its queues.
    fn free(&mut self, process: usize) {
        self.processes[process].idle += 1;
        let since = |queue: &&usize| self.queues[**queue].waiting.front().map(|job| job.since);
        let queues = self.index.takes[process].iter();
        let first = queues
            .filter(|queue| since(queue).is_some())
            .min_by_key(since);
        if let Some(queue) = first.copied() {
            self.take(process, queue);
        }
    }

    fn done(&mut self, process: usize, queue: usize, job: Job) {
        self.processes[process].busy.add(self.now, -1);
        match self.choose(process, queue) {
            Out::Delete => {
                self.deleted += 1;
                self.inside -= 1;
                self.lived += self.now.since(job.created).as_units();
                self.free(process);
                self.leave(queue);
            }
            // Within a queue no room is needed.
            Out::Pass(next) if next == queue || self.has_room(next) => {
                self.pass(process, queue, next, job);
            }
            Out::Pass(next) => {
                self.processes[process].blocked.add(self.now, 1);
                let blocked = Blocked::Worker(process, queue, job);
                self.queues[next].blocked.push_back(blocked);
            }
        }
    }

    fn choose(&mut self, process: usize, queue: usize) -> Out {
        let at = self.index.takes[process].binary_search(&queue).unwrap_or(0);
        let outs = &self.outs[process][at];
        let mut left = self.generator.unit();
        for (out, share) in outs {
            left -= share;
            if left < 0.0 {
                return *out;
            }
        }
        outs.last().map_or(Out::Delete, |(out, _)| *out)
    }

    fn pass(&mut self, process: usize, queue: usize, next: usize, mut job: Job) {
        job.deaths = 0;
        self.queues[queue].jobs -= 1;
        self.enter(next, job);
        self.free(process);
        self.admit(queue);
    }

    /// A job left a queue for good.
    fn leave(&mut self, queue: usize) {
        self.queues[queue].jobs -= 1;
        self.admit(queue);
    }

    /// Lets those in who stand before a queue that has room now; each may leave room elsewhere.
    fn admit(&mut self, queue: usize) {
        let mut open = vec![queue];
        while let Some(queue) = open.pop() {
            while self.has_room(queue)
                && let Some(blocked) = self.queues[queue].blocked.pop_front()
            {
                match blocked {
                    Blocked::Source(source) => self.create(source),
                    Blocked::Worker(process, from, mut job) => {
                        self.processes[process].blocked.add(self.now, -1);
                        job.deaths = 0;
                        self.queues[from].jobs -= 1;
                        self.enter(queue, job);
                        self.free(process);
                        open.push(from);
                    }
                }
            }
        }
    }

    /// The worker restarts; the job comes back to its place, or is rejected.
    fn dies(&mut self, process: usize, queue: usize, mut job: Job) {
        let state = &mut self.processes[process];
        state.deaths += 1;
        let restart = state
            .work
            .map_or(0.0, |work| work.restart.draw(&mut self.generator));
        self.plan(restart, Event::Returns(process));
        job.deaths += 1;
        match self.rejects[queue] {
            Some(reject) if job.deaths > self.retries[queue] => {
                self.rejected += 1;
                job.deaths = 0;
                self.enter(reject, job);
                self.leave(queue);
            }
            _ => {
                job.since = self.now;
                self.queues[queue].waiting.push_front(job);
                self.waiting_changed(queue);
                self.offer(queue);
            }
        }
    }

    /// Forgets what was counted while the flow filled.
    fn count(&mut self) {
        (self.created, self.deleted, self.rejected, self.lived) = (0, 0, 0, 0.0);
        for queue in &mut self.queues {
            (queue.arrivals, queue.waited, queue.most) = (0, 0.0, queue.waiting.len());
            queue.level.restart(self.now);
        }
        for process in &mut self.processes {
            (process.taken, process.deaths) = (0, 0);
            process.busy.restart(self.now);
            process.blocked.restart(self.now);
        }
    }

    fn tally(mut self, stood_still: Option<f64>, overflowed: bool) -> Simulation {
        let seconds = (self.now.as_units() - self.span.warm_up).max(0.0);
        let rate = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let now = self.now;
        let names = self.index.processes.iter().map(|(name, _)| (*name).clone());
        let processes = names.zip(&mut self.processes).filter_map(|(name, state)| {
            let workers = state.work?.workers;
            Some(ProcessRun {
                name,
                workers,
                taken: rate(state.taken),
                utilisation: state.busy.mean(now, seconds) / f64::from(workers),
                blocked: state.blocked.mean(now, seconds) / f64::from(workers),
                deaths: state.deaths,
            })
        });
        let names = self.index.queues.iter().map(|name| (*name).clone());
        let queues = names.zip(&mut self.queues).map(|(name, state)| QueueRun {
            name,
            arrivals: rate(state.arrivals),
            waiting: (state.arrivals > 0).then(|| state.waited / state.arrivals as f64),
            jobs: state.level.mean(now, seconds),
            jobs_max: state.most,
        });
        Simulation {
            processes: processes.collect(),
            queues: queues.collect(),
            seconds,
            created: self.created,
            deleted: self.deleted,
            rejected: self.rejected,
            left: self.inside as u64,
            time: (self.deleted > 0).then(|| self.lived / self.deleted as f64),
            stood_still,
            overflowed,
        }
    }
}
