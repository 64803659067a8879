//! The stored form of a definition. Logs from before gates had a choice of algorithms must stay readable, so the choice
//! follows at the end only where there was one, and a bit that no number of classes reaches says so.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Definition, Travels};

/// Set in the number of classes if the choice follows.
const CHOSEN: u32 = 1 << 31;
const NAME: &str = "Definition";
const FIELDS: &[&str] = &[
    "rule",
    "order",
    "classes",
    "overtakes",
    "lease_ms",
    "capacity",
    "stay_ms",
    "using",
    "burst",
];

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Definition {
            rule,
            order,
            classes,
            overtakes,
            lease_ms,
            capacity,
            stay_ms,
            travels,
        } = self;
        let chosen = *travels != Travels::default();
        let mut fields = serializer.serialize_struct(NAME, FIELDS.len())?;
        fields.serialize_field("rule", rule)?;
        fields.serialize_field("order", order)?;
        let flag = if chosen { CHOSEN } else { 0 };
        fields.serialize_field("classes", &(classes | flag))?;
        fields.serialize_field("overtakes", overtakes)?;
        fields.serialize_field("lease_ms", lease_ms)?;
        fields.serialize_field("capacity", capacity)?;
        fields.serialize_field("stay_ms", stay_ms)?;
        if chosen {
            fields.serialize_field("using", &travels.using)?;
            fields.serialize_field("burst", &travels.burst)?;
        }
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(NAME, FIELDS, Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Definition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the definition of a gate")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Definition, A::Error> {
        fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
            fields: &mut A,
        ) -> Result<T, A::Error> {
            let field = fields.next_element()?;
            field.ok_or_else(|| A::Error::custom("a definition ends early"))
        }
        let mut definition = Definition {
            rule: next(&mut fields)?,
            order: next(&mut fields)?,
            classes: next(&mut fields)?,
            overtakes: next(&mut fields)?,
            lease_ms: next(&mut fields)?,
            capacity: next(&mut fields)?,
            stay_ms: next(&mut fields)?,
            travels: Travels::default(),
        };
        if definition.classes & CHOSEN != 0 {
            definition.classes &= !CHOSEN;
            definition.travels = Travels {
                using: next(&mut fields)?,
                burst: next(&mut fields)?,
            };
        }
        Ok(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{GateOrder, Rule, Using};

    /// The stored form before there was a choice.
    #[derive(Serialize)]
    struct Before {
        rule: Rule,
        order: GateOrder,
        classes: u32,
        overtakes: u32,
        lease_ms: Option<u64>,
        capacity: Option<u32>,
        stay_ms: Option<u64>,
    }

    #[test]
    fn what_was_written_before_is_read_and_nothing_chosen_is_written_as_before() {
        let before = Before {
            rule: Rule::Permits(3),
            order: GateOrder::Arrival,
            classes: 7,
            overtakes: 2,
            lease_ms: Some(5),
            capacity: None,
            stay_ms: Some(9),
        };
        let bytes = postcard::to_allocvec(&before).expect("plain data");
        let read: Definition = postcard::from_bytes(&bytes).expect("as before");
        assert_eq!((read.classes, read.stay_ms), (7, Some(9)));
        assert_eq!(read.travels, Travels::default());
        assert_eq!(postcard::to_allocvec(&read).expect("plain data"), bytes);
    }

    #[test]
    fn what_was_chosen_is_read_back_and_ends_where_it_ends() {
        let mut chosen = Definition::new(Rule::Mutex);
        chosen.travels.using = Using::Raymond;
        chosen.travels.burst = 9;
        let both = (chosen.clone(), 77_u64);
        let bytes = postcard::to_allocvec(&both).expect("plain data");
        let read: (Definition, u64) = postcard::from_bytes(&bytes).expect("written");
        assert_eq!(read, both);
        assert!(postcard::from_bytes::<Definition>(&bytes[..bytes.len() - 3]).is_err());
    }
}
