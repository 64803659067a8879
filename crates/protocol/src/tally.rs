//! How many users wait and how many are inside, by kind of request: enough to rule out a violation
//! without looking at every user.

/// Counts that follow the users' phases, in constant time per change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    kinds: Vec<Count>,
    waiting: usize,
    inside: usize,
    kinds_inside: usize,
    kinds_divided: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    waiting: usize,
    inside: usize,
}

impl Tally {
    /// Users that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Users that are inside.
    pub fn inside(&self) -> usize {
        self.inside
    }

    /// Kinds of request with somebody inside.
    pub fn kinds_inside(&self) -> usize {
        self.kinds_inside
    }

    /// Kinds of request with somebody inside and somebody waiting.
    pub fn kinds_divided(&self) -> usize {
        self.kinds_divided
    }

    /// Users that wait with a request of this kind.
    pub fn waiting_of(&self, kind: u32) -> usize {
        self.of(kind).waiting
    }

    /// Users that are inside by a request of this kind.
    pub fn inside_of(&self, kind: u32) -> usize {
        self.of(kind).inside
    }

    /// A user asks.
    pub fn asked(&mut self, kind: u32) {
        self.waiting += 1;
        self.change(kind, |count| count.waiting += 1);
    }

    /// A user that waits enters.
    pub fn entered(&mut self, kind: u32) {
        self.waiting -= 1;
        self.inside += 1;
        self.change(kind, |count| {
            count.waiting -= 1;
            count.inside += 1;
        });
    }

    /// A user that is inside leaves.
    pub fn left(&mut self, kind: u32) {
        self.inside -= 1;
        self.change(kind, |count| count.inside -= 1);
    }

    /// A user that waits is gone.
    pub fn gave_up(&mut self, kind: u32) {
        self.waiting -= 1;
        self.change(kind, |count| count.waiting -= 1);
    }

    fn of(&self, kind: u32) -> Count {
        self.kinds.get(kind as usize).copied().unwrap_or_default()
    }

    fn change(&mut self, kind: u32, change: impl FnOnce(&mut Count)) {
        let kind = kind as usize;
        if self.kinds.len() <= kind {
            self.kinds.resize(kind + 1, Count::default());
        }
        let count = &mut self.kinds[kind];
        let before = *count;
        change(count);
        let after = *count;
        let divided = |count: Count| usize::from(count.inside > 0 && count.waiting > 0);
        self.kinds_inside += usize::from(after.inside > 0);
        self.kinds_inside -= usize::from(before.inside > 0);
        self.kinds_divided += divided(after);
        self.kinds_divided -= divided(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_users() {
        let mut tally = Tally::default();
        let counts = |tally: &Tally| {
            let (waiting, inside) = (tally.waiting(), tally.inside());
            [waiting, inside, tally.kinds_inside(), tally.kinds_divided()]
        };
        for kind in [2, 2, 5] {
            tally.asked(kind);
        }
        assert_eq!(counts(&tally), [3, 0, 0, 0]);
        tally.entered(2);
        assert_eq!(counts(&tally), [2, 1, 1, 1]);
        tally.entered(5);
        assert_eq!(counts(&tally), [1, 2, 2, 1]);
        assert_eq!((tally.waiting_of(2), tally.inside_of(5)), (1, 1));
        tally.gave_up(2);
        assert_eq!(counts(&tally), [0, 2, 2, 0]);
        tally.left(2);
        tally.left(5);
        assert_eq!(counts(&tally), [0; 4]);
        assert_eq!(tally.inside_of(99), 0);
    }
}
