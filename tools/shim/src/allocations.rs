// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first versions of the allocation functions, whose array entries are shorter.

use core::mem::size_of;
use core::slice;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library::call;

/// Highest number of allocations in one call.
const MAX_ALLOCATIONS: usize = 4096;

/// Flags of an allocation that the first version has; the second one has more.
const FIRST_VERSION_FLAGS: u32 = 0x3;

/// D3DKMTDestroyAllocation: the second version without flags.
pub(crate) unsafe fn destroy(arg: &mut D3DKMT_DESTROYALLOCATION) -> Status {
    let mut destroy = D3DKMT_DESTROYALLOCATION2::zeroed();
    destroy.hDevice = arg.hDevice;
    destroy.hResource = arg.hResource;
    destroy.phAllocationList = arg.phAllocationList;
    destroy.AllocationCount = arg.AllocationCount;
    // SAFETY: the caller's address, passed on unchanged.
    unsafe { call(&mut destroy) }
}

/// D3DKMTCreateAllocation.
pub(crate) unsafe fn create(arg: &mut D3DKMT_CREATEALLOCATION) -> Status {
    // SAFETY: all arms are integers.
    let address = unsafe { arg.__bindgen_anon_2.pAllocationInfo };
    let call = |arg: &mut D3DKMT_CREATEALLOCATION, entries: u64| {
        arg.__bindgen_anon_2.pAllocationInfo2 = entries;
        // SAFETY: `entries` are as many as the struct says; the other addresses are the caller's.
        let status = unsafe { call(arg) };
        arg.__bindgen_anon_2.pAllocationInfo = address;
        status
    };
    let count = arg.NumAllocations;
    // SAFETY: the caller promises `NumAllocations` entries of the first version.
    unsafe { with_long_entries(arg, address, count, lengthen, shorten, call) }
}

/// D3DKMTOpenResource.
pub(crate) unsafe fn open_resource(arg: &mut D3DKMT_OPENRESOURCE) -> Status {
    // SAFETY: all arms are integers.
    let address = unsafe { arg.__bindgen_anon_1.pOpenAllocationInfo };
    let call = |arg: &mut D3DKMT_OPENRESOURCE, entries: u64| {
        arg.__bindgen_anon_1.pOpenAllocationInfo2 = entries;
        // SAFETY: `entries` are as many as the struct says; the other addresses are the caller's.
        let status = unsafe { call(arg) };
        arg.__bindgen_anon_1.pOpenAllocationInfo = address;
        status
    };
    let count = arg.NumAllocations;
    // SAFETY: the caller promises `NumAllocations` entries of the first version.
    unsafe { with_long_entries(arg, address, count, lengthen_opened, shorten_opened, call) }
}

/// Runs `call` with a long copy of the caller's short entries, and copies the results back on
/// success.
///
/// # Safety
///
/// `address` is 0 or addresses `count` entries.
unsafe fn with_long_entries<A, Short, Long>(
    arg: &mut A,
    address: u64,
    count: u32,
    lengthen: fn(&Short) -> Result<Long, Status>,
    shorten: fn(&Long, &mut Short),
    call: impl FnOnce(&mut A, u64) -> Status,
) -> Status {
    let count = count as usize;
    if count == 0 || address == 0 {
        // Nothing to copy: the kernel decides whether that is allowed.
        return call(arg, address);
    }
    let start = address as usize as *mut Short;
    if count > MAX_ALLOCATIONS {
        return Status::INVALID_PARAMETER;
    }
    if !start.is_aligned() {
        return Status::DATATYPE_MISALIGNMENT;
    }
    // SAFETY: aligned, not null, and `count` entries by the caller's promise.
    let short = unsafe { slice::from_raw_parts_mut(start, count) };
    let mut long: Vec<Long> = Vec::new();
    if long.try_reserve_exact(count).is_err() {
        return Status::NO_MEMORY;
    }
    for entry in short.iter() {
        match lengthen(entry) {
            Ok(entry) => long.push(entry),
            Err(refused) => return refused,
        }
    }
    let status = call(arg, long.as_mut_ptr() as u64);
    if status.is_success() {
        long.iter()
            .zip(short)
            .for_each(|(long, short)| shorten(long, short));
    }
    status
}

fn lengthen(short: &D3DDDI_ALLOCATIONINFO) -> Result<D3DDDI_ALLOCATIONINFO2, Status> {
    if short.Flags & !FIRST_VERSION_FLAGS != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    // SAFETY: the struct holds integers only.
    let mut long: D3DDDI_ALLOCATIONINFO2 = unsafe { core::mem::zeroed() };
    long.hAllocation = short.hAllocation;
    long.__bindgen_anon_1.pSystemMem = short.pSystemMem;
    long.pPrivateDriverData = short.pPrivateDriverData;
    long.PrivateDriverDataSize = short.PrivateDriverDataSize;
    long.VidPnSourceId = short.VidPnSourceId;
    long.Flags = short.Flags;
    Ok(long)
}

fn shorten(long: &D3DDDI_ALLOCATIONINFO2, short: &mut D3DDDI_ALLOCATIONINFO) {
    // The only member the kernel writes that the first version has; driver data were written in
    // place.
    short.hAllocation = long.hAllocation;
}

fn lengthen_opened(
    short: &D3DDDI_OPENALLOCATIONINFO,
) -> Result<D3DDDI_OPENALLOCATIONINFO2, Status> {
    Ok(D3DDDI_OPENALLOCATIONINFO2 {
        hAllocation: short.hAllocation,
        pPrivateDriverData: short.pPrivateDriverData,
        PrivateDriverDataSize: short.PrivateDriverDataSize,
        ..Default::default()
    })
}

fn shorten_opened(long: &D3DDDI_OPENALLOCATIONINFO2, short: &mut D3DDDI_OPENALLOCATIONINFO) {
    short.hAllocation = long.hAllocation;
    short.pPrivateDriverData = long.pPrivateDriverData;
    short.PrivateDriverDataSize = long.PrivateDriverDataSize;
}

const _: () = assert!(size_of::<D3DDDI_ALLOCATIONINFO>() == 40);
const _: () = assert!(size_of::<D3DDDI_ALLOCATIONINFO2>() == 96);
const _: () = assert!(size_of::<D3DDDI_OPENALLOCATIONINFO>() == 24);
const _: () = assert!(size_of::<D3DDDI_OPENALLOCATIONINFO2>() == 80);

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> [D3DDDI_ALLOCATIONINFO; 2] {
        let mut entries = [D3DDDI_ALLOCATIONINFO::default(); 2];
        entries[0].pSystemMem = 0x1000;
        entries[1].Flags = 1;
        entries
    }

    /// Pretends to be the kernel: gives every entry a handle.
    fn give_handles(entries: u64, status: Status) -> Status {
        // SAFETY: the code under test passes two long entries.
        let entries = unsafe {
            slice::from_raw_parts_mut(entries as usize as *mut D3DDDI_ALLOCATIONINFO2, 2)
        };
        // SAFETY: all arms are integers.
        assert_eq!(unsafe { entries[0].__bindgen_anon_1.pSystemMem }, 0x1000);
        assert_eq!(entries[1].Flags, 1);
        entries[0].hAllocation = 0x40;
        entries[1].hAllocation = 0x80;
        status
    }

    fn run(entries: &mut [D3DDDI_ALLOCATIONINFO; 2], status: Status) -> Status {
        let address = entries.as_mut_ptr() as u64;
        let call = |_: &mut (), entries| give_handles(entries, status);
        // SAFETY: two live entries.
        unsafe { with_long_entries(&mut (), address, 2, lengthen, shorten, call) }
    }

    #[test]
    fn success_copies_handles_back() {
        let mut entries = entries();
        assert_eq!(run(&mut entries, Status::PENDING), Status::PENDING);
        assert_eq!(entries.map(|entry| entry.hAllocation), [0x40, 0x80]);
    }

    #[test]
    fn failure_leaves_the_entries() {
        let mut entries = entries();
        assert_eq!(run(&mut entries, Status::NO_MEMORY), Status::NO_MEMORY);
        assert_eq!(entries.map(|entry| entry.hAllocation), [0, 0]);
    }

    #[test]
    fn flags_of_the_second_version_are_refused() {
        let mut entries = entries();
        entries[1].Flags = 4;
        assert_eq!(
            run(&mut entries, Status::SUCCESS),
            Status::INVALID_PARAMETER
        );
    }

    #[test]
    fn too_many_or_misaligned() {
        let mut entries = entries();
        let address = entries.as_mut_ptr() as u64;
        let call = |_: &mut (), _| panic!("must not be called");
        // SAFETY: refused before anything is read.
        let status = unsafe { with_long_entries(&mut (), address, 4097, lengthen, shorten, call) };
        assert_eq!(status, Status::INVALID_PARAMETER);
        // SAFETY: refused before anything is read.
        let status = unsafe { with_long_entries(&mut (), address + 1, 1, lengthen, shorten, call) };
        assert_eq!(status, Status::DATATYPE_MISALIGNMENT);
    }
}
