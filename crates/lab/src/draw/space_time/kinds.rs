//! The kinds of the messages of a diagram. Each has a colour and a dash pattern of its own, so that
//! hue alone tells nothing.

use rustc_hash::FxHashMap;

use crate::draw::theme;

/// How many dash patterns the style sheet has. No divisor of the number of hues: the pairs repeat late.
const DASHES: usize = 5;
/// The hues of the first kinds, those that are easiest to tell apart first.
const HUE_ORDER: [usize; theme::HUES] = [0, 1, 3, 2, 4, 6, 5];

/// What a message is, without what it carries: the word that its label begins with. Of a message that
/// wraps another one, such as `Groups(Request(3,1))`, both words.
pub(super) fn kind(label: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let end = label.find(|c: char| !is_word(c)).unwrap_or(label.len());
    let (word, rest) = label.split_at(end);
    let inner = rest.strip_prefix('(').unwrap_or("");
    match inner.chars().next() {
        Some(c) if c.is_uppercase() && !word.is_empty() => format!("{word}({})", kind(inner)),
        _ => word.to_string(),
    }
}

/// The register that an access names: `flag[0]`.
fn register(label: &str) -> String {
    label.split(' ').next().unwrap_or("").into()
}

/// The array that its register is in: `flag[…]`; or the register, where it is in none.
fn array(label: &str) -> String {
    match register(label).split_once('[') {
        Some((name, _)) => format!("{name}[…]"),
        None => register(label),
    }
}

/// The kinds that occur, in the order of their first appearance.
#[derive(Debug)]
pub(super) struct Kinds {
    pub(super) names: Vec<String>,
    places: FxHashMap<String, usize>,
    /// The kind that a label names.
    named: fn(&str) -> String,
}

/// How the messages of a kind look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) hue: usize,
    dash: usize,
}

impl Kinds {
    /// The kinds of messages.
    pub(super) fn of<'a>(labels: impl Iterator<Item = &'a str>) -> Self {
        Kinds::by(kind, labels)
    }

    /// The registers of accesses. Those of an array share a kind where there are more than colours.
    pub(super) fn of_registers<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> Self {
        let registers = Kinds::by(register, labels.clone());
        match registers.names.len() <= theme::HUES {
            true => registers,
            false => Kinds::by(array, labels),
        }
    }

    fn by<'a>(named: fn(&str) -> String, labels: impl Iterator<Item = &'a str>) -> Self {
        let mut kinds = Kinds {
            names: Vec::new(),
            places: FxHashMap::default(),
            named,
        };
        for label in labels {
            let name = named(label);
            if name.is_empty() || kinds.places.contains_key(&name) {
                continue;
            }
            kinds.places.insert(name.clone(), kinds.names.len());
            kinds.names.push(name);
        }
        kinds
    }

    /// The look of a message; none where its label names no kind.
    pub(super) fn look(&self, label: &str) -> Option<Look> {
        let name = (self.named)(label);
        self.places.get(&name).map(|&place| Look::of(place))
    }
}

impl Look {
    /// The look of the kind with this number.
    pub(super) fn of(place: usize) -> Self {
        Look {
            hue: HUE_ORDER[place % theme::HUES],
            dash: place % DASHES,
        }
    }

    /// The classes that the style sheet knows it by.
    pub(super) fn classes(self) -> String {
        format!(" h{} d{}", self.hue, self.dash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_word_before_what_a_message_carries() {
        for (label, expected) in [
            ("Request(3,1)", "Request"),
            ("Come { leads: true }", "Come"),
            ("Token", "Token"),
            ("GRANTED 7", "GRANTED"),
            ("Request ×27", "Request"),
            ("Groups(Request(3,1))", "Groups(Request)"),
            ("Request(reservation 1)", "Request"),
            ("Request (a lie)", "Request"),
            ("", ""),
            ("(1,2)", ""),
        ] {
            assert_eq!(kind(label), expected, "{label}");
        }
    }

    #[test]
    fn registers_have_colours_of_their_own_while_there_are_enough() {
        let labels = |flags: usize| {
            let flags = (0..flags).map(|flag| format!("flag[{flag}] = 1 ×3"));
            Vec::from_iter(flags.chain(["turn = 0 by 1".to_owned()]))
        };
        let few = labels(theme::HUES - 1);
        let kinds = Kinds::of_registers(few.iter().map(String::as_str));
        assert_eq!(kinds.names[..2], ["flag[0]", "flag[1]"]);
        let looks: Vec<_> = few
            .iter()
            .map(|label| kinds.look(label).map(|look| look.hue))
            .collect();
        for (place, look) in looks.iter().enumerate() {
            assert!(
                look.is_some() && !looks[..place].contains(look),
                "{looks:?}"
            );
        }
        let many = labels(theme::HUES);
        let kinds = Kinds::of_registers(many.iter().map(String::as_str));
        assert_eq!(kinds.names, ["flag[…]", "turn"]);
        assert_eq!(kinds.look(&many[0]), kinds.look(&many[1]));
    }

    #[test]
    fn kinds_look_different_for_as_long_as_there_are_pairs() {
        let looks: Vec<Look> = (0..theme::HUES * DASHES).map(Look::of).collect();
        for (i, look) in looks.iter().enumerate() {
            assert!(!looks[..i].contains(look), "{i}");
        }
        // The first of them differ in hue and, but for one pair, in dash pattern.
        for pair in looks[..theme::HUES].windows(2) {
            assert!(pair[0].hue != pair[1].hue && pair[0].dash != pair[1].dash);
        }
    }
}
