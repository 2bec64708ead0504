// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls the typed interface makes, as safe functions.
//!
//! Whether a call is safe depends on the addresses in its argument. Here every address is 0 or
//! comes from a slice or struct that is borrowed for as long as the call lasts.

pub(crate) mod gpu;
pub(crate) mod info;
pub(crate) mod keyed_mutex;
pub(crate) mod object;
pub(crate) mod offer;
pub(crate) mod resource;
pub(crate) mod share;

use core::ffi::c_void;

use std::os::fd::OwnedFd;

use crate::error::OrOs;
use crate::handle::{adopt, LocalHandle};
use crate::node::Node;
use crate::raw::Argument;
use crate::uapi::*;
use crate::value::FenceValue;
use crate::{Error, Result, Status};

/// Turns what the driver answered into a result. Success-class statuses are successes.
pub(crate) fn check(answer: rustix::io::Result<Status>) -> Result<Status> {
    match answer.or_os()? {
        status if status.is_success() => Ok(status),
        status => Err(Error::Status(status)),
    }
}

/// An argument that holds no address for the kernel to follow.
///
/// # Safety
///
/// The handler of the call reads and writes the argument itself and no other memory of the
/// process.
pub(crate) unsafe trait SelfContained: Argument {}

macro_rules! self_contained {
    ($($name:ident)*) => {
        $(
            // SAFETY: the struct has no member that the handler uses as an address of this process
            // (addresses that the kernel *returns*, and those of the GPU, are harmless here).
            unsafe impl SelfContained for $name {}
        )*
    };
}

self_contained! {
    D3DDDI_UPDATEALLOCPROPERTY
    D3DKMT_OPENADAPTERFROMLUID
    D3DKMT_CLOSEADAPTER
    D3DKMT_QUERYCLOCKCALIBRATION
    D3DKMT_ISFEATUREENABLED
    D3DKMT_CREATEDEVICE
    D3DKMT_DESTROYDEVICE
    D3DKMT_GETDEVICESTATE
    D3DKMT_MARKDEVICEASERROR
    D3DKMT_QUERYVIDEOMEMORYINFO
    D3DKMT_CHANGEVIDEOMEMORYRESERVATION
    D3DKMT_QUERYSTATISTICS
    D3DKMT_FLUSHHEAPTRANSITIONS
    D3DKMT_DESTROYCONTEXT
    D3DKMT_DESTROYHWCONTEXT
    D3DKMT_DESTROYHWQUEUE
    D3DKMT_CONNECT_DOORBELL
    D3DKMT_DESTROY_DOORBELL
    D3DKMT_NOTIFY_WORK_SUBMISSION
    D3DKMT_GETNATIVEFENCELOGDETAIL
    D3DKMT_SETCONTEXTSCHEDULINGPRIORITY
    D3DKMT_GETCONTEXTSCHEDULINGPRIORITY
    D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY
    D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY
    D3DDDI_DESTROYPAGINGQUEUE
    D3DDDI_RESERVEGPUVIRTUALADDRESS
    D3DDDI_MAPGPUVIRTUALADDRESS
    D3DKMT_FREEGPUVIRTUALADDRESS
    D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2
    D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2
    D3DKMT_CREATESYNCHRONIZATIONOBJECT2
    D3DKMT_OPENSYNCHRONIZATIONOBJECT
    D3DKMT_OPENSYNCOBJECTFROMNTHANDLE
    D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2
    D3DKMT_DESTROYSYNCHRONIZATIONOBJECT
    D3DKMT_CREATENATIVEFENCE
    D3DKMT_OPENNATIVEFENCEFROMNTHANDLE
    D3DKMT_CREATESYNCFILE
    d3dkmt_waitsyncfile
    d3dkmt_opensyncobjectfromsyncfile
    D3DKMT_QUERYRESOURCEINFO
    D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE
    D3DKMT_GETSHAREDRESOURCEADAPTERLUID
    D3DKMT_CHECKSHAREDRESOURCEACCESS
    D3DKMT_QUERYPROCESSOFFERINFO
    D3DKMT_TRIMPROCESSCOMMITMENT
    D3DKMT_CONFIGURESHAREDRESOURCE
    D3DKMT_CREATEKEYEDMUTEX
    D3DKMT_OPENKEYEDMUTEX
    D3DKMT_DESTROYKEYEDMUTEX
    D3DKMT_RELEASEKEYEDMUTEX
    opendxg_version
    opendxg_fence_point
    opendxg_fence_stream
    opendxg_memory_notice
    opendxg_signal_on_event
    opendxg_signal_nt
    opendxg_wait_nt
    opendxg_value_nt
    opendxg_dup_nt
    opendxg_delete_info
    opendxg_open_weak
    opendxg_resolve_weak
    opendxg_watch
    opendxg_watch_state
    opendxg_dup_local
    opendxg_get_container
    opendxg_export_dmabuf
}

/// Runs a call whose argument holds no address.
pub(crate) fn call<T: SelfContained>(node: &Node, arg: &mut T) -> Result<Status> {
    // SAFETY: `arg` is borrowed for the call and refers to nothing else.
    unsafe { call_with_addresses(node, arg) }
}

/// Runs a call.
///
/// # Safety
///
/// Every address in `arg` is 0 or one the call may use as the specification says.
unsafe fn call_with_addresses<T: Argument>(node: &Node, arg: &mut T) -> Result<Status> {
    // SAFETY: `arg` is a struct of that size; the caller vouches for the addresses in it.
    check(unsafe { node.call(T::NR, (&raw mut *arg).cast::<c_void>(), T::SIZE) })
}

/// EnumAdapters3: fills `adapters` and returns how many there are. With an empty slice only
/// counts.
pub(crate) fn enum_adapters(
    node: &Node,
    filter: D3DKMT_ENUMADAPTERS_FILTER,
    adapters: &mut [D3DKMT_ADAPTERINFO],
) -> Result<usize> {
    let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
    arg.Filter = filter;
    arg.NumAdapters = count(adapters.len())?;
    if !adapters.is_empty() {
        arg.pAdapters = adapters.as_mut_ptr() as u64;
    }
    // SAFETY: `pAdapters` is 0 or addresses the `NumAdapters` entries of the borrowed slice.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok(arg.NumAdapters as usize)
}

/// QueryAdapterInfo of a type whose payload holds no addresses.
pub(crate) fn query_adapter_info(
    node: &Node,
    adapter: LocalHandle,
    kind: u32,
    payload: &mut [u8],
) -> Result<Status> {
    if kind == KMTQAITYPE_PHYSICALADAPTERPNPKEY {
        // Its payload is a list of addresses to write to: only for `raw`.
        return Err(Error::Status(Status::NOT_SUPPORTED));
    }
    let mut arg = D3DKMT_QUERYADAPTERINFO::zeroed();
    arg.hAdapter = adapter.0;
    arg.Type = kind as _;
    arg.pPrivateDriverData = payload.as_mut_ptr() as u64;
    arg.PrivateDriverDataSize = count(payload.len())?;
    // SAFETY: the address and the size are those of the borrowed slice, whose contents hold no
    // addresses.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// D3DKMTCreateContextVirtual; the handle of the context.
pub(crate) fn create_context_virtual(
    node: &Node,
    mut arg: D3DKMT_CREATECONTEXTVIRTUAL,
    driver_data: &mut [u8],
) -> Result<LocalHandle> {
    (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = buffer(driver_data)?;
    // SAFETY: the address and the size are those of the borrowed slice.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok(LocalHandle(arg.hContext))
}

/// D3DKMTCreateHwContext; the handle of the context.
pub(crate) fn create_hw_context(
    node: &Node,
    mut arg: D3DKMT_CREATEHWCONTEXT,
    driver_data: &mut [u8],
) -> Result<LocalHandle> {
    (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = buffer(driver_data)?;
    // SAFETY: the address and the size are those of the borrowed slice.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok(LocalHandle(arg.hHwContext))
}

/// CreateSynchronizationObject2 for a monitored fence; also returns where its value is mapped.
pub(crate) fn create_monitored_fence(
    node: &Node,
    arg: &mut D3DKMT_CREATESYNCHRONIZATIONOBJECT2,
) -> Result<FenceValue> {
    debug_assert_eq!(arg.Info.Type, D3DDDI_MONITORED_FENCE);
    call(node, arg)?;
    // SAFETY: the arm of the type in the argument; all arms are integers.
    let address = unsafe { arg.Info.__bindgen_anon_1.MonitoredFence }.FenceValueCPUVirtualAddress;
    // SAFETY: the driver mapped the value there for as long as the object is open in this process,
    // and the caller keeps value and object together.
    unsafe { FenceValue::at(address) }.ok_or(Error::Protocol("fence without a value mapping"))
}

/// CreateNativeFence; also returns where CurrentValue is mapped.
pub(crate) fn create_native_fence(
    node: &Node,
    arg: &mut D3DKMT_CREATENATIVEFENCE,
) -> Result<FenceValue> {
    call(node, arg)?;
    // SAFETY: as in `create_monitored_fence`.
    let value = unsafe { FenceValue::at(arg.Info.NativeFenceMapping.CurrentValueCpuVa) };
    value.ok_or(Error::Protocol("fence without a value mapping"))
}

/// OpenNativeFenceFromNtHandle; also returns where CurrentValue is mapped.
pub(crate) fn open_native_fence(
    node: &Node,
    arg: &mut D3DKMT_OPENNATIVEFENCEFROMNTHANDLE,
) -> Result<FenceValue> {
    call(node, arg)?;
    // SAFETY: as in `create_monitored_fence`.
    let value = unsafe { FenceValue::at(arg.NativeFenceMapping.CurrentValueCpuVa) };
    value.ok_or(Error::Protocol("fence without a value mapping"))
}

/// OpenSyncObjectFromNtHandle2; also returns where the value is mapped if it is a monitored fence.
pub(crate) fn open_from_nt_handle(
    node: &Node,
    arg: &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2,
) -> Result<Option<FenceValue>> {
    call(node, arg)?;
    // SAFETY: all arms are integers; the arm was zeroed and the driver writes it for monitored
    // fences only.
    let address = unsafe { arg.__bindgen_anon_1.MonitoredFence }.FenceValueCPUVirtualAddress;
    // SAFETY: as in `create_monitored_fence`.
    Ok(unsafe { FenceValue::at(address) })
}

/// Opens the fence behind a sync file; returns where its value is mapped.
pub(crate) fn open_from_sync_file(
    node: &Node,
    arg: &mut d3dkmt_opensyncobjectfromsyncfile,
) -> Result<Option<FenceValue>> {
    call(node, arg)?;
    // SAFETY: as in `create_monitored_fence`.
    Ok(unsafe { FenceValue::at(arg.fence_value_cpu_va) })
}

/// WaitForSynchronizationObjectFromCpu.
pub(crate) fn wait_from_cpu(
    node: &Node,
    device: LocalHandle,
    (objects, values): (&[u32], &[u64]),
    async_event: u64,
    wait_any: bool,
) -> Result<Status> {
    let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    arg.hDevice = device.0;
    arg.ObjectCount = parallel(objects, values)?;
    arg.ObjectHandleArray = objects.as_ptr() as u64;
    arg.FenceValueArray = values.as_ptr() as u64;
    arg.hAsyncEvent = async_event;
    arg.Flags = wait_any.into();
    // SAFETY: both addresses are those of borrowed slices of `ObjectCount` entries, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// SignalSynchronizationObjectFromCpu.
pub(crate) fn signal_from_cpu(
    node: &Node,
    device: LocalHandle,
    (objects, values): (&[u32], &[u64]),
    flags: u32,
) -> Result<Status> {
    let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    arg.hDevice = device.0;
    arg.ObjectCount = parallel(objects, values)?;
    arg.ObjectHandleArray = objects.as_ptr() as u64;
    arg.FenceValueArray = values.as_ptr() as u64;
    arg.Flags = flags;
    // SAFETY: both addresses are those of borrowed slices of `ObjectCount` entries, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// The pollable descriptor of a fence value.
pub(crate) fn fence_point(node: &Node, object: LocalHandle, value: u64) -> Result<OwnedFd> {
    let mut arg = opendxg_fence_point::zeroed();
    arg.sync_object = object.0;
    arg.value = value;
    call(node, &mut arg)?;
    // SAFETY: the driver made the descriptor for this call.
    unsafe { adopt(arg.fd) }
}

/// The descriptor that reads the values of a fence, for one who knows `value`.
pub(crate) fn fence_stream(node: &Node, object: LocalHandle, value: u64) -> Result<OwnedFd> {
    let mut arg = opendxg_fence_stream::zeroed();
    arg.sync_object = object.0;
    arg.value = value;
    call(node, &mut arg)?;
    // SAFETY: the driver made the descriptor for this call.
    unsafe { adopt(arg.fd) }
}

/// The descriptor that tells a process on the adapter of a device about memory.
pub(crate) fn memory_notice(node: &Node, device: LocalHandle, kind: u32) -> Result<OwnedFd> {
    let mut arg = opendxg_memory_notice::zeroed();
    arg.device = device.0;
    arg.kind = kind;
    call(node, &mut arg)?;
    // SAFETY: the driver made the descriptor for this call.
    unsafe { adopt(arg.fd) }
}

/// Signals a fence to `value` when an eventfd is signalled.
pub(crate) fn signal_on_event(
    node: &Node,
    object: LocalHandle,
    value: u64,
    event: u64,
    flags: u32,
) -> Result<()> {
    let mut arg = opendxg_signal_on_event::zeroed();
    arg.sync_object = object.0;
    arg.flags = flags;
    arg.value = value;
    arg.event = event;
    call(node, &mut arg).map(|_| ())
}

/// A length as the interface wants it.
fn count(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| Error::Status(Status::INVALID_PARAMETER))
}

/// The length of two arrays that belong together.
fn parallel(objects: &[u32], values: &[u64]) -> Result<u32> {
    assert_eq!(objects.len(), values.len());
    count(objects.len())
}

/// Address and size of a buffer that the call may write; 0 and 0 for none.
fn buffer(bytes: &mut [u8]) -> Result<(u64, u32)> {
    match count(bytes.len())? {
        0 => Ok((0, 0)),
        size => Ok((bytes.as_mut_ptr() as u64, size)),
    }
}

/// Address and size of bytes that the call only reads; 0 and 0 for none.
fn input(bytes: &[u8]) -> Result<(u64, u32)> {
    match count(bytes.len())? {
        0 => Ok((0, 0)),
        size => Ok((bytes.as_ptr() as u64, size)),
    }
}
