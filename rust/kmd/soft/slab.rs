// SPDX-License-Identifier: GPL-2.0

//! Objects by number. Numbers are used again; looking one up takes as long whatever their number
//! is, and nothing moves.
//!
//! Room comes in chunks that the user of a slab makes before it takes a lock.

use crate::platform::{
    self,
    Places,
    ShortLock, //
};

/// Objects of a chunk, and most chunks of a slab.
const CHUNK: usize = 256;
const CHUNKS: usize = 1024;

/// A place: what is there, or the next free place.
enum Place<T> {
    Used(T),
    Free(Option<u32>),
}

/// Room for some objects.
pub struct Chunk<T>(Places<Place<T>, CHUNK>);

impl<T> Chunk<T> {
    /// Empty room; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self(platform::places()?))
    }
}

/// Objects by number.
pub struct Slab<T> {
    chunks: Places<Chunk<T>, CHUNKS>,
    /// How many chunks there are.
    filled: usize,
    /// The first number that was never used.
    fresh: u32,
    /// The first number of those that are free again.
    free: Option<u32>,
}

impl<T> Slab<T> {
    /// No objects, and no room; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self {
            chunks: platform::places()?,
            filled: 0,
            fresh: 0,
            free: None,
        })
    }

    /// Whether an object can be added.
    pub fn has_room(&mut self) -> bool {
        let next = self.free.unwrap_or(self.fresh);

        self.place_mut(next).is_some()
    }

    /// Adds an object, and returns its number; the object if there is no room.
    pub fn insert(&mut self, object: T) -> Result<u32, T> {
        let number = self.free.unwrap_or(self.fresh);
        let Some(place) = self.place_mut(number) else {
            return Err(object);
        };
        let before = place.replace(Place::Used(object));

        match before {
            Some(Place::Free(next)) => self.free = next,
            // OVERFLOW: there is a place for it, so it is far below the end of the numbers.
            _ => self.fresh = self.fresh.wrapping_add(1),
        }
        Ok(number)
    }

    /// Adds room; what is returned could not be added, because there is as much as can be.
    pub fn grow(&mut self, chunk: Chunk<T>) -> Result<(), Chunk<T>> {
        match self.chunks.get_mut(self.filled) {
            Some(place) => {
                *place = Some(chunk);
                // OVERFLOW: at most `CHUNKS`.
                self.filled = self.filled.wrapping_add(1);
                Ok(())
            }
            None => Err(chunk),
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let next = self.free;
        let place = self.place_mut(number)?;

        match place.replace(Place::Free(next)) {
            Some(Place::Used(object)) => {
                self.free = Some(number);
                Some(object)
            }
            other => {
                *place = other;
                None
            }
        }
    }

    /// An object.
    pub fn get(&self, number: u32) -> Option<&T> {
        let (chunk, index) = split(number);

        match self.chunks.get(chunk)?.as_ref()?.0.get(index)? {
            Some(Place::Used(object)) => Some(object),
            _ => None,
        }
    }

    /// An object, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.place_mut(number)? {
            Some(Place::Used(object)) => Some(object),
            _ => None,
        }
    }

    fn place_mut(&mut self, number: u32) -> Option<&mut Option<Place<T>>> {
        let (chunk, index) = split(number);

        self.chunks.get_mut(chunk)?.as_mut()?.0.get_mut(index)
    }
}

/// The chunk of a number, and its place there.
fn split(number: u32) -> (usize, usize) {
    // CAST: 32 bits fit a usize.
    (number as usize / CHUNK, number as usize % CHUNK)
}

/// A slab under a lock that nothing sleeps under.
pub type SharedSlab<T> = ShortLock<Slab<T>>;

/// Adds an object to a slab; `None`, and it is dropped, if there is no memory. May sleep.
pub fn insert<T>(slab: &SharedSlab<T>, object: T) -> Option<u32> {
    let mut object = object;

    loop {
        let inserted = slab.lock().insert(object);

        object = match inserted {
            Ok(number) => return Some(number),
            Err(object) => object,
        };

        let chunk = Chunk::new()?;
        // Others may have made room meanwhile, so this may be more than is needed.
        let grown = slab.lock().grow(chunk);

        if grown.is_err() {
            return None;
        }
    }
}
