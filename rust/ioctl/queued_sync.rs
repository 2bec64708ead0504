// SPDX-License-Identifier: GPL-2.0

//! Waits and signals that contexts and HW queues do when it is their turn (FEN-39 to FEN-53).

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    dxgk::{
        handle::open_sync_object::SyncLookup,
        inline_vec::InlineVec,
        object::{
            Object,
            Strong, //
        },
        sched::{
            new_item::NewItem,
            queue::Queue,
            signal::{
                Effect,
                SignalElement, //
            }, //
        },
        sync::{
            cpu_wait::Element,
            legacy::LegacySync, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        queued_sync_rules::{
            self as rules,
            Kind,
            ObjectCheck,
            Operation,
            SignalFlags,
            Values,
            MAX_BROADCAST,
            MAX_INLINE_OBJECTS, //
        },
        wait_rules::MAX_OBJECTS, //
    },
    sys::{
        file::eventfd::EventFd,
        user, //
    },
    uapi::*, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Which kind of handle queues are named by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Queues {
    /// Contexts of packets.
    Contexts,
    HwQueues,
}

/// The queues of one call: at least one, and all of one device.
pub(super) struct Targets(InlineVec<Arc<Queue>>);

/// Looks queues up. INVALID_PARAMETER for one that is none, or is of another device than the first;
/// DEVICE_REMOVED if that is in error.
pub(super) fn queues_of(call: Call<'_>, kind: Queues, locals: &[u32]) -> DxgResult<Targets> {
    let mut queues = InlineVec::<Arc<Queue>>::with_capacity(locals.len())?;

    for local in locals {
        let queue = match kind {
            Queues::Contexts => call
                .process
                .handles
                .context(*local)?
                .queue()
                .cloned()
                .ok_or(Status::INVALID_PARAMETER)?,
            Queues::HwQueues => call.process.handles.hw_queue(*local)?.queue.clone(),
        };

        if let Some(first) = queues.iter().next() {
            invalid_if(!Arc::ptr_eq(&first.device, &queue.device))?;
        }
        queues.push(queue);
    }
    Ok(Targets(queues))
}

impl Targets {
    /// The first queue.
    fn first(&self) -> DxgResult<&Arc<Queue>> {
        self.0.iter().next().ok_or(Status::INVALID_PARAMETER.into())
    }

    /// How many they are.
    fn count(&self) -> u32 {
        // CAST: at most 65.
        self.0.iter().count() as u32
    }

    /// DEVICE_REMOVED if their device is in error (GPU-12).
    fn check(&self) -> DxgResult {
        self.first()?.device.check()
    }

    /// Queues what `make` makes for each queue: in all of them, or in none.
    pub(super) fn push(
        &self,
        mut make: impl FnMut(&Arc<Queue>) -> DxgResult<NewItem>,
    ) -> DxgResult {
        self.check()?;

        let mut items = KVVec::with_capacity(self.0.iter().count(), GFP_KERNEL_ACCOUNT)?;

        for queue in self.0.iter() {
            items.push(make(queue)?, GFP_KERNEL_ACCOUNT)?;
        }
        // Only an end of the queue or of its device meanwhile is a reason to refuse one.
        items.into_iter().try_for_each(NewItem::push)
    }
}

/// What an object is to a queued wait or signal.
fn kind_of(opened: &SyncLookup) -> Kind {
    match &opened.object {
        Object::Legacy(object) => object.kind,
        Object::Fence(_) if opened.of_queue => Kind::ProgressFence,
        // Nothing else is found as a synchronisation object.
        Object::Fence(_) | Object::Resource(_) | Object::KeyedMutex(_) => Kind::MonitoredFence,
    }
}

/// The objects of a call, and where their values are.
struct Objects {
    opened: KVVec<Object>,
    values: Values,
}

/// Looks objects up that the queues are to wait for or to signal, and checks all of them (FEN-50,
/// FEN-53).
fn objects_of(
    call: Call<'_>,
    targets: &Targets,
    locals: &[u32],
    mut check: ObjectCheck,
    operation: Operation,
) -> DxgResult<Objects> {
    let adapter = targets.first()?.adapter().clone();
    let mut opened = KVVec::with_capacity(locals.len(), GFP_KERNEL_ACCOUNT)?;

    for local in locals {
        let found = call.process.handles.sync_object(*local)?;
        let may = match operation {
            Operation::Wait => found.rights.wait,
            Operation::Signal => found.rights.signal || found.of_queue,
        };

        check.see(kind_of(&found), found.object.header().is_for(&adapter), may);
        opened.push(found.object, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(Objects {
        opened,
        values: check.result()?,
    })
}

impl Objects {
    /// The value of each object. `place` is the address of the values, or the value of all legacy
    /// fences.
    fn values(&self, place: u64) -> DxgResult<KVVec<u64>> {
        let count = self.opened.len();

        match self.values {
            Values::None => Ok(KVVec::from_elem(0, count, GFP_KERNEL_ACCOUNT)?),
            Values::One => Ok(KVVec::from_elem(place, count, GFP_KERNEL_ACCOUNT)?),
            Values::Each => {
                let mut values = KVVec::from_elem(0, count, GFP_KERNEL_ACCOUNT)?;

                invalid_if(place == 0)?;
                user::read_slice(place, &mut values)?;
                Ok(values)
            }
        }
    }
}

/// Reads handles from an array of the caller.
fn handles(address: u64, count: u32) -> DxgResult<KVVec<u32>> {
    // CAST: bounded by the rules of each call.
    let mut handles = KVVec::from_elem(0, count as usize, GFP_KERNEL_ACCOUNT)?;

    invalid_if(address == 0 && count != 0)?;
    if count != 0 {
        user::read_slice(address, &mut handles)?;
    }
    Ok(handles)
}

/// Queues a wait for these objects.
fn wait(
    call: Call<'_>,
    targets: &Targets,
    which: rules::Call,
    locals: &[u32],
    place: u64,
) -> DxgResult {
    let operation = Operation::Wait;
    let check = ObjectCheck::new(which, operation);
    let objects = objects_of(call, targets, locals, check, operation)?;
    let values = objects.values(place)?;
    let mut elements = KVVec::with_capacity(locals.len(), GFP_KERNEL_ACCOUNT)?;
    let mut legacy = KVVec::<(Arc<LegacySync>, u64)>::new();

    for (object, value) in objects.opened.iter().zip(values) {
        match object {
            Object::Fence(fence) => elements.push(
                Element {
                    fence: fence.clone(),
                    value,
                },
                GFP_KERNEL_ACCOUNT,
            )?,
            Object::Legacy(object) => legacy.push((object.clone(), value), GFP_KERNEL_ACCOUNT)?,
            Object::Resource(_) | Object::KeyedMutex(_) => {}
        }
    }
    if !elements.is_empty() {
        return targets.push(|queue| NewItem::fence_wait(queue, call.process, &elements));
    }

    // Older objects are acquired one after the other, in the order of the call.
    let queue = targets.first()?;
    let mut items = KVVec::with_capacity(legacy.len(), GFP_KERNEL_ACCOUNT)?;

    targets.check()?;
    for (object, value) in &legacy {
        let item = NewItem::legacy_wait(queue, call.process, object, *value)?;

        items.push(item, GFP_KERNEL_ACCOUNT)?;
    }
    items.into_iter().try_for_each(NewItem::push)
}

/// What a signal names.
struct SignalRequest<'a> {
    which: rules::Call,
    flags: SignalFlags,
    locals: &'a [u32],
    /// Address of the values, the value of legacy fences, or the event.
    place: u64,
}

/// Queues a signal.
fn signal(call: Call<'_>, targets: &Targets, request: &SignalRequest<'_>) -> DxgResult {
    let SignalRequest {
        which,
        flags,
        locals,
        place,
    } = *request;

    if flags.event {
        // Only these calls have a member for it.
        invalid_if(which == rules::Call::HwQueue)?;

        let event = EventFd::from_slot(place)?;

        return targets.push_signal(call, 1, Effect::Event(event), flags);
    }

    let operation = Operation::Signal;
    let check = ObjectCheck::new(which, operation);
    let objects = objects_of(call, targets, locals, check, operation)?;
    let values = objects.values(place)?;
    let mut elements = KVVec::with_capacity(locals.len(), GFP_KERNEL_ACCOUNT)?;

    for (object, value) in objects.opened.iter().zip(values) {
        // The handle may have been destroyed meanwhile.
        let strong = Strong::upgrade(object).ok_or(Status::INVALID_PARAMETER)?;

        elements.push(SignalElement { strong, value }, GFP_KERNEL_ACCOUNT)?;
    }
    targets.push_signal(call, locals.len(), Effect::Objects(elements), flags)
}

impl Targets {
    /// Queues a signal in all queues.
    fn push_signal(
        &self,
        call: Call<'_>,
        elements: usize,
        effect: Effect,
        flags: SignalFlags,
    ) -> DxgResult {
        let signal = effect.into_signal(flags.at_submission, self.count())?;
        let mut elements = elements;

        self.push(|queue| {
            // The first one is charged for the elements.
            let own = core::mem::take(&mut elements);

            NewItem::signal(queue, call.process, own, &signal)
        })
    }
}

/// The context of a call, and those that it broadcasts to.
fn contexts_of(call: Call<'_>, first: u32, others: &[u32]) -> DxgResult<Targets> {
    let mut locals = KVVec::with_capacity(others.len() + 1, GFP_KERNEL_ACCOUNT)?;

    locals.push(first, GFP_KERNEL_ACCOUNT)?;
    locals.extend_from_slice(others, GFP_KERNEL_ACCOUNT)?;
    queues_of(call, Queues::Contexts, &locals)
}

/// D3DKMTSignalSynchronizationObject2 (0x11): mutexes, semaphores, legacy fences, CPU
/// notifications, or an event, in a context and those that it is broadcast to.
pub(super) fn signal2(call: Call<'_>, args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2) -> DxgResult {
    let flags = rules::check_signal(args.Flags, args.ObjectCount, MAX_INLINE_OBJECTS)?;

    invalid_if(args.BroadcastContextCount > MAX_BROADCAST)?;

    // CAST: at most 64, and at most 32.
    let others = args
        .BroadcastContext
        .get(..args.BroadcastContextCount as usize)
        .unwrap_or_default();
    let locals = args
        .ObjectHandleArray
        .get(..args.ObjectCount as usize)
        .unwrap_or_default();
    let targets = contexts_of(call, args.hContext, others)?;

    signal(
        call,
        &targets,
        &SignalRequest {
            which: rules::Call::Legacy,
            flags,
            locals,
            place: args.value(),
        },
    )
}

/// D3DKMTWaitForSynchronizationObject2 (0x12): mutexes, semaphores or legacy fences.
pub(super) fn wait2(call: Call<'_>, args: &D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2) -> DxgResult {
    rules::check_wait(args.ObjectCount, MAX_INLINE_OBJECTS)?;

    // CAST: at most 32.
    let locals = args
        .ObjectHandleArray
        .get(..args.ObjectCount as usize)
        .unwrap_or_default();
    let targets = contexts_of(call, args.hContext, &[])?;

    wait(call, &targets, rules::Call::Legacy, locals, args.value())
}

/// D3DKMTSignalSynchronizationObjectFromGpu (0x32): fences, or older objects, in a context.
pub(super) fn signal_from_gpu(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU,
) -> DxgResult {
    let flags = rules::check_signal(0, args.ObjectCount, MAX_OBJECTS)?;

    invalid_if(args.ObjectHandleArray == 0)?;

    let targets = contexts_of(call, args.hContext, &[])?;
    let locals = handles(args.ObjectHandleArray, args.ObjectCount)?;

    signal(
        call,
        &targets,
        &SignalRequest {
            which: rules::Call::FromGpu,
            flags,
            locals: &locals,
            place: args.values(),
        },
    )
}

/// D3DKMTSignalSynchronizationObjectFromGpu2 (0x33): the same, or an event, in several contexts:
/// once, when it has been the turn of it in all of them (FEN-43).
pub(super) fn signal_from_gpu2(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2,
) -> DxgResult {
    let flags = rules::check_signal(args.Flags, args.ObjectCount, MAX_OBJECTS)?;

    rules::check_broadcast(args.BroadcastContextCount)?;
    invalid_if(args.ObjectCount != 0 && args.ObjectHandleArray == 0)?;

    let contexts = handles(args.BroadcastContextArray, args.BroadcastContextCount)?;
    let targets = queues_of(call, Queues::Contexts, &contexts)?;
    let locals = handles(args.ObjectHandleArray, args.ObjectCount)?;

    signal(
        call,
        &targets,
        &SignalRequest {
            which: rules::Call::FromGpu,
            flags,
            locals: &locals,
            place: args.values(),
        },
    )
}

/// D3DKMTWaitForSynchronizationObjectFromGpu (0x3b): makes a context wait.
pub(super) fn wait_from_gpu(
    call: Call<'_>,
    args: &D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU,
) -> DxgResult {
    rules::check_wait(args.ObjectCount, MAX_OBJECTS)?;
    invalid_if(args.ObjectHandleArray == 0)?;

    let targets = contexts_of(call, args.hContext, &[])?;
    let locals = handles(args.ObjectHandleArray, args.ObjectCount)?;

    wait(call, &targets, rules::Call::FromGpu, &locals, args.values())
}

/// D3DKMTSubmitSignalSyncObjectsToHwQueue (0x35): fences, in one or more HW queues.
pub(super) fn signal_in_hw_queue(
    call: Call<'_>,
    args: &D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE,
) -> DxgResult {
    let flags = rules::check_signal(args.Flags, args.ObjectCount, MAX_OBJECTS)?;

    rules::check_broadcast(args.BroadcastHwQueueCount)?;
    invalid_if(args.ObjectCount != 0 && args.ObjectHandleArray == 0)?;

    let queues = handles(args.BroadcastHwQueueArray, args.BroadcastHwQueueCount)?;
    let targets = queues_of(call, Queues::HwQueues, &queues)?;
    let locals = handles(args.ObjectHandleArray, args.ObjectCount)?;

    signal(
        call,
        &targets,
        &SignalRequest {
            which: rules::Call::HwQueue,
            flags,
            locals: &locals,
            place: args.FenceValueArray,
        },
    )
}

/// D3DKMTSubmitWaitForSyncObjectsToHwQueue (0x36): makes a HW queue wait for fences.
pub(super) fn wait_in_hw_queue(
    call: Call<'_>,
    args: &D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE,
) -> DxgResult {
    rules::check_wait(args.ObjectCount, MAX_OBJECTS)?;
    invalid_if(args.ObjectHandleArray == 0)?;

    let targets = queues_of(call, Queues::HwQueues, &[args.hHwQueue])?;
    let locals = handles(args.ObjectHandleArray, args.ObjectCount)?;

    wait(
        call,
        &targets,
        rules::Call::HwQueue,
        &locals,
        args.FenceValueArray,
    )
}
