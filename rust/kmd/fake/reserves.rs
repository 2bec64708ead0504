// SPDX-License-Identifier: GPL-2.0

//! GPU addresses that a double reserves in each process (MEM-64).

use crate::{
    ddi::{
        reserve::{
            ReserveAddresses,
            ReserveRange, //
        },
        types::KmdResult, //
    },
    platform::{
        self,
        ShortLock, //
    }, //
};

/// Most ranges of a test.
const RANGES: usize = 16;

/// What a double asks for, and what it got for the last process. The test and the double share it.
pub struct Reserves {
    wishes: &'static [ReserveRange],
    given: ShortLock<[Option<KmdResult<u64>>; RANGES]>,
}

impl Reserves {
    /// It asks for these, the first sixteen of them; `None` if there is no memory. May sleep.
    pub fn new(wishes: &'static [ReserveRange]) -> Option<Self> {
        Some(Self {
            wishes,
            given: platform::short_lock!([None; RANGES], "fake::Reserves::given")?,
        })
    }

    pub(super) fn ask(&self, addresses: &mut dyn ReserveAddresses) {
        for (number, wish) in self.wishes.iter().enumerate() {
            let given = addresses.reserve(wish);

            if let Some(place) = self.given.lock().get_mut(number) {
                *place = Some(given);
            }
        }
    }

    /// What it got for the wish with this number; `None` before the first process.
    pub fn given(&self, number: usize) -> Option<KmdResult<u64>> {
        self.given.lock().get(number).copied().flatten()
    }
}
