// SPDX-License-Identifier: GPL-2.0

//! CPU waits and signals.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        handle::{
            lookup::Lookup,
            open_sync_object::SyncLookup, //
        },
        object::Object,
        small_vec::SmallVec,
        sync::{
            cpu_wait::{
                self,
                Element, //
            },
            fence::{
                one::{
                    Few,
                    Signalled, //
                },
                Fence, //
            },
            interrupted_waits::{
                InterruptedWaits,
                SameCall, //
            }, //
        },
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    file::fence_point::FencePoint,
    logic::{
        digest::Digest,
        handle,
        sync_flags::Rights,
        timeout::Deadline,
        wait_rules::{
            self,
            ElementCheck,
            Refusal, //
        },
        wait_set::Mode,
        waiters::WouldRewind, //
    },
    sys::{
        array_vec::ArrayVec,
        file::{
            eventfd::EventFd,
            object_file::PendingFd, //
        },
        task::{
            sleep,
            stamp::Stamp, //
        },
        user, //
    },
    uapi::*, //
};
use core::slice;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Lookups under one hold of the handle table's lock.
const LOOKUPS: usize = 64;
/// Arrays up to this length are copied to the stack.
const ON_STACK: usize = 4;

const _: () = assert!(
    wait_rules::ALLOW_FENCE_REWIND == D3DDDICB_SIGNALFLAGS_AllowFenceRewind
        && wait_rules::WAIT_ANY == D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny
);

impl From<Refusal> for DxgError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Mismatch => Status::INVALID_PARAMETER,
            Refusal::Denied => Status::ACCESS_DENIED,
        }
        .into()
    }
}

/// An array of the caller, copied once. A short one needs no allocation.
struct Array<T> {
    on_stack: [T; ON_STACK],
    many: Option<KVVec<T>>,
    len: usize,
}

impl<T: user::Plain> Array<T> {
    fn read(addr: u64, count: u32) -> DxgResult<Self> {
        // CAST: bounded by `MAX_OBJECTS`.
        let len = count as usize;
        let mut array = Self {
            on_stack: [user::zeroed(); ON_STACK],
            many: None,
            len,
        };

        if let Some(short) = array.on_stack.get_mut(..len) {
            user::read_slice(addr, short)?;
        } else {
            let mut many = KVVec::from_elem(user::zeroed(), len, GFP_KERNEL_ACCOUNT)?;

            user::read_slice(addr, &mut many)?;
            array.many = Some(many);
        }
        Ok(array)
    }

    fn as_slice(&self) -> &[T] {
        match &self.many {
            Some(many) => many,
            None => self.on_stack.get(..self.len).unwrap_or_default(),
        }
    }
}

/// What CPU waits and signals have in common.
#[derive(Clone, Copy)]
struct Request {
    device: u32,
    handles: u64,
    values: u64,
    count: u32,
}

impl Request {
    /// INVALID_PARAMETER for a bad count or a missing array.
    fn new(device: u32, handles: u64, values: u64, count: u32) -> DxgResult<Self> {
        wait_rules::check_arrays(count, handles, values)?;
        Ok(Self {
            device,
            handles,
            values,
            count,
        })
    }

    /// Identifies a blocking wait among the calls of its thread, by these copies of its arrays.
    #[inline(never)]
    fn same_call(&self, mode: Mode, locals: &[u32], values: impl Iterator<Item = u64>) -> SameCall {
        let own = [
            self.device.into(),
            self.handles,
            self.values,
            self.count.into(),
            u64::from(mode == Mode::Any),
        ];
        let locals = locals.iter().copied().map(u64::from);
        let digest = own.into_iter().fold(Digest::new(), Digest::with);
        let digest = values.fold(locals.fold(digest, Digest::with), Digest::with);

        SameCall {
            site: sleep::call_site(),
            digest: digest.get(),
        }
    }

    /// Identifies the call that begins now, for the comparison with an interrupted one.
    #[inline(never)]
    fn this_call(&self, mode: Mode) -> DxgResult<SameCall> {
        let locals = Array::<u32>::read(self.handles, self.count)?;
        let values = Array::<u64>::read(self.values, self.count)?;
        let values = values.as_slice().iter().copied();

        Ok(self.same_call(mode, locals.as_slice(), values))
    }

    /// Goes on with the wait of this thread that a signal has interrupted, if this call is that one
    /// again. Any other call ends it for good.
    #[inline(never)]
    fn resume(&self, interrupted: &InterruptedWaits, mode: Mode, event: u64) -> Option<DxgResult> {
        let same = match event {
            0 => self.this_call(mode).ok(),
            _ => None,
        };
        let waiter = interrupted.take(same)?;

        Some(cpu_wait::resume(
            interrupted,
            Deadline::Never,
            &waiter,
            same?,
        ))
    }

    /// Copies both arrays, looks every handle up, and does `act` with the handles and the
    /// elements. The first check that fails decides (FEN-53): handles of all, then types of all,
    /// then rights of all.
    fn with_elements(
        self,
        call: Call<'_>,
        may: impl Fn(Rights) -> bool,
        act: impl FnOnce(&[u32], &[Element]) -> DxgResult,
    ) -> DxgResult {
        let locals = Array::<u32>::read(self.handles, self.count)?;
        let elements = self.elements(call, locals.as_slice(), may)?;

        act(locals.as_slice(), &elements)
    }

    /// Waits for the elements, in the call or with an event.
    #[inline(always)]
    fn wait(
        &self,
        call: Call<'_>,
        mode: Mode,
        event: u64,
        locals: &[u32],
        elements: &[Element],
    ) -> DxgResult {
        let process = call.process;
        let waits = &process.waits;

        match event {
            0 => cpu_wait::block(waits, &process.interrupted, mode, elements, || {
                let values = elements.iter().map(|element| element.value);

                self.same_call(mode, locals, values)
            }),
            slot => cpu_wait::notify(waits, mode, elements, EventFd::from_slot(slot)?),
        }
    }

    /// The elements, in the order of the call.
    fn elements(
        self,
        call: Call<'_>,
        locals: &[u32],
        may: impl Fn(Rights) -> bool,
    ) -> DxgResult<SmallVec<Element, ON_STACK>> {
        let values = Array::<u64>::read(self.values, self.count)?;
        let pairs = locals.iter().zip(values.as_slice());
        let mut elements = SmallVec::with_capacity(locals.len())?;
        let mut check = ElementCheck::default();
        let mut lookup = call.process.handles.lookup();

        for (number, (local, value)) in pairs.enumerate() {
            if number % LOOKUPS == LOOKUPS - 1 {
                drop(lookup);
                lookup = call.process.handles.lookup();
            }
            if let Some(fence) = self.element(&lookup, *local, &mut check, &may)? {
                // There is room for all of them.
                elements.push(Element {
                    fence: fence.clone(),
                    value: *value,
                });
            }
        }
        drop(lookup);
        check.result()?;
        Ok(elements)
    }

    /// The fence of an element. If the object is not a fence, `check` records it and there is none.
    #[inline(never)]
    fn element<'a>(
        self,
        lookup: &'a Lookup<'_>,
        local: u32,
        check: &mut ElementCheck,
        may: impl Fn(Rights) -> bool,
    ) -> DxgResult<Option<&'a Arc<Fence>>> {
        let opened = lookup.sync_object(local)?;
        let is_for = lookup.is_for(&opened, self.device)?;
        let may = may(opened.rights);
        let Object::Fence(fence) = opened.object else {
            check.see(false, may);
            return Ok(None);
        };

        // Only its queue signals the fence of a paging queue (MEM-11).
        check.see(is_for && (may || !opened.of_queue), may);
        Ok(Some(fence))
    }
}

/// Signals several fences.
#[inline(never)]
fn signal_list(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU,
    allow_rewind: bool,
) -> DxgResult {
    let request = Request::of_signal(args)?;

    // CAST: 32 bits fit a usize.
    match request.count as usize {
        count if count <= ON_STACK => request.signal_some::<ON_STACK>(call, allow_rewind),
        count if count <= LOOKUPS => request.signal_some::<LOOKUPS>(call, allow_rewind),
        _ => request.with_elements(
            call,
            |rights| rights.signal,
            |_, elements| signal_each(call, args.hDevice, pairs(elements), allow_rewind),
        ),
    }
}

impl Request {
    /// What a signal asks for.
    #[inline(always)]
    fn of_signal(args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU) -> DxgResult<Self> {
        Self::new(
            args.hDevice,
            args.ObjectHandleArray,
            args.FenceValueArray,
            args.ObjectCount,
        )
    }

    /// Signals up to `N` fences. As long as they release nobody this is done under the lock of the
    /// handle table, and they need no references. Takes no memory.
    #[inline(never)]
    fn signal_some<const N: usize>(self, call: Call<'_>, allow_rewind: bool) -> DxgResult {
        // CAST: 32 bits fit a usize.
        let count = self.count as usize;
        let locals = user::read_few::<u32, N>(self.handles, count)?;
        let values = user::read_few::<u64, N>(self.values, count)?;
        let mut rest = ArrayVec::<_, N>::new();

        self.signal_alone(call, &locals, &values, allow_rewind, &mut rest)?;
        if rest.is_empty() {
            return Ok(());
        }

        // The last ones.
        let values = values.iter().skip(values.len().saturating_sub(rest.len()));

        signal_each(
            call,
            self.device,
            rest.iter().zip(values.copied()),
            allow_rewind,
        )
    }

    /// Checks all elements and signals them, up to the first one that releases somebody. That one
    /// and all after it are left in `rest`, which has room for them.
    fn signal_alone<const N: usize>(
        self,
        call: Call<'_>,
        locals: &[u32],
        values: &[u64],
        allow_rewind: bool,
        rest: &mut ArrayVec<Arc<Fence>, N>,
    ) -> DxgResult {
        let mut check = ElementCheck::default();
        let lookup = call.process.handles.lookup();
        let mut fences = ArrayVec::<_, N>::new();

        for local in locals {
            let fence = match lookup.plain_fence(*local, self.device, |rights| rights.signal) {
                None => self.element(&lookup, *local, &mut check, |rights| rights.signal)?,
                plain => plain,
            };

            if let Some(fence) = fence {
                // There is room for all of them.
                let _room = fences.push(fence);
            }
        }
        check.result()?;

        let by = Stamp::of_caller();
        let mut is_alone = true;

        // All are there: the check would have failed.
        for (fence, value) in fences.iter().zip(values) {
            is_alone = is_alone && fence.signal_alone(by, *value, allow_rewind)?;
            if !is_alone {
                // There is room for all of them.
                let _room = rest.push((*fence).clone());
            }
        }
        Ok(())
    }
}

/// The fence and the value of each element.
fn pairs(elements: &[Element]) -> impl Iterator<Item = (&Arc<Fence>, u64)> + Clone {
    elements
        .iter()
        .map(|element| (&element.fence, element.value))
}

/// Signals one fence after the other, for a device.
fn signal_each<'a>(
    call: Call<'_>,
    device: u32,
    mut pairs: impl Iterator<Item = (&'a Arc<Fence>, u64)> + Clone,
    allow_rewind: bool,
) -> DxgResult {
    let crosses = |(fence, _): (&Arc<Fence>, u64)| fence.cross_adapter().is_some();
    // Only other adapters ask which one it was.
    let adapter = match pairs.clone().any(crosses) {
        true => Some(call.process.handles.device(device)?.adapter.id),
        false => None,
    };

    pairs.try_for_each(|(fence, value)| Ok(fence.signal_on(adapter, value, allow_rewind)?))
}

impl From<WouldRewind> for DxgError {
    fn from(_: WouldRewind) -> Self {
        Status::INVALID_PARAMETER.into()
    }
}

/// D3DKMTSignalSynchronizationObjectFromCpu (0x31): stores a value in each fence (FEN-31 to
/// FEN-38). Values are checked one after the other; those before a refused one stay stored.
pub(super) fn signal_from_cpu(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU,
) -> DxgResult {
    let allow_rewind = wait_rules::signal_flags(args.Flags)?;

    signal_list(call, args, allow_rewind)
}

/// The signal of one fence that nothing is to be said about; `None` leaves the call, which has had
/// no effect, to [`signal_from_cpu`].
#[inline(always)]
pub(super) fn signal_quickly(call: Call<'_>, arg: u64) -> Option<DxgResult> {
    let one = user::read_one_signal(arg)?;

    // CAST: what follows the flags is padding.
    if one.rest[0] as u32 != 0 {
        return None;
    }

    let lookup = call.process.handles.lookup();
    let fence = lookup.plain_fence(one.object, one.device, |rights| rights.signal)?;

    let signalled = fence.signal_one(Stamp::of_caller(), one.value).ok()?;

    match &signalled {
        Signalled::Alone => return Some(Ok(())),
        Signalled::Releasing(..) => {}
        // Its device has to be told to others.
        Signalled::Not if fence.cross_adapter().is_some() => return None,
        Signalled::Not => {
            let fence = fence.clone();

            drop(signalled);
            drop(lookup);
            return Some(signal_others(fence, one.value));
        }
    }

    let mut few = Few::new();

    signalled.take_few(&mut few);

    let fence = few.has_rest().then(|| fence.clone());

    drop(lookup);
    few.release(fence);
    Some(Ok(()))
}

/// Signals a fence that has waiters to release, and is native somewhere.
#[inline(never)]
fn signal_others(fence: Arc<Fence>, value: u64) -> DxgResult {
    Ok(fence.signal(value, false)?)
}

/// D3DKMTWaitForSynchronizationObjectFromCpu (0x3a): waits for values of fences, in the call or
/// with an event (FEN-14 to FEN-30).
pub(super) fn wait_from_cpu(
    call: Call<'_>,
    args: &D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU,
) -> DxgResult {
    let mode = wait_rules::wait_flags(args.Flags)?;
    let request = Request::new(
        args.hDevice,
        args.ObjectHandleArray,
        args.FenceValueArray,
        args.ObjectCount,
    )?;
    let interrupted = &call.process.interrupted;

    if !interrupted.is_empty() {
        if let Some(result) = request.resume(interrupted, mode, args.hAsyncEvent) {
            return result;
        }
    }

    request.with_elements(
        call,
        |rights| rights.wait,
        |locals, elements| request.wait(call, mode, args.hAsyncEvent, locals, elements),
    )
}

/// The wait for one fence that nothing is to be said about; `None` leaves the call, which has had
/// no effect, to [`wait_from_cpu`].
#[inline(always)]
pub(super) fn wait_quickly(call: Call<'_>, arg: u64) -> Option<DxgResult> {
    let one = user::read_one_wait(arg)?;
    let [event, flags] = one.rest;
    // CAST: what follows the flags is padding.
    let mode = wait_rules::wait_flags(flags as u32).ok()?;

    if !call.process.interrupted.is_empty() {
        return None;
    }

    let lookup = call.process.handles.lookup();
    let fence = lookup.plain_fence(one.object, one.device, |rights| rights.wait)?;

    if event == 0 && fence.satisfies(one.value) {
        return Some(Ok(()));
    }

    let element = Element {
        fence: fence.clone(),
        value: one.value,
    };

    drop(lookup);
    Some(wait_for_one(call, mode, &one, element))
}

/// Waits for one fence, in the call or with an event.
#[inline(never)]
fn wait_for_one(call: Call<'_>, mode: Mode, one: &user::One, element: Element) -> DxgResult {
    let request = Request {
        device: one.device,
        handles: one.objects,
        values: one.values,
        count: 1,
    };
    let [event, _] = one.rest;

    request.wait(
        call,
        mode,
        event,
        slice::from_ref(&one.object),
        slice::from_ref(&element),
    )
}

/// The object that was looked up as an element of a wait, if it is a fence and its handle may wait.
pub(super) fn element_to_wait_for(opened: SyncLookup, value: u64) -> DxgResult<Element> {
    match opened.object {
        Object::Fence(_) if !opened.rights.wait => Err(Refusal::Denied.into()),
        Object::Fence(fence) => Ok(Element { fence, value }),
        _ => Err(Refusal::Mismatch.into()),
    }
}

/// DXG_IOCTL_FENCE_POINT (0xb8): a descriptor that becomes readable when a fence has reached a
/// value (FEN-168).
pub(super) fn create_fence_point(
    call: Call<'_>,
    args: &mut opendxg_fence_point,
) -> DxgResult<impl Commit> {
    invalid_if(args.flags != 0 || args.reserved != 0)?;

    let opened = call.process.handles.sync_object(args.sync_object)?;
    let element = element_to_wait_for(opened, args.value)?;
    let point = FencePoint::new(&call.process.waits, &element)?;
    let fd = PendingFd::new(point, handle::LAST_FD, true)?;

    // CAST: below 2^30.
    args.fd = fd.fd() as i32;
    Ok(fd)
}
