// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the values of a call in memory, and takes from there what it made.

use std::collections::HashMap;

use rustix::mm::{mmap_anonymous, mprotect, MapFlags, MprotectFlags, ProtFlags};
use selftests::TestResult;

use super::choices::Choices;
use super::lang::{Kind, Lang, Range, Type};

/// Bytes of memory for one call. Behind them is a page that nobody may touch.
const SIZE: usize = 1 << 16;
const PAGE: usize = 4096;

/// Numbers that are at the edge of something.
const EDGES: [u64; 16] = [
    1,
    2,
    7,
    63,
    64,
    4095,
    4096,
    4097,
    65536,
    1 << 31,
    (1 << 31) - 1,
    u32::MAX as u64,
    1 << 32,
    1 << 47,
    u64::MAX,
    u64::MAX - 4095,
];

/// Addresses where a call must not find anything.
const NOWHERE: [u64; 5] = [0, 8, 0xffff_8000_0000_0000, u64::MAX - 7, 0x7fff_ffff_f000];

/// What calls have made, by kind.
pub(crate) struct Pool {
    made: Vec<Vec<u64>>,
}

impl Pool {
    pub(crate) fn new(lang: &Lang) -> Self {
        Self {
            made: vec![Vec::new(); lang.resources.len()],
        }
    }

    pub(crate) fn add(&mut self, kind: Kind, value: u64) {
        if value != 0 && self.made[kind].len() < 64 {
            self.made[kind].push(value);
        }
    }

    /// One of these, of which the last are the most likely; mostly of the right kind.
    pub(crate) fn pick(&self, lang: &Lang, kind: Kind, choices: &mut Choices<'_>) -> u64 {
        let special = &lang.resources[kind].special;
        let strange = choices.rarely(20);
        let mut fits: Vec<u64> = Vec::new();
        for (other, made) in self.made.iter().enumerate() {
            let related = lang.resources[other].parent == lang.resources[kind].parent;
            if lang.is_a(other, kind) || strange && related {
                fits.extend(made);
            }
        }
        if fits.is_empty() || choices.rarely(12) {
            return match special.len() {
                0 => 0,
                count => special[choices.below(count)],
            };
        }
        let back = choices.below(fits.len()).min(choices.below(fits.len()));
        fits[fits.len() - 1 - back]
    }
}

/// The memory of one thread's calls.
pub(crate) struct Arena {
    start: *mut u8,
    used: usize,
    /// What the call writes: where, what kind, and how long.
    made: Vec<(usize, Kind, usize)>,
}

// SAFETY: the memory belongs to the arena alone.
unsafe impl Send for Arena {}

impl Arena {
    pub(crate) fn new() -> TestResult<Self> {
        // SAFETY: new memory, which stays for the life of the process.
        let start = unsafe {
            let start = mmap_anonymous(
                core::ptr::null_mut(),
                SIZE + PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?;
            mprotect(start.byte_add(SIZE), PAGE, MprotectFlags::empty())?;
            start
        };
        Ok(Self {
            start: start.cast(),
            used: 0,
            made: Vec::new(),
        })
    }

    /// Makes the argument of a call. Its address, or one where it is not.
    pub(crate) fn argument(
        &mut self,
        lang: &Lang,
        kind: &Type,
        pool: &Pool,
        choices: &mut Choices<'_>,
    ) -> u64 {
        self.used = 0;
        self.made.clear();
        let place = self.take(lang.size(kind), false);
        self.write(lang, kind, place, pool, choices, &HashMap::new());
        self.address(place, choices)
    }

    /// What the call has made.
    pub(crate) fn collect(&self, pool: &mut Pool) {
        for &(place, kind, size) in &self.made {
            pool.add(kind, self.load(place, size));
        }
    }

    /// Room for so many bytes, at the end of the memory if they should meet it.
    fn take(&mut self, size: usize, at_end: bool) -> usize {
        let place = if at_end && size < SIZE / 2 {
            SIZE - size
        } else {
            self.used
        };
        let fits = place + size <= SIZE;
        if fits && place == self.used {
            self.used = (place + size).next_multiple_of(8);
        }
        if fits {
            place
        } else {
            0
        }
    }

    fn address(&self, place: usize, choices: &mut Choices<'_>) -> u64 {
        if choices.rarely(5) {
            return NOWHERE[choices.below(NOWHERE.len())];
        }
        self.start as u64 + place as u64
    }

    fn write(
        &mut self,
        lang: &Lang,
        kind: &Type,
        place: usize,
        pool: &Pool,
        choices: &mut Choices<'_>,
        counts: &HashMap<&str, (usize, usize)>,
    ) {
        match kind {
            Type::Const(value, size) => {
                let value = if choices.rarely(4) {
                    choices.word()
                } else {
                    *value
                };
                self.store(place, value, *size);
            }
            Type::Int(size, range) => self.store(place, integer(*range, choices), *size),
            Type::Flags(values, size) => self.store(place, flags(values, choices), *size),
            Type::Resource(kind, size) => {
                self.store(place, pool.pick(lang, *kind, choices), *size);
                self.made.push((place, *kind, *size));
            }
            Type::Len(of, size, in_bytes) => {
                let (count, each) = counts.get(of.as_str()).copied().unwrap_or((0, 0));
                let count = if *in_bytes { count * each } else { count };
                let strange = choices.rarely(16);
                let value = if strange {
                    integer(None, choices)
                } else {
                    count as u64
                };
                self.store(place, value, *size);
            }
            Type::Pointer(of) => self.pointer(lang, of, place, 1, pool, choices),
            Type::Array(of, count) => {
                let size = lang.size(of);
                for index in 0..count.unwrap_or(0) {
                    self.write(
                        lang,
                        of,
                        place + index * size,
                        pool,
                        choices,
                        &HashMap::new(),
                    );
                }
            }
            Type::Body(body) => self.body(lang, *body, place, pool, choices),
        }
    }

    fn body(
        &mut self,
        lang: &Lang,
        body: usize,
        place: usize,
        pool: &Pool,
        choices: &mut Choices<'_>,
    ) {
        let body = &lang.bodies[body];
        if body.is_union {
            let arm = &body.fields[choices.below(body.fields.len())];
            self.write(lang, &arm.kind, place, pool, choices, &HashMap::new());
            return;
        }
        let mut counts = HashMap::new();
        for field in &body.fields {
            if let Type::Pointer(of) = &field.kind {
                if let Type::Array(of, _) = &**of {
                    let size = lang.size(of);
                    counts.insert(&*field.name, (length(size, choices), size));
                }
            }
        }
        for field in &body.fields {
            let place = place + field.offset;
            match &field.kind {
                Type::Resource(kind, size) if field.is_out => {
                    self.made.push((place, *kind, *size));
                }
                Type::Pointer(of) => {
                    let count = counts.get(&*field.name).map_or(1, |&(count, _)| count);
                    self.pointer(lang, of, place, count, pool, choices);
                }
                _ if field.is_out && !matches!(field.kind, Type::Body(_)) => {}
                kind => self.write(lang, kind, place, pool, choices, &counts),
            }
        }
    }

    /// An address and what is there. One in some is none.
    fn pointer(
        &mut self,
        lang: &Lang,
        of: &Type,
        place: usize,
        count: usize,
        pool: &Pool,
        choices: &mut Choices<'_>,
    ) {
        if count == 0 || choices.rarely(24) {
            self.store(place, 0, 8);
            return;
        }
        let (each, count) = match of {
            Type::Array(each, _) => (&**each, count),
            one => (one, 1),
        };
        let size = lang.size(each);
        let target = self.take(size * count, choices.rarely(24));
        // A large array repeats what it begins with.
        for index in 0..count.min(8) {
            self.write(
                lang,
                each,
                target + index * size,
                pool,
                choices,
                &HashMap::new(),
            );
        }
        let address = self.address(target, choices);
        self.store(place, address, 8);
    }

    fn store(&mut self, place: usize, value: u64, size: usize) {
        assert!(place + size <= SIZE);
        // SAFETY: inside the memory of this arena.
        unsafe {
            self.start
                .add(place)
                .copy_from_nonoverlapping(value.to_le_bytes().as_ptr(), size);
        }
    }

    fn load(&self, place: usize, size: usize) -> u64 {
        let mut bytes = [0; 8];
        assert!(place + size <= SIZE);
        // SAFETY: inside the memory of this arena.
        unsafe {
            self.start
                .add(place)
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), size);
        }
        u64::from_le_bytes(bytes)
    }
}

/// How many elements of so many bytes each.
fn length(size: usize, choices: &mut Choices<'_>) -> usize {
    const BYTES: [usize; 8] = [64, 0, 4, 8, 24, 256, 1000, 4096];

    match (size, choices.below(16)) {
        (1, which) => BYTES[which % 8],
        (_, 0..=7) => 1,
        (_, 8..=9) => 2,
        (_, 10..=12) => 16,
        (_, 13) => 0,
        (_, _) => 1 + choices.below(100).min(SIZE / 4 / size.max(1)),
    }
}

fn integer(range: Option<Range>, choices: &mut Choices<'_>) -> u64 {
    if let Some(Range { least, most, step }) = range {
        if !choices.rarely(16) {
            let count = (most - least) / step + 1;
            return least + step * choices.below(count as usize) as u64;
        }
    }
    match choices.byte() {
        0..=99 => 0,
        100..=149 => 1,
        150..=179 => u64::from(choices.byte()),
        180..=209 => u64::from(choices.byte()) << 12,
        210..=244 => EDGES[choices.below(EDGES.len())],
        _ => choices.word(),
    }
}

fn flags(values: &[u64], choices: &mut Choices<'_>) -> u64 {
    let any = |choices: &mut Choices<'_>| match values.len() {
        0 => 0,
        count => values[choices.below(count)],
    };
    match choices.byte() {
        0..=79 => 0,
        80..=189 => any(choices),
        190..=229 => any(choices) | any(choices),
        230..=250 => any(choices) | any(choices) | any(choices),
        _ => choices.word(),
    }
}
