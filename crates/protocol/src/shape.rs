//! How many nodes there are, who uses them, and what they are called.

use std::ops::Range;

use crate::{NodeId, UserId};

/// The nodes of an algorithm. Nodes with users come first; most have one user each, some have several, who
/// stand in line at their node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub users: usize,
    /// Names of the nodes behind the users, such as `server`.
    pub extra: Vec<String>,
    /// Where users share nodes: how many are at each. Empty where user i has node i to itself.
    seats: Vec<usize>,
    /// The node of each user, where they share nodes.
    homes: Vec<NodeId>,
    /// The first user of each node, where they share nodes, and the number of users.
    firsts: Vec<u32>,
}

impl Shape {
    /// Every user has a node to itself, and there are no others.
    pub fn users(users: usize) -> Shape {
        Shape::with_extra(users, Vec::new())
    }

    /// Every user has a node to itself; behind them are nodes of these names.
    pub fn with_extra(users: usize, extra: Vec<String>) -> Shape {
        Shape {
            users,
            extra,
            seats: Vec::new(),
            homes: Vec::new(),
            firsts: Vec::new(),
        }
    }

    /// So many users at each node.
    pub fn shared(seats: Vec<usize>) -> Shape {
        let at = |(node, &seats): (usize, &usize)| vec![NodeId(node as u32); seats];
        let homes: Vec<NodeId> = seats.iter().enumerate().flat_map(at).collect();
        let mut firsts = vec![0];
        for seats in &seats {
            firsts.push(firsts.last().copied().unwrap_or(0) + *seats as u32);
        }
        Shape {
            users: homes.len(),
            extra: Vec::new(),
            seats,
            homes,
            firsts,
        }
    }

    pub fn nodes(&self) -> usize {
        let hosts = match self.is_shared() {
            true => self.seats.len(),
            false => self.users,
        };
        hosts + self.extra.len()
    }

    /// Whether a node may have several users, or none.
    pub fn is_shared(&self) -> bool {
        !self.seats.is_empty()
    }

    /// How many users are at each node, where they share nodes.
    pub fn seats(&self) -> &[usize] {
        &self.seats
    }

    /// The node that a user is at.
    pub fn home(&self, user: UserId) -> NodeId {
        match self.is_shared() {
            true => self.homes[user.index()],
            false => NodeId(user.0),
        }
    }

    /// The users of a node.
    pub fn users_at(&self, node: NodeId) -> impl Iterator<Item = UserId> + use<> {
        let range: Range<u32> = match self.firsts.get(node.index()..node.index() + 2) {
            Some(ends) => ends[0]..ends[1],
            None if !self.is_shared() && node.index() < self.users => node.0..node.0 + 1,
            None => 0..0,
        };
        range.map(UserId)
    }

    pub fn name(&self, node: NodeId) -> String {
        let hosts = self.nodes() - self.extra.len();
        match node.index().checked_sub(hosts) {
            Some(extra) if extra < self.extra.len() => self.extra[extra].clone(),
            _ if self.is_shared() => format!("n{node}"),
            _ => format!("p{node}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_with_a_node_each() {
        let shape = Shape::with_extra(2, vec!["server".into()]);
        assert_eq!(shape.nodes(), 3);
        assert_eq!(shape.home(UserId(1)), NodeId(1));
        let at = |node| shape.users_at(NodeId(node)).collect::<Vec<_>>();
        assert_eq!(
            [at(0), at(1), at(2)],
            [vec![UserId(0)], vec![UserId(1)], vec![]]
        );
        assert_eq!(shape.name(NodeId(2)), "server");
    }

    #[test]
    fn users_that_share_nodes() {
        let shape = Shape::shared(vec![2, 0, 1]);
        assert_eq!((shape.nodes(), shape.users), (3, 3));
        assert_eq!(shape.home(UserId(2)), NodeId(2));
        let at = |node| shape.users_at(NodeId(node)).collect::<Vec<_>>();
        assert_eq!(at(0), [UserId(0), UserId(1)]);
        assert_eq!(at(1), []);
        assert_eq!(at(2), [UserId(2)]);
        assert_eq!(at(3), []);
        assert_eq!(shape.name(NodeId(1)), "n1");
    }
}
