// SPDX-License-Identifier: GPL-2.0

//! What one process has: its handles, its mappings, its pending waits.
//!
//! A process object stands for one thread group with one address space (RES-8). The first open of
//! the device makes it, and all opens of the process share it. It is emptied when the last of them
//! is closed, the process dies, or it calls exec, whichever comes first. A descriptor in another
//! process does not keep what its opener owned.

use super::{
    border::ClientHandles,
    device::{
        Device,
        DeviceOwner, //
    },
    gpu_process::GpuProcesses,
    handle::HandleTable,
    quota::{
        account::Account,
        holder::Holder, //
    },
    refusals::LastRefusals,
    stats::{
        self,
        next_id,
        Counted,
        Module,
        PROCESSES,
        RETIRING, //
    },
    sync::{
        fence_binding::LoggedFence,
        fence_mappings::FenceMappings,
        fence_storage::FenceStoragePool,
        fence_viewer::FenceViewer,
        interrupted_waits::InterruptedWaits,
        native_storage::NativeStorage,
        pending_waits::PendingWaits, //
    }, //
};
use crate::{
    ddi::types::{
        HandleData,
        QueueHandle, //
    },
    sys::{
        task::{
            caller::Identity,
            mm_end::{
                MmEnd,
                MmEndListener, //
            }, //
        },
        work, //
    }, //
};
use kernel::{
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// One process that has the device open.
#[pin_data]
pub(crate) struct Process {
    /// Its number, for fdinfo.
    pub(crate) id: u64,
    /// Local handles.
    #[pin]
    pub(crate) handles: HandleTable,
    /// Its waits. Those without a sleeping thread are listed.
    pub(crate) waits: Arc<PendingWaits>,
    /// Waits whose threads run signal handlers.
    #[pin]
    pub(crate) interrupted: InterruptedWaits,
    /// Its mappings, and who it is.
    pub(crate) mappings: Arc<FenceMappings>,
    /// The process alone, as who sees the value of a fence.
    pub(crate) viewer: Arc<FenceViewer>,
    /// Values of fences that are not shareable.
    pub(crate) fence_storage: Arc<FenceStoragePool>,
    /// The same for native fences.
    pub(crate) native_storage: Arc<NativeStorage>,
    /// The account of the user who opened the device.
    pub(crate) account: Account,
    /// What the process has made that takes memory or files.
    pub(crate) holder: Arc<Holder>,
    /// What it is on each adapter.
    pub(crate) gpu_processes: Arc<GpuProcesses>,
    /// Its calls that were refused last.
    #[pin]
    pub(crate) refusals: LastRefusals,
    /// Notifies us when the address space ends, until the last file of the process is closed. LOCK:
    /// leaf.
    #[pin]
    end: SpinLock<Option<Pin<KBox<MmEnd<Process>>>>>,
    /// Whether the last of its files is closed.
    released: Atomic<bool>,
    #[pin]
    emptying: Work<Process>,
    _counted: Counted<Module, PROCESSES>,
}

impl_has_work! {
    impl HasWork<Self> for Process { self.emptying }
}

impl Process {
    /// A new object for the calling process. It is emptied when its address space ends.
    ///
    /// Context: a system call that may wait for `mmap_lock`, see [`MmEnd::new`].
    pub(crate) fn new(identity: Identity, account: Account) -> Result<Arc<Self>> {
        let mappings = FenceMappings::new(identity)?;
        let fence_storage = FenceStoragePool::monitored(mappings.clone())?;
        let native_storage = NativeStorage::new(mappings.clone())?;
        let waits = PendingWaits::new(account.clone())?;
        let holder = Holder::new(account.clone())?;
        let gpu_processes = GpuProcesses::new(holder.clone())?;
        let viewer = Arc::new(
            FenceViewer {
                mappings: mappings.clone(),
                device: None,
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        let process = Arc::pin_init(
            pin_init!(Self {
                id: next_id(),
                handles <- HandleTable::new(),
                waits,
                interrupted <- InterruptedWaits::new(),
                mappings,
                viewer,
                fence_storage,
                native_storage,
                account,
                holder,
                gpu_processes,
                refusals <- LastRefusals::new(),
                end <- new_spinlock!(None, "Process::end"),
                released: Atomic::new(false),
                emptying <- new_work!("Process::emptying"),
                _counted: Counted::new(Module),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let end = MmEnd::new(process.mappings.identity.mm(), process.clone());
        let end = KBox::pin_init(end, GFP_KERNEL_ACCOUNT)?;

        *process.end.lock() = Some(end);
        Ok(process)
    }

    /// Releases everything: waits first, then queues, then handles (FEN-89). May be called more
    /// than once.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        self.waits.close();
        self.interrupted.close();
        if self.gpu_processes.are_in_use() {
            self.gpu_processes.end_turns();
            self.handles.close_queues();
        }
        self.handles.close();
        self.fence_storage.close();
        self.native_storage.close();
        self.mappings.close();
        self.gpu_processes.reservations.close();
    }
}

impl ClientHandles for Process {
    fn queue_of(&self, device: u64, handle: u32) -> Option<QueueHandle> {
        self.handles.of_device(device).queue(handle)
    }
}

impl DeviceOwner for Process {
    fn gpu_processes(&self) -> &Arc<GpuProcesses> {
        &self.gpu_processes
    }

    fn mappings(&self) -> &Arc<FenceMappings> {
        &self.mappings
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn device_failed(&self, device: &Device) {
        self.handles.device_failed(device);
    }

    fn logged_fence(&self, handle: u32, is_signal: bool) -> Option<Arc<dyn LoggedFence>> {
        Some(self.handles.logged_fence(handle, is_signal)?)
    }

    fn client_handles(self: Arc<Self>) -> Arc<dyn ClientHandles> {
        self
    }

    fn look_at_fences(&self, device: &Device) {
        self.handles.look_at_fences(device);
    }
}

impl Process {
    /// Called when the last file of the process is closed, by any process.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn release(self: &Arc<Self>) {
        self.released.store(true, Release);
        self.empty();
    }

    /// Empties the process at once if the caller belongs to it, otherwise in the worker: no other
    /// process waits for what this one has.
    fn empty(self: &Arc<Self>) {
        if self.mappings.identity.is_caller_group() {
            return self.empty_now();
        }

        stats::add::<RETIRING>(&Module, 1);
        // It fails if that is queued already, and has not started.
        let queued = work::worker().is_some_and(|worker| worker.enqueue(self.clone()).is_ok());

        if !queued {
            stats::sub::<RETIRING>(&Module, 1);
        }
    }

    fn empty_now(&self) {
        self.close();
        if self.released.load(Acquire) {
            // Dropping the notifier waits for a running callback, which may be emptying this
            // process as well.
            let end = self.end.lock().take();

            drop(end);
        }
    }
}

impl WorkItem for Process {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.empty_now();
        drop(this);
        stats::sub::<RETIRING>(&Module, 1);
    }
}

impl MmEndListener for Process {
    fn ended(this: ArcBorrow<'_, Self>) {
        // The callback must not wait for its own end; the release that runs meanwhile does.
        if this.mappings.identity.is_caller_group() {
            this.close();
        } else {
            Arc::from(this).empty();
        }
    }
}
