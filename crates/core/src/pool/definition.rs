//! What a pool is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use testigo_protocol::slots::{Average, SLOTS_MAX, SlotSet, SlotsPlan};

use super::NamedSlot;
use crate::error::{Refusal, Word};
use crate::name::{Name, check_text};

/// `POOL CREATE name SLOTS n | NAMES n a b c… [FREELOW f]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolDefinition {
    /// What its slots are called.
    pub slots: SlotNames,
    /// How many free slots each node keeps for its own sessions; with fewer, it asks for more.
    pub free_low: u32,
}

/// What the slots of a pool are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotNames {
    /// This many, numbered from 0.
    Numbered(u32),
    /// Each by its own name.
    Named(Vec<Box<str>>),
    /// Each by its own name, with labels.
    Labelled {
        /// Each slot's name, and the numbers of its labels, in order.
        slots: Vec<(Box<str>, Vec<u16>)>,
        /// All labels, sorted; a label's number is its index.
        labels: Vec<Box<str>>,
    },
}

impl SlotNames {
    /// Most slots with names of their own.
    pub const NAMED_MAX: usize = 10_000;
    /// Longest name or label, in bytes.
    pub const BYTES_MAX: usize = 128;
    /// Most labels of one slot.
    pub const LABELS_MAX: usize = 16;
    /// Most different labels in one pool.
    pub const ALL_LABELS_MAX: usize = 256;

    /// Reads `name` or `name:label,label…` for each slot.
    pub fn read<'a>(slots: impl Iterator<Item = &'a str>) -> SlotNames {
        let split = |slot: &'a str| match slot.split_once(':') {
            Some((name, labels)) => (name, labels.split(',').collect()),
            None => (slot, Vec::new()),
        };
        let slots: Vec<(&str, Vec<&str>)> = slots.map(split).collect();
        let labels = slots.iter().flat_map(|(_, labels)| labels).copied();
        let labels: BTreeSet<&str> = labels.collect();
        if labels.is_empty() {
            return SlotNames::Named(slots.into_iter().map(|(name, _)| name.into()).collect());
        }
        let labels: Vec<&str> = labels.into_iter().collect();
        let numbered = slots.into_iter().map(|(name, own)| {
            let numbers = own
                .iter()
                .filter_map(|label| labels.binary_search(label).ok());
            let mut numbers: Vec<u16> = numbers.map(|at| at as u16).collect();
            numbers.sort_unstable();
            (name.into(), numbers)
        });
        SlotNames::Labelled {
            slots: numbered.collect(),
            labels: labels.into_iter().map(Box::from).collect(),
        }
    }

    /// All labels of the slots, sorted.
    pub fn labels(&self) -> &[Box<str>] {
        match self {
            SlotNames::Labelled { labels, .. } => labels,
            _ => &[],
        }
    }

    /// The numbers of a slot's labels, in order.
    fn labels_of(&self, slot: u32) -> &[u16] {
        match self {
            SlotNames::Labelled { slots, .. } => &slots[slot as usize].1,
            _ => &[],
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            SlotNames::Numbered(_) => Vec::new(),
            SlotNames::Named(names) => names.iter().map(|name| &**name).collect(),
            SlotNames::Labelled { slots, .. } => slots.iter().map(|(name, _)| &**name).collect(),
        }
    }

    /// How many slots there are.
    pub fn count(&self) -> u32 {
        match self {
            SlotNames::Numbered(count) => *count,
            SlotNames::Named(names) => names.len() as u32,
            SlotNames::Labelled { slots, .. } => slots.len() as u32,
        }
    }

    /// The name of a slot.
    pub fn name(&self, slot: u32) -> String {
        match self {
            SlotNames::Numbered(_) => slot.to_string(),
            SlotNames::Named(names) => names[slot as usize].to_string(),
            SlotNames::Labelled { slots, .. } => slots[slot as usize].0.to_string(),
        }
    }

    /// The slot with that name.
    pub fn find(&self, name: &str) -> Option<u32> {
        match self {
            SlotNames::Numbered(count) => {
                let slot: u32 = name.parse().ok()?;
                (slot < *count && slot.to_string() == name).then_some(slot)
            }
            SlotNames::Named(names) => {
                let at = names.iter().position(|known| **known == *name)?;
                Some(at as u32)
            }
            SlotNames::Labelled { slots, .. } => {
                let at = slots.iter().position(|(known, _)| **known == *name)?;
                Some(at as u32)
            }
        }
    }
}

/// Finds slots by name, one after the other. After a few, it indexes the names instead of searching them all each time.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    slots: &'a SlotNames,
    looks: usize,
    by_name: BTreeMap<&'a str, u32>,
}

impl<'a> Finder<'a> {
    /// How many are found by searching before the names are indexed.
    const FEW: usize = 16;

    pub(super) fn new(slots: &'a SlotNames) -> Finder<'a> {
        Finder {
            slots,
            looks: 0,
            by_name: BTreeMap::new(),
        }
    }

    /// Like [`SlotNames::find`].
    pub(super) fn find(&mut self, name: &str) -> Option<u32> {
        self.looks += 1;
        if self.looks <= Finder::FEW || matches!(self.slots, SlotNames::Numbered(_)) {
            return self.slots.find(name);
        }
        if self.by_name.is_empty() {
            self.by_name = self.slots.names().into_iter().zip(0..).collect();
        }
        self.by_name.get(name).copied()
    }
}

/// The number of each named slot, if there is such a slot.
pub fn find_slots<'a>(
    named: &[NamedSlot],
    names_of: impl Fn(&Name) -> Option<&'a SlotNames>,
) -> Vec<Option<u32>> {
    let mut finders: BTreeMap<&Name, Option<Finder<'_>>> = BTreeMap::new();
    let found = named.iter().map(|(pool, slot, _)| {
        let finder = finders
            .entry(pool)
            .or_insert_with(|| names_of(pool).map(Finder::new));
        finder.as_mut()?.find(slot)
    });
    found.collect()
}

impl PoolDefinition {
    /// Refuses a definition that no pool can have.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |why: String| Err(Refusal::new(Word::BadArg, why));
        let count = self.slots.count();
        if count == 0 || count > SLOTS_MAX {
            return bad(format!("{count} slots: a pool has 1 to {SLOTS_MAX}"));
        }
        if self.free_low > count {
            return bad(format!(
                "FREELOW {} is more than the pool's {count} slots",
                self.free_low
            ));
        }
        let names = self.slots.names();
        if names.len() > SlotNames::NAMED_MAX {
            let most = SlotNames::NAMED_MAX;
            return bad(format!(
                "{count} names: at most {most} slots can have names; SLOTS {count} numbers them instead"
            ));
        }
        let mut seen = BTreeSet::new();
        for name in names {
            if name.is_empty() {
                return bad("a slot's name is empty".into());
            }
            check_word("a slot's name", name, &[':'])?;
            if !seen.insert(name) {
                return bad(format!("two slots are called {name}"));
            }
        }
        self.check_labels()
    }

    fn check_labels(&self) -> Result<(), Refusal> {
        let bad = |why: String| Err(Refusal::new(Word::BadArg, why));
        let labels = self.slots.labels();
        let (count, most) = (labels.len(), SlotNames::ALL_LABELS_MAX);
        if count > most {
            return bad(format!(
                "the slots have {count} different labels: at most {most}"
            ));
        }
        if labels.windows(2).any(|two| two[0] >= two[1]) {
            return bad("the labels are not sorted, or one appears twice".into());
        }
        for label in labels {
            if label.is_empty() {
                return bad("a label is empty; a slot with two is written NAME:big,fast".into());
            }
            check_word("a label", label, &[':', ','])?;
        }
        for slot in 0..self.slots.count() {
            let own = self.slots.labels_of(slot);
            let (count, most) = (own.len(), SlotNames::LABELS_MAX);
            let name = || self.slots.name(slot);
            if count > most {
                return bad(format!(
                    "slot {} has {count} labels: at most {most}",
                    name()
                ));
            }
            if own.windows(2).any(|two| two[0] >= two[1]) {
                return bad(format!("slot {} has a label twice", name()));
            }
            if own
                .iter()
                .any(|number| usize::from(*number) >= labels.len())
            {
                return bad(format!("slot {} has a label that does not exist", name()));
            }
        }
        Ok(())
    }

    /// The slots with each label, by the labels' numbers.
    pub fn labelled(&self) -> Arc<[SlotSet]> {
        let count = self.slots.count();
        let mut sets = vec![SlotSet::new(count); self.slots.labels().len()];
        for slot in (0..count).filter(|_| !sets.is_empty()).collect::<Vec<_>>() {
            for number in self.slots.labels_of(slot) {
                sets[usize::from(*number)].insert(slot);
            }
        }
        sets.into()
    }

    /// How its slots are shared over the log.
    pub fn plan(&self) -> SlotsPlan {
        SlotsPlan::logged(self.slots.count(), self.free_low)
    }

    /// How its slots are shared in a process group, where every part of a partition goes on by itself: a newcomer asks for its
    /// share of all slots.
    pub(super) fn group_plan(&self, members: usize) -> SlotsPlan {
        let slots = self.slots.count();
        SlotsPlan {
            average: Average::Component,
            standing_requests: true,
            min_join: slots.div_ceil(members as u32),
            labels: self.labelled(),
            ..SlotsPlan::strict(members, slots, self.free_low)
        }
    }
}

/// Names and labels are written as NAME:label,label, separated by blanks.
fn check_word(what: &str, word: &str, marks: &[char]) -> Result<(), Refusal> {
    check_text(what, word, SlotNames::BYTES_MAX)?;
    let bad = |letter: &char| letter.is_whitespace() || marks.contains(letter);
    match word.chars().find(bad) {
        None => Ok(()),
        Some(letter) => {
            let marks: Vec<String> = marks.iter().map(|mark| format!("no {mark:?}")).collect();
            let why = format!(
                "{what} {word:?} holds {letter:?}; it has no blanks and {}, as in NAME:label,label",
                marks.join(" and ")
            );
            Err(Refusal::new(Word::BadArg, why))
        }
    }
}
