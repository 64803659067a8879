//! A member of any of the algorithms, as the rounds of an experiment drive it.

use testigo_protocol::NodeId;
use testigo_protocol::slots::{
    Central, CentralMessage, Contrast, ContrastMessage, ContrastPlan, Delivery, Letter, Sharer,
    SlotSet, SlotsMessage, SlotsPlan,
};

/// How a use of a slot begins.
pub(super) enum Taken {
    Slot(u32),
    /// No slot is free.
    None,
    /// The member has to ask first.
    Asked,
}

/// What kind of message it is, for those who count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Request,
    Answer {
        to: NodeId,
        slots: u32,
    },
    /// A request for slots of the free list, which its own delivery answers.
    Fork {
        count: u32,
    },
    /// Slots go back to the free list.
    Exit {
        slots: u32,
    },
    Other,
}

pub(super) trait Player {
    /// A message that it multicasts.
    type Word;
    /// A message that is delivered.
    type Item;

    fn sealed(from: NodeId, word: Self::Word) -> Self::Item;
    fn seen(item: &Self::Item) -> (NodeId, Seen);
    /// The message in words.
    fn said(item: &Self::Item) -> String;
    fn hear(&mut self, item: &Self::Item, out: &mut Vec<Self::Word>);
    fn take(&mut self, out: &mut Vec<Self::Word>) -> Taken;
    /// Takes a slot for a use that is waiting.
    fn take_waiting(&mut self, out: &mut Vec<Self::Word>) -> Option<u32>;
    fn give(&mut self, slot: u32, out: &mut Vec<Self::Word>);
    /// Checks its needs at the end of its turn, with `waiting` uses waiting.
    fn turn_over(&mut self, waiting: u32, out: &mut Vec<Self::Word>);
    /// How many waiting uses were refused meanwhile.
    fn refused(&mut self) -> u32 {
        0
    }
    fn used(&self) -> u32;
    fn owned(&self) -> u32;
}

/// A member of SLOTS, with its plan.
pub(super) struct Sharing<'a> {
    pub(super) sharer: Sharer,
    pub(super) plan: &'a SlotsPlan,
}

impl Player for Sharing<'_> {
    type Word = Letter;
    type Item = Delivery;

    fn sealed(from: NodeId, letter: Letter) -> Delivery {
        Delivery::Letter { from, letter }
    }

    fn seen(item: &Delivery) -> (NodeId, Seen) {
        let Delivery::Letter { from, letter } = item else {
            unreachable!("no view changes in an experiment");
        };
        let seen = match &letter.message {
            SlotsMessage::Request { .. } => Seen::Request,
            SlotsMessage::Donate { to, slots, .. } => Seen::Answer {
                to: *to,
                slots: slots.len() as u32,
            },
            _ => Seen::Other,
        };
        (*from, seen)
    }

    fn said(item: &Delivery) -> String {
        match item {
            Delivery::Letter { from, letter } => match &letter.message {
                SlotsMessage::Request { wanted, donors, .. } => {
                    let whom = donors.map_or(String::new(), |donors| format!(" {donors}"));
                    format!("p{from} asks{whom} for {wanted}")
                }
                SlotsMessage::Donate { to, slots, .. } => {
                    format!("p{from} donates to p{to}:{}", listed(slots))
                }
                other => format!("p{from}: {other:?}"),
            },
            Delivery::View { .. } => unreachable!("no view changes in an experiment"),
        }
    }

    fn hear(&mut self, item: &Delivery, out: &mut Vec<Letter>) {
        self.sharer.deliver(item, self.plan, out);
    }

    fn take(&mut self, out: &mut Vec<Letter>) -> Taken {
        match self.sharer.take(self.plan, out) {
            Some(slot) => Taken::Slot(slot),
            None => Taken::None,
        }
    }

    fn take_waiting(&mut self, out: &mut Vec<Letter>) -> Option<u32> {
        match self.sharer.free().is_empty() {
            true => None,
            false => self.sharer.take(self.plan, out),
        }
    }

    fn give(&mut self, slot: u32, out: &mut Vec<Letter>) {
        self.sharer.give(slot, self.plan, out);
    }

    fn turn_over(&mut self, waiting: u32, out: &mut Vec<Letter>) {
        self.sharer.want(waiting, self.plan, out);
    }

    fn used(&self) -> u32 {
        self.sharer.used().len()
    }

    fn owned(&self) -> u32 {
        self.sharer.owned()
    }
}

/// A member of the contrast.
pub(super) struct Contrasting {
    pub(super) member: Contrast,
    pub(super) plan: ContrastPlan,
}

impl Player for Contrasting {
    type Word = ContrastMessage;
    type Item = (NodeId, ContrastMessage);

    fn sealed(from: NodeId, word: ContrastMessage) -> Self::Item {
        (from, word)
    }

    fn seen((from, message): &Self::Item) -> (NodeId, Seen) {
        let seen = match message {
            ContrastMessage::Fork { count } => Seen::Fork { count: *count },
            ContrastMessage::Exit { slots } => Seen::Exit {
                slots: slots.len() as u32,
            },
        };
        (*from, seen)
    }

    fn said((from, message): &Self::Item) -> String {
        match message {
            ContrastMessage::Fork { count } => format!("p{from} asks for {count}"),
            ContrastMessage::Exit { slots } => format!("p{from} releases:{}", listed(slots)),
        }
    }

    fn hear(&mut self, (from, message): &Self::Item, out: &mut Vec<ContrastMessage>) {
        self.member.hear(*from, message, &self.plan, out);
    }

    fn take(&mut self, out: &mut Vec<ContrastMessage>) -> Taken {
        match self.member.take(&self.plan, out) {
            Some(slot) => Taken::Slot(slot),
            None => Taken::None,
        }
    }

    fn take_waiting(&mut self, out: &mut Vec<ContrastMessage>) -> Option<u32> {
        match self.member.free().is_empty() {
            true => None,
            false => self.member.take(&self.plan, out),
        }
    }

    fn give(&mut self, slot: u32, out: &mut Vec<ContrastMessage>) {
        self.member.give(slot, &self.plan, out);
    }

    fn turn_over(&mut self, _waiting: u32, out: &mut Vec<ContrastMessage>) {
        self.member.ask_if_empty(&self.plan, out);
    }

    fn used(&self) -> u32 {
        self.member.used().len()
    }

    fn owned(&self) -> u32 {
        self.member.used().len() + self.member.free().len()
    }
}

/// A member that asks a manager for every slot.
pub(super) struct Managed(pub(super) Central);

impl Player for Managed {
    type Word = CentralMessage;
    type Item = (NodeId, CentralMessage);

    fn sealed(from: NodeId, word: CentralMessage) -> Self::Item {
        (from, word)
    }

    /// A member may have asked several times; what it waited for is counted with its uses.
    fn seen((from, _): &Self::Item) -> (NodeId, Seen) {
        (*from, Seen::Other)
    }

    fn said((from, message): &Self::Item) -> String {
        format!("p{from}: {message:?}")
    }

    fn hear(&mut self, (from, message): &Self::Item, out: &mut Vec<CentralMessage>) {
        self.0.hear(*from, *message, out);
    }

    fn take(&mut self, out: &mut Vec<CentralMessage>) -> Taken {
        self.0.ask(out);
        Taken::Asked
    }

    fn take_waiting(&mut self, _out: &mut Vec<CentralMessage>) -> Option<u32> {
        self.0.take()
    }

    fn give(&mut self, slot: u32, out: &mut Vec<CentralMessage>) {
        self.0.give(slot, out);
    }

    fn turn_over(&mut self, _waiting: u32, _out: &mut Vec<CentralMessage>) {}

    fn refused(&mut self) -> u32 {
        self.0.refused()
    }

    fn used(&self) -> u32 {
        self.0.used().len()
    }

    fn owned(&self) -> u32 {
        self.0.used().len()
    }
}

/// A member with a fixed share of the slots, which never says anything.
pub(super) struct Fixed {
    pub(super) free: SlotSet,
    pub(super) used: SlotSet,
}

impl Player for Fixed {
    type Word = ();
    type Item = NodeId;

    fn sealed(from: NodeId, (): ()) -> NodeId {
        from
    }

    fn seen(item: &NodeId) -> (NodeId, Seen) {
        (*item, Seen::Other)
    }

    fn said(item: &NodeId) -> String {
        format!("p{item} says nothing")
    }

    fn hear(&mut self, _item: &NodeId, _out: &mut Vec<()>) {}

    fn take(&mut self, out: &mut Vec<()>) -> Taken {
        match self.take_waiting(out) {
            Some(slot) => Taken::Slot(slot),
            None => Taken::None,
        }
    }

    fn take_waiting(&mut self, _out: &mut Vec<()>) -> Option<u32> {
        let slot = self.free.first()?;
        self.free.remove(slot);
        self.used.insert(slot);
        Some(slot)
    }

    fn give(&mut self, slot: u32, _out: &mut Vec<()>) {
        self.used.remove(slot);
        self.free.insert(slot);
    }

    fn turn_over(&mut self, _waiting: u32, _out: &mut Vec<()>) {}

    fn used(&self) -> u32 {
        self.used.len()
    }

    fn owned(&self) -> u32 {
        self.used.len() + self.free.len()
    }
}

fn listed(slots: &[u32]) -> String {
    slots.iter().map(|slot| format!(" {slot}")).collect()
}
