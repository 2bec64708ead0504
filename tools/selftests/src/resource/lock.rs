// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lock2 and Unlock2.

use core::ops::Deref;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::Status;

use super::PAGE_SIZE;
use crate::call::succeeds;
use crate::child::Child;
use crate::region::Region;
use crate::{ensure, ensure_eq, TestResult};

/// An allocation that is mapped. Unlocked when dropped.
pub struct Locked {
    raw: Raw,
    device: u32,
    allocation: u32,
    /// The driver unmaps it.
    memory: Option<Region>,
}

/// Maps an allocation of `size` bytes.
#[track_caller]
pub fn lock(raw: &Raw, device: u32, allocation: u32, size: usize) -> TestResult<Locked> {
    let mut arg = D3DKMT_LOCK2::zeroed();
    (arg.hDevice, arg.hAllocation) = (device, allocation);
    succeeds(raw, &mut arg)?;
    ensure!(
        arg.pData != 0 && arg.pData % 4096 == 0,
        "pData {:#x}",
        arg.pData
    );
    // SAFETY: the call mapped the allocation there; `Locked` never unmaps it itself.
    let memory = Some(unsafe { Region::adopt(arg.pData, size) });
    let raw = raw.clone();
    Ok(Locked {
        raw,
        device,
        allocation,
        memory,
    })
}

/// Runs Lock2 and returns its status and the address.
pub fn locked_again(raw: &Raw, device: u32, allocation: u32) -> rustix::io::Result<(Status, u64)> {
    let mut arg = D3DKMT_LOCK2::zeroed();
    (arg.hDevice, arg.hAllocation) = (device, allocation);
    let status = raw.exec(&mut arg)?;
    Ok((status, arg.pData))
}

impl Locked {
    /// Unlocks it, which has to succeed.
    pub fn unlock(mut self) -> TestResult {
        ensure_eq!(self.release(), Ok(Status::SUCCESS));
        Ok(())
    }

    /// Leaves it as it is, for somebody else to end.
    pub fn leak(mut self) -> u64 {
        self.memory.take().map_or(0, Region::into_address)
    }

    fn release(&mut self) -> rustix::io::Result<Status> {
        if let Some(memory) = self.memory.take() {
            let _ = memory.into_address();
        }
        let mut arg = D3DKMT_UNLOCK2::zeroed();
        (arg.hDevice, arg.hAllocation) = (self.device, self.allocation);
        self.raw.exec(&mut arg)
    }
}

impl Deref for Locked {
    type Target = Region;

    fn deref(&self) -> &Region {
        // PANIC: taken only by methods that consume `self`.
        self.memory.as_ref().expect("still locked")
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.memory.is_some() {
            let _ = self.release();
        }
    }
}

/// Touching this address, which was that of a locked allocation, kills, and by SIGBUS.
pub fn is_revoked(address: u64) -> TestResult {
    no_core();
    for write in [false, true] {
        Child::spawn(|| {
            // SAFETY: this process dies of it, or the test fails.
            let memory = unsafe { Region::adopt(address, PAGE_SIZE as usize) };
            if write {
                memory.set(0, 1);
            } else {
                memory.get(0);
            }
            core::mem::forget(memory);
            Ok(())
        })?
        .dies_of(libc::SIGBUS)?;
    }
    Ok(())
}

/// Children that are expected to die leave no core.
pub fn no_core() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a live struct.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}
