// SPDX-License-Identifier: GPL-2.0

//! Objects by number. Numbers are used again; looking one up takes as long whatever their number
//! is, and nothing moves.
//!
//! Room comes in chunks that the user of a slab makes before it takes a lock. A chunk in which
//! nothing is left goes with the object that was the last one there, but for one chunk that is kept
//! for the next object. New objects go into the first chunk that has room, so that the others may
//! become empty.

use crate::platform::{
    self,
    Places,
    ShortLock, //
};

/// Objects of a chunk, and most chunks of a slab.
const CHUNK: usize = 256;
const CHUNKS: usize = 1024;

/// How many empty chunks a slab keeps.
const SPARE: usize = 1;

/// A place: what is there, or the next free place of the chunk.
enum Place<T> {
    Used(T),
    Free(Option<usize>),
}

/// Room for some objects.
pub struct Chunk<T> {
    places: Places<Place<T>, CHUNK>,
    /// How many objects are there.
    used: usize,
    /// The first place that was never used.
    fresh: usize,
    /// The first place of those that are free again.
    free: Option<usize>,
}

impl<T> Chunk<T> {
    /// Empty room; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self {
            places: platform::places()?,
            used: 0,
            fresh: 0,
            free: None,
        })
    }

    fn has_room(&self) -> bool {
        self.used < CHUNK
    }

    /// Adds an object, and returns its place; the object if there is no room.
    fn insert(&mut self, object: T) -> Result<usize, T> {
        let index = self.free.unwrap_or(self.fresh);
        let Some(place) = self.places.get_mut(index) else {
            return Err(object);
        };

        match place.replace(Place::Used(object)) {
            Some(Place::Free(next)) => self.free = next,
            // OVERFLOW: there is a place for it, so it is at most `CHUNK`.
            _ => self.fresh = self.fresh.wrapping_add(1),
        }
        // OVERFLOW: as above.
        self.used = self.used.wrapping_add(1);
        Ok(index)
    }

    /// Takes an object out.
    fn remove(&mut self, index: usize) -> Option<T> {
        let place = self.places.get_mut(index)?;

        match place.replace(Place::Free(self.free)) {
            Some(Place::Used(object)) => {
                self.free = Some(index);
                self.used = self.used.saturating_sub(1);
                Some(object)
            }
            other => {
                *place = other;
                None
            }
        }
    }
}

/// Some of the chunks of a slab, by a bit for each.
struct Set([u64; CHUNKS / 64]);

impl Set {
    const EMPTY: Self = Self([0; CHUNKS / 64]);

    /// Adds a chunk, or takes it out.
    fn put(&mut self, chunk: usize, is_in: bool) {
        if let Some(word) = self.0.get_mut(chunk / 64) {
            let bit = 1_u64 << (chunk % 64);

            *word = if is_in { *word | bit } else { *word & !bit };
        }
    }

    /// The first chunk that is in the set, or that is not.
    fn first(&self, is_in: bool) -> Option<usize> {
        let mut words = self
            .0
            .iter()
            .map(|word| if is_in { *word } else { !*word })
            .enumerate();
        let (place, word) = words.find(|(_, word)| *word != 0)?;

        // CAST: below 64. OVERFLOW: below `CHUNKS`.
        Some(place * 64 + word.trailing_zeros() as usize)
    }
}

/// Objects by number.
pub struct Slab<T> {
    chunks: Places<Chunk<T>, CHUNKS>,
    /// The chunks that there are, and those that have room.
    there: Set,
    with_room: Set,
    /// How many chunks are empty.
    empty: usize,
}

/// An object that was taken out. Dropping it may sleep.
pub struct Removed<T> {
    /// What it was.
    pub object: T,
    /// The chunk that it leaves empty, if the slab does not keep it.
    _chunk: Option<Chunk<T>>,
}

impl<T> Slab<T> {
    /// No objects, and no room; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self {
            chunks: platform::places()?,
            there: Set::EMPTY,
            with_room: Set::EMPTY,
            empty: 0,
        })
    }

    /// Whether an object can be added.
    pub fn has_room(&self) -> bool {
        self.with_room.first(true).is_some()
    }

    /// Adds an object, and returns its number; the object if there is no room.
    pub fn insert(&mut self, object: T) -> Result<u32, T> {
        let Some(number) = self.with_room.first(true) else {
            return Err(object);
        };
        let Some(Some(chunk)) = self.chunks.get_mut(number) else {
            return Err(object);
        };
        let index = chunk.insert(object)?;

        if chunk.used == 1 {
            self.empty = self.empty.saturating_sub(1);
        }
        self.with_room.put(number, chunk.has_room());
        // CAST: below the number of all places, which fits. OVERFLOW: the same.
        Ok((number * CHUNK + index) as u32)
    }

    /// Adds room; what is returned could not be added, because there is as much as can be.
    pub fn grow(&mut self, chunk: Chunk<T>) -> Result<(), Chunk<T>> {
        let Some(number) = self.there.first(false) else {
            return Err(chunk);
        };

        match self.chunks.get_mut(number) {
            Some(place) => {
                *place = Some(chunk);
                self.there.put(number, true);
                self.with_room.put(number, true);
                // OVERFLOW: at most `CHUNKS`.
                self.empty = self.empty.wrapping_add(1);
                Ok(())
            }
            None => Err(chunk),
        }
    }

    /// Takes an object out. What is returned may be dropped only where sleeping is allowed.
    pub fn remove(&mut self, number: u32) -> Option<Removed<T>> {
        let (number, index) = split(number);
        let place = self.chunks.get_mut(number)?;
        let chunk = place.as_mut()?;
        let object = chunk.remove(index)?;
        let is_empty = chunk.used == 0;
        let gone = if is_empty && self.empty >= SPARE {
            place.take()
        } else {
            None
        };

        self.there.put(number, gone.is_none());
        self.with_room.put(number, gone.is_none());
        if is_empty && gone.is_none() {
            // OVERFLOW: at most `CHUNKS`.
            self.empty = self.empty.wrapping_add(1);
        }
        Some(Removed {
            object,
            _chunk: gone,
        })
    }

    /// How many chunks there are.
    #[cfg(test)]
    pub fn chunks(&self) -> usize {
        self.chunks.iter().flatten().count()
    }

    /// An object.
    pub fn get(&self, number: u32) -> Option<&T> {
        let (chunk, index) = split(number);

        match self.chunks.get(chunk)?.as_ref()?.places.get(index)? {
            Some(Place::Used(object)) => Some(object),
            _ => None,
        }
    }

    /// The first object from this number on, and its number.
    pub fn next(&self, from: u32) -> Option<(u32, &T)> {
        let (mut chunk, mut index) = split(from);

        while let Some(place) = self.chunks.get(chunk) {
            let used = place.as_ref().map_or(0, |chunk| chunk.fresh);

            while index < used {
                // CAST: a number. OVERFLOW: the same.
                let number = (chunk * CHUNK + index) as u32;

                if let Some(object) = self.get(number) {
                    return Some((number, object));
                }
                index += 1;
            }
            (chunk, index) = (chunk + 1, 0);
        }
        None
    }

    /// An object, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let (chunk, index) = split(number);

        match self
            .chunks
            .get_mut(chunk)?
            .as_mut()?
            .places
            .get_mut(index)?
        {
            Some(Place::Used(object)) => Some(object),
            _ => None,
        }
    }

    /// All objects, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let chunks = self.chunks.iter_mut().flatten();

        chunks
            .flat_map(|chunk| chunk.places.iter_mut().take(chunk.fresh))
            .filter_map(|place| match place {
                Some(Place::Used(object)) => Some(object),
                _ => None,
            })
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
