// SPDX-License-Identifier: GPL-2.0

//! A context: a sequence of work for one engine node of a device, or what HW queues are made on.

use super::{
    adapter::Adapter,
    device::Device,
    quota::account::{
        Charge,
        Limit, //
    },
    sched::{
        callbacks::ContextCallbacks,
        context_state::ContextState,
        kmd_queue::KmdQueue,
        queue::{
            self,
            Queue, //
        }, //
    },
    stats::{
        Counted,
        CountedOn,
        ObjectId,
        ObjectKind,
        Stats,
        OBJECTS, //
    },
    vidmm::{
        contexts::SpaceContext,
        update::UpdateQueue, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        context_allocation::UsedBy,
        object::{
            self,
            Suspension, //
        },
        queue::QueueCallbacks,
        types::{
            ContextId,
            CreateContextArgs, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

pub(crate) use crate::ddi::types::Scheduling;

/// The call that makes a context. Handles of one class do not stand for the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// D3DKMTCreateContextVirtual.
    Context,
    /// D3DKMTCreateHwContext.
    HwContext,
}

/// What a context is made of, after all checks.
pub(crate) struct Description {
    /// How it takes work.
    pub(crate) scheduling: Scheduling,
    /// Which call makes it, and so which one destroys it.
    pub(crate) class: Class,
    /// Its node, which the adapter has.
    pub(crate) node: u32,
    /// On which physical adapters it runs; the adapter has them.
    pub(crate) engines: u32,
    /// `DisableGpuTimeout`: whether its commands may take for ever (GPU-93).
    pub(crate) disable_gpu_timeout: bool,
    /// The part of the client's private data that the KMD reads.
    pub(crate) private_data: KVVec<u8>,
}

/// Who takes the work of a context.
enum Taker {
    /// Its own queue.
    Packets(Arc<Queue>),
    /// The HW queues that are made on it, by the context as the KMD has it.
    HwQueues {
        kmd: Arc<SpaceContext>,
        _charge: Charge,
    },
}

/// A sequence of work for one node of a device.
pub(crate) struct Context {
    identified: ObjectId,
    taker: Taker,
    /// Changes of GPU addresses behind its fences.
    pub(crate) updates: Arc<UpdateQueue>,
    /// Lives at least as long as its contexts.
    device: Counted<Arc<Device>, OBJECTS>,
    /// Which call has made it.
    pub(crate) class: Class,
    /// Where its work runs.
    pub(crate) node: u32,
    /// What it has in common with its queues.
    state: Arc<ContextState>,
    /// Whether its commands may take for ever.
    pub(crate) disable_gpu_timeout: bool,
    /// Its priority among those of its process. It has no effect.
    in_process_priority: Atomic<i32>,
}

impl CountedOn for Context {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.device.stats()
    }
}

/// Where the end of suspensions of a new context of `device` is told, if it has GPU addresses.
fn suspension(device: &Device) -> DxgResult<Option<Arc<Suspension>>> {
    match device.space() {
        Ok(space) => Ok(Some(space.suspension()?)),
        Err(_) => Ok(None),
    }
}

/// Makes the context in the KMD, with the GPU addresses of its process (GPU-3).
fn create(
    device: &Device,
    id: u64,
    description: &Description,
    callbacks: &Arc<dyn QueueCallbacks>,
    suspension: Option<Arc<Suspension>>,
) -> DxgResult<SpaceContext> {
    let create = CreateContextArgs {
        id: ContextId(id),
        scheduling: description.scheduling,
        node: description.node,
        engines: description.engines,
        is_system: false,
        private_data: &description.private_data,
        callbacks,
    };

    let class = Passive::here();
    // It is dropped after the context.
    let user = device
        .adapter
        .context_user(UsedBy::Context(create.id), device.space().ok())?;
    let context = object::Context::create(&device.kmd, &class, &create)?;

    match (device.space(), suspension) {
        (Ok(space), Some(suspension)) => {
            let entered = space.enter_context(id, context, suspension)?;

            Ok(entered.used_by(user))
        }
        _ => Ok(SpaceContext::without_addresses(context)),
    }
}

impl Context {
    /// A new context of `device`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(device: Arc<Device>, description: &Description) -> DxgResult<Arc<Self>> {
        device.check()?;

        let identified = ObjectId::new(ObjectKind::Context);
        let id = identified.id;
        let updates = UpdateQueue::new()?;
        let state = ContextState::new().map_err(|_| Status::NO_MEMORY)?;
        let suspension = suspension(&device)?;
        let disable_gpu_timeout = device.disable_gpu_timeout || description.disable_gpu_timeout;
        let taker = match description.scheduling {
            Scheduling::Packets => {
                let own = queue::Description {
                    id,
                    node: description.node,
                    is_hw: false,
                    is_filled_by_process: false,
                    disable_gpu_timeout,
                    context: state.clone(),
                    suspension: suspension.clone(),
                };

                Taker::Packets(Queue::new(&device, own, |callbacks| {
                    create(&device, id, description, callbacks, suspension).map(KmdQueue::Context)
                })?)
            }
            Scheduling::HwQueues => {
                let charge = device.owner.account().charge(Limit::Queues, 1)?;
                let callbacks = ContextCallbacks {
                    suspension: suspension.clone(),
                    state: state.clone(),
                };
                let callbacks: Arc<dyn QueueCallbacks> = Arc::new(callbacks, GFP_KERNEL_ACCOUNT)?;
                let kmd = create(&device, id, description, &callbacks, suspension)?;

                Taker::HwQueues {
                    kmd: Arc::new(kmd, GFP_KERNEL_ACCOUNT)?,
                    _charge: charge,
                }
            }
        };

        // Without memory it is dropped, which ends its queue.
        Ok(Arc::new(
            Self {
                identified,
                taker,
                device: Counted::new(device),
                updates,
                class: description.class,
                node: description.node,
                state,
                disable_gpu_timeout,
                in_process_priority: Atomic::new(0),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The context's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// What it was made on.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The adapter of its device.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.device.adapter
    }

    /// Its queue, if work is submitted to the context itself.
    pub(crate) fn queue(&self) -> Option<&Arc<Queue>> {
        match &self.taker {
            Taker::Packets(queue) => Some(queue),
            Taker::HwQueues { .. } => None,
        }
    }

    /// Whether HW queues can be made on it.
    pub(crate) fn takes_hw_queues(&self) -> bool {
        self.of_hw_queues().is_some()
    }

    /// The context that HW queues are made on; `None` if it takes packets.
    pub(in crate::dxgk) fn of_hw_queues(&self) -> Option<&Arc<SpaceContext>> {
        match &self.taker {
            Taker::Packets(_) => None,
            Taker::HwQueues { kmd, .. } => Some(kmd),
        }
    }

    /// Its priority among all contexts, as it was set.
    pub(crate) fn priority(&self) -> i32 {
        self.state.priority()
    }

    /// What a queue that is made on it has in common with it.
    pub(in crate::dxgk) fn state(&self) -> &Arc<ContextState> {
        &self.state
    }

    /// Sets its priority among all contexts: `asked` as a client says it, `priority` as a KMD.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set_priority(&self, asked: i32, priority: i32) -> DxgResult {
        let set = |kmd: &object::Context| kmd.set_priority(&Passive::here(), priority);

        self.device.check()?;
        match &self.taker {
            Taker::Packets(queue) => queue.with_context(set).ok_or(Status::DEVICE_REMOVED)??,
            Taker::HwQueues { kmd, .. } => set(kmd)?,
        }
        self.state.set_priority(asked);
        Ok(())
    }

    /// Its priority among the contexts of its process, as it was set.
    pub(crate) fn in_process_priority(&self) -> i32 {
        self.in_process_priority.load(Relaxed)
    }

    /// Sets its priority among the contexts of its process.
    pub(crate) fn set_in_process_priority(&self, priority: i32) {
        self.in_process_priority.store(priority, Relaxed);
    }

    /// Called when the handle is gone, although a call in progress may use this a little longer.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(&self) {
        self.updates.close();
        if let Taker::Packets(queue) = &self.taker {
            queue.leave();
        }
    }
}

impl Drop for Context {
    /// It may never have had a handle.
    fn drop(&mut self) {
        self.leave();
    }
}
