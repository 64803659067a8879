//! The engine in a group: what it hears, what it says, and who is in.

use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, Message, MessageType, Snapshot};
use raft::{SnapshotStatus, StateRole};

use crate::bundle;
use crate::delivery::DiskRoom;
use crate::elections::Standing;
use crate::engine::{DISK_RESERVE_BYTES, Engine};
use crate::error::ProposeError;
use crate::image::snapshot_name;
use crate::links::{Links, Peer};
use crate::members::{MemberChange, MemberError, Members};
use crate::pieces::{Arrival, Piece, Progress, Wanted};
use crate::reads::ReadIndex;
use crate::room::Room;
use crate::specimen::Specimen;
use crate::wire::{self, FrameError, Outgoing, Said};

/// A learner that lacks more entries than this cannot be promoted.
pub const LACKING_MAX: u64 = 256;

/// If no majority has room and nothing has come out of the log for so many ticks, whoever waits for it is told.
const STUCK_TICKS: u32 = 40;

/// How many reads of other nodes a leader confirms at once.
const READS_MAX: usize = 65_536;

impl Engine {
    /// This node's number.
    pub fn node(&self) -> u64 {
        self.setup.node
    }

    /// This node's number and its start.
    pub fn own(&self) -> Peer {
        Peer {
            node: self.setup.node,
            start: self.start.number().into(),
        }
    }

    /// The leader's term, as far as this node knows.
    pub fn term(&self) -> u64 {
        self.node.raft.term
    }

    /// The leader, if this node knows it.
    pub fn leader(&self) -> Option<u64> {
        Some(self.node.raft.leader_id).filter(|leader| *leader != 0)
    }

    /// Whether this node believes that it leads. Another may have been elected since.
    pub fn leads(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// The members, after everything that was handed out.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The last index that was handed out.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// How much of what this start proposed has come out of the log: everything up to this number. Another member's snapshot
    /// may have contained some of it.
    pub fn applied(&self) -> u64 {
        let start = self.start.number().into();
        self.origins.of(self.setup.node, start)
    }

    /// The frames to be sent, in this order. Lost ones are repeated.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// Answers to [`Engine::ask_read`], in the order of the asks.
    pub fn take_reads(&mut self) -> Vec<ReadIndex> {
        std::mem::take(&mut self.read_indexes)
    }

    /// Asks for a read index. The answer comes when a majority has confirmed that the leader leads.
    pub fn ask_read(&mut self) -> u64 {
        self.reads.ask()
    }

    /// The starts that asked this node for a read index while it led, itself included.
    pub fn take_asked(&mut self) -> Vec<Peer> {
        self.asks.take_asked()
    }

    /// The starts that this leader has answered, itself included.
    pub fn take_answered(&mut self) -> Vec<Peer> {
        self.asks.take_answered()
    }

    /// Stops answering a start, as long as this node leads in this term.
    pub fn refuse_reads(&mut self, peer: Peer) {
        if !self.is_specimen(Specimen::AnswerTheRefused) {
            self.asks.refuse(peer);
        }
    }

    /// Answers a start again.
    pub fn allow_reads(&mut self, peer: Peer) {
        self.asks.allow(peer);
    }

    /// The links of this start to others. They need neither the log nor its disk.
    pub fn links(&self) -> Links {
        Links::new(self.own(), self.is_specimen(Specimen::TakeEveryFrame))
    }

    /// Takes a frame from this node. No correct engine sends a frame that is refused here.
    pub fn step(&mut self, from: u64, frame: &Bytes) -> Result<(), FrameError> {
        assert!(self.begun.is_none(), "a flush was begun and not ended");
        let said = wire::read(frame, from, self.setup.node)?;
        if self.failed.is_some() {
            return Ok(());
        }
        match said {
            Said::Message(message) => self.hear(message)?,
            Said::Submission(bundle) => self.take_submission(from, bundle)?,
            Said::Piece(piece) => self.take_piece(from, &piece),
            Said::Wanted(wanted) => self.go_on_sending(from, wanted),
            Said::Room(free_bytes) => self.rooms.heard(from, free_bytes),
            Said::Numbered(_) => {
                return Err(FrameError::Impossible("it is the links', not the log's"));
            }
        }
        self.observe();
        Ok(())
    }

    /// Advances time: call it every [`TICK_MS`](crate::TICK_MS) milliseconds, unless this node is alone.
    pub fn tick(&mut self) {
        assert!(self.begun.is_none(), "a flush was begun and not ended");
        if self.failed.is_some() {
            return;
        }
        if self.leads() || self.is_persisted() {
            self.node.tick();
        }
        self.mind_the_room();
        let long_ago = self.submissions.tick() && !self.leads();
        if long_ago && !self.is_specimen(Specimen::ForgetToResubmit) {
            self.submissions.give_again();
        }
        self.reads.tick();
        let (again, given_up) = self.transfers.tick();
        for to in again {
            self.send_piece(to);
        }
        for to in given_up {
            self.node.report_snapshot(to, SnapshotStatus::Failure);
        }
        self.observe();
    }

    /// Proposes other members. They are in force when [`Engine::members`] says so.
    pub fn change_members(&mut self, change: MemberChange) -> Result<(), MemberError> {
        if !self.leads() {
            return Err(MemberError::NotLeading);
        }
        if self.node.raft.has_pending_conf() {
            return Err(MemberError::UnderWay);
        }
        let members = self.members.after(change)?;
        if let MemberChange::Promote(node) = change {
            let progress = self.node.raft.prs().get(node);
            let matched = progress.map_or(0, |progress| progress.matched);
            let lacking = self.node.raft.raft_log.last_index() - matched;
            if matched == 0 || lacking > LACKING_MAX {
                return Err(MemberError::Behind(node, lacking));
            }
        }
        let mut context = Vec::new();
        members.write(&mut context);
        for step in self.members.steps_to(&members) {
            let proposed = self.node.propose_conf_change(context.clone(), step);
            proposed.map_err(|_| MemberError::UnderWay)?;
        }
        Ok(())
    }

    /// Lets another voter lead, if this node does.
    pub fn hand_over_to(&mut self, node: u64) {
        if self.leads() {
            self.node.transfer_leader(node);
            self.observe();
        }
    }

    /// Gives the leader the bundles that it has not been given.
    pub(crate) fn give(&mut self) {
        if self.leads() {
            while let Some(bundle) = self.submissions.next() {
                let bundle = bundle.clone();
                if !self.may_write(bundle.len(), 1) || !self.append(bundle) {
                    return;
                }
                self.submissions.gave();
            }
        } else if let Some(leader) = self.leader() {
            while let Some(bundle) = self.submissions.next_to_send() {
                let bundle = bundle.clone();
                self.say(leader, &Said::Submission(bundle));
                self.submissions.gave();
            }
        }
    }

    /// Appends a bundle to the leader's log.
    fn append(&mut self, bundle: Bytes) -> bool {
        let entry = Entry {
            data: bundle,
            ..Entry::default()
        };
        let message = Message {
            msg_type: MessageType::MsgPropose,
            from: self.setup.node,
            entries: vec![entry].into(),
            ..Message::default()
        };
        self.node.raft.step(message).is_ok()
    }

    /// Passes asks made here to raft.
    pub(crate) fn ask(&mut self) {
        let start = self.start.number().into();
        let Some(question) = self.reads.question(self.setup.node, start) else {
            return;
        };
        if self.is_specimen(Specimen::ReadWithoutQuorum) && self.leads() {
            if !self.asks.may_answer(&question) {
                return;
            }
            let index = self.node.raft.raft_log.committed;
            let own = (self.setup.node, start);
            let answer = self.reads.answer(&question.into(), own, index);
            return self.read_indexes.extend(answer);
        }
        if self.leads() {
            self.asks.asked(&question);
        }
        self.node.read_index(question);
    }

    /// Hands raft a message, unless raft would panic over it.
    fn hear(&mut self, message: Message) -> Result<(), FrameError> {
        let raft = &self.node.raft;
        let last = raft.raft_log.last_index();
        let (current, leads) = (message.term >= raft.term, self.leads());
        match message.msg_type {
            MessageType::MsgHeartbeat if current && message.commit > last => {
                return Err(FrameError::Behind);
            }
            MessageType::MsgAppendResponse
                if leads
                    && message.term == raft.term
                    && !message.reject
                    && message.index > last =>
            {
                return Err(FrameError::Impossible(
                    "a member has entries that its leader does not have",
                ));
            }
            MessageType::MsgAppend if !message.entries.is_empty() => {
                let bytes = message.entries.iter().map(|entry| entry.data.len()).sum();
                // It comes again.
                if !self.may_write(bytes, message.entries.len()) {
                    return Ok(());
                }
            }
            MessageType::MsgTimeoutNow if !self.is_persisted() => return Ok(()),
            MessageType::MsgReadIndex if raft.pending_read_count() >= READS_MAX => return Ok(()),
            MessageType::MsgReadIndex if leads => self.asks.asked(question(&message)),
            _ => {}
        }
        // A message that raft does not accept, for example from a node that is not a member, is lost as if it had never
        // arrived.
        let _ = self.node.step(message);
        Ok(())
    }

    /// A node that needs no other vote must not win before its log is on its disk: raft takes that for granted.
    fn is_persisted(&self) -> bool {
        let log = &self.node.raft.raft_log;
        log.persisted == log.last_index()
    }

    /// If this node leads, puts what another node submitted into the log.
    fn take_submission(&mut self, from: u64, bundle: Bytes) -> Result<(), FrameError> {
        let (first, count) =
            bundle::origin(&bundle).ok_or(FrameError::Impossible("no bundle is submitted"))?;
        if first.node != from {
            return Err(FrameError::Impossible("another node's bundle is submitted"));
        }
        let is_next = self.leads() && count > 0 && self.intake.is_next(first, &self.origins);
        // What is not taken comes again. That there is room for it, its proposer has checked.
        let length = bundle.len();
        let fits = is_next && self.log_has_room_for(self.submissions.bytes() + length);
        if fits && self.may_write(length, 1) && self.append(bundle) {
            self.intake.took(first, count);
        }
        Ok(())
    }

    /// Whether the disk has room for so much; only among others is there somebody else who may have it.
    fn may_write(&mut self, bytes: usize, entries: usize) -> bool {
        if self.is_alone() {
            return true;
        }
        if self.rooms.is_near() {
            self.look_for_room();
        }
        self.rooms.take(bytes as u64, entries)
    }

    /// Whether so much is free at a majority of the voters.
    pub(crate) fn majority_has(&self, bytes: u64) -> Result<(), ProposeError> {
        let own = self.setup.node;
        match self.rooms.of_majority(own, &self.members.voters) {
            (_, free_bytes) if free_bytes >= bytes => Ok(()),
            (node, free_bytes) if node == own => Err(ProposeError::DiskFull { free_bytes }),
            (node, free_bytes) => Err(ProposeError::DisksFull { node, free_bytes }),
        }
    }

    /// What this node has room for, at the last look.
    pub(crate) fn room(&self) -> DiskRoom {
        DiskRoom {
            room: self.rooms.room(),
            free_bytes: self.rooms.own(),
            handed_to: self.handed_to,
        }
    }

    /// If a disk is short, says how much is free here. If it is this one, lets another lead. If no majority has room, what
    /// waits is answered.
    fn mind_the_room(&mut self) {
        if self.rooms.tick() {
            let own = self.setup.node;
            let others: Vec<u64> = self.members.iter().filter(|node| *node != own).collect();
            for other in others {
                self.say(other, &Said::Room(self.rooms.own()));
            }
        }
        self.hand_over_if_short();
        if let Err(error) = self.majority_has(DISK_RESERVE_BYTES / 2) {
            let tried = self.is_specimen(Specimen::TakeBackTheGiven);
            let first = self.submissions.take_back(tried);
            self.refused = first
                .map(|first| (first, error.clone()))
                .or(self.refused.take());
            if self.submissions.waited() >= STUCK_TICKS {
                self.stuck = Some(error);
            }
        }
    }

    fn hand_over_if_short(&mut self) {
        if !self.leads() || self.rooms.room() == Room::Enough {
            self.handed_to = None;
            return;
        }
        if self.is_specimen(Specimen::LeadWithoutRoom) {
            return;
        }
        if let Some(heir) = self.rooms.heir(&self.members.voters) {
            self.handed_to = Some(heir);
            self.hand_over_to(heir);
        }
    }

    /// Sends raft's messages.
    pub(crate) fn send(&mut self, messages: Vec<Message>) {
        for message in messages {
            if message.msg_type == MessageType::MsgSnapshot {
                self.begin_sending(message.to);
            } else if message.from == self.setup.node && self.may_send(&message) {
                self.say(message.to, &Said::Message(message));
            }
        }
    }

    /// Whether raft may say this: a leader answers only those that it may.
    fn may_send(&mut self, message: &Message) -> bool {
        message.msg_type != MessageType::MsgReadIndexResp || self.asks.may_answer(question(message))
    }

    fn say(&mut self, to: u64, said: &Said) {
        let frame = wire::write(said, self.setup.node, to);
        self.outgoing
            .extend(frame.map(|frame| Outgoing { to, frame }));
    }

    fn begin_sending(&mut self, to: u64) {
        let (term, mut base) = (self.node.raft.term, self.node.store().base());
        // The receiver may not have been a member when the snapshot was taken.
        base.members = self.members.clone();
        // If its image cannot be read, the transfer is given up when its time is over.
        self.transfers.begin(to, term, base, self.shelf.as_ref());
        self.send_piece(to);
    }

    fn send_piece(&mut self, to: u64) {
        let bytes_max = self.setup.piece_bytes;
        if let Some(Ok(piece)) = self.transfers.piece(to, bytes_max) {
            self.say(to, &Said::Piece(piece));
        }
    }

    fn go_on_sending(&mut self, to: u64, wanted: Wanted) {
        match self.transfers.answered(to, wanted) {
            Progress::Stale => {}
            Progress::Next => self.send_piece(to),
            Progress::Done => self.node.report_snapshot(to, SnapshotStatus::Finish),
        }
    }

    fn take_piece(&mut self, from: u64, piece: &Piece) {
        let raft = &self.node.raft;
        if piece.term < raft.term {
            return;
        }
        if piece.base.mark.index <= raft.raft_log.committed {
            let nothing = Wanted {
                mark: piece.base.mark,
                offset: piece.bytes,
            };
            return self.say(from, &Said::Wanted(nothing));
        }
        // A full disk only ends the transfer.
        match self.transfers.arrived(from, piece, self.shelf.as_ref()) {
            Ok(Arrival::Wants(wanted)) => self.say(from, &Said::Wanted(wanted)),
            Ok(Arrival::Complete(wanted)) => {
                self.say(from, &Said::Wanted(wanted));
                self.install(from, piece);
            }
            Err(_) => {}
        }
    }

    /// Hands raft a snapshot whose image is on the shelf.
    fn install(&mut self, from: u64, piece: &Piece) {
        let mark = piece.base.mark;
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (mark.index, mark.term);
        metadata.set_conf_state(ConfState::from(&piece.base.members));
        let mut message = Message {
            msg_type: MessageType::MsgSnapshot,
            from,
            to: self.setup.node,
            term: piece.term,
            ..Message::default()
        };
        message.set_snapshot(snapshot);
        let _ = self.node.step(message);
        let taken = self.node.snap().map(|taken| taken.get_metadata().index);
        match taken == Some(mark.index) {
            true => self.arrived = Some(piece.base.clone()),
            false => self.shelf.remove_image(&snapshot_name(mark.index)),
        }
    }

    /// A leader that is no longer a voter steps down.
    pub(crate) fn step_down_if_removed(&mut self) {
        if self.leads() && !self.members.voters.contains(&self.setup.node) {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, 0);
        }
    }

    /// Notes raft's state after everything that raft did.
    pub(crate) fn observe(&mut self) {
        let now = Standing::of(&self.node);
        if now != self.standing {
            if !self.is_specimen(Specimen::ForgetToResubmit) {
                self.submissions.give_again();
            }
            self.reads.send_again();
            self.transfers.stop_sending();
            self.intake.forget();
            self.asks.forget();
            self.elections.draw();
            self.standing = now;
        }
        self.elections.overwrite(&mut self.node);
    }
}

/// The question in a message that asks for a read index, or answers.
fn question(message: &Message) -> &[u8] {
    message.entries.first().map_or(&[], |entry| &entry.data)
}
