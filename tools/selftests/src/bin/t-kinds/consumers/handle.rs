// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of stores through handles of any kind, and names, by raw calls.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::Status;
use selftests::call::succeeds;
use selftests::resource::ALL_ACCESS;
use selftests::sharing::Attributes;
use selftests::{ensure_eq, TestResult};

/// Stores an entry through any kind of handle.
pub(super) fn set(
    raw: &Raw,
    handle: u64,
    handle_type: u32,
    key: [u8; 16],
    data: &[u8],
) -> TestResult {
    let item = opendxg_info_item {
        key,
        schema: 1,
        data: data.as_ptr() as u64,
        size: data.len() as u32,
        ..Default::default()
    };
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type) = (handle, handle_type);
    (arg.items, arg.item_count) = ((&raw const item) as u64, 1);
    succeeds(raw, &mut arg)
}

/// Reads an entry through any kind of handle.
pub(super) fn get(
    raw: &Raw,
    handle: u64,
    handle_type: u32,
    key: [u8; 16],
) -> TestResult<Result<Vec<u8>, Status>> {
    let mut data = vec![0u8; 256];
    let mut arg = opendxg_get_info::zeroed();
    (arg.handle, arg.handle_type, arg.key, arg.max_schema) = (handle, handle_type, key, 1);
    (arg.data, arg.size) = (data.as_mut_ptr() as u64, 256);
    match raw.exec(&mut arg)? {
        Status::SUCCESS => {
            data.truncate(arg.size as usize);
            Ok(Ok(data))
        }
        status => Ok(Err(status)),
    }
}

/// The handle in the slot of a descriptor.
pub(super) fn slot(fd: &OwnedFd) -> u64 {
    fd.as_raw_fd() as u64
}

/// A name for one object at a time.
pub(super) struct Name {
    _attributes: Box<Attributes>,
    address: u64,
}

impl Name {
    pub(super) fn new(name: &str) -> Self {
        let mut attributes = Attributes::named(&format!(r"\BaseNamedObjects\{name}"));
        let address = attributes.address();
        Self {
            _attributes: attributes,
            address,
        }
    }

    /// Where the attributes are.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Opens the resource that has this name.
    pub(super) fn open(&self, raw: &Raw) -> TestResult<OwnedFd> {
        let mut arg = D3DKMT_OPENNTHANDLEFROMNAME::zeroed();
        (arg.dwDesiredAccess, arg.pObjAttrib) = (ALL_ACCESS, self.address());
        succeeds(raw, &mut arg)?;
        ensure_eq!(arg.hNtHandle >> 31, 0, "a descriptor");
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(arg.hNtHandle as i32) })
    }
}
