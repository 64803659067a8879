//! One run, event by event.

use testigo_sim::Time;

use super::state::{Blocked, Event, Job, Run};
use super::tally::Simulation;
use super::{EVENTS_MAX, JOBS_MAX};
use crate::load::Out;

fn ticks(seconds: f64) -> Time {
    Time((seconds * Time::UNIT as f64).round() as u64)
}

impl Run<'_> {
    pub(super) fn run(mut self) -> Simulation {
        let warm = ticks(self.span.warm_up);
        let end = ticks(self.span.warm_up + self.span.seconds);
        for source in 0..self.sources.len() {
            self.plan_source(source);
        }
        let (mut events, mut overflowed, mut warming) = (0, false, true);
        loop {
            let next = self.agenda.pop();
            if next.is_none() && self.stood_still.is_some() {
                break;
            }
            let at = next.as_ref().map_or(end, |(at, _)| (*at).min(end));
            // A flow that stood still before this keeps what was counted: there is nothing else to show.
            if warming && at >= warm && self.stood_still.is_none() {
                warming = false;
                self.count(warm);
            }
            let Some((at, event)) = next.filter(|(at, _)| *at <= end) else {
                self.now = end;
                break;
            };
            self.now = at;
            self.step(event);
            events += 1;
            if self.inside > JOBS_MAX || events == EVENTS_MAX {
                overflowed = true;
                break;
            }
        }
        self.tally(overflowed)
    }

    fn plan(&mut self, seconds: f64, event: Event) {
        self.agenda.plan(self.now + ticks(seconds), event);
    }

    fn plan_source(&mut self, source: usize) {
        let seconds = self.sources[source].arrivals.draw(&mut self.generator);
        self.plan(seconds, Event::Create(source));
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Create(source) => {
                let queue = self.sources[source].queue;
                if self.has_room(queue) {
                    self.create(source);
                } else {
                    self.sources[source].blocked.add(self.now, 1);
                    let blocked = Blocked::Source(source);
                    self.queues[queue].blocked.push_back(blocked);
                }
            }
            Event::Done(process, queue, job) => self.done(process, queue, job),
            Event::Dies(process, queue, job) => self.dies(process, queue, job),
            Event::Returns(process) => {
                self.processes[process].busy.add(self.now, -1);
                self.free(process);
            }
        }
    }

    fn has_room(&self, queue: usize) -> bool {
        self.queues[queue].jobs < self.limits[queue]
    }

    fn create(&mut self, source: usize) {
        let queue = self.sources[source].queue;
        self.sources[source].created += 1;
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

    /// Gives the first job of a queue to the worker that has been idle longest.
    fn offer(&mut self, queue: usize) {
        let takers = self.index.takers[queue].iter().copied();
        let idle = takers.filter_map(|process| {
            let idle = &self.processes[process].idle;
            Some((idle.since()?, std::cmp::Reverse(idle.fresh), process))
        });
        if let Some((_, _, process)) = idle.min() {
            self.take(process, queue);
        }
    }

    fn take(&mut self, process: usize, queue: usize) {
        let Some(job) = self.queues[queue].waiting.pop_front() else {
            return;
        };
        self.waiting_changed(queue);
        let line = &mut self.queues[queue];
        line.waited += self.now.since(job.since).as_units();
        line.taken += u64::from(job.deaths == 0);
        let state = &mut self.processes[process];
        let Some(work) = state.work else { return };
        state.idle.leave();
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
        self.turn += 1;
        self.processes[process].idle.turns.push_back(self.turn);
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
                let state = &mut self.processes[process];
                state.blocked.add(self.now, 1);
                *state.blocked_at.entry((queue, next)).or_default() += 1;
                let blocked = Blocked::Worker(process, queue, job);
                self.queues[next].blocked.push_back(blocked);
                if self.stood_still.is_none() && self.is_stuck(next) {
                    self.stood_still = Some(self.now);
                }
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
                    Blocked::Source(source) => {
                        self.sources[source].blocked.add(self.now, -1);
                        self.create(source);
                    }
                    Blocked::Worker(process, from, mut job) => {
                        self.unblock(process, from, queue);
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

    fn unblock(&mut self, process: usize, from: usize, queue: usize) {
        let state = &mut self.processes[process];
        state.blocked.add(self.now, -1);
        if let Some(workers) = state.blocked_at.get_mut(&(from, queue)) {
            *workers -= 1;
            if *workers == 0 {
                state.blocked_at.remove(&(from, queue));
            }
        }
    }

    /// Forgets what was counted while the flow filled.
    fn count(&mut self, now: Time) {
        self.counted_from = now;
        (self.created, self.deleted, self.rejected, self.lived) = (0, 0, 0, 0.0);
        for queue in &mut self.queues {
            (queue.arrivals, queue.taken, queue.waited) = (0, 0, 0.0);
            queue.most = queue.waiting.len();
            queue.level.restart(now);
        }
        for process in &mut self.processes {
            (process.taken, process.deaths) = (0, 0);
            process.busy.restart(now);
            process.blocked.restart(now);
        }
        for source in &mut self.sources {
            source.created = 0;
            source.blocked.restart(now);
        }
    }
}
