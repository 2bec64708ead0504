// SPDX-License-Identifier: GPL-2.0

//! CPU waits and signals.

use super::{
    sync_object::event,
    Call,
    Publish, //
};
use crate::{
    dxgk::{
        cpu_wait::{
            self,
            Element,
            Elements, //
        },
        device::Device,
        monitored_fence::MonitoredFence,
        sync_object::SyncObject, //
    },
    logic::{
        handle,
        sync_flags::Rights,
        wait_set::Mode, //
    },
    sys::{
        object_file::PendingFd,
        user, //
    },
    uapi::{
        status::{
            Outcome,
            Status,
            Stop, //
        },
        *, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Objects in one call (FEN-18).
const MAX_OBJECTS: u32 = 4096;
/// Arrays up to this length are copied to the stack.
const FEW: usize = 8;

/// An array of the caller, copied once. A short one takes no memory.
struct Array<T> {
    few: [T; FEW],
    many: KVVec<T>,
    len: usize,
}

impl<T: user::Plain> Array<T> {
    fn read(addr: u64, count: u32) -> Outcome<Self> {
        // CAST: bounded by `MAX_OBJECTS`.
        let len = count as usize;
        let mut array = Self {
            few: [user::zeroed(); FEW],
            many: KVVec::new(),
            len,
        };

        if len > FEW {
            array.many = KVVec::from_elem(user::zeroed(), len, GFP_KERNEL_ACCOUNT)?;
        }
        user::read_slice(addr, array.as_mut_slice())?;
        Ok(array)
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self.few.get_mut(..self.len) {
            Some(few) => few,
            None => &mut self.many,
        }
    }

    fn as_slice(&self) -> &[T] {
        match self.few.get(..self.len) {
            Some(few) => few,
            None => &self.many,
        }
    }
}

/// The parts that CPU waits and signals have in common.
struct Objects {
    handles: u64,
    values: u64,
    count: u32,
}

impl Objects {
    /// Copies both arrays and looks every handle up, before any effect. The first check that fails
    /// decides (FEN-53): handles of all, then types of all, then rights of all.
    fn resolve(
        &self,
        call: Call<'_>,
        device: &Device,
        may: impl Fn(Rights) -> bool,
    ) -> Outcome<Elements> {
        let handles = Array::<u32>::read(self.handles, self.count)?;
        let values = Array::<u64>::read(self.values, self.count)?;
        let mut elements = Elements::default();
        let mut mismatch = false;
        let mut denied = false;

        for (local, value) in handles.as_slice().iter().zip(values.as_slice()) {
            let opened = call.process.handles.sync_object(*local)?;
            let Some(fence) = usable(&opened.object, device) else {
                mismatch = true;
                continue;
            };

            denied |= !may(opened.rights);
            elements.push(Element {
                fence,
                value: *value,
            })?;
        }
        if mismatch {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if denied {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(elements)
    }
}

/// The object as a fence that a device may wait on and signal from the CPU (FEN-26, section 2.6).
fn usable(object: &SyncObject, device: &Device) -> Option<Arc<MonitoredFence>> {
    match object {
        SyncObject::Fence(fence)
            if fence.header.cross_adapter
                || Arc::ptr_eq(&fence.header.adapter, &device.adapter) =>
        {
            Some(fence.clone())
        }
        _ => None,
    }
}

fn check_arrays(count: u32, handles: u64, values: u64) -> Outcome<Objects> {
    if !(1..=MAX_OBJECTS).contains(&count) || handles == 0 || values == 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    Ok(Objects {
        handles,
        values,
        count,
    })
}

/// nr 0x31 (FEN-31 to FEN-38). Values are checked one after the other; those before a refused one
/// stay stored.
pub(super) fn signal_from_cpu(
    call: Call<'_>,
    args: &D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU,
) -> Outcome {
    if args.Flags & !D3DDDICB_SIGNALFLAGS_AllowFenceRewind != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let allow_rewind = args.Flags & D3DDDICB_SIGNALFLAGS_AllowFenceRewind != 0;
    let objects = check_arrays(
        args.ObjectCount,
        args.ObjectHandleArray,
        args.FenceValueArray,
    )?;
    let device = call.process.handles.device(args.hDevice)?;
    let elements = objects.resolve(call, &device, |rights| rights.signal)?;

    for element in elements.iter() {
        element
            .fence
            .signal(element.value, allow_rewind)
            .map_err(|_| Stop::from(Status::INVALID_PARAMETER))?;
    }
    Ok(())
}

/// nr 0x3a (FEN-14 to FEN-30).
pub(super) fn wait_from_cpu(
    call: Call<'_>,
    args: &D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU,
) -> Outcome {
    if args.Flags & !D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let any = args.Flags & D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny != 0;
    let mode = if any { Mode::Any } else { Mode::All };
    let objects = check_arrays(
        args.ObjectCount,
        args.ObjectHandleArray,
        args.FenceValueArray,
    )?;
    let device = call.process.handles.device(args.hDevice)?;
    let elements = objects.resolve(call, &device, |rights| rights.wait)?;

    match args.hAsyncEvent {
        0 => cpu_wait::block(mode, &elements),
        slot => cpu_wait::notify(&call.process.waits, mode, &elements, event(slot)?),
    }
}

/// nr 0xb8 (FEN-168).
pub(super) fn create_fence_point<'a>(
    call: Call<'a>,
    args: &mut opendxg_fence_point,
) -> Outcome<Publish<'a>> {
    if args.flags != 0 || args.reserved != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let opened = call.process.handles.sync_object(args.sync_object)?;
    let SyncObject::Fence(fence) = opened.object else {
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
    Ok(Publish::Fd(fd))
}
