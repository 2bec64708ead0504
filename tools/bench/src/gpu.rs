// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that engines reach, and commands in it.

use std::fs;

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, FenceValues, GpuMap, GpuProtection, PagingQueue, ResidentFlags, SyncObject,
};

/// Bytes of a page of the GPU.
pub const PAGE: u64 = 4096;

/// Memory with an address for the GPU.
#[derive(Debug)]
pub struct Buffer {
    /// Whose memory it is.
    pub allocation: Allocation,
    /// Where engines find it.
    pub address: u64,
}

impl Buffer {
    /// Zeroed memory of the system, whole pages of it.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn new(paging: &PagingQueue, bytes: u64) -> Self {
        let bytes = bytes.next_multiple_of(PAGE);
        let resource = paging.device().new_resource().linear(bytes);
        let allocation = resource.create_one().expect("create an allocation");
        make_resident(paging, &allocation);
        Self::map(paging, allocation, bytes)
    }

    /// An allocation of so many bytes, wherever it is.
    ///
    /// # Panics
    ///
    /// If it cannot be mapped for the GPU.
    pub fn map(paging: &PagingQueue, allocation: Allocation, bytes: u64) -> Self {
        let address = map(paging, &allocation, bytes / PAGE, 0);
        Self {
            allocation,
            address,
        }
    }
}

/// Maps pages of an allocation at this address, or at one that is picked for 0, and waits for it.
///
/// # Panics
///
/// If it cannot be mapped.
pub fn map(paging: &PagingQueue, allocation: &Allocation, pages: u64, base: u64) -> u64 {
    let map = GpuMap {
        base,
        pages,
        protection: GpuProtection::WRITE,
        ..GpuMap::default()
    };
    let range = paging.map(Some(allocation), &map).expect("map for the GPU");
    let done = paging.wait(range.value);
    done.expect("wait for the paging queue");
    range.address
}

/// Makes an allocation resident, and waits for it.
///
/// # Panics
///
/// If it does not fit.
pub fn make_resident(paging: &PagingQueue, allocation: &Allocation) {
    let resident = paging.make_resident(&[allocation], ResidentFlags::empty());
    let value = resident.and_then(opendxg::Resident::value);
    let done = paging.wait(value.expect("make resident"));
    done.expect("wait for the paging queue");
}

/// A command buffer.
#[derive(Debug)]
pub struct Commands {
    _memory: Buffer,
    /// Where it is.
    pub address: u64,
    /// Its bytes.
    pub length: u32,
}

impl Commands {
    /// Puts commands into memory.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn new(paging: &PagingQueue, commands: &Pm4) -> Self {
        let bytes = commands.bytes();
        let memory = Buffer::new(paging, bytes.len() as u64);
        memory
            .allocation
            .lock_write()
            .expect("map an allocation")
            .write(0, &bytes);
        Self {
            address: memory.address,
            length: bytes.len().try_into().expect("a short command buffer"),
            _memory: memory,
        }
    }
}

/// A list of one fence and its value.
pub fn one(fence: &SyncObject, value: u64) -> FenceValues {
    FenceValues::new().with(fence, value)
}

/// Nanoseconds that the threads of the software GPU have run until now, and how many there are.
pub fn engine_time() -> (u64, usize) {
    let read = |pid: &str, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let times = pids.filter_map(|entry| {
        let pid = entry.file_name().into_string().ok()?;
        read(&pid, "comm")?.starts_with("opendxg/").then_some(())?;
        let time = read(&pid, "schedstat")?;
        time.split_whitespace().next()?.parse::<u64>().ok()
    });
    times.fold((0, 0), |(sum, count), time| (sum + time, count + 1))
}
