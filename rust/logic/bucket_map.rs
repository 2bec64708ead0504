// SPDX-License-Identifier: GPL-2.0

//! A map from numbers to values. The cost of a lookup does not depend on the number of values.
//!
//! The numbers are random, but users choose which of their values they keep. So buckets depend on a
//! secret: no user can fill one bucket to slow others down.
//!
//! There are as many buckets as values (linear hashing). A new value adds a bucket, which takes its
//! part of an older one; a removed value removes the last bucket. So the map grows and shrinks with
//! its contents, and no call moves more than one bucket.
//!
//! Nothing is allocated and nothing is dropped in these calls, as in [`IndexMap`], which has the
//! buckets.

use crate::{
    ddi::index_map::{
        FreedNodes,
        IndexMap,
        MissingNode,
        NewNode,
        Removed, //
    },
    platform::Boxed, //
};

/// A value, allocated, with its number.
pub struct ChainNode<T> {
    /// The number.
    pub key: u32,
    pub value: T,
    next: Chain<T>,
}

type Chain<T> = Option<Boxed<ChainNode<T>>>;

/// A chain of the values whose hashes lead here.
pub struct Bucket<T>(Chain<T>);

impl<T> ChainNode<T> {
    /// A value that is in no map yet.
    pub fn new(key: u32, value: T) -> Self {
        Self {
            key,
            value,
            next: None,
        }
    }
}

impl<T> Bucket<T> {
    fn push(&mut self, mut link: Boxed<ChainNode<T>>) {
        link.next = self.0.take();
        self.0 = Some(link);
    }

    fn pop(&mut self) -> Option<Boxed<ChainNode<T>>> {
        let mut link = self.0.take()?;

        self.0 = link.next.take();
        Some(link)
    }

    fn take(&mut self, key: u32) -> Option<Boxed<ChainNode<T>>> {
        let mut chain = &mut self.0;

        while chain.as_ref()?.key != key {
            chain = &mut chain.as_mut()?.next;
        }

        let mut link = chain.take()?;

        *chain = link.next.take();
        Some(link)
    }
}

/// What keeps the buckets of numbers unknown. Odd.
#[derive(Clone, Copy)]
struct Secret(u32);

impl Secret {
    /// A number's hash. The high bits of the product depend on all bits of the number; they become
    /// the low ones, which choose the bucket.
    fn hash(self, key: u32) -> u32 {
        key.wrapping_mul(self.0).swap_bytes()
    }
}

/// The bucket of a hash, when there are `count`.
fn bucket_of(hash: u32, count: u32) -> u32 {
    let last = count.saturating_sub(1);
    // All bits below the highest of the last bucket's number, and that one.
    let mask = u32::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
    let bucket = hash & mask;

    if bucket <= last {
        bucket
    } else {
        // The bucket that will be split into this one.
        bucket & (mask >> 1)
    }
}

/// A map with random numbers as keys.
pub struct BucketMap<T> {
    buckets: IndexMap<Bucket<T>>,
    secret: Secret,
    /// How many buckets there are, and how many values.
    count: u32,
}

/// What was taken out.
pub struct Taken<T> {
    /// The value.
    pub link: Boxed<ChainNode<T>>,
    _bucket: Option<Removed<Bucket<T>>>,
}

impl<T> BucketMap<T> {
    /// An empty map with this random number as its secret.
    pub const fn new(secret: u32) -> Self {
        Self {
            buckets: IndexMap::new(),
            secret: Secret(secret | 1),
            count: 0,
        }
    }

    /// The value of a number.
    pub fn get(&self, key: u32) -> Option<&T> {
        let mut link = self
            .buckets
            .get(bucket_of(self.secret.hash(key), self.count))?
            .0
            .as_ref()?;

        while link.key != key {
            link = link.next.as_ref()?;
        }
        Some(&link.value)
    }

    /// The value of a number, to be changed.
    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let bucket = bucket_of(self.secret.hash(key), self.count);
        let bucket = self.buckets.get_mut(bucket)?;
        let mut link = bucket.0.as_mut()?;

        while link.key != key {
            link = link.next.as_mut()?;
        }
        Some(&mut link.value)
    }

    /// How many values each bucket has.
    #[cfg(test)]
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).filter_map(|number| {
            let chain = &self.buckets.get(number)?.0;

            Some(core::iter::successors(chain.as_ref(), |link| link.next.as_ref()).count())
        })
    }

    /// The node that is missing before a value can be put in, if any.
    pub fn missing_node(&self) -> Option<MissingNode> {
        self.buckets.missing_node(self.count)
    }

    /// Inserts a node, if it is still the one that is missing.
    pub fn insert_node(&mut self, new_node: NewNode<Bucket<T>>) -> Option<FreedNodes<Bucket<T>>> {
        self.buckets.insert_node(self.count, new_node)
    }

    /// Inserts a value whose number is not in the map. No node may be missing.
    pub fn put(&mut self, link: Boxed<ChainNode<T>>) {
        let new = self.count;
        let count = new.saturating_add(1);
        let mut stay = Bucket(None);
        let mut part = Bucket(None);

        // The bucket that is split has the links of the new one.
        if let Some(bucket) = self.buckets.get_mut(bucket_of(new, new)) {
            while let Some(link) = bucket.pop() {
                if bucket_of(self.secret.hash(link.key), count) == new {
                    part.push(link);
                } else {
                    stay.push(link);
                }
            }
            *bucket = stay;
        }
        self.buckets.put(new, &mut Some(part));
        self.count = count;

        let bucket = bucket_of(self.secret.hash(link.key), count);

        if let Some(bucket) = self.buckets.get_mut(bucket) {
            bucket.push(link);
        }
    }

    /// Takes a value out.
    pub fn take(&mut self, key: u32) -> Option<Taken<T>> {
        let link = self
            .buckets
            .get_mut(bucket_of(self.secret.hash(key), self.count))?
            .take(key)?;
        let last = self.count.saturating_sub(1);
        let mut bucket = self.buckets.take(last);

        self.count = last;
        // The last bucket goes back into the one that was split into it.
        if let Some(removed) = &mut bucket {
            if let Some(older) = self.buckets.get_mut(bucket_of(last, last)) {
                while let Some(link) = removed.value.pop() {
                    older.push(link);
                }
            }
        }
        Some(Taken {
            link,
            _bucket: bucket,
        })
    }
}
