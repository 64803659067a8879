//! Which users are at each node, and what each of them asks for: the option `--classes`.

use std::fmt;
use std::str::FromStr;

use super::Class;
use crate::SetupError;

/// What a user asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trade {
    /// It queries, or reserves, or cancels what it has reserved: so there are no more cancellations than
    /// reservations, on which the box office rests (§1, §15.4).
    Client,
    /// Whatever it likes.
    Any,
    Only(Class),
}

impl Trade {
    fn name(self) -> &'static str {
        match self {
            Trade::Client => "client",
            Trade::Any => "any",
            Trade::Only(class) => class.name(),
        }
    }
}

/// The users of every node: lists that the nodes take in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Classes(Vec<Vec<Trade>>);

impl Default for Classes {
    /// Two clients at every node.
    fn default() -> Self {
        Classes(vec![vec![Trade::Client; 2]])
    }
}

impl Classes {
    /// More users at a node, or more lists of them, are a slip of a finger.
    const LENGTH_MAX: usize = 1_000;

    /// The users of a node.
    pub fn at(&self, node: usize) -> &[Trade] {
        &self.0[node % self.0.len()]
    }

    /// One user fewer at the nodes that have most; none where nobody could go.
    pub fn fewer(&self) -> Option<Classes> {
        let most = self.0.iter().map(Vec::len).max().filter(|&most| most > 1)?;
        let kept = |list: &Vec<Trade>| list[..list.len().min(most - 1)].to_vec();
        Some(Classes(self.0.iter().map(kept).collect()))
    }
}

impl FromStr for Classes {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Classes, SetupError> {
        let lists: Vec<&str> = text.split('/').take(Self::LENGTH_MAX + 1).collect();
        let lists = lists.into_iter().map(|list| {
            let users = list.split(',').filter(|_| !list.is_empty());
            users.take(Self::LENGTH_MAX + 1).map(trade).collect()
        });
        let lists: Vec<Vec<Trade>> = lists.collect::<Result<_, _>>()?;
        let longest = lists
            .iter()
            .map(Vec::len)
            .max()
            .unwrap_or(0)
            .max(lists.len());
        if longest > Self::LENGTH_MAX || lists.iter().all(Vec::is_empty) {
            let most = Self::LENGTH_MAX;
            let what =
                format!("`{text}` must name at least one user, and at most {most} at a node");
            return Err(SetupError(what));
        }
        Ok(Classes(lists))
    }
}

fn trade(word: &str) -> Result<Trade, SetupError> {
    let numbered = ["0", "1", "2"].into_iter().zip(Class::ALL);
    let named = Class::ALL.into_iter().map(|class| (class.name(), class));
    let mut classes = numbered.chain(named);
    match word {
        "client" => Ok(Trade::Client),
        "any" => Ok(Trade::Any),
        _ => match classes.find(|(name, _)| *name == word) {
            Some((_, class)) => Ok(Trade::Only(class)),
            None => Err(SetupError(format!(
                "`{word}` is not a class: use cancel (0), reservation (1), query (2), client or any, with \
                 commas between the users of a node and / between nodes, such as cancel,query/reservation"
            ))),
        },
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |list: &Vec<Trade>| {
            let names: Vec<&str> = list.iter().map(|trade| trade.name()).collect();
            names.join(",")
        };
        let lists: Vec<String> = self.0.iter().map(list).collect();
        f.write_str(&lists.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_go_where_most_are() {
        let fewer = |text: &str| {
            let fewer = text.parse::<Classes>().expect(text).fewer();
            fewer.map(|classes| classes.to_string())
        };
        assert_eq!(fewer("client,client").as_deref(), Some("client"));
        assert_eq!(
            fewer("any,query/cancel,any,any").as_deref(),
            Some("any,query/cancel,any")
        );
        assert_eq!(fewer("query/"), None);
    }

    #[test]
    fn lists_have_a_limit() {
        let most = Classes::LENGTH_MAX;
        for separator in [",", "/"] {
            let list = |length: usize| vec!["any"; length].join(separator);
            assert!(list(most).parse::<Classes>().is_ok(), "{separator}");
            assert!(list(most + 1).parse::<Classes>().is_err(), "{separator}");
            assert!(list(most + 2).parse::<Classes>().is_err(), "{separator}");
        }
    }

    #[test]
    fn classes_print_as_they_are_written() {
        for text in ["client,client", "cancel,query/reservation", "any,any/"] {
            assert_eq!(text.parse::<Classes>().expect(text).to_string(), text);
        }
        let numbered: Classes = "0,1,2".parse().expect("numbers");
        assert_eq!(numbered.to_string(), "cancel,reservation,query");
        assert_eq!(numbered.at(5).len(), 3);
        let uneven: Classes = "any,any,any/any".parse().expect("uneven");
        assert_eq!([uneven.at(0).len(), uneven.at(1).len()], [3, 1]);
        for bad in ["", "/", "3", "writer", "any,,any"] {
            assert!(bad.parse::<Classes>().is_err(), "{bad} was accepted");
        }
    }
}
