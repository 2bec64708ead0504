// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every shareable object can do, whatever its kind and however it is reached.

use std::os::fd::AsFd;
use std::sync::Arc;

use crate::adapter::Luid;
use crate::allocation::Allocation;
use crate::calls::object::{call_about, query_at, Place};
use crate::device::Device;
use crate::dxg::Dxg;
use crate::event::EventFd;
use crate::handle::{adopt_checked, slot, LocalHandle, NtHandle};
use crate::keyed_mutex::KeyedMutex;
use crate::node::Node;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::resource::Resource;
use crate::store::{self, Info, InfoEntry, InfoItem, Lookup, Update};
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::weak::{Watch, WatchEvents, WeakRef};
use crate::{Error, Guid, Result};

/// Where a call about an object goes; made by the objects themselves.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a>(pub(crate) Place<'a>);

/// What every shareable object offers, through a local handle as well as on the descriptor of an
/// NT handle (which needs no [`Dxg`] and works in every process).
pub trait Object {
    /// Where calls about the object go.
    fn target(&self) -> Target<'_>;

    /// What the object is and how often it is referred to.
    fn query(&self) -> Result<ObjectInfo> {
        let mut arg = opendxg_query_object::zeroed();
        let mut name = name_buffer();
        query_at(self.target().0, &mut arg, &mut name)?;
        Ok(ObjectInfo::new(&arg, &name))
    }

    /// Stores entries, all of them or none; returns the new generation.
    fn set_info(&self, items: &[InfoItem<'_>]) -> Result<u64> {
        store::set(self.target(), items).0
    }

    /// As [`set_info`](Object::set_info), for items that expect a generation: a mismatch is an
    /// answer.
    fn update_info(&self, items: &[InfoItem<'_>]) -> Result<Update> {
        store::update(self.target(), items)
    }

    /// The entry with the highest schema that is not above `max_schema`.
    fn get_info(&self, key: Guid, max_schema: u32) -> Result<Info> {
        store::get(self.target(), key, max_schema, false)
    }

    /// As [`get_info`](Object::get_info), with a new descriptor of the attached file.
    fn get_info_with_file(&self, key: Guid, max_schema: u32) -> Result<Info> {
        store::get(self.target(), key, max_schema, true)
    }

    /// As [`get_info`](Object::get_info): that there is none, or only newer ones, is an answer.
    fn look_up_info(&self, key: Guid, max_schema: u32) -> Result<Lookup> {
        store::look_up(self.target(), key, max_schema)
    }

    /// All entries at one moment, and the generation of the object.
    fn enum_info(&self) -> Result<(Vec<InfoEntry>, u64)> {
        store::enumerate(self.target())
    }

    /// Removes one entry; returns the new generation.
    fn delete_info(&self, key: Guid, schema: u32) -> Result<u64> {
        store::delete(self.target(), key, schema)
    }

    /// A reference that does not keep the object alive.
    fn weak(&self) -> Result<WeakRef> {
        let mut arg = opendxg_open_weak::zeroed();
        call_about(self.target().0, &mut arg)?;
        adopt_checked(arg.fd).map(WeakRef::from)
    }

    /// Has `event` signalled when one of `events` happens. `cookie` comes back with the news.
    fn watch(&self, events: WatchEvents, cookie: u64, event: &EventFd) -> Result<Watch> {
        let mut arg = opendxg_watch::zeroed();
        arg.events = events.bits();
        arg.cookie = cookie;
        arg.event_fd = slot(event.as_fd()) as i32;
        call_about(self.target().0, &mut arg)?;
        adopt_checked(arg.fd).map(Watch::from)
    }
}

/// A local handle of this process that somebody else owns, to call the methods of [`Object`] on.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRef<'a> {
    node: &'a Node,
    handle: LocalHandle,
}

impl<'a> ObjectRef<'a> {
    pub(crate) fn new(node: &'a Node, handle: LocalHandle) -> Self {
        Self { node, handle }
    }
}

macro_rules! object {
    ($($type:ty: $object:ident => $place:expr;)*) => {
        $(
            impl Object for $type {
                fn target(&self) -> Target<'_> {
                    let $object = self;
                    Target($place)
                }
            }
        )*
    };
}

object! {
    ObjectRef<'_>: it => Place::Local(it.node, it.handle);
    SyncObject: it => Place::Local(it.node(), it.handle());
    Resource: it => Place::Local(it.device().node(), it.handle());
    Allocation: it => Place::Local(it.device().node(), it.handle());
    KeyedMutex: it => Place::Local(it.node(), it.handle());
    NtHandle: it => Place::Own(it.as_fd());
}

/// What is behind a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// The name of the NT handle, as it was given.
    pub name: Option<String>,
    /// `OPENDXG_TYPE_*`.
    pub object_type: u32,
    /// What the object is; of the first one of an NT handle for three.
    pub kind: ObjectKind,
    /// What the members of an NT handle are.
    pub members: Vec<ObjectKind>,
    /// Access mask of the handle.
    pub access: u32,
    /// Never used for another object. Equal ids: same object.
    pub id: u64,
    /// Number of changes of the information store.
    pub generation: u64,
    /// References to the object or, for an allocation, to its container.
    pub references: u32,
    /// Those that local handles of this process hold.
    pub local_references: u32,
    /// User id of the creator, as this process sees it.
    pub creator_uid: u32,
    /// False for a weak reference to a dead object.
    pub alive: bool,
    /// The adapter, 0 for a keyed mutex.
    pub luid: Luid,
    /// Allocations of a resource.
    pub allocations: u32,
}

impl ObjectInfo {
    pub(crate) fn new(arg: &opendxg_query_object, name: &[u16]) -> Self {
        let units = name.get(..arg.name_size as usize / 2).unwrap_or(name);
        let members = arg.member_kinds.iter().take(arg.member_count as usize);
        Self {
            name: (!units.is_empty()).then(|| String::from_utf16_lossy(units)),
            object_type: arg.type_,
            kind: ObjectKind(arg.kind),
            members: members.map(|&kind| ObjectKind(kind)).collect(),
            access: arg.access,
            id: arg.object_id,
            generation: arg.generation,
            references: arg.references,
            local_references: arg.local_references,
            creator_uid: arg.creator_uid,
            alive: arg.alive != 0,
            luid: Luid {
                high: arg.adapter_luid_high,
                low: arg.adapter_luid_low,
            },
            allocations: arg.allocation_count,
        }
    }

    /// The name of the object type.
    pub fn type_name(&self) -> &'static str {
        match self.object_type {
            OPENDXG_TYPE_RESOURCE => "DxgkSharedResource",
            OPENDXG_TYPE_SYNC_OBJECT => "DxgkSharedSyncObject",
            OPENDXG_TYPE_KEYED_MUTEX => "DxgkKeyedMutex",
            _ => "?",
        }
    }
}

/// Room for the longest name: 1024 units.
pub(crate) fn name_buffer() -> Vec<u16> {
    vec![0; 1024]
}

/// What an object is: a `D3DDDI_SYNCHRONIZATIONOBJECT_TYPE` or an `OPENDXG_KIND_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKind(pub u32);

impl ObjectKind {
    /// A resource with a handle of its own.
    pub const RESOURCE: Self = Self(OPENDXG_KIND_RESOURCE);
    /// An allocation, in a resource or by itself.
    pub const ALLOCATION: Self = Self(OPENDXG_KIND_ALLOCATION);
    /// A mutex that is released with a key for the next owner.
    pub const KEYED_MUTEX: Self = Self(OPENDXG_KIND_KEYED_MUTEX);
    /// A fence whose value can be waited for; other synchronisation objects have the numbers of
    /// `D3DDDI_SYNCHRONIZATIONOBJECT_TYPE`.
    pub const MONITORED_FENCE: Self = Self(D3DDDI_MONITORED_FENCE);
}

/// An owned local handle of a kind that is known only at run time.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyObject {
    /// A resource; its allocations are reached with [`Resource::duplicate_allocation`].
    Resource(Resource),
    /// An allocation by itself, or one of a resource.
    Allocation(Allocation),
    /// A mutex that is released with a key for the next owner.
    KeyedMutex(KeyedMutex),
    /// A synchronisation object.
    Sync(SyncObject),
}

impl AnyObject {
    /// Takes over a local handle that the driver has just made.
    pub(crate) fn adopt(device: &Device, handle: u32) -> Result<Self> {
        let node = device.node();
        let info = ObjectRef::new(node, LocalHandle(handle)).query();
        let kind = match info {
            Ok(info) => info.kind,
            // Without QueryObject nobody makes such handles.
            Err(_) => return Err(Error::Protocol("handle of an unknown kind")),
        };
        Ok(match kind {
            ObjectKind::RESOURCE => Self::Resource(Resource::bare(device, handle)),
            ObjectKind::ALLOCATION => Self::Allocation(Allocation::own(device, handle, None)),
            ObjectKind::KEYED_MUTEX => Self::KeyedMutex(KeyedMutex::new(node, handle, 0)),
            _ => {
                let owned = Owned::new(node, handle, Kind::SyncObject);
                Self::Sync(SyncObject::new(owned, Some(device.clone()), None))
            }
        })
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        match self {
            Self::Resource(object) => object.handle(),
            Self::Allocation(object) => object.handle(),
            Self::KeyedMutex(object) => object.handle(),
            Self::Sync(object) => object.handle(),
        }
    }

    /// The resource, if it is one.
    pub fn into_resource(self) -> Option<Resource> {
        match self {
            Self::Resource(resource) => Some(resource),
            _ => None,
        }
    }

    /// The allocation, if it is one.
    pub fn into_allocation(self) -> Option<Allocation> {
        match self {
            Self::Allocation(allocation) => Some(allocation),
            _ => None,
        }
    }
}

impl Object for AnyObject {
    fn target(&self) -> Target<'_> {
        match self {
            Self::Resource(object) => object.target(),
            Self::Allocation(object) => object.target(),
            Self::KeyedMutex(object) => object.target(),
            Self::Sync(object) => object.target(),
        }
    }
}

/// A second local handle of an object, or with a resource of one of its allocations.
pub(crate) fn duplicate(node: &Arc<Node>, handle: LocalHandle, index: u32) -> Result<u32> {
    let mut arg = opendxg_dup_local::zeroed();
    arg.handle = handle.0;
    arg.index = index;
    crate::calls::call(node, &mut arg)?;
    Ok(arg.new_handle)
}

impl Dxg {
    /// An object of this process by its local handle, which somebody else owns.
    pub fn object(&self, handle: LocalHandle) -> ObjectRef<'_> {
        ObjectRef::new(self.node(), handle)
    }
}
