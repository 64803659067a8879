//! Who sits where in a box office, and what they are promised.

use super::{Promise, User};
use crate::{Setup, SetupError, Shape};

pub(super) const OVERTAKES_DEFAULT: u32 = 5;
/// How many writers of a class a node lets in, one after the other, while others want their turn.
pub(super) const BURST_DEFAULT: u32 = 4;
/// A token carries a number for every node and class, twice.
const NODES_MAX: usize = 1_000;

/// The nodes, and the users that the setup puts there.
pub(super) fn users(setup: &Setup) -> Result<(Shape, Vec<User>), SetupError> {
    let nodes = setup.at_least(1)?;
    let overtakes = setup.overtakes.unwrap_or(OVERTAKES_DEFAULT);
    let burst = setup.burst.unwrap_or(BURST_DEFAULT);
    if nodes > NODES_MAX || overtakes == 0 || burst == 0 {
        return Err(SetupError(format!(
            "at most {NODES_MAX} nodes, and at least 1 overtake and a burst of 1: not {nodes} nodes, \
             {overtakes} and {burst}"
        )));
    }
    let seats: Vec<usize> = (0..nodes)
        .map(|node| setup.classes.at(node).len())
        .collect();
    let all: usize = seats.iter().sum();
    if !(1..=Setup::USERS_MAX).contains(&all) {
        let most = Setup::USERS_MAX;
        let what = format!("{all} users at {nodes} nodes: there must be 1 to {most}");
        return Err(SetupError(what));
    }
    let promise = Promise {
        query: overtakes,
        elsewhere: burst.saturating_mul(nodes as u32 - 1),
    };
    let mut users = Vec::new();
    for node in 0..nodes {
        for &trade in setup.classes.at(node) {
            users.push(User::new(trade, node as u32, setup.readers.0, promise));
        }
    }
    Ok((Shape::shared(seats), users))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User as _;

    fn setup(nodes: usize, overtakes: u32, burst: u32) -> Setup {
        Setup {
            overtakes: Some(overtakes),
            burst: Some(burst),
            ..Setup::new(nodes)
        }
    }

    #[test]
    fn limits_are_kept() {
        assert!(users(&setup(NODES_MAX, 1, 1)).is_ok());
        for refused in [setup(NODES_MAX + 1, 1, 1), setup(2, 0, 1), setup(2, 1, 0)] {
            assert!(users(&refused).is_err(), "{refused:?}");
        }
        let nobody = Setup {
            classes: "/any".parse().expect("classes"),
            ..Setup::new(1)
        };
        assert!(users(&nobody).is_err(), "node 0 has no user, and is alone");
    }

    /// Box office §11, F2 and F3: MAX_OVT, and LOCAL_BURST at each other node.
    #[test]
    fn users_are_promised_what_the_source_says() {
        let promised = |setup: &Setup| users(setup).expect("valid").1[0].promise();
        let promise = promised(&setup(5, 3, 2));
        assert_eq!((promise.query, promise.elsewhere), (3, 8));
        let promise = promised(&Setup::new(3));
        assert_eq!((promise.query, promise.elsewhere), (5, 8));
    }

    #[test]
    fn users_sit_where_the_classes_say() {
        let mut office = Setup::new(3);
        office.classes = "cancel,query/reservation".parse().expect("classes");
        let (shape, users) = users(&office).expect("valid");
        assert_eq!(shape.seats(), [2, 1, 2]);
        let homes: Vec<u32> = users.iter().map(User::home).collect();
        assert_eq!(homes, [0, 0, 1, 2, 2]);
        assert_eq!(
            users.iter().map(|user| user.kind()).collect::<Vec<_>>(),
            [0, 2, 1, 0, 2]
        );
    }
}
