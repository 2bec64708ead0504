// SPDX-License-Identifier: GPL-2.0

//! CPU waits and signals.

use super::{
    commit::Commit,
    sync_object::event,
    Call, //
};
use crate::{
    dxgk::{
        object::Object,
        sync::{
            cpu_wait::{
                self,
                Element, //
            },
            fence::Fence,
            interrupted_waits::SameCall, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        digest::Digest,
        handle,
        sync_flags::Rights,
        wait_set::Mode, //
    },
    sys::{
        file::object_file::PendingFd,
        task::sleep,
        user, //
    },
    uapi::*, //
};
use core::slice;
use kernel::prelude::*;

/// Objects in one call (FEN-18).
const MAX_OBJECTS: u32 = 4096;
/// Lookups under one hold of the handle table's lock.
const LOOKUPS: usize = 64;
/// Arrays up to this length are copied to the stack.
const FEW: usize = 4;

/// An array of the caller, copied once. A short one needs no allocation.
struct Array<T> {
    few: [T; FEW],
    many: Option<KVVec<T>>,
    len: usize,
}

impl<T: user::Plain> Array<T> {
    fn read(addr: u64, count: u32) -> DxgResult<Self> {
        // CAST: bounded by `MAX_OBJECTS`.
        let len = count as usize;
        let mut array = Self {
            few: [user::zeroed(); FEW],
            many: None,
            len,
        };

        if let Some(few) = array.few.get_mut(..len) {
            user::read_slice(addr, few)?;
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
            None => self.few.get(..self.len).unwrap_or_default(),
        }
    }
}

/// The parts that CPU waits and signals have in common.
struct Objects {
    device: u32,
    handles: u64,
    values: u64,
    count: u32,
}

impl Objects {
    /// INVALID_PARAMETER for a bad count or a missing array.
    fn new(device: u32, handles: u64, values: u64, count: u32) -> DxgResult<Self> {
        if !(1..=MAX_OBJECTS).contains(&count) || handles == 0 || values == 0 {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(Self {
            device,
            handles,
            values,
            count,
        })
    }

    /// Identifies a blocking wait for these objects among the calls of its thread.
    fn same_call(&self, mode: Mode) -> Option<SameCall> {
        let handles = Array::<u32>::read(self.handles, self.count).ok()?;
        let values = Array::<u64>::read(self.values, self.count).ok()?;
        let own = [
            self.device.into(),
            self.handles,
            self.values,
            self.count.into(),
            u64::from(mode == Mode::Any),
        ];
        let handles = handles.as_slice().iter().copied().map(u64::from);
        let digest = own.into_iter().fold(Digest::new(), Digest::with);
        let digest = handles.fold(digest, Digest::with);
        let digest = values.as_slice().iter().copied().fold(digest, Digest::with);

        Some(SameCall {
            site: sleep::call_site(),
            digest: digest.get(),
        })
    }

    /// The only element of a call with one object: the same checks as [`Objects::resolve`], without
    /// lists.
    fn only(&self, call: Call<'_>, may: impl Fn(Rights) -> bool) -> DxgResult<Option<Element>> {
        if self.count != 1 {
            return Ok(None);
        }

        let local = user::read::<u32>(self.handles)?;
        let value = user::read::<u64>(self.values)?;
        let table = call.process.handles.lookup();
        let opened = table.sync_object(local)?;
        // Most objects are used with the device that they were made on, which exists and fits.
        let adapter = if opened.device == Some(self.device) {
            None
        } else {
            Some(table.device_adapter(self.device)?)
        };

        drop(table);

        let Object::Fence(fence) = opened.object else {
            return Err(Status::INVALID_PARAMETER.into());
        };

        if adapter.is_some_and(|adapter| !fits(&fence, adapter)) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if !may(opened.rights) {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(Some(Element { fence, value }))
    }

    /// Copies both arrays and looks every handle up, before any effect. The first check that fails
    /// decides (FEN-53): handles of all, then types of all, then rights of all.
    fn resolve(&self, call: Call<'_>, may: impl Fn(Rights) -> bool) -> DxgResult<KVVec<Element>> {
        let handles = Array::<u32>::read(self.handles, self.count)?;
        let values = Array::<u64>::read(self.values, self.count)?;
        let mut elements = KVVec::with_capacity(handles.len, GFP_KERNEL_ACCOUNT)?;
        let mut mismatch = false;
        let mut denied = false;
        let mut table = call.process.handles.lookup();
        let adapter = table.device_adapter(self.device)?;
        let pairs = handles.as_slice().iter().zip(values.as_slice());

        for (number, (local, value)) in pairs.enumerate() {
            if number % LOOKUPS == LOOKUPS - 1 {
                drop(table);
                table = call.process.handles.lookup();
            }

            let opened = table.sync_object(*local)?;
            let Object::Fence(fence) = opened.object else {
                mismatch = true;
                continue;
            };

            mismatch |= !fits(&fence, adapter);
            denied |= !may(opened.rights);
            // There is room for all of them.
            let _room = elements.push_within_capacity(Element {
                fence,
                value: *value,
            });
        }
        drop(table);
        if mismatch {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if denied {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(elements)
    }
}

/// Whether a device of an adapter may use the fence (FEN-26).
fn fits(fence: &Fence, adapter: u32) -> bool {
    fence.header.cross_adapter
        || fence
            .header
            .adapter
            .as_ref()
            .is_none_or(|own| own.index == adapter)
}

/// D3DKMTSignalSynchronizationObjectFromCpu (0x31): stores a value in each fence (FEN-31 to
/// FEN-38). Values are checked one after the other; those before a refused one stay stored.
pub(super) fn signal_from_cpu(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU,
) -> DxgResult {
    if args.Flags & !D3DDDICB_SIGNALFLAGS_AllowFenceRewind != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let allow_rewind = args.Flags & D3DDDICB_SIGNALFLAGS_AllowFenceRewind != 0;
    let may = |rights: Rights| rights.signal;
    let signal = |element: &Element| -> DxgResult {
        element
            .fence
            .signal(element.value, allow_rewind)
            .map_err(|_| Status::INVALID_PARAMETER.into())
    };
    let objects = Objects::new(
        args.hDevice,
        args.ObjectHandleArray,
        args.FenceValueArray,
        args.ObjectCount,
    )?;

    if let Some(element) = objects.only(call, may)? {
        return signal(&element);
    }
    objects.resolve(call, may)?.iter().try_for_each(signal)
}

/// D3DKMTWaitForSynchronizationObjectFromCpu (0x3a): waits for all values or for any of them, in
/// the call or with an event (FEN-14 to FEN-30).
pub(super) fn wait_from_cpu(
    call: Call<'_>,
    args: &D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU,
) -> DxgResult {
    if args.Flags & !D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let any = args.Flags & D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny != 0;
    let mode = if any { Mode::Any } else { Mode::All };
    let may = |rights: Rights| rights.wait;
    let objects = Objects::new(
        args.hDevice,
        args.ObjectHandleArray,
        args.FenceValueArray,
        args.ObjectCount,
    )?;
    let waits = &call.process.waits;

    if !waits.interrupted.is_empty() {
        let same = (args.hAsyncEvent == 0).then(|| objects.same_call(mode));

        let same = same.flatten();

        if let (Some(waiter), Some(same)) = (waits.interrupted.take(same), same) {
            return cpu_wait::resume(waits, &waiter, same);
        }
    }

    let wait = |elements: &[Element]| match args.hAsyncEvent {
        0 => cpu_wait::block(waits, mode, elements, || objects.same_call(mode)),
        slot => cpu_wait::notify(waits, mode, elements, event(slot)?),
    };

    match objects.only(call, may)? {
        Some(element) => wait(slice::from_ref(&element)),
        None => wait(&objects.resolve(call, may)?),
    }
}

/// DXG_IOCTL_FENCE_POINT (0xb8): a descriptor that becomes readable at a value (FEN-168).
pub(super) fn create_fence_point(
    call: Call<'_>,
    args: &mut opendxg_fence_point,
) -> DxgResult<impl Commit> {
    if args.flags != 0 || args.reserved != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let opened = call.process.handles.sync_object(args.sync_object)?;
    let Object::Fence(fence) = opened.object else {
        return Err(Status::INVALID_PARAMETER.into());
    };

    if !opened.rights.wait {
        return Err(Status::ACCESS_DENIED.into());
    }

    let element = Element {
        fence,
        value: args.value,
    };
    let point = cpu_wait::point(&call.process.waits, element)?;
    let fd = PendingFd::new(point, handle::LAST_FD, true)?;

    // CAST: below 2^30.
    args.fd = fd.fd() as i32;
    Ok(fd)
}
