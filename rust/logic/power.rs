// SPDX-License-Identifier: GPL-2.0

//! Whether an adapter works, for those who do not wait to find out (GPU-28).
//!
//! Who submits gives the work to the KMD and looks here afterwards. Who sends the adapter to sleep
//! says so here, and looks for work afterwards. So one of the two sees the other.

use crate::platform::{
    self,
    full_fence,
    Word32, //
};

/// Whether an adapter works.
pub struct Awake(Word32);

impl Awake {
    /// It does, as after StartDevice.
    pub fn new() -> Self {
        Self(platform::word32(1))
    }

    /// Whether it works.
    pub fn is_awake(&self) -> bool {
        platform::load32_acquire(&self.0) != 0
    }

    /// It does not work from now on. Called before anybody looks for work; one of these, and of
    /// [`Awake::awakes`], at a time.
    pub fn falls_asleep(&self) {
        platform::cmpxchg(&self.0, 1, 0);
        // ORDERING: pairs with that in `is_awake_for_work`: work that is not seen below sees this.
        full_fence();
    }

    /// It works again.
    pub fn awakes(&self) {
        platform::cmpxchg(&self.0, 0, 1);
    }

    /// Whether it works, for work that the KMD has got before. If not, somebody has to wake it.
    pub fn is_awake_for_work(&self) -> bool {
        // ORDERING: see `falls_asleep`.
        full_fence();
        self.is_awake()
    }
}

impl Default for Awake {
    fn default() -> Self {
        Self::new()
    }
}
