// SPDX-License-Identifier: GPL-2.0

//! Where broken rules of the driver interface are reported (MEM-95): to the kernel log, with a
//! warning and what called what, once for each rule and adapter.

use crate::{
    ddi::{
        verifier::{
            entry::Entry,
            rule::{
                Log,
                Rule, //
            },
            Verifier, //
        },
        Kmd, //
    },
    sys::{
        params,
        trace, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc, //
    },
    warn_on, //
};

/// The log of one adapter.
struct KmdLog {
    /// The number of the adapter among those of its kind.
    adapter: u32,
    /// The rules that were broken: bit n is the rule n.
    broken: Atomic<u32>,
}

impl KmdLog {
    /// Whether the rule was not broken before.
    fn is_new(&self, rule: Rule) -> bool {
        // CAST: the number of the variant, which is below 32.
        let bit = 1_u32.wrapping_shl(rule as u32);

        loop {
            let before = self.broken.load(kernel::sync::atomic::Relaxed);

            if before & bit != 0 {
                return false;
            }
            if self.broken.cmpxchg(before, before | bit, Full).is_ok() {
                return true;
            }
        }
    }
}

impl Log for KmdLog {
    fn called(&self, entry: Entry, object: u64) {
        // CAST: the number of the variant.
        trace::kmd(entry as u32, object);
    }

    fn broken(&self, rule: Rule, entry: Entry, object: u64) {
        if self.is_new(rule) {
            let entry = entry.name();

            pr_err!(
                "adapter {}: {entry:?} of {object}: {}\n",
                self.adapter,
                rule.text()
            );
            warn_on!(true);
        }
    }
}

/// Puts a verifier around the KMD of an adapter, if the parameter `verify_kmd` asks for it.
///
/// Context: may sleep.
pub(crate) fn verified(kmd: KBox<dyn Kmd>, adapter: u32) -> Result<KBox<dyn Kmd>, AllocError> {
    if !params::verify_kmd() {
        return Ok(kmd);
    }

    let log = KmdLog {
        adapter,
        broken: Atomic::new(0),
    };
    let log: Arc<dyn Log> = Arc::new(log, GFP_KERNEL)?;
    let verifier = Verifier::around(kmd, log).ok_or(AllocError)?;

    Ok(KBox::new(verifier, GFP_KERNEL)?)
}
