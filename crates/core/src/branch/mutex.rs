//! Algorithms that let in one node at a time. That node lets its own clients in, by the gate's rule.

use std::collections::VecDeque;

use testigo_protocol::PacketError;
use testigo_protocol::mutex::{ALGORITHMS, Ask, Mutex, Tell};

use super::parts::{Counts, Parcel, Parts, Plan, Recorder, Told};
use super::{Doings, DoorStep};
use crate::gate::{Travels, Using};
use crate::local::Census;

#[derive(Debug)]
pub(super) struct MutexPart {
    parts: Parts<Mutex>,
    phase: Phase,
    /// How often the node has come in.
    turns: u64,
    /// Whether another node is known to wait, or this cannot be known.
    wanted: bool,
    /// A token that nobody wanted when it came: it is taken when somebody does.
    resting: VecDeque<Parcel>,
    /// Whether another node has said that it wants the token, and the token has not passed here since.
    wished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Out,
    Asked,
    In,
}

impl MutexPart {
    pub(super) fn new(plan: &Plan, own: u32, owner: u32) -> Option<MutexPart> {
        Some(MutexPart {
            parts: Parts::new(ALGORITHMS, plan, own, owner)?,
            phase: Phase::Out,
            turns: 0,
            wanted: false,
            resting: VecDeque::new(),
            wished: false,
        })
    }

    pub(super) fn is_in(&self) -> bool {
        self.phase == Phase::In
    }

    pub(super) fn turn(&self) -> (u64, bool) {
        (self.turns, self.wanted)
    }

    pub(super) fn asks(&self) -> bool {
        self.phase == Phase::Asked
    }

    pub(super) fn counts(&self) -> Counts {
        self.parts.counts
    }

    pub(super) fn parts(&mut self) -> &mut Parts<Mutex> {
        &mut self.parts
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.parts.recorder
    }

    pub(super) fn begin(&mut self, doings: &mut Doings) {
        let told = self.parts.start(doings);
        debug_assert!(told.is_empty(), "nobody has asked");
    }

    pub(super) fn receive(
        &mut self,
        parcel: &Parcel,
        travels: Travels,
        doings: &mut Doings,
    ) -> Result<(), PacketError> {
        // A token that nobody wants rests.
        let rests = travels.using == Using::TokenRing && self.phase != Phase::Asked;
        if rests && !std::mem::take(&mut self.wished) {
            self.resting.push_back(parcel.clone());
            return Ok(());
        }
        self.take(parcel, travels, doings)
    }

    fn take(
        &mut self,
        parcel: &Parcel,
        travels: Travels,
        doings: &mut Doings,
    ) -> Result<(), PacketError> {
        let told = self.parts.receive(parcel, doings)?;
        let entered = |told: &Told<Tell>| told.tell == Tell::Entered;
        self.parts.counts.hand_overs += u64::from(told.iter().any(entered));
        self.hear(told, travels, doings);
        Ok(())
    }

    pub(super) fn wished(&mut self, travels: Travels, doings: &mut Doings) {
        self.wished = true;
        self.move_token(travels, doings);
    }

    /// Takes the token that rests here: it lets this node in, or moves on.
    fn move_token(&mut self, travels: Travels, doings: &mut Doings) {
        while let Some(parcel) = self.resting.pop_front() {
            self.wished = false;
            let taken = self.take(&parcel, travels, doings);
            debug_assert!(taken.is_ok(), "a token can be read");
        }
    }

    pub(super) fn look(
        &mut self,
        census: &Census,
        go: bool,
        travels: Travels,
        doings: &mut Doings,
    ) {
        let waiting: u32 = census.waiting.iter().sum();
        match self.phase {
            Phase::Out if waiting > 0 && go || census.inside > 0 => {
                self.phase = Phase::Asked;
                let told = self.parts.ask(Ask::Enter, doings);
                self.hear(told, travels, doings);
                if travels.using == Using::TokenRing && self.phase == Phase::Asked {
                    self.move_token(travels, doings);
                }
                if travels.using == Using::TokenRing && self.phase == Phase::Asked {
                    self.parts.counts.messages += self.parts.others();
                    doings.wish = true;
                }
            }
            Phase::In
                if census.inside == 0
                    && self.wanted
                    && (waiting == 0 || census.left == Some(0)) =>
            {
                self.phase = Phase::Out;
                self.wanted = false;
                doings.steps.push(DoorStep::Shut);
                let told = self.parts.ask(Ask::Leave, doings);
                self.hear(told, travels, doings);
            }
            _ => {}
        }
    }

    fn hear(&mut self, told: Vec<Told<Tell>>, travels: Travels, doings: &mut Doings) {
        // A node may hear in the step that lets it in that another one waits: that counts from its first grant.
        let wanted = told.iter().any(|told| told.tell == Tell::Wanted);
        for Told { tell } in told {
            match tell {
                Tell::Entered => {
                    self.phase = Phase::In;
                    self.turns += 1;
                    self.wanted = wanted || !travels.using.tells_wanted();
                    let most = self.wanted.then_some(travels.burst);
                    doings.steps.push(DoorStep::Open(most));
                }
                Tell::Wanted if self.phase == Phase::In => {
                    if !std::mem::replace(&mut self.wanted, true) {
                        doings.steps.push(DoorStep::Open(Some(travels.burst)));
                    }
                    doings.steps.push(DoorStep::Wanted);
                }
                Tell::Wanted => {}
            }
        }
    }

    pub(super) fn node_of(&self, member: u32) -> u32 {
        self.parts.node_of(member)
    }
}
