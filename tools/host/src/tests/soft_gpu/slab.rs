// SPDX-License-Identifier: MIT OR Apache-2.0

//! Objects by number.

use crate::kmd::soft::slab::{Chunk, Slab};

#[test]
fn numbers_of_a_slab_are_used_again() {
    let mut slab = Slab::new().unwrap();

    assert!(!slab.has_room());
    assert_eq!(slab.insert(0), Err(0), "there is no room yet");
    assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    for number in 0..256 {
        assert_eq!(slab.insert(number), Ok(number));
    }
    assert_eq!(slab.insert(256), Err(256));
    assert_eq!((slab.remove(7), slab.remove(7)), (Some(7), None));
    assert_eq!((slab.remove(3), slab.remove(999_999_999)), (Some(3), None));
    assert_eq!((slab.get(3), slab.get(4)), (None, Some(&4)));
    assert_eq!((slab.insert(30), slab.insert(70)), (Ok(3), Ok(7)));
    assert_eq!(slab.insert(256), Err(256));
    assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    assert_eq!(slab.insert(256), Ok(256));
    *slab.get_mut(256).unwrap() = 1;
    assert_eq!(slab.get(256), Some(&1));
    assert!(slab.has_room());
}
