//! A vector with holes: small stable keys, no pointer chasing, and freed places are reused. Keys are typed, so that a gate
//! cannot be looked up among the sessions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut, Range};

/// The place of a `T` in its [`Arena`]. `Option<Key<T>>` is as small as the key.
pub(crate) struct Key<T>(NonZeroU32, PhantomData<fn() -> T>);

#[derive(Debug)]
pub(crate) struct Arena<T> {
    slots: Vec<Slot<T>>,
    free: Option<Key<T>>,
    len: usize,
}

#[derive(Debug)]
enum Slot<T> {
    Full(T),
    Free(Option<Key<T>>),
}

impl<T> Arena<T> {
    pub(crate) fn new() -> Arena<T> {
        Arena {
            slots: Vec::new(),
            free: None,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        self.len += 1;
        if let Some(key) = self.free {
            let slot = &mut self.slots[key.at()];
            let Slot::Free(next) = *slot else {
                unreachable!("the free list leads to a full slot")
            };
            self.free = next;
            *slot = Slot::Full(value);
            return key;
        }
        self.slots.push(Slot::Full(value));
        let place = u32::try_from(self.slots.len()).expect("limits keep arenas below 2^32");
        Key(
            NonZeroU32::new(place).expect("a push makes the length positive"),
            PhantomData,
        )
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> T {
        let slot = std::mem::replace(&mut self.slots[key.at()], Slot::Free(self.free));
        let Slot::Full(value) = slot else {
            unreachable!("a key outlived its value")
        };
        self.free = Some(key);
        self.len -= 1;
        value
    }

    pub(crate) fn find(&self, key: Key<T>) -> Option<&T> {
        match self.slots.get(key.at()) {
            Some(Slot::Full(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        self.iter_in(0..self.places())
    }

    /// How many places there are, full and free.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// The values in a range of places. A value keeps its place as long as it exists.
    pub(crate) fn iter_in(&self, places: Range<usize>) -> impl Iterator<Item = (Key<T>, &T)> {
        let end = places.end.min(self.slots.len());
        let start = places.start.min(end);
        // A place's key is its index plus one.
        let keys = (start as u32 + 1)..;
        keys.zip(&self.slots[start..end])
            .filter_map(|(place, slot)| match slot {
                Slot::Full(value) => NonZeroU32::new(place).map(|at| (Key(at, PhantomData), value)),
                Slot::Free(_) => None,
            })
    }
}

impl<T> Index<Key<T>> for Arena<T> {
    type Output = T;
    #[inline]
    fn index(&self, key: Key<T>) -> &T {
        match &self.slots[key.at()] {
            Slot::Full(value) => value,
            Slot::Free(_) => unreachable!("a key outlived its value"),
        }
    }
}

impl<T> IndexMut<Key<T>> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        match &mut self.slots[key.at()] {
            Slot::Full(value) => value,
            Slot::Free(_) => unreachable!("a key outlived its value"),
        }
    }
}

impl<T> Key<T> {
    #[inline]
    fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Key<T> {
        *self
    }
}
impl<T> Copy for Key<T> {}
impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Key<T>) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Key<T> {}
impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Key<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Key<T>) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<T> Hash for Key<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.get());
    }
}
impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_places_are_used_again() {
        let mut arena = Arena::new();
        let (a, b) = (arena.insert('a'), arena.insert('b'));
        assert_eq!(
            (arena.remove(a), arena.find(a), arena.len()),
            ('a', None, 1)
        );
        let c = arena.insert('c');
        assert_eq!((c, arena[c], arena[b]), (a, 'c', 'b'));
        assert_eq!(arena.iter().map(|(_, v)| *v).collect::<String>(), "cb");
        let all: Vec<_> = (0..3).flat_map(|at| arena.iter_in(at..at + 1)).collect();
        assert_eq!(all, [(c, &'c'), (b, &'b')]);
    }
}
