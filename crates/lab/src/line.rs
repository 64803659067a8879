//! The lines of users that share a node: who waits there, in the order of asking. A node counts its waiters
//! and says which may enter; its line says who that is.

use testigo_protocol::{NodeId, Shape, UserId};

/// Every user's place in the line of its node, from 1; 0 for one that does not wait.
pub(crate) struct UserLine<'a> {
    shape: &'a Shape,
    places: &'a mut [u32],
}

impl<'a> UserLine<'a> {
    /// How many places are kept: none where every user has a node to itself.
    pub(crate) fn places(shape: &Shape) -> usize {
        match shape.is_shared() {
            true => shape.users,
            false => 0,
        }
    }

    pub(crate) fn new(shape: &'a Shape, places: &'a mut [u32]) -> UserLine<'a> {
        UserLine { shape, places }
    }

    /// A user stands behind the others of its node.
    pub(crate) fn join(&mut self, user: UserId) {
        if !self.places.is_empty() {
            let others = self.shape.users_at(self.shape.home(user));
            let last = others.map(|other| self.places[other.index()]).max();
            self.places[user.index()] = last.unwrap_or(0) + 1;
        }
    }

    /// A user is gone from its line, and those behind it move up.
    pub(crate) fn leave(&mut self, user: UserId) {
        if self.places.is_empty() {
            return;
        }
        let place = std::mem::take(&mut self.places[user.index()]);
        for other in self.shape.users_at(self.shape.home(user)) {
            let theirs = &mut self.places[other.index()];
            *theirs -= u32::from(place > 0 && *theirs > place);
        }
    }

    /// Who takes a word of the node: the first in line that hears it, or else somebody who does, or else
    /// the first user, who will find it ill-formed. None where the node has no user.
    pub(crate) fn hearer(&self, node: NodeId, hears: impl Fn(UserId) -> bool) -> Option<UserId> {
        let mut users = self.shape.users_at(node);
        if self.places.is_empty() {
            return users.next();
        }
        let first = users.next()?;
        let place = |user: &UserId| match self.places[user.index()] {
            0 => u32::MAX,
            place => place,
        };
        let all = std::iter::once(first).chain(users);
        all.filter(|&user| hears(user))
            .min_by_key(place)
            .or(Some(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_in_line_that_hears_a_word_takes_it() {
        let shape = Shape::shared(vec![3, 1]);
        let mut places = vec![0; UserLine::places(&shape)];
        let mut line = UserLine::new(&shape, &mut places);
        for user in [2, 3, 0, 1] {
            line.join(UserId(user));
        }
        let node = NodeId(0);
        assert_eq!(line.hearer(node, |_| true), Some(UserId(2)));
        assert_eq!(line.hearer(node, |user| user != UserId(2)), Some(UserId(0)));
        assert_eq!(line.hearer(node, |_| false), Some(UserId(0)));
        assert_eq!(line.hearer(NodeId(1), |_| true), Some(UserId(3)));
        line.leave(UserId(2));
        line.join(UserId(2));
        assert_eq!(places, [1, 2, 3, 1]);
    }

    #[test]
    fn a_user_with_a_node_to_itself_needs_no_line() {
        let shape = Shape::with_extra(2, vec!["server".into()]);
        assert_eq!(UserLine::places(&shape), 0);
        let line = UserLine::new(&shape, &mut []);
        assert_eq!(line.hearer(NodeId(1), |_| false), Some(UserId(1)));
        assert_eq!(line.hearer(NodeId(2), |_| true), None);
    }
}
