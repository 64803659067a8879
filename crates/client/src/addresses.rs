//! The addresses of a cluster's nodes. Any of them will do; a client that finds one gone moves on to the next.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::address::{Address, BadAddress};

/// Cap on addresses that a client tries in turn.
const ADDRESSES_MAX: usize = 64;

/// One address or several, and whose turn it is. Clones share the turn: an address that one connection finds gone is not the
/// first that the next one tries.
///
/// ```
/// let nodes: testigo::Addresses = "a.example:7600,b.example:7600".parse()?;
/// assert_eq!(nodes.count(), 2);
/// # Ok::<(), testigo::BadAddress>(())
/// ```
#[derive(Clone, Debug)]
pub struct Addresses {
    all: Arc<[Address]>,
    turn: Arc<AtomicUsize>,
}

impl Addresses {
    /// The address to try now, and its position.
    pub(crate) fn current(&self) -> (usize, Address) {
        let at = self.turn.load(Ordering::Relaxed) % self.all.len();
        (at, self.all[at].clone())
    }

    /// The node at `at` is gone or cannot serve: the next has its turn, unless somebody has moved on already.
    pub(crate) fn left(&self, at: usize) {
        let next = (at + 1) % self.all.len();
        let order = Ordering::Relaxed;
        // If somebody was faster, the turn is right already.
        let _ = self.turn.compare_exchange(at, next, order, order);
    }

    /// How many there are, at least one.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Address> {
        self.all.iter()
    }
}

impl From<Address> for Addresses {
    fn from(address: Address) -> Addresses {
        Addresses {
            all: Arc::new([address]),
            turn: Arc::default(),
        }
    }
}

/// Parses addresses separated by commas. (The path of a Unix socket must not contain a comma.)
impl FromStr for Addresses {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Addresses, BadAddress> {
        if text.contains(',') && text.split(',').any(|one| one.trim().is_empty()) {
            return Err(BadAddress::missing(text));
        }
        let all: Arc<[Address]> = text
            .split(',')
            .map(|one| one.trim().parse())
            .collect::<Result<_, _>>()?;
        match all.len() {
            1..=ADDRESSES_MAX => Ok(Addresses {
                all,
                turn: Arc::default(),
            }),
            many => Err(BadAddress::many(many, ADDRESSES_MAX)),
        }
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.all.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{address}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_several_addresses_are_read_and_written() {
        for text in ["127.0.0.1:7600", "a:1,b:2,[::1]:3", "unix:x.sock,a:1"] {
            let addresses: Addresses = text.parse().expect(text);
            assert_eq!(addresses.to_string(), text);
        }
        let spaced: Addresses = "a:1, b:2".parse().expect("spaces are fine");
        assert_eq!(spaced.count(), 2);
        for text in ["", "a:1,", ",a:1", "a:1,b"] {
            assert!(text.parse::<Addresses>().is_err(), "{text}");
        }
        let comma = "a:1,".parse::<Addresses>().expect_err("a comma");
        assert!(comma.to_string().contains("comma"), "{comma}");
        let many = vec!["a:1"; ADDRESSES_MAX + 1].join(",");
        let refused = many.parse::<Addresses>().expect_err("too many");
        assert!(refused.to_string().contains("64"), "{refused}");
    }

    #[test]
    fn two_that_leave_the_same_node_move_on_once() {
        let addresses: Addresses = "a:1,b:2,c:3".parse().expect("addresses");
        let (first, _) = addresses.current();
        let other = addresses.clone();
        addresses.left(first);
        other.left(first);
        assert_eq!(addresses.current().1.to_string(), "b:2");
        for _ in 0..2 {
            let (at, _) = addresses.current();
            addresses.left(at);
        }
        assert_eq!(other.current().1.to_string(), "a:1");
    }
}
