// SPDX-License-Identifier: GPL-2.0

//! A layer between the OS part and any KMD that logs every entry and every callback, and reports
//! who breaks a rule of the driver interface, the OS part or the KMD (MEM-95).
//!
//! It is a KMD itself, around another one. What it reports does not change what happens, but for
//! one thing: a call that names an object which the KMD has not made, or no longer has, does not
//! reach the KMD.
//!
//! ```text
//! entry.rs     entries and callbacks by name
//! rule.rs      the rules, and who is told of them
//! call.rs      what is checked of every call
//! objects.rs   what the KMD has made
//! callbacks.rs what it tells
//! entries.rs   the entries, destroys.rs the destroys
//! ```

mod call;
mod callbacks;
mod destroys;
mod entries;
pub mod entry;
mod objects;
mod paging;
pub mod rule;

use super::{
    caps::DriverCaps,
    native_fence::NativeFenceCaps,
    Kmd, //
};
use crate::platform::{
    self,
    Boxed,
    Shared,
    ShortLock,
    Word32, //
};
use entry::Entry;
use objects::Objects;
use rule::{
    Log,
    Rule, //
};

/// The stages of a KMD; 0 before StartDevice.
const STARTED: u32 = 1;
const STOPPED: u32 = 2;

/// The layer around one KMD.
pub struct Verifier {
    kmd: Boxed<dyn Kmd>,
    log: Shared<dyn Log>,
    objects: Objects,
    /// One of those above.
    stage: Word32,
    /// How many calls are inside.
    inside: Word32,
    /// What it says of its adapter, from StartDevice on.
    caps: DriverCaps,
    /// What it wants of native fences, from when the OS part has asked.
    native_fence_caps: ShortLock<NativeFenceCaps>,
    /// 1 in D3.
    asleep: Word32,
}

impl Verifier {
    /// Puts the layer around a KMD that was not started yet; `None` if there is no memory.
    ///
    /// Context: may sleep.
    pub fn around(kmd: Boxed<dyn Kmd>, log: Shared<dyn Log>) -> Option<Self> {
        Some(Self {
            kmd,
            log,
            objects: Objects::new()?,
            stage: platform::word32(0),
            inside: platform::word32(0),
            caps: DriverCaps::default(),
            native_fence_caps: platform::short_lock!(
                NativeFenceCaps::default(),
                "Verifier::native_fence_caps"
            )?,
            asleep: platform::word32(0),
        })
    }
}

impl Drop for Verifier {
    /// RemoveDevice.
    fn drop(&mut self) {
        let stage = platform::load32_acquire(&self.stage);

        self.log.called(Entry::RemoveDevice, 0);
        // A KMD that failed to start is not stopped.
        if !self.objects.is_empty() || !matches!(stage, 0 | STOPPED) {
            self.log.broken(Rule::NotEmpty, Entry::RemoveDevice, 0);
        }
    }
}
