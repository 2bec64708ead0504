// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking about every container: a device and all handles that go with it are destroyed.
//!
//! A container keeps no descriptor for this. The handle that was set tells before the call whether
//! it is the only one, and after the call whether it is gone. Where there are others, or the
//! handle was destroyed earlier, a weak reference tells.

use std::os::fd::OwnedFd;

use opendxg::uapi::OPENDXG_HANDLE_LOCAL;

use super::table::Witness;
use super::{is_gone, open_weak, query, Registry};

/// How many handles the container has, if this one is among them.
fn handles(id: u64, witness: u32) -> Option<u32> {
    let (status, answer) = query(witness.into(), OPENDXG_HANDLE_LOCAL);
    let is_same = status.is_success() && answer.object_id == id;
    is_same.then_some(answer.local_references)
}

/// Every container that functions wait for, with what `look` says of its witness.
fn containers<'a, T>(
    registry: &'a Registry,
    look: impl Fn(&Witness) -> Option<T> + 'a,
) -> impl Iterator<Item = (u64, T)> + 'a {
    let mut index = 0;
    core::iter::from_fn(move || loop {
        let found = registry.with(|table| {
            let found = table.at(index);
            let found = found.and_then(|(id, witness)| Some((id, look(witness)?)));
            (index < table.capacity()).then_some(found)
        });
        index += 1;
        match found {
            None => return None,
            Some(None) => {}
            Some(found) => return found,
        }
    })
}

/// Looks at all of them before the call.
pub(super) fn before(registry: &Registry) {
    let without_weak = |witness: &Witness| witness.weak.is_none().then_some(witness.handle);
    for (id, handle) in containers(registry, without_weak) {
        let handles = handles(id, handle);
        let mut weak = match handles {
            Some(2..) => open_weak(handle),
            _ => None,
        };
        registry.with(|table| {
            if let Some(witness) = table.witness(id).filter(|witness| witness.weak.is_none()) {
                witness.alone = handles == Some(1);
                core::mem::swap(&mut witness.weak, &mut weak);
            }
        });
    }
}

/// Runs the functions of those that are gone after the call.
pub(super) fn after(registry: &Registry) {
    let look = |witness: &Witness| {
        let weak = witness.weak.as_ref().map(OwnedFd::try_clone);
        Some((witness.handle, witness.alone, weak))
    };
    for (id, (handle, alone, weak)) in containers(registry, look) {
        let is_there = handles(id, handle).is_some();
        let is_gone = match &weak {
            Some(Ok(weak)) => is_gone(weak),
            // No descriptor was left to ask with.
            Some(Err(_)) => false,
            None => alone && !is_there,
        };
        drop(weak);
        if is_gone {
            registry.end(id);
        } else if is_there {
            // The handle will do.
            let _weak = registry.with(|table| table.witness(id)?.weak.take());
        }
    }
}
