//! How a gate was created: its rule, its order and its bounds. A definition is replicated; it never says who is inside.

use serde::{Deserialize, Serialize};

use super::mode::{Ask, Candidacy, Mode};
use super::travels::{Travels, Using};
use crate::error::{Refusal, Word};
use crate::limits::{Limits, SharedLimits};
use crate::name::Name;

/// Who may be inside together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rule {
    /// One at a time.
    Mutex,
    /// Any number of readers, or one writer.
    Shared,
    /// This many units; a request takes one or more at once.
    Permits(u32),
    /// Any number of one room (group exclusion).
    Rooms,
    /// One leader. Elections are not created: one exists while somebody campaigns.
    Election,
}

/// Who comes first among the waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GateOrder {
    /// First come, first served; classes are ignored.
    Arrival,
    /// By class (0 is most urgent), then by arrival.
    Class,
    /// Readers before writers, then by class, then by arrival.
    Readers,
    /// Writers before readers, then by class, then by arrival.
    Writers,
    /// By rank, the highest first, then by arrival: elections.
    Rank,
}

/// The definition of a gate. [`Definition::check`] says whether it is valid; what is stored was checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Definition {
    /// Who may be inside together.
    pub rule: Rule,
    /// Who comes first among those who wait.
    pub order: GateOrder,
    /// How many priority classes there are.
    pub classes: u32,
    /// How often later, more urgent requests may overtake a waiter.
    pub overtakes: u32,
    /// The hold limit: the longest single hold.
    pub lease_ms: Option<u64>,
    /// Rooms only: how many may be inside at once.
    pub capacity: Option<u32>,
    /// Rooms only: how long a room may stay, counted from its first member's entry.
    pub stay_ms: Option<u64>,
    /// How its ownership travels between nodes.
    pub travels: Travels,
}

impl Definition {
    /// A gate with this rule and the defaults: by class, then arrival; 3 classes; 5 overtakes; no hold limit.
    pub fn new(rule: Rule) -> Definition {
        Definition {
            rule,
            order: GateOrder::Class,
            classes: 3,
            overtakes: 5,
            lease_ms: None,
            capacity: None,
            stay_ms: None,
            travels: Travels::default(),
        }
    }

    /// An election: the highest rank is next, however many candidates it passes.
    pub(crate) fn election() -> Definition {
        Definition {
            order: GateOrder::Rank,
            classes: 1,
            overtakes: u32::MAX,
            ..Definition::new(Rule::Election)
        }
    }

    /// The definition that a name without one has for a request, if the request can do without.
    pub(crate) fn implicit(ask: Ask<'_>) -> Option<Definition> {
        match ask {
            Ask::Plain => Some(Definition::new(Rule::Mutex)),
            Ask::Shared => Some(Definition::new(Rule::Shared)),
            Ask::Lead { .. } => Some(Definition::election()),
            Ask::Permits(_) | Ask::Room(_) => None,
        }
    }

    /// The class of a request that names none: 1, the middle of the default three.
    pub fn class_default(&self) -> u32 {
        1.min(self.classes - 1)
    }

    /// How many units may be inside at once: permits, or the members of a room.
    pub(crate) fn units_max(&self) -> u64 {
        match (self.rule, self.capacity) {
            (Rule::Permits(k), _) => k.into(),
            (Rule::Rooms, Some(capacity)) => capacity.into(),
            _ => u64::MAX,
        }
    }

    /// Whether a client may create this. Older logs hold definitions that clients may no longer create, so what comes out of
    /// a log need only pass [`Definition::check`].
    pub fn check_new(&self, limits: &SharedLimits) -> Result<(), Refusal> {
        self.check(limits)?;
        match (self.travels.using, self.order) {
            (Using::BoxOffice, order) if order != GateOrder::Class => Err(Refusal::new(
                Word::BadArg,
                format!(
                    "USING box-office chooses by itself who is next, so it takes no ORDER {}; leave ORDER out, or choose another algorithm",
                    order.word()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Whether this definition is valid.
    pub fn check(&self, limits: &SharedLimits) -> Result<(), Refusal> {
        let bad = |sentence: String| Err(Refusal::new(Word::BadArg, sentence));
        if self.rule == Rule::Election || self.order == GateOrder::Rank {
            return bad("an election is not created; ELECT CAMPAIGN begins one".into());
        }
        if let Rule::Permits(k) = self.rule
            && !(1..=limits.permits).contains(&k)
        {
            return bad(format!("PERMITS {k} is not in 1..={}", limits.permits));
        }
        if matches!(self.order, GateOrder::Readers | GateOrder::Writers)
            && self.rule != Rule::Shared
        {
            return bad(
                "ORDER READERS and ORDER WRITERS need a SHARED gate; use ARRIVAL or CLASS".into(),
            );
        }
        if !(1..=limits.classes).contains(&self.classes) {
            return bad(format!(
                "CLASSES {} is not in 1..={}",
                self.classes, limits.classes
            ));
        }
        if self.overtakes > limits.overtakes {
            return bad(format!(
                "OVERTAKES {} is above {}",
                self.overtakes, limits.overtakes
            ));
        }
        for (word, ms) in [("LEASE", self.lease_ms), ("STAY", self.stay_ms)] {
            if let Some(ms) = ms
                && !(1..=limits.lease_ms_max).contains(&ms)
            {
                return bad(format!(
                    "{word} {ms} is not in 1..={} milliseconds",
                    limits.lease_ms_max
                ));
            }
        }
        if self.rule != Rule::Rooms && (self.capacity.is_some() || self.stay_ms.is_some()) {
            return bad(
                "CAPACITY and STAY need a ROOMS gate; PERMITS and LEASE bound the others".into(),
            );
        }
        if self.capacity == Some(0) {
            return bad("CAPACITY 0 would admit nobody; it must be at least 1".into());
        }
        if !(1..=Travels::BURST_MAX).contains(&self.travels.burst) {
            let most = Travels::BURST_MAX;
            return bad(format!("BURST {} is not in 1..={most}", self.travels.burst));
        }
        if self.travels.using == Using::BoxOffice {
            if !matches!(self.rule, Rule::Mutex | Rule::Shared) {
                return bad(format!(
                    "USING box-office knows readers and writers, so it needs a SHARED or a MUTEX gate, not {}",
                    self.rule.word()
                ));
            }
            if self.overtakes == 0 {
                return bad("USING box-office needs OVERTAKES of at least 1".into());
            }
        }
        Ok(())
    }

    /// What a request means at this gate. An implicit gate accepts readers, whatever its first user asked for.
    pub(crate) fn mode(&self, gate: &str, implicit: bool, ask: Ask<'_>) -> Result<Mode, Refusal> {
        let bad = |sentence: String| Err(Refusal::new(Word::BadArg, sentence));
        match (self.rule, ask) {
            (Rule::Mutex | Rule::Shared, Ask::Plain) => Ok(Mode::Exclusive),
            (Rule::Shared, Ask::Shared) => Ok(Mode::Shared),
            (Rule::Mutex, Ask::Shared) if implicit => Ok(Mode::Shared),
            (Rule::Permits(_), Ask::Plain) => Ok(Mode::Permits(1)),
            (Rule::Permits(k), Ask::Permits(h)) if (1..=k).contains(&h) => Ok(Mode::Permits(h)),
            (Rule::Permits(k), Ask::Permits(h)) => bad(format!(
                "gate {gate} has {k} permits; {h} is not in 1..={k}"
            )),
            (Rule::Rooms, Ask::Room(room)) => Ok(Mode::Room(Name::new(room)?)),
            (Rule::Election, Ask::Lead { value, .. }) if value.len() > Limits::VALUE_BYTES => {
                let (bytes, most) = (value.len(), Limits::VALUE_BYTES);
                bad(format!(
                    "the value has {bytes} bytes; at most {most} are allowed"
                ))
            }
            (Rule::Election, Ask::Lead { rank, value }) => {
                let value = value.into();
                Ok(Mode::Lead(Box::new(Candidacy { rank, value })))
            }
            (Rule::Rooms, _) => bad(format!("gate {gate} is ROOMS; say which with ROOM r")),
            (rule, _) => bad(format!(
                "gate {gate} is {}; it takes {}",
                rule.word(),
                rule.takes()
            )),
        }
    }
}

impl Rule {
    /// The rule's word on the wire, without its number.
    pub fn word(self) -> &'static str {
        match self {
            Rule::Mutex => "MUTEX",
            Rule::Shared => "SHARED",
            Rule::Permits(_) => "PERMITS",
            Rule::Rooms => "ROOMS",
            Rule::Election => "ELECTION",
        }
    }

    fn takes(self) -> &'static str {
        match self {
            Rule::Mutex => "neither SHARED nor PERMITS nor ROOM",
            Rule::Shared => "SHARED or nothing",
            Rule::Permits(_) => "PERMITS h or nothing",
            Rule::Rooms => "ROOM r",
            Rule::Election => "ELECT CAMPAIGN",
        }
    }
}

impl GateOrder {
    /// The order's word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            GateOrder::Arrival => "ARRIVAL",
            GateOrder::Class => "CLASS",
            GateOrder::Readers => "READERS",
            GateOrder::Writers => "WRITERS",
            GateOrder::Rank => "RANK",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_definitions_are_refused() {
        let limits = SharedLimits::default();
        let sound = |rule| Definition::new(rule).check(&limits).is_ok();
        assert!(sound(Rule::Mutex) && sound(Rule::Permits(3)) && !sound(Rule::Permits(0)));
        let broken: [fn(&mut Definition); 9] = [
            |d| d.order = GateOrder::Readers,
            |d| d.classes = 0,
            |d| d.classes = 1000,
            |d| d.overtakes = u32::MAX,
            |d| d.lease_ms = Some(0),
            |d| d.capacity = Some(1),
            |d| d.stay_ms = Some(1),
            |d| d.rule = Rule::Election,
            |d| d.order = GateOrder::Rank,
        ];
        for spoil in broken {
            let mut definition = Definition::new(Rule::Mutex);
            spoil(&mut definition);
            assert_eq!(definition.check(&limits).unwrap_err().word, Word::BadArg);
        }
    }

    #[test]
    fn the_box_office_keeps_its_own_order() {
        let check = |order| {
            let mut definition = Definition::new(Rule::Shared);
            definition.order = order;
            let limits = SharedLimits::default();
            assert!(definition.check_new(&limits).is_ok(), "{order:?}");
            definition.travels.using = Using::BoxOffice;
            // Older logs may hold it.
            assert!(definition.check(&limits).is_ok(), "{order:?}");
            definition.check_new(&limits).is_ok()
        };
        assert!(check(GateOrder::Class));
        for order in [GateOrder::Arrival, GateOrder::Readers, GateOrder::Writers] {
            assert!(!check(order), "{order:?}");
        }
    }

    #[test]
    fn a_request_must_fit_the_rule() {
        let mode = |rule, ask| Definition::new(rule).mode("g", false, ask).ok();
        assert_eq!(mode(Rule::Shared, Ask::Plain), Some(Mode::Exclusive));
        assert_eq!(mode(Rule::Permits(4), Ask::Plain), Some(Mode::Permits(1)));
        assert_eq!(mode(Rule::Permits(4), Ask::Permits(5)), None);
        assert_eq!(mode(Rule::Permits(4), Ask::Permits(0)), None);
        assert_eq!(mode(Rule::Mutex, Ask::Shared), None);
        assert_eq!(mode(Rule::Rooms, Ask::Plain), None);
        assert_eq!(mode(Rule::Mutex, Ask::Room("r")), None);
        assert!(
            Definition::new(Rule::Mutex)
                .mode("g", true, Ask::Shared)
                .is_ok()
        );
    }
}
