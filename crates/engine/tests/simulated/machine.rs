//! One simulated machine: a disk, the log on it while it runs, driven by hand, and the state that its entries make.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use testigo_engine::simulated::{Disk, Fate};
use testigo_engine::{
    Applied, ByHand, Delivery, DiskError, DiskRoom, LogThread, OpenError, Outgoing, Peer,
    ProposeError, Sends, Setup, SnapshotError, Standing, StoredSnapshot,
};

use crate::monitor::{Monitor, Violation};

pub(crate) struct Machine {
    pub(crate) setup: Setup,
    pub(crate) disk: Disk,
    pub(crate) running: Option<Running>,
    /// Counts starts and ends, so that what was planned for an earlier life is known.
    pub(crate) life: u64,
    pub(crate) paused: bool,
    /// How many entries make the state.
    count: usize,
    /// A snapshot is taken after so many.
    snapshot_every: usize,
    since_snapshot: usize,
}

/// A log that runs, and what it has said.
pub(crate) struct Running {
    pub(crate) log: LogThread,
    pub(crate) hand: ByHand,
    said: Arc<Mutex<Vec<Delivery>>>,
    sent: Arc<Mutex<Vec<Outgoing>>>,
    own: Peer,
    pub(crate) standing: Standing,
    pub(crate) room: DiskRoom,
    delivered: u64,
    tags: u64,
    /// Frames that were damaged on the way.
    pub(crate) damaged: u64,
}

struct Wire(Arc<Mutex<Vec<Outgoing>>>);

impl Sends for Wire {
    fn send(&mut self, to: u64, frame: Bytes) {
        self.0.lock().unwrap().push(Outgoing { to, frame });
    }
}

impl Running {
    fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    pub(crate) fn take_sent(&self) -> Vec<Outgoing> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

impl Machine {
    pub(crate) fn new(setup: Setup, snapshot_every: usize) -> Self {
        Self {
            setup,
            disk: Disk::default(),
            running: None,
            life: 0,
            paused: false,
            count: 0,
            snapshot_every,
            since_snapshot: 0,
        }
    }

    pub(crate) fn node(&self) -> u64 {
        self.setup.node
    }

    /// It runs and leads, as far as it knows, and somebody may tell it something.
    pub(crate) fn leading(&self) -> Option<&Running> {
        let running = self.running.as_ref()?;
        (running.standing.leads && !self.paused).then_some(running)
    }

    /// Starts the log; says whether the disk let it.
    pub(crate) fn boot(&mut self, seed: u64, monitor: &mut Monitor) -> Result<bool, Violation> {
        self.life += 1;
        self.setup.seed = seed;
        let opened = match self.disk.open(self.setup) {
            Ok(opened) => opened,
            Err(OpenError::Disk(_)) => return Ok(false),
            Err(error) => return Err(format!("node {} does not start: {error}", self.node())),
        };
        let (said, sent) = <(Arc<Mutex<Vec<Delivery>>>, Arc<_>)>::default();
        let own = opened.engine.own();
        let delivered = opened.engine.delivered();
        let hears = Arc::clone(&said);
        let deliver = move |delivery| hears.lock().unwrap().push(delivery);
        let wire = Box::new(Wire(Arc::clone(&sent)));
        let (log, hand) = LogThread::by_hand(opened.engine, wire, deliver);
        (self.count, self.since_snapshot) = (0, 0);
        if let Some(snapshot) = &opened.snapshot {
            self.load(snapshot, monitor)?;
        }
        for entry in opened.committed {
            // Whoever had submitted it is gone.
            let applied = Applied { tag: None, entry };
            self.apply(own, &applied, monitor)?;
        }
        self.running = Some(Running {
            log,
            hand,
            said,
            sent,
            own,
            standing: Standing::default(),
            room: DiskRoom::default(),
            delivered,
            tags: 0,
            damaged: 0,
        });
        Ok(true)
    }

    /// The power fails. If a flush is under way, this much of it is on the disk.
    pub(crate) fn crash(&mut self, fate: Fate) {
        self.life += 1;
        if let Some(running) = self
            .running
            .take()
            .filter(|running| running.hand.is_begun())
        {
            self.disk.next_flush(fate);
            running.hand.flush();
            self.disk.next_flush(Fate::Done);
        }
        self.paused = false;
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

    fn apply(
        &mut self,
        own: Peer,
        applied: &Applied,
        monitor: &mut Monitor,
    ) -> Result<(), Violation> {
        monitor.applied(own, self.count, applied)?;
        self.count += 1;
        self.since_snapshot += 1;
        Ok(())
    }

    /// What the log has said. Says whether its disk still works, and what was applied.
    pub(crate) fn listen(
        &mut self,
        monitor: &mut Monitor,
    ) -> Result<(bool, Vec<Bytes>), Violation> {
        let mut applied = Vec::new();
        while let Some(running) = &mut self.running {
            let (refused, damaged) = (running.log.frames_refused(), running.damaged);
            let all_read = !running.hand.is_asked();
            if refused > damaged || (all_read && refused < damaged) {
                return Err(format!(
                    "{refused} frames were refused, {damaged} are damaged"
                ));
            }
            let said = std::mem::take(&mut *running.said.lock().unwrap());
            if said.is_empty() {
                break;
            }
            for delivery in said {
                if !self.hear(delivery, monitor, &mut applied)? {
                    return Ok((false, applied));
                }
            }
            self.merge()?;
        }
        Ok((true, applied))
    }

    fn hear(
        &mut self,
        delivery: Delivery,
        monitor: &mut Monitor,
        applied: &mut Vec<Bytes>,
    ) -> Result<bool, Violation> {
        let node = self.node();
        let Some(running) = &mut self.running else {
            return Ok(false);
        };
        let own = running.own;
        match delivery {
            Delivery::Committed {
                entries, delivered, ..
            } => {
                if delivered <= running.delivered {
                    return Err(format!("node {node} is at {delivered} again"));
                }
                running.delivered = delivered;
                for entry in entries {
                    self.apply(own, &entry, monitor)?;
                    applied.push(entry.entry.data);
                }
            }
            Delivery::Restored { snapshot, unknown } => {
                if unknown.len() as u64 > running.tags {
                    return Err(format!("node {node} knows nothing of {unknown:?}"));
                }
                self.load(&snapshot, monitor)?;
            }
            Delivery::Refused {
                tag,
                error: ProposeError::NoMember,
            } => monitor.not_taken(own, tag),
            Delivery::Refused {
                tag,
                error: ProposeError::DiskFull { .. } | ProposeError::DisksFull { .. },
            } => {
                monitor.without_room += 1;
                monitor.not_taken(own, tag);
            }
            Delivery::Stuck { unknown, .. } => monitor.stuck(own, unknown),
            Delivery::Room(room) => running.room = room,
            Delivery::Refused { error, .. } => {
                return Err(format!("nothing can be proposed: {error}"));
            }
            Delivery::Snapshot(Ok(_) | Err(SnapshotError::Stale(_))) => {}
            Delivery::Snapshot(Err(SnapshotError::Stopped(_))) | Delivery::Stopped { .. } => {
                return Ok(false);
            }
            Delivery::Snapshot(Err(SnapshotError::Disk(DiskError::Full(_)))) => {}
            Delivery::Snapshot(Err(error)) => return Err(format!("no snapshot: {error}")),
            Delivery::Full { index } => return Err(format!("node {node} is full at {index}")),
            Delivery::Read { tag, index } => monitor.answered(own, tag, index)?,
            Delivery::Received(received) => {
                for received in &received {
                    monitor.heard(own, received)?;
                }
            }
            Delivery::NotSent { error, .. } => return Err(format!("not sent: {error}")),
            Delivery::Standing(standing) => {
                if standing.leads {
                    monitor.leads(node, standing.term)?;
                }
                running.standing = standing;
            }
            Delivery::ReadsRefused { peer, tag, term } => {
                if running.standing.leads {
                    monitor.refused(peer, tag, term);
                }
            }
            Delivery::Asked(_) | Delivery::Answered(_) | Delivery::MembersChanged { .. } => {}
        }
        Ok(true)
    }

    /// Takes a snapshot if it is time for one.
    fn merge(&mut self) -> Result<(), Violation> {
        let Some(running) = &self.running else {
            return Ok(());
        };
        if self.since_snapshot < self.snapshot_every {
            return Ok(());
        }
        self.since_snapshot = 0;
        // Long enough for several pieces.
        let mut image = (self.count as u64).to_le_bytes().to_vec();
        image.resize(8 + self.count % 200, 7);
        let taken = running.log.snapshot(running.delivered, move || image);
        // Another may be under way.
        let _ = taken;
        Ok(())
    }

    pub(crate) fn submit(&mut self, data: &[u8], monitor: &mut Monitor) {
        if let Some(running) = &mut self.running {
            let tag = running.tag();
            if running.log.submit(tag, data).is_ok() {
                monitor.submitted(running.own, tag, data);
            }
        }
    }

    /// Says something to another machine.
    pub(crate) fn say(&mut self, to: Peer, monitor: &mut Monitor) {
        let running = self.running.as_ref().filter(|running| running.own != to);
        if let Some(running) = running {
            let payload = monitor.says(running.own, to).to_vec();
            running.log.say(to, payload);
            monitor.said(running.own, to);
        }
    }

    pub(crate) fn own(&self) -> Option<Peer> {
        self.running.as_ref().map(|running| running.own)
    }

    pub(crate) fn ask(&mut self, monitor: &mut Monitor) {
        if let Some(running) = &mut self.running {
            let tag = running.tag();
            running.log.ask_read(tag);
            monitor.asked(running.own, tag);
        }
    }

    /// How it stands, for whoever reads about a failure.
    pub(crate) fn describe(&self) -> String {
        match &self.running {
            None => format!("{}: down", self.node()),
            Some(running) => format!(
                "{}: {:?} delivered {} {:?}",
                self.node(),
                running.standing,
                running.delivered,
                running.log
            ),
        }
    }

    /// What is still lacking before all is well, if anything is.
    pub(crate) fn lacking(&self, monitor: &Monitor) -> Option<String> {
        let node = self.node();
        let Some(running) = &self.running else {
            return Some(format!("node {node} is down"));
        };
        if !running.standing.members.voters.contains(&node) {
            return Some(format!("node {node} is no voter"));
        }
        if self.count != monitor.len() {
            let all = monitor.len();
            return Some(format!("node {node} has applied {} of {all}", self.count));
        }
        let (all, applied) = monitor.progress(running.own);
        if applied != all {
            return Some(format!(
                "{applied} of node {node}'s {all} submissions are applied"
            ));
        }
        let unanswered = monitor.unanswered(running.own);
        (unanswered > 0).then(|| format!("{unanswered} reads of node {node} are unanswered"))
    }
}
