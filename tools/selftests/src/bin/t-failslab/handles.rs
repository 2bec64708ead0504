// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of names, further handles, descriptions and keyed mutexes that are made to fail.

use std::os::fd::AsRawFd;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::call::succeeds;
use selftests::resource::{destruction, flags, ALL_ACCESS};
use selftests::sharing::Attributes;
use selftests::sharing::{share_call, share_raw};
use selftests::{ensure_eq, fixture, TestResult};

use crate::t_failslab::plain::{close, keep, Maker, Plain, Sweep};
use crate::t_failslab::resources::sample;
use selftests::resource::slot;

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("ShareObjects: a resource with a name", named),
    ("OpenNtHandleFromName", opened_by_name),
    ("ShareObjects: resource, mutex and fence", |sweep| {
        let device = fixture::device()?;
        let raw = fixture::raw()?;
        let (made, fence) = (
            sample(&device, flags::NT)?,
            device.create_shareable_fence(0)?,
        );
        let mut mutex = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
        mutex.Flags = D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
        succeeds(&raw, &mut mutex)?;
        let set = [made.resource, mutex.hKeyedMutex, fence.handle().0];
        let outcome = shared(sweep, &set, 0);
        end_mutex(&raw, mutex.hKeyedMutex)?;
        outcome
    }),
    ("DUP_NT", |sweep| {
        let nt = sample(&fixture::device()?, flags::NT)?.share()?;
        let mut arg = opendxg_dup_nt::zeroed();
        (arg.handle, arg.handle_type, arg.flags) =
            (slot(&nt), OPENDXG_HANDLE_NT, OPENDXG_DUP_SAME_ACCESS);
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.new_handle))?)
    }),
    ("DUP_LOCAL", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let mut arg = opendxg_dup_local::zeroed();
        (arg.handle, arg.index) = (made.resource, 1);
        let device = made.device;
        sweep(&mut Plain::new(arg, 1, move |raw, arg| {
            end_handle(raw, device, arg.new_handle)
        })?)
    }),
    ("GET_CONTAINER", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let mut arg = opendxg_get_container::zeroed();
        arg.allocation = made.first();
        let device = made.device;
        sweep(&mut Plain::new(arg, 1, move |raw, arg| {
            end_handle(raw, device, arg.container)
        })?)
    }),
    ("QUERY_OBJECT", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let mut arg = opendxg_query_object::zeroed();
        (arg.handle, arg.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("CreateKeyedMutex2 with private data", |sweep| {
        let data = [1u8; 64];
        let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (data.as_ptr() as u64, 64);
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            end_mutex(raw, arg.hKeyedMutex)
        })?)
    }),
    ("OpenKeyedMutex", |sweep| {
        let raw = fixture::raw()?;
        let mut mutex = D3DKMT_CREATEKEYEDMUTEX::zeroed();
        succeeds(&raw, &mut mutex)?;
        let mut arg = D3DKMT_OPENKEYEDMUTEX::zeroed();
        arg.hSharedHandle = mutex.hSharedHandle;
        let outcome = sweep(&mut Plain::new(arg, 1, |raw, arg| {
            end_mutex(raw, arg.hKeyedMutex)
        })?);
        end_mutex(&raw, mutex.hKeyedMutex)?;
        outcome
    }),
    ("AcquireKeyedMutex2, ReleaseKeyedMutex2", acquired),
    ("GET_INFO with a file", got),
    ("ENUM_INFO", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        set_info(made.resource)?;
        let mut entries = [opendxg_info_entry::default(); 8];
        let mut arg = opendxg_enum_info::zeroed();
        (arg.handle, arg.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
        (arg.entries, arg.count) = (entries.as_mut_ptr() as u64, 8);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("OPEN_WEAK", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let mut arg = opendxg_open_weak::zeroed();
        (arg.handle, arg.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("RESOLVE_WEAK", |sweep| {
        let device = fixture::device()?;
        let made = sample(&device, flags::RESOURCE)?;
        let mut weak = opendxg_open_weak::zeroed();
        (weak.handle, weak.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
        succeeds(&fixture::raw()?, &mut weak)?;
        let mut arg = opendxg_resolve_weak::zeroed();
        (arg.fd, arg.device) = (weak.fd, device.handle().0);
        let outcome = sweep(&mut Plain::new(arg, 3, |raw, arg| {
            end_handle(raw, arg.device, arg.handle)
        })?);
        close(weak.fd as u64)?;
        outcome
    }),
    ("WATCH", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let event = EventFd::new()?;
        let mut arg = opendxg_watch::zeroed();
        (arg.handle, arg.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
        (arg.events, arg.event_fd) = (
            OPENDXG_WATCH_DESTROY | OPENDXG_WATCH_CHANGE,
            event.as_raw_fd(),
        );
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
];

/// Destroys a handle that stands alone, whatever it is of.
fn end_handle(raw: &Raw, device: u32, handle: u32) -> TestResult {
    for mut arg in [
        destruction(device, handle, &[], 0),
        destruction(device, 0, &[handle], 0),
    ] {
        if raw.exec(&mut arg) == Ok(Status::SUCCESS) {
            return Ok(());
        }
    }
    Err(format!("{handle:#x} can be destroyed neither as a resource nor as an allocation").into())
}

fn end_mutex(raw: &Raw, handle: u32) -> TestResult {
    let mut arg = D3DKMT_DESTROYKEYEDMUTEX::zeroed();
    arg.hKeyedMutex = handle;
    succeeds(raw, &mut arg)
}

/// The name that the tests of names use.
fn name() -> Box<Attributes> {
    Attributes::named(r"\BaseNamedObjects\failslab")
}

fn shared(sweep: Sweep<'_>, set: &[u32], attributes: u64) -> TestResult {
    let mut out = 0u64;
    let arg = share_call(set, ALL_ACCESS, attributes, &mut out);
    sweep(&mut Plain::new(arg, 0, |_, arg| {
        // SAFETY: `out` above, which the call has written.
        close(unsafe { (arg.pSharedNtHandle as usize as *const u64).read_volatile() })
    })?)
}

fn named(sweep: Sweep<'_>) -> TestResult {
    let made = sample(&fixture::device()?, flags::NT)?;
    shared(sweep, &[made.resource], name().address())
}

fn opened_by_name(sweep: Sweep<'_>) -> TestResult {
    let made = sample(&fixture::device()?, flags::NT)?;
    let raw = fixture::raw()?;
    let mut named = name();
    let _nt = share_raw(&raw, &[made.resource], ALL_ACCESS, named.address())?;
    let mut arg = D3DKMT_OPENNTHANDLEFROMNAME::zeroed();
    (arg.dwDesiredAccess, arg.pObjAttrib) = (ALL_ACCESS, named.address());
    sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.hNtHandle))?)
}

fn acquired(sweep: Sweep<'_>) -> TestResult {
    let raw = fixture::raw()?;
    let mut mutex = D3DKMT_CREATEKEYEDMUTEX::zeroed();
    succeeds(&raw, &mut mutex)?;
    let mut data = [3u8; 128];
    let timeout = 0i64;
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
    (arg.hKeyedMutex, arg.pTimeout) = (mutex.hKeyedMutex, (&raw const timeout) as u64);
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (data.as_mut_ptr() as u64, 128);
    let outcome = sweep(&mut Plain::new(arg, 0, |raw, arg| {
        let mut release = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
        release.hKeyedMutex = arg.hKeyedMutex;
        (release.pPrivateRuntimeData, release.PrivateRuntimeDataSize) =
            (arg.pPrivateRuntimeData, 128);
        succeeds(raw, &mut release)
    })?);
    end_mutex(&raw, mutex.hKeyedMutex)?;
    outcome
}

fn set_info(resource: u32) -> TestResult {
    let file = selftests::fds::memfd()?;
    let item = opendxg_info_item {
        key: [9; 16],
        flags: OPENDXG_INFO_ATTACH_FD,
        fd: file.as_raw_fd(),
        ..Default::default()
    };
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type) = (u64::from(resource), OPENDXG_HANDLE_LOCAL);
    (arg.items, arg.item_count) = ((&raw const item) as u64, 1);
    succeeds(&fixture::raw()?, &mut arg)
}

fn got(sweep: Sweep<'_>) -> TestResult {
    let made = sample(&fixture::device()?, flags::RESOURCE)?;
    set_info(made.resource)?;
    let mut data = [0u8; 600];
    let mut arg = opendxg_get_info::zeroed();
    (arg.handle, arg.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
    (arg.key, arg.flags) = ([9; 16], OPENDXG_GET_FD);
    (arg.data, arg.size) = (data.as_mut_ptr() as u64, 600);
    sweep(&mut Plain::new(arg, 0, |_, arg| {
        ensure_eq!(arg.size, 0);
        close(arg.fd as u64)
    })?)
}
