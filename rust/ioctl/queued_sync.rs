// SPDX-License-Identifier: GPL-2.0

//! Waits and signals that contexts and HW queues do when it is their turn (FEN-39 to FEN-53).

use super::{
    call::{
        invalid_if,
        Call, //
    },
    queues::{
        QueueKind,
        Queues, //
    }, //
};
use crate::{
    dxgk::{
        handle::open_sync_object::SyncLookup,
        object::{
            Object,
            Strong, //
        },
        sched::{
            new_item::NewItem,
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
        submission_order::Moment,
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
    queues: &Queues,
    locals: &[u32],
    mut check: ObjectCheck,
    operation: Operation,
) -> DxgResult<Objects> {
    let adapter = queues.adapter()?.clone();
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
    fn values(&self, which: rules::Call, place: u64) -> DxgResult<KVVec<u64>> {
        let count = self.opened.len();

        match self.values {
            Values::None => Ok(KVVec::from_elem(0, count, GFP_KERNEL_ACCOUNT)?),
            Values::One => Ok(KVVec::from_elem(place, count, GFP_KERNEL_ACCOUNT)?),
            Values::Each => {
                let mut values = KVVec::from_elem(0, count, GFP_KERNEL_ACCOUNT)?;
                let array = match which {
                    // It shares its place with the value of a legacy fence.
                    rules::Call::FromGpu => user::bare_pointer(place),
                    rules::Call::Legacy | rules::Call::HwQueue => place,
                };

                invalid_if(array == 0)?;
                user::read_slice(array, &mut values)?;
                Ok(values)
            }
        }
    }
}

/// Queues a wait for these objects.
fn wait(
    call: Call<'_>,
    queues: &Queues,
    which: rules::Call,
    locals: &[u32],
    place: u64,
) -> DxgResult {
    let operation = Operation::Wait;
    let check = ObjectCheck::new(which, operation);
    let objects = objects_of(call, queues, locals, check, operation)?;
    let values = objects.values(which, place)?;
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
        return queues.push(|queue| NewItem::fence_wait(queue, call.process, &elements));
    }

    // Older objects are acquired one after the other, in the order of the call.
    let queue = queues.first()?;
    let mut items = KVVec::with_capacity(legacy.len(), GFP_KERNEL_ACCOUNT)?;

    queues.check()?;
    for (object, value) in &legacy {
        let item = NewItem::legacy_wait(queue, call.process, object, *value)?;

        items.push(item, GFP_KERNEL_ACCOUNT)?;
    }
    NewItem::push_all(items)
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
fn signal(call: Call<'_>, queues: &Queues, request: &SignalRequest<'_>) -> DxgResult {
    let SignalRequest {
        which,
        flags,
        locals,
        place,
    } = *request;

    if flags.event {
        // Only these calls have a member for it.
        invalid_if(which == rules::Call::HwQueue)?;

        let event = EventFd::from_slot(user::bare_pointer(place))?;

        let mut items = KVVec::new();

        queues.check()?;
        queues.signal(call, &mut items, Effect::Event(event), flags.moment(false))?;
        return NewItem::push_all(items);
    }

    let operation = Operation::Signal;
    let check = ObjectCheck::new(which, operation);
    let objects = objects_of(call, queues, locals, check, operation)?;
    let values = objects.values(which, place)?;
    // A call may name fences for which other moments count. An item has one.
    let mut at_fetch = KVVec::new();
    let mut at_end = KVVec::with_capacity(locals.len(), GFP_KERNEL_ACCOUNT)?;

    for (object, value) in objects.opened.iter().zip(values) {
        let list = match object.header().is_top_of_pipeline() {
            true => &mut at_fetch,
            false => &mut at_end,
        };
        // The handle may have been destroyed meanwhile.
        let strong = Strong::upgrade(object).ok_or(Status::INVALID_PARAMETER)?;

        list.push(SignalElement { strong, value }, GFP_KERNEL_ACCOUNT)?;
    }

    let mut items = KVVec::new();

    queues.check()?;
    for (elements, is_top_of_pipeline) in [(at_fetch, true), (at_end, false)] {
        if !elements.is_empty() {
            let moment = flags.moment(is_top_of_pipeline);

            queues.signal(call, &mut items, Effect::Objects(elements), moment)?;
        }
    }
    NewItem::push_all(items)
}

impl Queues {
    /// Makes a signal in all of them: adds its parts.
    fn signal(
        &self,
        call: Call<'_>,
        items: &mut KVVec<NewItem>,
        effect: Effect,
        moment: Moment,
    ) -> DxgResult {
        let signal = effect.into_signal(moment, self.count())?;
        let mut elements = signal.elements();

        self.make(items, |queue| {
            // The first one is charged for the elements.
            let own = core::mem::take(&mut elements);

            NewItem::signal(queue, call.process, own, &signal)
        })
    }
}

/// A list of the caller: its address, and how many there are.
#[derive(Clone, Copy)]
struct List {
    address: u64,
    count: u32,
}

impl List {
    /// Reads handles.
    fn handles(self) -> DxgResult<KVVec<u32>> {
        invalid_if(self.is_missing())?;

        // CAST: bounded by the rules of each call.
        let mut handles = KVVec::from_elem(0, self.count as usize, GFP_KERNEL_ACCOUNT)?;

        if self.count != 0 {
            user::read_slice(self.address, &mut handles)?;
        }
        Ok(handles)
    }

    /// There should be something.
    fn is_missing(self) -> bool {
        self.address == 0 && self.count != 0
    }
}

impl rules::Call {
    /// What its queues are.
    fn queue_kind(self) -> QueueKind {
        match self {
            Self::FromGpu | Self::Legacy => QueueKind::Contexts,
            Self::HwQueue => QueueKind::HwQueues,
        }
    }
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
    let mut contexts = KVVec::with_capacity(others.len() + 1, GFP_KERNEL_ACCOUNT)?;

    contexts.push(args.hContext, GFP_KERNEL_ACCOUNT)?;
    contexts.extend_from_slice(others, GFP_KERNEL_ACCOUNT)?;

    let queues = Queues::of(call, QueueKind::Contexts, &contexts)?;

    signal(
        call,
        &queues,
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
    let queues = Queues::of(call, QueueKind::Contexts, &[args.hContext])?;

    wait(call, &queues, rules::Call::Legacy, locals, args.value())
}

/// D3DKMTSignalSynchronizationObjectFromGpu (0x32): fences, or older objects, in a context.
pub(super) fn signal_from_gpu(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU,
) -> DxgResult {
    let flags = rules::check_signal(0, args.ObjectCount, MAX_OBJECTS)?;
    let objects = List {
        address: args.ObjectHandleArray,
        count: args.ObjectCount,
    };

    invalid_if(objects.is_missing())?;

    let queues = Queues::of(call, QueueKind::Contexts, &[args.hContext])?;

    signal(
        call,
        &queues,
        &SignalRequest {
            which: rules::Call::FromGpu,
            flags,
            locals: &objects.handles()?,
            place: args.values(),
        },
    )
}

/// A signal in several queues, with everything in lists.
struct BroadcastRequest {
    which: rules::Call,
    flags: u32,
    queues: List,
    objects: List,
    /// See [`SignalRequest`].
    place: u64,
}

/// Queues a signal in several queues: it comes once, when it has been the turn of it in all of them
/// (FEN-43).
fn broadcast(call: Call<'_>, request: &BroadcastRequest) -> DxgResult {
    let flags = rules::check_signal(request.flags, request.objects.count, MAX_OBJECTS)?;

    rules::check_broadcast(request.queues.count)?;
    invalid_if(request.objects.is_missing())?;

    let kind = request.which.queue_kind();
    let queues = Queues::of(call, kind, &request.queues.handles()?)?;

    signal(
        call,
        &queues,
        &SignalRequest {
            which: request.which,
            flags,
            locals: &request.objects.handles()?,
            place: request.place,
        },
    )
}

/// D3DKMTSignalSynchronizationObjectFromGpu2 (0x33): fences, older objects or an event, in several
/// contexts.
pub(super) fn signal_from_gpu2(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2,
) -> DxgResult {
    broadcast(
        call,
        &BroadcastRequest {
            which: rules::Call::FromGpu,
            flags: args.Flags,
            queues: List {
                address: args.BroadcastContextArray,
                count: args.BroadcastContextCount,
            },
            objects: List {
                address: args.ObjectHandleArray,
                count: args.ObjectCount,
            },
            place: args.values(),
        },
    )
}

/// D3DKMTSubmitSignalSyncObjectsToHwQueue (0x35): fences, in one or more HW queues.
pub(super) fn signal_in_hw_queue(
    call: Call<'_>,
    args: &D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE,
) -> DxgResult {
    broadcast(
        call,
        &BroadcastRequest {
            which: rules::Call::HwQueue,
            flags: args.Flags,
            queues: List {
                address: args.BroadcastHwQueueArray,
                count: args.BroadcastHwQueueCount,
            },
            objects: List {
                address: args.ObjectHandleArray,
                count: args.ObjectCount,
            },
            place: args.FenceValueArray,
        },
    )
}

/// Queues a wait in one queue, with objects in a list. `place` is that of [`Objects::values`].
fn wait_in(call: Call<'_>, which: rules::Call, queue: u32, objects: List, place: u64) -> DxgResult {
    rules::check_wait(objects.count, MAX_OBJECTS)?;
    invalid_if(objects.is_missing())?;

    let queues = Queues::of(call, which.queue_kind(), &[queue])?;

    wait(call, &queues, which, &objects.handles()?, place)
}

/// D3DKMTWaitForSynchronizationObjectFromGpu (0x3b): makes a context wait.
pub(super) fn wait_from_gpu(
    call: Call<'_>,
    args: &D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU,
) -> DxgResult {
    let objects = List {
        address: args.ObjectHandleArray,
        count: args.ObjectCount,
    };

    wait_in(
        call,
        rules::Call::FromGpu,
        args.hContext,
        objects,
        args.values(),
    )
}

/// D3DKMTSubmitWaitForSyncObjectsToHwQueue (0x36): makes a HW queue wait for fences.
pub(super) fn wait_in_hw_queue(
    call: Call<'_>,
    args: &D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE,
) -> DxgResult {
    let objects = List {
        address: args.ObjectHandleArray,
        count: args.ObjectCount,
    };

    wait_in(
        call,
        rules::Call::HwQueue,
        args.hHwQueue,
        objects,
        args.FenceValueArray,
    )
}
