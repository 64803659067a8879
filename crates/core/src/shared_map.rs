//! A map in order, in blocks that copies share until they change. So a snapshot of very many entries takes no time; while it is
//! written, a change copies one block.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Entries of a block; it is divided when it would have more.
const BLOCK: usize = 256;

/// A map in order. No block is empty, and beside each is a key that is not above any of its keys, and above all before it.
#[derive(Clone)]
pub(crate) struct SharedMap<K, V> {
    blocks: Vec<(K, Arc<Block<K, V>>)>,
    len: usize,
}

type Block<K, V> = Vec<(K, V)>;

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> SharedMap<K, V> {
        SharedMap {
            blocks: Vec::new(),
            len: 0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (_, block) = self.blocks.get(self.block_of(key))?;
        let at = place(block, key).ok()?;
        Some(&block[at].1)
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    pub(crate) fn find_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let number = self.block_of(key);
        let (_, block) = self.blocks.get_mut(number)?;
        let at = place(block, key).ok()?;
        Some(&mut Arc::make_mut(block)[at].1)
    }

    /// Returns the former value.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let number = self.block_of(&key);
        let last = number + 1 >= self.blocks.len();
        let Some((lowest, block)) = self.blocks.get_mut(number) else {
            self.blocks
                .push((key.clone(), Arc::new(vec![(key, value)])));
            self.len += 1;
            return None;
        };
        let at = match place(block, &key) {
            Ok(at) => return Some(std::mem::replace(&mut Arc::make_mut(block)[at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        if at == BLOCK && last {
            // Keys often rise, and then blocks are full.
            self.blocks
                .push((key.clone(), Arc::new(vec![(key, value)])));
            return None;
        }
        let block = Arc::make_mut(block);
        if key < *lowest {
            *lowest = key.clone();
        }
        let upper = (block.len() == BLOCK).then(|| block.split_off(BLOCK / 2));
        match upper {
            None => block.insert(at, (key, value)),
            Some(mut upper) => {
                match at.checked_sub(block.len()) {
                    Some(at) if at > 0 => upper.insert(at, (key, value)),
                    _ => block.insert(at, (key, value)),
                }
                self.blocks
                    .insert(number + 1, (upper[0].0.clone(), Arc::new(upper)));
            }
        }
        None
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let number = self.block_of(key);
        let (_, block) = self.blocks.get_mut(number)?;
        let at = place(block, key).ok()?;
        let block = Arc::make_mut(block);
        let (_, value) = block.remove(at);
        self.len -= 1;
        if block.is_empty() {
            self.blocks.remove(number);
        } else if block.len() * 4 < block.capacity() {
            block.shrink_to(block.len() * 2);
        }
        Some(value)
    }

    /// All entries, in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        Counted {
            entries: self.iter_after(None),
            left: self.len,
        }
    }

    /// The entries behind a key, or all of them, in order.
    pub(crate) fn iter_after<'a>(
        &'a self,
        after: Option<&K>,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let number = after.map_or(0, |key| self.block_of(key));
        let at = match (after, self.blocks.get(number)) {
            (Some(key), Some((_, block))) => block.partition_point(|(other, _)| other <= key),
            _ => 0,
        };
        let blocks = self.blocks.iter().skip(number);
        let entries = blocks.flat_map(|(_, block)| block.iter()).skip(at);
        entries.map(|(key, value)| (key, value))
    }

    /// The number of the block that has the key if any has, and into which it belongs.
    fn block_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let begins = |(lowest, _): &(K, Arc<Block<K, V>>)| Borrow::<Q>::borrow(lowest) <= key;
        let begun = self.blocks.partition_point(begins);
        begun.saturating_sub(1)
    }
}

fn place<K: Borrow<Q>, V, Q: Ord + ?Sized>(block: &[(K, V)], key: &Q) -> Result<usize, usize> {
    block.binary_search_by(|(other, _)| Borrow::<Q>::borrow(other).cmp(key))
}

/// Entries whose number is known.
struct Counted<I> {
    entries: I,
    left: usize,
}

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let next = self.entries.next()?;
        self.left -= 1;
        Some(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<I: Iterator> ExactSizeIterator for Counted<I> {}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SharedMap<K, V> {
        let mut map = SharedMap::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

// Equal maps may be divided differently.
impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &SharedMap<K, V>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Clone, V: Clone + Eq> Eq for SharedMap<K, V> {}

impl<K: Ord + Clone + fmt::Debug, V: Clone + fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Clone + Serialize, V: Clone + Serialize> Serialize for SharedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, K, V> Deserialize<'de> for SharedMap<K, V>
where
    K: Ord + Clone + Deserialize<'de>,
    V: Clone + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedMap<K, V>, D::Error> {
        let map = BTreeMap::<K, V>::deserialize(deserializer)?;
        Ok(map.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same changes to both.
    #[test]
    fn it_is_like_any_map() {
        let (mut map, mut plain) = (SharedMap::default(), BTreeMap::new());
        let mut number: u64 = 1;
        for step in 0..20_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
            let key = number >> 52;
            match number >> 48 & 3 {
                0 => assert_eq!(map.remove(&key), plain.remove(&key)),
                1 => {
                    let found = plain
                        .get_mut(&key)
                        .map(|value| std::mem::replace(value, step));
                    let value = map.find_mut(&key);
                    assert_eq!(value.map(|value| std::mem::replace(value, step)), found);
                }
                _ => assert_eq!(map.insert(key, step), plain.insert(key, step)),
            }
            assert_eq!((map.len(), map.get(&key)), (plain.len(), plain.get(&key)));
            assert_eq!(map.contains_key(&(key + 1)), plain.contains_key(&(key + 1)));
        }
        assert!(map.iter().eq(plain.iter()) && map.blocks.len() > 3);
        assert_eq!(map.iter().len(), plain.len());
        for key in (0..4_100).step_by(50) {
            assert!(
                map.iter_after(Some(&key)).eq(plain.range(key + 1..)),
                "{key}"
            );
        }
        let written = postcard::to_allocvec(&map).unwrap();
        assert_eq!(written, postcard::to_allocvec(&plain).unwrap());
        let read: SharedMap<u64, u64> = postcard::from_bytes(&written).unwrap();
        assert_eq!(read, map);
    }

    #[test]
    fn a_copy_shares_all_blocks_but_those_that_change() {
        let mut map: SharedMap<u64, u64> = (0..10_000).map(|key| (key, 0)).collect();
        let copy = map.clone();
        map.insert(5_000, 1);
        map.remove(&9_999);
        let blocks = map.blocks.iter().zip(&copy.blocks);
        let changed = blocks.filter(|(one, other)| !Arc::ptr_eq(&one.1, &other.1));
        assert_eq!(changed.count(), 2);
        assert_eq!((copy.get(&5_000), copy.len()), (Some(&0), 10_000));
    }
}
