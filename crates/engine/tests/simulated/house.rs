//! One simulated machine: a disk, the engine on it while it runs, and the state that its entries make.

use std::collections::VecDeque;

use bytes::Bytes;
use testigo_engine::simulated::{Disk, Fate};
use testigo_engine::{
    Committed, Engine, Links, OpenError, Peer, ProposeError, Setup, SnapshotError, StoredSnapshot,
};

use crate::monitor::{Monitor, Violation};

pub(crate) struct Machine {
    pub(crate) setup: Setup,
    pub(crate) disk: Disk,
    pub(crate) engine: Option<Engine>,
    pub(crate) links: Option<Links>,
    /// Counts starts and ends, so that what was planned for an earlier life is known.
    pub(crate) life: u64,
    /// A flush is under way.
    pub(crate) busy: bool,
    pub(crate) paused: bool,
    pub(crate) inbox: VecDeque<(u64, Bytes)>,
    pub(crate) ticks: u32,
    /// How many entries make the state.
    count: usize,
    /// A snapshot is taken after so many.
    snapshot_every: usize,
    since_snapshot: usize,
    /// The last number that this start has proposed.
    proposed: u64,
}

impl Machine {
    pub(crate) fn new(setup: Setup, snapshot_every: usize) -> Self {
        Self {
            setup,
            disk: Disk::default(),
            engine: None,
            links: None,
            life: 0,
            busy: false,
            paused: false,
            inbox: VecDeque::new(),
            ticks: 0,
            count: 0,
            snapshot_every,
            since_snapshot: 0,
            proposed: 0,
        }
    }

    pub(crate) fn node(&self) -> u64 {
        self.setup.node
    }

    fn start(&self) -> u64 {
        let start = self.engine.as_ref().map(Engine::start);
        start.map_or(0, |start| start.number().into())
    }

    /// Whether it could do something now.
    pub(crate) fn is_idle(&self) -> bool {
        self.engine.is_some() && !self.busy && !self.paused
    }

    /// Starts the engine; says whether the disk let it.
    pub(crate) fn boot(&mut self, seed: u64, monitor: &mut Monitor) -> Result<bool, Violation> {
        self.life += 1;
        self.setup.seed = seed;
        let opened = match self.disk.open(self.setup) {
            Ok(opened) => opened,
            Err(OpenError::Disk(_)) => return Ok(false),
            Err(error) => return Err(format!("node {} does not start: {error}", self.node())),
        };
        (self.busy, self.ticks, self.proposed) = (false, 0, 0);
        self.inbox.clear();
        self.links = Some(opened.engine.links());
        self.engine = Some(opened.engine);
        (self.count, self.since_snapshot) = (0, 0);
        if let Some(snapshot) = &opened.snapshot {
            self.load(snapshot, monitor)?;
        }
        self.apply(&opened.committed, monitor)?;
        Ok(true)
    }

    /// The power fails. If a flush is under way, this much of it is on the disk.
    pub(crate) fn crash(&mut self, fate: Fate) {
        self.life += 1;
        if let (true, Some(engine)) = (self.busy, &mut self.engine) {
            self.disk.next_flush(fate);
            let _ = engine.flush();
            self.disk.next_flush(Fate::Done);
        }
        (self.engine, self.busy, self.paused) = (None, false, false);
        self.inbox.clear();
    }

    fn load(&mut self, snapshot: &StoredSnapshot, monitor: &Monitor) -> Result<(), Violation> {
        let count = snapshot
            .image
            .first_chunk()
            .copied()
            .map(u64::from_le_bytes);
        let count = count.ok_or("an image is damaged")?;
        self.count = count as usize;
        self.since_snapshot = 0;
        monitor.restored(self.node(), self.count, snapshot.index)
    }

    fn apply(&mut self, entries: &[Committed], monitor: &mut Monitor) -> Result<(), Violation> {
        for entry in entries {
            monitor.applied(self.node(), self.count, entry)?;
            self.count += 1;
            self.since_snapshot += 1;
        }
        Ok(())
    }

    /// What came out of a flush. Says whether the disk still works.
    pub(crate) fn take_over(
        &mut self,
        committed: &[Committed],
        monitor: &mut Monitor,
    ) -> Result<bool, Violation> {
        let (node, start) = (self.node(), self.start());
        let Some(engine) = &mut self.engine else {
            return Ok(true);
        };
        let links = self.links.as_mut();
        let received = links.map(Links::take_received).unwrap_or_default();
        let reads = engine.take_reads();
        let own = engine.own();
        let (leads, term) = (engine.leads(), engine.term());
        if let Some(snapshot) = engine.take_restored() {
            self.load(&snapshot, monitor)?;
        }
        if leads {
            monitor.leads(node, term)?;
        }
        self.apply(committed, monitor)?;
        for read in reads {
            monitor.answered(node, start, read)?;
        }
        for received in &received {
            monitor.heard(own, received)?;
        }
        self.merge()
    }

    /// Takes a snapshot if it is time for one.
    fn merge(&mut self) -> Result<bool, Violation> {
        let Some(engine) = &mut self.engine else {
            return Ok(true);
        };
        if self.since_snapshot < self.snapshot_every {
            return Ok(true);
        }
        self.since_snapshot = 0;
        // Long enough for several pieces.
        let mut image = (self.count as u64).to_le_bytes().to_vec();
        image.resize(8 + self.count % 200, 7);
        match engine.snapshot(engine.delivered(), &image) {
            Ok(()) | Err(SnapshotError::Stale(_)) => Ok(true),
            Err(SnapshotError::Stopped(_)) => Ok(false),
            Err(error) => Err(format!("no snapshot: {error}")),
        }
    }

    /// Submits something; says whether it was taken.
    pub(crate) fn submit(&mut self, data: &[u8], monitor: &mut Monitor) -> Result<bool, Violation> {
        let Some(engine) = &mut self.engine else {
            return Ok(false);
        };
        match engine.propose(data) {
            Ok(origin) => {
                self.proposed = origin.sequence;
                monitor.submitted(origin, data);
                Ok(true)
            }
            Err(ProposeError::NoMember) => Ok(false),
            Err(error) => Err(format!("nothing can be proposed: {error}")),
        }
    }

    /// Says something to another machine.
    pub(crate) fn say(&mut self, to: Peer, monitor: &mut Monitor) {
        if let (Some(engine), Some(links)) = (&self.engine, &mut self.links) {
            let from = engine.own();
            if links.send(to, monitor.says(from, to).to_vec()).is_ok() {
                monitor.said(from, to);
            }
        }
    }

    pub(crate) fn own(&self) -> Option<Peer> {
        self.engine.as_ref().map(Engine::own)
    }

    pub(crate) fn ask(&mut self, monitor: &mut Monitor) {
        let (node, start) = (self.node(), self.start());
        if let Some(engine) = &mut self.engine {
            let ask = engine.ask_read();
            monitor.asked(node, start, ask);
        }
    }

    /// How it stands, for whoever reads about a failure.
    pub(crate) fn describe(&self) -> String {
        let Some(engine) = &self.engine else {
            return format!("{}: down", self.node());
        };
        format!(
            "{}: term {} leader {:?} {:?} delivered {} {:?}",
            self.node(),
            engine.term(),
            engine.leader(),
            engine.members(),
            engine.delivered(),
            engine
        )
    }

    /// What is still lacking before all is well, if anything is.
    pub(crate) fn lacking(&self, monitor: &Monitor) -> Option<String> {
        let node = self.node();
        let Some(engine) = &self.engine else {
            return Some(format!("node {node} is down"));
        };
        if !engine.members().voters.contains(&node) {
            return Some(format!("node {node} is no voter"));
        }
        if self.count != monitor.len() {
            let all = monitor.len();
            return Some(format!("node {node} has applied {} of {all}", self.count));
        }
        if engine.applied() != self.proposed {
            let (applied, all) = (engine.applied(), self.proposed);
            return Some(format!(
                "{applied} of node {node}'s {all} submissions are applied"
            ));
        }
        let unanswered = monitor.unanswered(node, self.start());
        (unanswered > 0).then(|| format!("{unanswered} reads of node {node} are unanswered"))
    }
}
