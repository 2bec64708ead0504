// SPDX-License-Identifier: MIT OR Apache-2.0

//! Objects by number.

use proptest::prelude::*;

use crate::ddi::slab::{Chunk, Slab};

/// Objects of a chunk.
const CHUNK: u32 = 256;

/// Adds an object, with room for it.
fn insert(slab: &mut Slab<u32>, object: u32) -> u32 {
    if !slab.has_room() {
        assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    }
    slab.insert(object).unwrap()
}

fn remove(slab: &mut Slab<u32>, number: u32) -> Option<u32> {
    slab.remove(number).map(|removed| removed.object)
}

#[test]
fn numbers_of_a_slab_are_used_again() {
    let mut slab = Slab::new().unwrap();

    assert!(!slab.has_room());
    assert_eq!(slab.insert(0), Err(0), "there is no room yet");
    assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    for number in 0..CHUNK {
        assert_eq!(slab.insert(number), Ok(number));
    }
    assert_eq!(slab.insert(256), Err(256));
    assert_eq!(remove(&mut slab, 7), Some(7));
    assert_eq!(remove(&mut slab, 7), None);
    assert_eq!(remove(&mut slab, 3), Some(3));
    assert_eq!(remove(&mut slab, 999_999_999), None);
    assert_eq!((slab.get(3), slab.get(4)), (None, Some(&4)));
    assert_eq!((slab.insert(30), slab.insert(70)), (Ok(3), Ok(7)));
    assert_eq!(slab.insert(256), Err(256));
    assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    assert_eq!(slab.insert(256), Ok(256));
    *slab.get_mut(256).unwrap() = 1;
    assert_eq!(slab.get(256), Some(&1));
    assert!(slab.has_room());
}

#[test]
fn memory_of_a_slab_goes_with_its_objects() {
    let mut slab = Slab::new().unwrap();

    for number in 0..5 * CHUNK {
        assert_eq!(insert(&mut slab, number), number);
    }
    assert_eq!(slab.chunks(), 5);

    // One that is empty stays for the next object, and is used before there is more room.
    for number in CHUNK..2 * CHUNK {
        assert_eq!(remove(&mut slab, number), Some(number));
    }
    assert_eq!(slab.chunks(), 5);
    for number in 3 * CHUNK..4 * CHUNK {
        assert_eq!(remove(&mut slab, number), Some(number));
    }
    assert_eq!(slab.chunks(), 4);
    assert_eq!(slab.get(3 * CHUNK), None);
    assert_eq!(remove(&mut slab, 3 * CHUNK), None);
    for number in 0..CHUNK {
        assert_eq!(insert(&mut slab, number) / CHUNK, 1);
    }
    assert_eq!(slab.chunks(), 4);

    // Its place is used again.
    assert_eq!(insert(&mut slab, 1), 3 * CHUNK);
    assert_eq!(slab.chunks(), 5);
    for number in 0..5 * CHUNK {
        let is_there = slab.get(number).is_some();

        assert_eq!(remove(&mut slab, number).is_some(), is_there);
    }
    assert_eq!(slab.chunks(), 1);

    // Objects that come and go one at a time take no new memory.
    for _ in 0..3 {
        assert!(slab.has_room());

        let number = slab.insert(1).unwrap();

        assert_eq!(remove(&mut slab, number), Some(1));
    }
    assert_eq!(slab.chunks(), 1);
}

#[test]
fn a_slab_is_full_when_all_chunks_are() {
    let mut slab = Slab::new().unwrap();

    for _ in 0..1024 {
        assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    }
    assert!(slab.grow(Chunk::new().unwrap()).is_err());
    for number in 0..1024 * CHUNK {
        assert_eq!(slab.insert(number), Ok(number));
    }
    assert!(!slab.has_room());
    assert_eq!(remove(&mut slab, 70_000), Some(70_000));
    assert_eq!(slab.insert(5), Ok(70_000));
}

proptest! {
    /// Random objects come and go, compared with a map.
    #[test]
    fn a_slab_is_a_map(acts in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..3000)) {
        let mut slab = Slab::new().unwrap();
        let mut model = std::collections::BTreeMap::new();

        for (name, (inserts, which)) in acts.into_iter().enumerate() {
            if inserts || model.is_empty() {
                let number = insert(&mut slab, name as u32);

                prop_assert_eq!(model.insert(number, name as u32), None);
            } else {
                let number = *model.keys().nth(which.index(model.len())).unwrap();

                prop_assert_eq!(remove(&mut slab, number), model.remove(&number));
            }
        }
        for (number, object) in &model {
            prop_assert_eq!(slab.get(*number), Some(object));
        }
        prop_assert!(slab.chunks() <= model.len() + 1);
    }
}
