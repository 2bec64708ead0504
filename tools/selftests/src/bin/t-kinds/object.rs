// SPDX-License-Identifier: MIT OR Apache-2.0
//! One object of each kind, and the calls that all of them understand.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Device, Status};
use selftests::call::succeeds;
use selftests::resource::{destruction, flags, Create, PAGE_SIZE};
use selftests::sharing::share_raw;
use selftests::sharing::Attributes;
use selftests::{ensure_eq, fixture, Outcome};

/// The kinds of shareable objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Resource,
    Mutex,
    Semaphore,
    Fence,
    MonitoredFence,
    KeyedMutex,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Resource,
        Self::Mutex,
        Self::Semaphore,
        Self::Fence,
        Self::MonitoredFence,
        Self::KeyedMutex,
    ];

    /// Kind and type, as QUERY_OBJECT numbers them.
    pub(crate) fn numbers(self) -> (u32, u32) {
        match self {
            Self::Resource => (OPENDXG_KIND_RESOURCE, OPENDXG_TYPE_RESOURCE),
            Self::KeyedMutex => (OPENDXG_KIND_KEYED_MUTEX, OPENDXG_TYPE_KEYED_MUTEX),
            Self::Mutex => (D3DDDI_SYNCHRONIZATION_MUTEX, OPENDXG_TYPE_SYNC_OBJECT),
            Self::Semaphore => (D3DDDI_SEMAPHORE, OPENDXG_TYPE_SYNC_OBJECT),
            Self::Fence => (D3DDDI_FENCE, OPENDXG_TYPE_SYNC_OBJECT),
            Self::MonitoredFence => (D3DDDI_MONITORED_FENCE, OPENDXG_TYPE_SYNC_OBJECT),
        }
    }

    /// Whether it can have a global handle (RES-9).
    pub(crate) fn can_be_global(self) -> bool {
        self != Self::MonitoredFence
    }
}

/// An object with one local handle. Destroyed when dropped.
pub(crate) struct Object {
    pub(crate) raw: Raw,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    /// The local handle, 0 when it was destroyed.
    pub(crate) local: u32,
    /// The global handle, or 0.
    pub(crate) global: u32,
}

impl Object {
    /// Made to be shared: by NT handle, or by global handle.
    pub(crate) fn new(kind: Kind, by_nt: bool) -> Outcome<Self> {
        let device = fixture::device()?;
        let raw = fixture::raw()?;
        let (local, global) = match kind {
            Kind::Resource => {
                let bits = if by_nt { flags::NT } else { flags::GLOBAL };
                let made = Create::sized(&device, bits, &[PAGE_SIZE]).run()?;
                let global = made.global;
                (made.leak().0, global)
            }
            Kind::KeyedMutex => {
                let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
                arg.Flags = u32::from(by_nt) * D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
                succeeds(&raw, &mut arg)?;
                (arg.hKeyedMutex, arg.hSharedHandle)
            }
            _ => {
                let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
                arg.hDevice = device.handle().0;
                arg.Info.Type = kind.numbers().0;
                let shared = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared;
                let nt = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing;
                arg.Info.Flags = if by_nt || !kind.can_be_global() {
                    shared | nt
                } else {
                    shared
                };
                if kind == Kind::Semaphore {
                    let semaphore = D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore {
                        MaxCount: 4,
                        InitialCount: 1,
                    };
                    arg.Info.__bindgen_anon_1.Semaphore = semaphore;
                }
                succeeds(&raw, &mut arg)?;
                (arg.hSyncObject, arg.Info.SharedHandle)
            }
        };
        Ok(Self {
            raw,
            device,
            kind,
            local,
            global,
        })
    }

    /// Destroys one local handle of an object of this kind.
    pub(crate) fn end(&self, handle: u32) -> Outcome {
        match self.kind {
            Kind::Resource => succeeds(
                &self.raw,
                &mut destruction(self.device.handle().0, handle, &[], 0),
            ),
            Kind::KeyedMutex => succeeds(
                &self.raw,
                &mut D3DKMT_DESTROYKEYEDMUTEX {
                    hKeyedMutex: handle,
                },
            ),
            _ => succeeds(
                &self.raw,
                &mut D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
                    hSyncObject: handle,
                },
            ),
        }
    }

    /// Destroys its handle.
    pub(crate) fn destroy(&mut self) -> Outcome {
        let handle = core::mem::take(&mut self.local);
        self.end(handle)
    }

    /// An NT handle with all access; a keyed mutex only has one together with a resource and a fence.
    pub(crate) fn share(&self, attributes: u64) -> Outcome<OwnedFd> {
        let (resource, fence);
        let mut set = vec![self.local];
        let access = if self.numbers_of_share() {
            SHARED_ALLOCATION_ALL_ACCESS
        } else {
            0x1f_0003
        };
        if self.kind == Kind::KeyedMutex {
            resource = Object::new(Kind::Resource, true)?;
            fence = Object::new(Kind::MonitoredFence, true)?;
            set = vec![resource.local, self.local, fence.local];
        }
        share_raw(&self.raw, &set, access, attributes)
    }

    /// Whether its NT handle is one of a resource.
    fn numbers_of_share(&self) -> bool {
        matches!(self.kind, Kind::Resource | Kind::KeyedMutex)
    }

    /// What QUERY_OBJECT says about the local handle.
    pub(crate) fn query(&self) -> Outcome<opendxg_query_object> {
        selftests::resource::query_local(&self.raw, self.local)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.local != 0 {
            let _ = self.destroy();
        }
    }
}

/// Stores an entry through any kind of handle.
pub(crate) fn set(raw: &Raw, handle: u64, handle_type: u32, key: [u8; 16], data: &[u8]) -> Outcome {
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
pub(crate) fn get(
    raw: &Raw,
    handle: u64,
    handle_type: u32,
    key: [u8; 16],
) -> Outcome<Result<Vec<u8>, Status>> {
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
pub(crate) fn slot(fd: &OwnedFd) -> u64 {
    fd.as_raw_fd() as u64
}

/// A name for one object at a time.
pub(crate) struct Name {
    _attributes: Box<Attributes>,
    address: u64,
}

impl Name {
    pub(crate) fn new(name: &str) -> Self {
        let mut attributes = Attributes::named(&format!(r"\BaseNamedObjects\{name}"));
        let address = attributes.address();
        Self {
            _attributes: attributes,
            address,
        }
    }

    /// Where the attributes are.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Opens what has this name, as a resource or as a synchronisation object.
    pub(crate) fn open(&self, raw: &Raw, resource: bool) -> Outcome<OwnedFd> {
        let number = if resource {
            let mut arg = D3DKMT_OPENNTHANDLEFROMNAME::zeroed();
            (arg.dwDesiredAccess, arg.pObjAttrib) = (SHARED_ALLOCATION_ALL_ACCESS, self.address());
            succeeds(raw, &mut arg)?;
            arg.hNtHandle
        } else {
            let mut arg = D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME::zeroed();
            (arg.dwDesiredAccess, arg.pObjAttrib) = (0x1f_0003, self.address());
            succeeds(raw, &mut arg)?;
            arg.hNtHandle
        };
        ensure_eq!(number >> 31, 0, "a descriptor");
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
    }
}
