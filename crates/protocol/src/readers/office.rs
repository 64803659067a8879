//! The messages of the box office.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Class;
use super::token::{Table, Token};
use crate::{Grant, Message, WordOf};

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Office {
    Request(Class, u32),
    Token(Token, Table),
    QueryToken(Table),
    QueryReturn,
}

/// Without the tables: it is what people read along an arrow.
impl fmt::Debug for Office {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Office::Request(class, number) => write!(f, "Request({} {number})", class.name()),
            Office::Token(token, _) => write!(f, "Token({} overtakes)", token.overtakes),
            Office::QueryToken(_) => f.write_str("QueryToken"),
            Office::QueryReturn => f.write_str("QueryReturn"),
        }
    }
}

impl Message for Office {
    /// A request speaks for one class of its node; only the token carries what others have asked.
    fn word_of(&self) -> WordOf {
        match self {
            Office::Request(class, _) => WordOf::Own(class.index() as u32),
            Office::Token(..) => WordOf::All,
            Office::QueryToken(_) | Office::QueryReturn => WordOf::Nothing,
        }
    }

    fn grant(&self) -> Option<Grant> {
        match self {
            Office::Token(..) => Some(Grant::Token),
            Office::QueryToken(_) => Some(Grant::Entry(Class::Query.index() as u32)),
            Office::Request(..) | Office::QueryReturn => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MEMBERS_MAX, NodeId, PACKET_BYTES_MAX, PACKET_HEAD_BYTES};

    /// It has the longest message of all algorithms.
    #[test]
    fn the_token_of_the_largest_cluster_fits_into_a_packet() {
        let full = Table(vec![[u32::MAX; 3]; MEMBERS_MAX]);
        let token = Token {
            served: full.clone(),
            overtakes: u32::MAX,
            turn: [NodeId(u32::MAX - 1); 2],
        };
        let bytes = postcard::to_stdvec(&Office::Token(token, full)).expect("encodes");
        assert!(PACKET_HEAD_BYTES + bytes.len() <= PACKET_BYTES_MAX / 2);
    }

    #[test]
    fn each_message_says_what_it_brings() {
        let none = Table(vec![[0; 3]; 2]);
        let token = Token {
            served: none.clone(),
            overtakes: 3,
            turn: [NodeId(0); 2],
        };
        let reservation = Class::Reservation.index() as u32;
        let queries = Grant::Entry(Class::Query.index() as u32);
        let request = Office::Request(Class::Reservation, 7);
        for (message, label, word_of, grant) in [
            (
                request,
                "Request(reservation 7)",
                WordOf::Own(reservation),
                None,
            ),
            (
                Office::Token(token, none.clone()),
                "Token(3 overtakes)",
                WordOf::All,
                Some(Grant::Token),
            ),
            (
                Office::QueryToken(none),
                "QueryToken",
                WordOf::Nothing,
                Some(queries),
            ),
            (Office::QueryReturn, "QueryReturn", WordOf::Nothing, None),
        ] {
            assert_eq!(format!("{message:?}"), label);
            assert_eq!(
                (message.word_of(), message.grant()),
                (word_of, grant),
                "{label}"
            );
        }
    }
}
