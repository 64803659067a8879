//! The box office: readers of several nodes are in together, and the algorithm itself says which kind of waiter enters next.

use testigo_protocol::PacketError;
use testigo_protocol::readers::{ALGORITHMS, Ask, Class, Readers, Tell};

use super::parts::{Counts, Parcel, Parts, Plan, Recorder, Told};
use super::{Doings, DoorStep};
use crate::gate::Kind;
use crate::local::Census;

#[derive(Debug)]
pub(super) struct ReadersPart {
    parts: Parts<Readers>,
    /// How many have been asked for and are not in yet, by class.
    asked: [u32; 3],
    /// The writer that is in.
    writer: Option<Class>,
    /// How many readers are in.
    readers: u32,
    /// How many of those asked for were inside before the instance began.
    before: u32,
}

impl ReadersPart {
    pub(super) fn new(plan: &Plan, own: u32, owner: u32) -> Option<ReadersPart> {
        Some(ReadersPart {
            parts: Parts::new(ALGORITHMS, plan, own, owner)?,
            asked: [0; 3],
            writer: None,
            readers: 0,
            before: 0,
        })
    }

    pub(super) fn is_in(&self) -> bool {
        self.in_all() > 0
    }

    pub(super) fn asks(&self) -> bool {
        self.asked.iter().any(|asked| *asked > 0)
    }

    pub(super) fn has_all_in(&self) -> bool {
        self.before == 0
    }

    pub(super) fn counts(&self) -> Counts {
        self.parts.counts
    }

    pub(super) fn parts(&mut self) -> &mut Parts<Readers> {
        &mut self.parts
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.parts.recorder
    }

    fn in_all(&self) -> u32 {
        self.readers + u32::from(self.writer.is_some())
    }

    /// Those already inside are asked for before anybody else.
    pub(super) fn begin(&mut self, census: &Census, doings: &mut Doings) {
        self.parts.start(doings);
        let class = match census.exclusive {
            true => Class::Reservation,
            false => Class::Query,
        };
        self.before = census.inside;
        for _ in 0..census.inside {
            self.enter(class, doings);
        }
    }

    fn enter(&mut self, class: Class, doings: &mut Doings) {
        self.asked[class.index()] += 1;
        let told = self.parts.ask(Ask::Enter(class), doings);
        self.hear(told, doings);
    }

    pub(super) fn receive(
        &mut self,
        parcel: &Parcel,
        doings: &mut Doings,
    ) -> Result<(), PacketError> {
        let told = self.parts.receive(parcel, doings)?;
        self.parts.counts.hand_overs += u64::from(!told.is_empty());
        self.hear(told, doings);
        Ok(())
    }

    pub(super) fn look(&mut self, census: &Census, go: bool, doings: &mut Doings) {
        // Some who were let in have left, or were gone already. A writer is in alone.
        let (mut inside, told) = (self.in_all(), self.before);
        while inside > census.inside && doings.steps.is_empty() {
            let class = match self.writer.take() {
                Some(class) => class,
                None => {
                    self.readers -= 1;
                    Class::Query
                }
            };
            let told = self.parts.ask(Ask::Leave(class), doings);
            self.hear(told, doings);
            inside = self.in_all();
        }
        if !go || told > 0 || !doings.steps.is_empty() {
            return;
        }
        for class in Class::ALL {
            while self.asked[class.index()] < census.waiting[class.index()]
                && doings.steps.is_empty()
            {
                self.enter(class, doings);
            }
        }
    }

    fn hear(&mut self, told: Vec<Told<Tell>>, doings: &mut Doings) {
        for Told {
            tell: Tell::Entered(class),
        } in told
        {
            self.asked[class.index()] -= 1;
            match class.writes() {
                true => self.writer = Some(class),
                false => self.readers += 1,
            }
            match self.before.checked_sub(1) {
                Some(before) => self.before = before,
                None => doings.steps.push(DoorStep::Admit(match class {
                    Class::Cancel => Kind::Urgent,
                    Class::Reservation => Kind::Writer,
                    Class::Query => Kind::Reader,
                })),
            }
        }
    }

    pub(super) fn node_of(&self, member: u32) -> u32 {
        self.parts.node_of(member)
    }
}
