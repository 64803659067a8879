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
    let mut users = Vec::new();
    for (node, &at_node) in seats.iter().enumerate() {
        // A turn that is interrupted for a better class may let in only one of those in line.
        let turns = at_node as u32;
        let promise = Promise {
            query: overtakes,
            elsewhere: turns.saturating_mul(burst).saturating_mul(nodes as u32 - 1),
        };
        for &trade in setup.classes.at(node) {
            users.push(User::new(trade, node as u32, setup.readers.0, promise));
        }
    }
    Ok((Shape::shared(seats), users))
}
