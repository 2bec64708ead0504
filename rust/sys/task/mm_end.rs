// SPDX-License-Identifier: GPL-2.0

//! Notification of the end of an address space: its last user has exited or called exec.
//!
//! An interval notifier on the last page of the address space, which cannot be mapped: the only
//! invalidation it sees is `MMU_NOTIFY_RELEASE`. Other address spaces pay nothing.
//!
//! The notifier for whole address spaces (`mmu_notifier`, with `release`) would say the same. It
//! was measured with `BENCH_ARGS="--instructions process" make bench`: to open the device and end
//! costs a process 70,400 instructions with this and 107,800 with that one, because its removal
//! waits for an SRCU grace period; with an exec in between 51,600 against 93,900.
//!
//! The reference-counted form (`mmu_notifier_get` and `mmu_notifier_put`, as amdkfd uses it) is
//! removed without waiting. But the exit of each process then waits for an SRCU grace period
//! (`mn_hlist_release`), about 15 ms in such a measurement; that is why it loses. It takes 30 lines
//! less, but has one notifier for each address space: processes that share one (`CLONE_VM`) would
//! need a list of listeners, and the module a wait for the last of them when it is unloaded.

use crate::sys::ffi;
use core::marker::PhantomData;
use kernel::{
    bindings,
    error::to_result,
    ffi::c_ulong,
    mm::Mm,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

/// The last page of all addresses: the kernel's, which no process can map.
const NOWHERE: usize = usize::MAX - (PAGE_SIZE - 1);

/// Is notified of the end of an address space.
pub(crate) trait MmEndListener: Send + Sync + Sized + 'static {
    /// The last user is gone, and the memory is about to be freed.
    ///
    /// Context: may sleep, no locks of the module held; any task, because any task may drop the
    /// last reference.
    fn ended(this: ArcBorrow<'_, Self>);
}

/// Notifies a listener when an address space ends, until this is dropped.
///
/// Dropping it waits for a running listener, so no code of the module runs afterwards. Context:
/// may sleep; not from the listener.
#[pin_data(PinnedDrop)]
pub(crate) struct MmEnd<T: MmEndListener> {
    /// INVARIANT: inserted.
    #[pin]
    notifier: Opaque<bindings::mmu_interval_notifier>,
    listener: Arc<T>,
}

// SAFETY: The notifier is only touched by the kernel, under its own locks, and may be removed by
// any task; the listener may be used anywhere.
unsafe impl<T: MmEndListener> Send for MmEnd<T> {}
// SAFETY: As above; there is nothing to call.
unsafe impl<T: MmEndListener> Sync for MmEnd<T> {}

impl<T: MmEndListener> MmEnd<T> {
    /// From the return on, `listener` is notified of the end of `mm`.
    ///
    /// Context: a system call of a task that uses `mm`, no locks held. It may wait for the mmap
    /// lock until the task is killed, so no other task may wait for this one.
    pub(crate) fn new(mm: &Mm, listener: Arc<T>) -> impl PinInit<Self, Error> + '_ {
        try_pin_init!(Self {
            // Set before the first notification can come.
            listener,
            notifier <- Opaque::try_ffi_init(move |slot: *mut bindings::mmu_interval_notifier| {
                // SAFETY: `slot` is valid for writes and pinned, and stays inserted until it is
                // dropped. The caller uses `mm`, so that it has not ended.
                let inserted = to_result(unsafe {
                    ffi::dxg_notifier_insert(
                        slot,
                        mm.as_raw(),
                        NOWHERE,
                        PAGE_SIZE,
                        Table::<T>::address(),
                    )
                });

                // The task was killed while it waited for the locks of the address space.
                inserted.map_err(|error| if error == EINTR { ERESTARTSYS } else { error })
            }),
        })
    }
}

#[pinned_drop]
impl<T: MmEndListener> PinnedDrop for MmEnd<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Inserted in `new`.
        unsafe { bindings::mmu_interval_notifier_remove(self.notifier.get()) }
    }
}

/// The operations of notifiers that tell a `T`.
struct Table<T>(PhantomData<T>);

impl<T: MmEndListener> Table<T> {
    const OPERATIONS: bindings::mmu_interval_notifier_ops = bindings::mmu_interval_notifier_ops {
        invalidate: Some(Self::invalidate),
        invalidate_start: None,
        invalidate_finish: None,
    };

    fn address() -> *const bindings::mmu_interval_notifier_ops {
        &Self::OPERATIONS
    }

    /// # Safety
    ///
    /// Called by the kernel as `mmu_interval_notifier_ops::invalidate`, for a notifier in an
    /// [`MmEnd`] of `T`.
    unsafe extern "C" fn invalidate(
        notifier: *mut bindings::mmu_interval_notifier,
        range: *const bindings::mmu_notifier_range,
        _seq: c_ulong,
    ) -> bool {
        // SAFETY: The range is valid for the call.
        if unsafe { (*range).event } == bindings::mmu_notifier_event_MMU_NOTIFY_RELEASE {
            // SAFETY: The notifier is the one of an `MmEnd`, which stays until it is removed, and
            // that waits for this.
            let this = unsafe {
                &*Opaque::cast_from(notifier)
                    .byte_sub(core::mem::offset_of!(MmEnd<T>, notifier))
                    .cast::<MmEnd<T>>()
            };

            T::ended(this.listener.as_arc_borrow());
        }
        // The module has no page where the notifier is: nothing to be done, also where sleeping is
        // forbidden.
        true
    }
}
