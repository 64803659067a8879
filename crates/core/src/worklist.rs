//! What is still to be looked at, by number: each at most once at a time, in the order in which it was put in.

use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Worklist {
    next: VecDeque<usize>,
    listed: Vec<bool>,
}

impl Worklist {
    /// All of `0..len`, the last one first.
    pub(crate) fn backwards(len: usize) -> Worklist {
        Worklist {
            next: (0..len).rev().collect(),
            listed: vec![true; len],
        }
    }

    pub(crate) fn put(&mut self, number: usize) {
        if !std::mem::replace(&mut self.listed[number], true) {
            self.next.push_back(number);
        }
    }

    pub(crate) fn take(&mut self) -> Option<usize> {
        let number = self.next.pop_front()?;
        self.listed[number] = false;
        Some(number)
    }
}
