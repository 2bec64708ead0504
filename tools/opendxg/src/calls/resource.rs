// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of resources and allocations that take addresses.

use std::ops::Range;

use super::{buffer, call, call_with_addresses, count, input};
use crate::handle::LocalHandle;
use crate::node::Node;
use crate::raw::Argument;
use crate::shared_bytes::SharedBytesMut;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// What CreateAllocation reads besides the argument and the entries.
pub(crate) struct Blobs<'a> {
    /// Private runtime data.
    pub(crate) runtime: &'a [u8],
    /// Private driver data of the resource.
    pub(crate) driver: &'a mut [u8],
    /// The standard allocation, which has no driver data.
    pub(crate) standard: Option<Standard>,
}

/// A standard allocation, with its size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Standard {
    /// Memory that is there.
    Existing(u64),
    /// New memory for every adapter.
    CrossAdapter(u64),
}

impl Standard {
    fn describe(self) -> D3DKMT_CREATESTANDARDALLOCATION {
        let (kind, size) = match self {
            Self::Existing(size) => (D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP, size),
            Self::CrossAdapter(size) => (D3DKMT_STANDARDALLOCATIONTYPE_CROSSADAPTER, size),
        };
        D3DKMT_CREATESTANDARDALLOCATION {
            Type: kind,
            ExistingHeapData: D3DKMT_STANDARDALLOCATION_EXISTINGHEAP { Size: size },
            ..D3DKMT_CREATESTANDARDALLOCATION::default()
        }
    }
}

/// One allocation to create.
pub(crate) struct NewAllocation<'a> {
    /// Private driver data.
    pub(crate) driver: &'a mut [u8],
    /// Where the memory is.
    pub(crate) memory: Memory<'a>,
    /// Residency priority.
    pub(crate) priority: Option<u32>,
}

/// Where the memory of an allocation comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory<'a> {
    /// The driver makes it.
    New,
    /// Pages of this process.
    Existing(&'a SharedBytesMut),
    /// A memfd or a dma-buf, as a slot.
    Section(u64),
}

/// CreateAllocation; returns what it says of each allocation, such as its handle. The other outputs
/// stay in the argument.
pub(crate) fn create<'a>(
    node: &Node,
    arg: &mut D3DKMT_CREATEALLOCATION,
    blobs: &mut Blobs<'_>,
    allocations: impl Iterator<Item = NewAllocation<'a>>,
) -> Result<Vec<D3DDDI_ALLOCATIONINFO2>> {
    let standard = blobs.standard.map(Standard::describe);
    let mut infos = allocations
        .map(info)
        .collect::<Result<Vec<D3DDDI_ALLOCATIONINFO2>>>()?;

    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = input(blobs.runtime)?;
    match &standard {
        Some(standard) => {
            arg.__bindgen_anon_1.pStandardAllocation = core::ptr::from_ref(standard) as u64;
        }
        None => {
            let (address, size) = buffer(blobs.driver)?;
            arg.__bindgen_anon_1.pPrivateDriverData = address;
            arg.PrivateDriverDataSize = size;
        }
    }
    arg.NumAllocations = count(infos.len())?;
    if !infos.is_empty() {
        arg.__bindgen_anon_2.pAllocationInfo2 = infos.as_mut_ptr() as u64;
    }
    // SAFETY: the addresses are those of borrowed slices and of the live locals above, each with
    // its size; existing memory is shared bytes, which anybody may write.
    unsafe { call_with_addresses(node, arg) }?;
    Ok(infos)
}

fn info(new: NewAllocation<'_>) -> Result<D3DDDI_ALLOCATIONINFO2> {
    let mut info = D3DDDI_ALLOCATIONINFO2::default();
    (info.pPrivateDriverData, info.PrivateDriverDataSize) = buffer(new.driver)?;
    match new.memory {
        Memory::New => {}
        Memory::Existing(bytes) => info.__bindgen_anon_1.pSystemMem = bytes.as_ptr() as u64,
        Memory::Section(slot) => info.__bindgen_anon_1.hSection = slot,
    }
    if let Some(priority) = new.priority {
        info.Flags = D3DDDI_ALLOCATIONINFO2_Flags_OverridePriority;
        info.__bindgen_anon_2.Priority = priority;
    }
    Ok(info)
}

/// DestroyAllocation2 of a resource, or of the allocations of a list.
pub(crate) fn destroy(
    node: &Node,
    (device, resource): (LocalHandle, LocalHandle),
    allocations: &[u32],
    flags: u32,
) -> Result<Status> {
    let mut arg = D3DKMT_DESTROYALLOCATION2::zeroed();
    arg.hDevice = device.0;
    arg.hResource = resource.0;
    arg.AllocationCount = count(allocations.len())?;
    if !allocations.is_empty() {
        arg.phAllocationList = allocations.as_ptr() as u64;
    }
    arg.Flags = flags;
    // SAFETY: the address is 0 or that of the borrowed slice, only read. Mappings of the memory
    // that goes away are revoked: who still reads them gets a signal, never other memory.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// Lock2 of an allocation of `size` bytes.
pub(crate) fn lock(node: &Node, device: LocalHandle, allocation: LocalHandle) -> Result<*mut u8> {
    let mut arg = D3DKMT_LOCK2::zeroed();
    arg.hDevice = device.0;
    arg.hAllocation = allocation.0;
    // SAFETY: the call takes no address.
    unsafe { call_with_addresses(node, &mut arg) }?;
    match arg.pData as usize {
        0 => Err(Error::Protocol("lock without an address")),
        address => Ok(core::ptr::with_exposed_provenance_mut(address)),
    }
}

/// Unlock2.
///
/// # Safety
///
/// The address of one [`lock`] of this allocation is not used any more.
pub(crate) unsafe fn unlock(
    node: &Node,
    device: LocalHandle,
    allocation: LocalHandle,
) -> Result<()> {
    let mut arg = D3DKMT_UNLOCK2::zeroed();
    arg.hDevice = device.0;
    arg.hAllocation = allocation.0;
    // SAFETY: the call takes no address; what it unmaps is not used, says the caller.
    unsafe { call_with_addresses(node, &mut arg) }.map(|_| ())
}

/// What identifies a shared resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    /// Global handle.
    Global(u32),
    /// NT handle, as a slot.
    Nt(u64),
}

/// The sizes a caller needs to open a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceSizes {
    /// Bytes of private runtime data.
    pub runtime: u32,
    /// Bytes of private driver data of all allocations.
    pub total_driver: u32,
    /// Bytes of private driver data of the resource.
    pub driver: u32,
    /// Number of allocations.
    pub allocations: u32,
}

/// QueryResourceInfo and QueryResourceInfoFromNtHandle.
pub(crate) fn query(node: &Node, device: LocalHandle, name: Name) -> Result<ResourceSizes> {
    macro_rules! ask {
        ($type:ident, $member:ident = $name:expr) => {{
            let mut arg = $type::zeroed();
            arg.hDevice = device.0;
            arg.$member = $name;
            call(node, &mut arg)?;
            ResourceSizes {
                runtime: arg.PrivateRuntimeDataSize,
                total_driver: arg.TotalPrivateDriverDataSize,
                driver: arg.ResourcePrivateDriverDataSize,
                allocations: arg.NumAllocations,
            }
        }};
    }
    Ok(match name {
        Name::Global(handle) => ask!(D3DKMT_QUERYRESOURCEINFO, hGlobalShare = handle),
        Name::Nt(slot) => ask!(D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE, hNtHandle = slot),
    })
}

/// An opened resource: handles, and what its creator stored with it.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) resource: u32,
    pub(crate) keyed_mutex: u32,
    pub(crate) sync_object: u32,
    /// The handle of each allocation.
    pub(crate) allocations: Vec<u32>,
    /// The private driver data of each.
    pub(crate) driver_data: Vec<Vec<u8>>,
    pub(crate) runtime: Vec<u8>,
    pub(crate) driver: Vec<u8>,
}

/// Bytes that most data of a resource fit in.
const FEW: usize = 256;

/// How often sizes may change between asking and opening before somebody must be playing games.
pub(crate) const ATTEMPTS: u32 = 16;

/// `opendxg_open_resource`: opens, whatever the sizes are. NOT_SUPPORTED if the driver does not
/// have it.
pub(crate) fn open_at_once(
    node: &Node,
    device: LocalHandle,
    name: Name,
    mutex_data: &[u8],
) -> Result<Opened> {
    let mut arg = opendxg_open_resource::zeroed();
    arg.device = device.0;
    (arg.handle_type, arg.handle) = match name {
        Name::Global(handle) => (OPENDXG_HANDLE_GLOBAL, u64::from(handle)),
        Name::Nt(slot) => (OPENDXG_HANDLE_NT, slot),
    };
    (arg.keyed_mutex_data, arg.keyed_mutex_data_size) = input(mutex_data)?;

    // Most resources have one allocation and little data.
    let mut infos = [D3DDDI_OPENALLOCATIONINFO2::default()];
    let [mut runtime, mut driver, mut total] = [[0u8; FEW]; 3];
    let mut room = [&mut runtime[..], &mut driver, &mut total];
    // SAFETY: the data of the mutex are borrowed, and only read.
    let mut opened = unsafe { open_into(node, &mut arg, &mut infos, &mut room) };
    for _ in 0..ATTEMPTS {
        if opened.as_ref().err() != Some(&Error::Status(Status::BUFFER_TOO_SMALL)) {
            break;
        }
        let sizes = [
            arg.runtime_data_size,
            arg.driver_data_size,
            arg.total_driver_data_size,
        ];
        let mut infos = vec![D3DDDI_OPENALLOCATIONINFO2::default(); arg.allocation_count as usize];
        let mut data = sizes.map(|size| vec![0u8; size as usize]);
        let mut room = data.each_mut().map(Vec::as_mut_slice);
        // SAFETY: as above.
        opened = unsafe { open_into(node, &mut arg, &mut infos, &mut room) };
    }
    opened
}

/// Opens into these buffers: of the runtime data, of the driver data of the resource, and of those
/// of all allocations. After BUFFER_TOO_SMALL `arg` has the sizes that are needed.
///
/// # Safety
///
/// `arg.keyed_mutex_data` is 0, or so many bytes can be read there.
unsafe fn open_into(
    node: &Node,
    arg: &mut opendxg_open_resource,
    infos: &mut [D3DDDI_OPENALLOCATIONINFO2],
    [runtime, driver, total]: &mut [&mut [u8]; 3],
) -> Result<Opened> {
    arg.allocation_count = count(infos.len())?;
    arg.allocations = infos.as_mut_ptr() as u64;
    (arg.runtime_data, arg.runtime_data_size) = buffer(runtime)?;
    (arg.driver_data, arg.driver_data_size) = buffer(driver)?;
    (arg.total_driver_data, arg.total_driver_data_size) = buffer(total)?;
    // SAFETY: the addresses are those of borrowed slices with the given sizes; the caller vouches
    // for the data of the mutex.
    unsafe { call_with_addresses(node, arg) }?;

    let data = |bytes: &[u8], size: u32| bytes.get(..size as usize).unwrap_or_default().to_vec();
    let infos = infos
        .get(..arg.allocation_count as usize)
        .unwrap_or_default();
    Ok(Opened {
        resource: arg.resource,
        keyed_mutex: arg.keyed_mutex,
        sync_object: arg.sync_object,
        allocations: infos.iter().map(|info| info.hAllocation).collect(),
        driver_data: split(total, infos),
        runtime: data(runtime, arg.runtime_data_size),
        driver: data(driver, arg.driver_data_size),
    })
}

/// OpenResource and OpenResourceFromNtHandle with buffers of exactly `sizes`.
pub(crate) fn open(
    node: &Node,
    device: LocalHandle,
    name: Name,
    sizes: ResourceSizes,
    mutex_data: &[u8],
) -> Result<Opened> {
    let bytes = |size: u32| vec![0u8; size as usize];
    // Most resources have one allocation.
    let mut one = [D3DDDI_OPENALLOCATIONINFO2::default()];
    let mut many = Vec::new();
    let infos = match sizes.allocations {
        1 => one.as_mut_slice(),
        count => {
            many.resize_with(count as usize, D3DDDI_OPENALLOCATIONINFO2::default);
            many.as_mut_slice()
        }
    };
    // The calls by NT handle want addresses even for nothing. An empty vector has one.
    let mut runtime = bytes(sizes.runtime);
    let mut driver = bytes(sizes.driver);
    let mut total = bytes(sizes.total_driver);
    let mut opened = Opened::default();

    macro_rules! open {
        ($type:ident, $member:ident = $name:expr) => {{
            let mut arg = $type::zeroed();
            arg.hDevice = device.0;
            arg.$member = $name;
            arg.NumAllocations = sizes.allocations;
            arg.pPrivateRuntimeData = runtime.as_mut_ptr() as u64;
            arg.PrivateRuntimeDataSize = sizes.runtime;
            (
                arg.pResourcePrivateDriverData,
                arg.ResourcePrivateDriverDataSize,
            ) = buffer(&mut driver)?;
            arg.pTotalPrivateDriverDataBuffer = total.as_mut_ptr() as u64;
            arg.TotalPrivateDriverDataBufferSize = sizes.total_driver;
            arg
        }};
    }
    let infos_address = infos.as_mut_ptr() as u64;
    match name {
        Name::Global(handle) => {
            let mut arg = open!(D3DKMT_OPENRESOURCE, hGlobalShare = handle);
            arg.__bindgen_anon_1.pOpenAllocationInfo2 = infos_address;
            // SAFETY: the addresses are those of live arrays with the given sizes.
            unsafe { call_with_addresses(node, &mut arg) }?;
            opened.resource = arg.hResource;
        }
        Name::Nt(slot) => {
            let mut arg = open!(D3DKMT_OPENRESOURCEFROMNTHANDLE, hNtHandle = slot);
            arg.pOpenAllocationInfo2 = infos_address;
            let (address, size) = input(mutex_data)?;
            arg.pKeyedMutexPrivateRuntimeData = address;
            arg.KeyedMutexPrivateRuntimeDataSize = size;
            // SAFETY: the addresses are those of live arrays with the given sizes, and of the
            // borrowed data of the mutex, which is only read.
            unsafe { call_with_addresses(node, &mut arg) }?;
            opened.resource = arg.hResource;
            opened.keyed_mutex = arg.hKeyedMutex;
            opened.sync_object = arg.hSyncObject;
        }
    }

    opened.allocations = infos.iter().map(|info| info.hAllocation).collect();
    opened.driver_data = split(&total, infos);
    (opened.runtime, opened.driver) = (runtime, driver);
    Ok(opened)
}

/// The driver data of each allocation, which are in the buffer of all.
fn split(total: &[u8], infos: &[D3DDDI_OPENALLOCATIONINFO2]) -> Vec<Vec<u8>> {
    let start = total.as_ptr() as u64;
    let data = |info| part(start, info).and_then(|range| total.get(range));
    infos
        .iter()
        .map(|info| data(info).unwrap_or_default().to_vec())
        .collect()
}

/// Where the driver data of an allocation is in the buffer that starts at `start`.
fn part(start: u64, info: &D3DDDI_OPENALLOCATIONINFO2) -> Option<Range<usize>> {
    let offset = usize::try_from(info.pPrivateDriverData.checked_sub(start)?).ok()?;
    let end = offset.checked_add(info.PrivateDriverDataSize as usize)?;
    Some(offset..end)
}

/// GetRuntimeData: fills `bytes` with the runtime data of a resource.
pub(crate) fn runtime_data(
    node: &Node,
    adapter: LocalHandle,
    global: u32,
    bytes: &mut [u8],
) -> Result<Status> {
    let mut arg = D3DKMT_GETRUNTIMEDATA::zeroed();
    arg.hAdapter = adapter.0;
    arg.hGlobalShare = global;
    (arg.pRuntimeData, arg.RuntimeDataSize) = buffer(bytes)?;
    // SAFETY: the address and the size are those of the borrowed slice.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// Escape with bytes that hold no addresses.
pub(crate) fn escape(node: &Node, mut arg: D3DKMT_ESCAPE, bytes: &mut [u8]) -> Result<Status> {
    (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = buffer(bytes)?;
    // SAFETY: the address and the size are those of the borrowed slice.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// SetAllocationPriority of one allocation.
pub(crate) fn set_priority(
    node: &Node,
    device: LocalHandle,
    allocation: LocalHandle,
    priority: u32,
) -> Result<()> {
    let mut arg = D3DKMT_SETALLOCATIONPRIORITY::zeroed();
    arg.hDevice = device.0;
    arg.phAllocationList = (&raw const allocation.0) as u64;
    arg.AllocationCount = 1;
    arg.pPriorities = (&raw const priority) as u64;
    // SAFETY: both addresses are those of live locals, only read.
    unsafe { call_with_addresses(node, &mut arg) }.map(|_| ())
}

/// GetAllocationPriority of one allocation.
pub(crate) fn priority(node: &Node, device: LocalHandle, allocation: LocalHandle) -> Result<u32> {
    let mut priority = 0u32;
    let mut arg = D3DKMT_GETALLOCATIONPRIORITY::zeroed();
    arg.hDevice = device.0;
    arg.phAllocationList = (&raw const allocation.0) as u64;
    arg.AllocationCount = 1;
    arg.pPriorities = (&raw mut priority) as u64;
    // SAFETY: the addresses are those of live locals, one to read and one to write.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok(priority)
}

/// QueryAllocationResidency of one allocation.
pub(crate) fn residency(node: &Node, device: LocalHandle, allocation: LocalHandle) -> Result<u32> {
    let mut status = 0u32;
    let mut arg = D3DKMT_QUERYALLOCATIONRESIDENCY::zeroed();
    arg.hDevice = device.0;
    arg.phAllocationList = (&raw const allocation.0) as u64;
    arg.AllocationCount = 1;
    arg.pResidencyStatus = (&raw mut status) as u64;
    // SAFETY: the addresses are those of live locals, one to read and one to write.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok(status)
}
