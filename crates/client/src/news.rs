//! The node's pushes and longer answers, parsed into what the machine needs. Anything else that a newer node may say is
//! ignored.

use crate::election::inner_name;
use crate::pool::{self, read_taken};
use crate::refusal::{Refusal, Word};
use crate::value::Value;

/// A push.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A waiting lock is granted: for every gate, in order.
    Granted { ticket: u64, grants: Vec<Grant> },
    /// A waiting lock has ended without entering.
    Gone { ticket: u64 },
    /// Others wait for what the session holds.
    Wanted { gate: String, fence: u64 },
    /// The session no longer holds it.
    Lost { gate: String, fence: u64 },
    /// The session now has slots of a pool: their names and fences.
    Slots {
        ticket: u64,
        taken: Vec<(String, u64)>,
    },
    /// The session no longer has a slot, which is named pool/slot here.
    LostSlot { slot: String, fence: u64 },
    /// The session is over.
    Ended { session: u64 },
    /// The node may not speak for the session now, because it does not hear from a majority.
    Suspect { session: u64 },
    /// A subscription begins.
    Subscribed { channel: String },
    /// Something was published on a channel.
    Published { channel: String, line: Vec<u8> },
}

/// A grant in the form that the client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) fence: u64,
    /// The proof for the node after a crash.
    pub(crate) receipt: Option<String>,
    /// When it ends by itself, counted from the last command that the node has heard.
    pub(crate) ends_ms: Option<u64>,
}

impl Grant {
    pub(crate) fn read(value: &Value) -> Option<Grant> {
        let [fence, receipt, ends_ms] = value.list()? else {
            return None;
        };
        Some(Grant {
            fence: fence.number()?,
            receipt: receipt.text().map(str::to_owned),
            ends_ms: match ends_ms {
                Value::Null => None,
                ends_ms => Some(ends_ms.number()?),
            },
        })
    }

    /// One grant, or a list of them for a set.
    fn read_all(value: &Value) -> Option<Vec<Grant>> {
        match value.list() {
            Some(set) if set.iter().all(|grant| grant.list().is_some()) => {
                set.iter().map(Grant::read).collect()
            }
            _ => Some(vec![Grant::read(value)?]),
        }
    }
}

impl News {
    pub(crate) fn read(values: &[Value]) -> Option<News> {
        let text = |at: usize| Some(values.get(at)?.text()?.to_owned());
        let number = |at: usize| values.get(at)?.number();
        Some(match values.first()?.text()? {
            "grant" => News::Granted {
                ticket: number(1)?,
                grants: Grant::read_all(values.get(2)?)?,
            },
            "gone" => News::Gone { ticket: number(1)? },
            "wanted" => News::Wanted {
                gate: text(1)?,
                fence: number(2)?,
            },
            "slots" => News::Slots {
                ticket: number(1)?,
                taken: read_taken(values.get(2)?)?,
            },
            "lost" if text(3).as_deref() == Some("removed") => News::LostSlot {
                slot: text(1)?,
                fence: number(2)?,
            },
            "lost" => News::Lost {
                gate: text(1)?,
                fence: number(2)?,
            },
            "deposed" => News::Lost {
                gate: inner_name(&text(1)?),
                fence: number(2)?,
            },
            "ended" => News::Ended {
                session: number(1)?,
            },
            "suspect" => News::Suspect {
                session: number(1)?,
            },
            "subscribe" => News::Subscribed { channel: text(1)? },
            "message" => News::Published {
                channel: text(1)?,
                line: values.get(2)?.bytes()?.to_vec(),
            },
            _ => return None,
        })
    }
}

/// The answer to `SESSION RESUME`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// For every claim, in order, whether it still holds.
    pub(crate) held: Vec<bool>,
    /// Everything that the session holds, claimed or not.
    pub(crate) holds: Vec<(String, u64)>,
    /// The session's slots that the node itself owns.
    pub(crate) slots: Vec<(String, u64)>,
}

impl Resumed {
    /// An answer that cannot be read counts as a refusal, so that nobody goes on with what may be lost.
    pub(crate) fn read(value: &Value) -> Result<Resumed, Refusal> {
        if let Value::Error(refusal) = value {
            return Err(refusal.clone());
        }
        let list = |name: &str| value.field(name).and_then(Value::list);
        let hold = |row: &Value| {
            let row = row.list()?;
            Some((row.first()?.text()?.to_owned(), row.get(1)?.number()?))
        };
        let slot = |row: &Value| {
            let [pool, slot, fence] = row.list()? else {
                return None;
            };
            let slot = pool::inner_name(pool.text()?, slot.text()?);
            Some((slot, fence.number()?))
        };
        let read = || {
            let claims = list("claims")?.iter();
            let holds = list("holds")?.iter().map(hold);
            // An older node does not know elections.
            let leads = list("leads").unwrap_or_default().iter().map(hold);
            let leads = leads.map(|row| row.map(|(name, term)| (inner_name(&name), term)));
            let holds = holds.chain(leads);
            let slots = list("slots").unwrap_or_default().iter().map(slot);
            Some(Resumed {
                held: claims.map(|claim| claim.text() == Some("HELD")).collect(),
                holds: holds.collect::<Option<_>>()?,
                slots: slots.collect::<Option<_>>()?,
            })
        };
        read().ok_or_else(|| Refusal {
            word: Word::Unavailable,
            sentence: "the answer to SESSION RESUME cannot be read".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn map(fields: Vec<(&str, Value)>) -> Value {
        Value::Map(
            fields
                .into_iter()
                .map(|(name, value)| (text(name), value))
                .collect(),
        )
    }

    #[test]
    fn pushes_are_read_and_others_passed_over() {
        let grant = |fence, receipt, ends| Value::List(vec![Value::Number(fence), receipt, ends]);
        let push = |what| [text("grant"), Value::Number(7), what];
        let one = push(grant(42, text("r"), Value::Number(900)));
        let set = push(Value::List(vec![
            grant(1, text("r"), Value::Null),
            grant(2, Value::Null, Value::Number(0)),
        ]));
        let granted = |grants: &[(u64, Option<&str>, Option<u64>)]| News::Granted {
            ticket: 7,
            grants: grants
                .iter()
                .map(|(fence, receipt, ends_ms)| Grant {
                    fence: *fence,
                    receipt: receipt.map(str::to_owned),
                    ends_ms: *ends_ms,
                })
                .collect(),
        };
        let expected = granted(&[(42, Some("r"), Some(900))]);
        assert_eq!(News::read(&one), Some(expected));
        let both = granted(&[(1, Some("r"), None), (2, None, Some(0))]);
        assert_eq!(News::read(&set), Some(both));
        let lost = [text("lost"), text("a"), Value::Number(3), text("lease")];
        let expected = News::Lost {
            gate: "a".into(),
            fence: 3,
        };
        assert_eq!(News::read(&lost), Some(expected));
        let two = Value::List(vec![
            text("7"),
            Value::Number(3),
            text("9"),
            Value::Number(4),
        ]);
        let slots = News::Slots {
            ticket: 7,
            taken: vec![("7".into(), 3), ("9".into(), 4)],
        };
        assert_eq!(
            News::read(&[text("slots"), Value::Number(7), two]),
            Some(slots)
        );
        let gone = [text("lost"), text("p/7"), Value::Number(3), text("removed")];
        let expected = News::LostSlot {
            slot: "p/7".into(),
            fence: 3,
        };
        assert_eq!(News::read(&gone), Some(expected));
        for strange in [
            &[][..],
            &[text("invalidate")],
            &[text("grant")],
            // A bare fence does not say when it ends.
            &push(Value::Number(42)),
            &push(grant(42, text("r"), text("soon"))),
            &[Value::Null],
        ] {
            assert_eq!(News::read(strange), None);
        }
    }

    #[test]
    fn a_resumed_session_learns_what_it_holds() {
        let holds = Value::List(vec![Value::List(vec![text("a"), Value::Number(5)])]);
        let claims = Value::List(vec![
            text("HELD"),
            text("LOST"),
            text("REFUSED it never was"),
        ]);
        let leads = Value::List(vec![Value::List(vec![text("a"), Value::Number(7)])]);
        let fields = vec![("claims", claims), ("holds", holds), ("leads", leads)];
        let answer = map(fields);
        let resumed = Resumed::read(&answer).expect("an answer");
        assert_eq!(resumed.held, [true, false, false]);
        let holds = [("a".to_owned(), 5), ("election a".to_owned(), 7)];
        assert_eq!(resumed.holds, holds);
        assert!(Resumed::read(&Value::Null).is_err());
    }
}
