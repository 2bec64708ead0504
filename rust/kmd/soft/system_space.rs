// SPDX-License-Identifier: GPL-2.0

//! The address space of the paging process, by which the CMP reaches the words of native fences on
//! an adapter that has asked for that (`MapToGpuSystemProcess`, FEN-119).
//!
//! The CMP has translations of its own, which stay until FlushTlb, as those of engines do. It looks
//! at no table before the system context has a root, or after StopDevice.
//!
//! LOCK: `translations` is a leaf, inside the lock of a fence of the OS part too. Each access is
//! done under it, so that FlushTlb, which takes it, returns after the last one by the old way.

use crate::{
    engine::{
        memory::{
            Memory,
            Physical, //
        },
        page_table::Profile,
        translation::{
            Access,
            Root,
            Scope,
            Target,
            Tlb, //
        }, //
    },
    platform::{
        self,
        PhysicalMemory,
        Shared,
        ShortLock, //
    }, //
};

struct Translations {
    tlb: Tlb,
    root: Option<Root>,
}

impl Translations {
    /// Where a word is that may be stored to.
    fn find(&mut self, memory: &PhysicalMemory, va: u64) -> Option<Physical> {
        let access = Access {
            write: true,
            system: true,
        };

        match self.tlb.translate(memory, &self.root?, va, access) {
            Ok(Target::Memory(at)) => Some(at),
            Ok(Target::Zero) | Err(_) => None,
        }
    }
}

/// The paging process, as the CMP reaches it.
pub struct SystemSpace {
    memory: Shared<PhysicalMemory>,
    translations: ShortLock<Translations>,
}

impl SystemSpace {
    /// Nothing is reached yet, by page tables of this format; `None` if there is no memory. May
    /// sleep.
    pub(super) fn new(memory: &Shared<PhysicalMemory>, format: Profile) -> Option<Shared<Self>> {
        let translations = Translations {
            tlb: Tlb::new(format)?,
            root: None,
        };

        platform::shared(Self {
            memory: memory.clone(),
            translations: platform::short_lock!(translations, "soft::SystemSpace::translations")?,
        })
    }

    /// SetRootPageTable of the system context, or its end. On return the old root is not used.
    pub(super) fn set_root(&self, root: Option<Root>) {
        let mut translations = self.translations.lock();

        translations.tlb.invalidate(Scope::All, 0, u64::MAX);
        translations.root = root;
    }

    /// FlushTlb, of whatever process it is. On return no access by an old translation is in
    /// progress.
    pub(super) fn invalidate(&self, scope: Scope, first: u64, last: u64) {
        self.translations.lock().tlb.invalidate(scope, first, last);
    }

    /// Whether there are page tables, and they do not lead to a word there that may be stored to.
    pub(super) fn has_lost(&self, va: u64) -> bool {
        let mut translations = self.translations.lock();

        translations.root.is_some() && translations.find(&self.memory, va).is_none()
    }

    /// Does something with a word that may be stored to; `None` if the page tables do not lead
    /// there.
    fn with_word<T>(
        &self,
        va: u64,
        access: impl FnOnce(&PhysicalMemory, Physical) -> Option<T>,
    ) -> Option<T> {
        let mut translations = self.translations.lock();
        let at = translations.find(&self.memory, va)?;

        access(&self.memory, at)
    }
    /// Loads a word that may be stored to; `None` if there is none.
    ///
    /// Context: does not sleep.
    pub(super) fn load(&self, va: u64) -> Option<u64> {
        self.with_word(va, PhysicalMemory::load64)
    }

    /// Stores to a word, after all that was stored before; `None` if there is none.
    ///
    /// Context: does not sleep.
    pub(super) fn store(&self, va: u64, value: u64) -> Option<()> {
        self.with_word(va, |memory, at| memory.store64_release(at, value))
    }
}
