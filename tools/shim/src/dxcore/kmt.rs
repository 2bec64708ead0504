// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to the kernel: which adapters there are, and asking one of them.

use core::mem::{size_of, zeroed};
use std::sync::atomic::{AtomicU64, Ordering};

use opendxg::node::Node;
use opendxg::raw::{Argument, Errno};
use opendxg::uapi::*;
use opendxg::Status;

use super::abi::Luid;
use super::com::HResult;
use crate::library;

/// As many adapters as the kernel ever returns.
const MAX_ADAPTERS: usize = 64;

/// Counts the beginnings and ends of looks: what is compared where two threads look at the same
/// time.
static CLOCK: AtomicU64 = AtomicU64::new(1);

fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::AcqRel)
}

/// The adapters that were there during a look.
pub(super) struct Present {
    luids: [Luid; MAX_ADAPTERS],
    count: usize,
    begun: u64,
    ended: u64,
}

impl Present {
    fn none(begun: u64) -> Self {
        Self {
            luids: [Luid { low: 0, high: 0 }; MAX_ADAPTERS],
            count: 0,
            begun,
            ended: tick(),
        }
    }

    /// When the look began.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// When it had ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    pub(super) fn luids(&self) -> &[Luid] {
        self.luids.get(..self.count).unwrap_or_default()
    }

    pub(super) fn has(&self, luid: Luid) -> bool {
        self.luids().contains(&luid)
    }
}

/// The kernel could not be asked, for a reason that says nothing about adapters: no memory, no
/// descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unknown;

impl From<Unknown> for HResult {
    fn from(_: Unknown) -> Self {
        Self::E_OUTOFMEMORY
    }
}

/// Whether asking may open the device for good.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The program wants to find adapters: as D3DKMTEnumAdapters3, which opens the device again.
    Finding,
    /// Only to see what changed: if the device is not open, it is closed again afterwards.
    InPassing,
}

/// A device that can be asked.
pub(super) enum Session {
    /// The one that the process has open.
    Own(&'static Node),
    /// Open for this session only.
    Passing(Node),
}

impl Session {
    fn node(&self) -> &Node {
        match self {
            Self::Own(node) => node,
            Self::Passing(node) => node,
        }
    }

    /// Runs a call that holds no addresses but those its caller vouches for.
    ///
    /// # Safety
    ///
    /// Every address in `arg` is one the call may use.
    unsafe fn call<T: Argument>(&self, arg: &mut T) -> Status {
        let pointer = (&raw mut *arg).cast();
        // SAFETY: a live struct; the rest is the caller's promise.
        let answer = unsafe { self.node().call(T::NR, pointer, T::SIZE) };
        answer.unwrap_or(Status::UNSUCCESSFUL)
    }

    /// Opens an adapter.
    pub(super) fn open(&self, luid: Luid) -> Result<OpenAdapter<'_>, Status> {
        let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
        arg.AdapterLuid.LowPart = luid.low;
        arg.AdapterLuid.HighPart = luid.high;
        // SAFETY: the struct holds no addresses.
        let status = unsafe { self.call(&mut arg) };
        let adapter = OpenAdapter {
            session: self,
            handle: arg.hAdapter,
            luid,
        };
        if status.is_success() {
            Ok(adapter)
        } else {
            // There is no handle to close.
            core::mem::forget(adapter);
            Err(status)
        }
    }
}

/// Finds the adapters. Without a device there is no session and no adapter.
pub(super) fn look(how: Look) -> Result<(Option<Session>, Present), Unknown> {
    let begun = tick();
    let Some(node) = library::node_of_process() else {
        return Ok((None, Present::none(begun)));
    };
    if how == Look::Finding || node.fd().is_some() {
        match enumerate(node, how == Look::Finding) {
            Ok(present) => return Ok((Some(Session::Own(node)), present)),
            Err(errno) if is_inconclusive(errno) => return Err(Unknown),
            // Closed, or another process has opened it.
            Err(_) => {}
        }
    }
    let passing = node.another().ok_or(Unknown)?;
    match passing.open().and_then(|()| enumerate(&passing, false)) {
        Ok(present) => Ok((Some(Session::Passing(passing)), present)),
        Err(errno) if is_inconclusive(errno) => Err(Unknown),
        Err(_) => Ok((None, Present::none(begun))),
    }
}

/// Whether an error says nothing about the device.
fn is_inconclusive(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::INTR | Errno::AGAIN | Errno::BUSY
    )
}

fn enumerate(node: &Node, reopening: bool) -> Result<Present, Errno> {
    let begun = tick();
    // SAFETY: integers only.
    let mut entries: [D3DKMT_ADAPTERINFO; MAX_ADAPTERS] = unsafe { zeroed() };
    let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
    arg.Filter = D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly;
    arg.NumAdapters = MAX_ADAPTERS as u32;
    arg.pAdapters = entries.as_mut_ptr() as u64;
    let (nr, size) = (D3DKMT_ENUMADAPTERS3::NR, D3DKMT_ENUMADAPTERS3::SIZE);
    let pointer = (&raw mut arg).cast();
    let status = if reopening {
        // SAFETY: the address in the struct is that of `MAX_ADAPTERS` live entries.
        unsafe { node.call_reopening(nr, pointer, size) }
    } else {
        // SAFETY: as above.
        unsafe { node.call(nr, pointer, size) }
    }?;
    match status {
        Status::SUCCESS => {}
        // A descriptor that is closed or somebody else's.
        Status::INVALID_HANDLE => return Err(Errno::BADF),
        _ => return Err(Errno::NOMEM),
    }
    let mut present = Present::none(begun);
    let found = entries.iter().take(arg.NumAdapters as usize);
    for (entry, luid) in found.zip(&mut present.luids) {
        *luid = Luid {
            low: entry.AdapterLuid.LowPart,
            high: entry.AdapterLuid.HighPart,
        };
        present.count += 1;
        close(node, entry.hAdapter);
    }
    Ok(present)
}

fn close(node: &Node, handle: u32) {
    let mut arg = D3DKMT_CLOSEADAPTER::zeroed();
    arg.hAdapter = handle;
    let pointer = (&raw mut arg).cast();
    // A handle that was just returned can be closed, so there is nothing to report.
    // SAFETY: the struct holds no addresses.
    let _ = unsafe { node.call(D3DKMT_CLOSEADAPTER::NR, pointer, D3DKMT_CLOSEADAPTER::SIZE) };
}

/// A payload of QueryAdapterInfo, or another argument that the kernel fills.
///
/// # Safety
///
/// Made of integers only.
pub(super) unsafe trait Plain: Sized {
    /// All bytes 0.
    fn zeroed() -> Self {
        // SAFETY: integers only.
        unsafe { zeroed() }
    }
}

macro_rules! plain {
    ($($name:ty),* $(,)?) => {
        $(
            // SAFETY: integers only.
            unsafe impl Plain for $name {}
        )*
    };
}

plain!(
    u32,
    u64,
    D3DKMT_ADAPTER_PERFDATA,
    D3DKMT_DRIVER_DESCRIPTION,
    D3DKMT_NODEMETADATA,
    D3DKMT_NODE_PERFDATA,
    D3DKMT_QUERY_DEVICE_IDS,
    D3DKMT_SEGMENTSIZEINFO,
    D3DKMT_WDDM_1_2_CAPS,
);

/// An adapter with a handle of its own.
pub(super) struct OpenAdapter<'a> {
    session: &'a Session,
    handle: u32,
    luid: Luid,
}

impl OpenAdapter<'_> {
    pub(super) fn handle(&self) -> u32 {
        self.handle
    }

    pub(super) fn luid(&self) -> Luid {
        self.luid
    }

    /// Asks with a payload that holds no addresses.
    pub(super) fn ask<T: Plain>(&self, kind: u32, payload: &mut T) -> Result<(), Status> {
        let bytes = (&raw mut *payload).cast();
        // SAFETY: a live payload.
        unsafe { self.ask_bytes(kind, bytes, size_of::<T>()) }
    }

    /// The answer to a question without input, if the adapter has one.
    pub(super) fn answer<T: Plain>(&self, kind: u32) -> Option<T> {
        let mut payload = T::zeroed();
        self.ask(kind, &mut payload).ok()?;
        Some(payload)
    }

    /// Asks with a payload of any size.
    ///
    /// # Safety
    ///
    /// `payload` has `size` bytes that can be written, and holds no addresses.
    pub(super) unsafe fn ask_bytes(
        &self,
        kind: u32,
        payload: *mut u8,
        size: usize,
    ) -> Result<(), Status> {
        let mut arg = D3DKMT_QUERYADAPTERINFO::zeroed();
        arg.hAdapter = self.handle;
        arg.Type = kind;
        arg.pPrivateDriverData = payload as u64;
        arg.PrivateDriverDataSize = size as u32;
        // SAFETY: the caller's promise.
        unsafe { self.call(&mut arg) }
    }

    /// Runs another call.
    ///
    /// # Safety
    ///
    /// Every address in `arg` is one the call may use.
    pub(super) unsafe fn call<T: Argument>(&self, arg: &mut T) -> Result<(), Status> {
        // SAFETY: the caller's promise.
        match unsafe { self.session.call(arg) } {
            Status::SUCCESS => Ok(()),
            refused => Err(refused),
        }
    }
}

impl Drop for OpenAdapter<'_> {
    fn drop(&mut self) {
        close(self.session.node(), self.handle);
    }
}
