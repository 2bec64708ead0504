// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared objects: opening them in every name space, sharing, asking, metadata, keyed mutexes,
//! making and destroying.
//!
//! The same operations are measured against other ways ([`measure`]) and among more and more
//! unrelated objects ([`super::population`]).

use opendxg::{
    Access, Acquired, Device, Dxg, GlobalHandle, Guid, InfoItem, KeyedMutex, NtHandle, Object,
    Resource, ShareOptions, Timeout,
};

use super::balls::{FileServer, Socket};
use super::ping_pong::PingPong;
use super::{names, Bench};
use crate::dmabuf::{self, Passing};
use crate::measure::{Participant, Plan, Runner};
use crate::peer::{Peer, Place};

/// Names of the operations.
pub mod operations {
    /// `opendxg_open_resource` of a global handle, and DestroyAllocation2.
    pub const OPEN_NUMBER: &str = "opendxg open by number";
    /// `opendxg_open_resource` of an NT handle, and DestroyAllocation2.
    pub const OPEN_DESCRIPTOR: &str = "opendxg open by descriptor";
    /// OpenNtHandleFromName and close.
    pub const OPEN_NAME: &str = "opendxg open by name";
    /// ShareObjects and close.
    pub const SHARE: &str = "opendxg share";
    /// QUERY_OBJECT.
    pub const QUERY: &str = "opendxg query";
    /// GET_INFO of 64 bytes.
    pub const GET: &str = "opendxg get metadata";
    /// SET_INFO of 64 bytes.
    pub const SET: &str = "opendxg set metadata";
    /// AcquireKeyedMutex and ReleaseKeyedMutex.
    pub const MUTEX: &str = "opendxg acquire and release";
    /// CreateAllocation and DestroyAllocation2.
    pub const CREATE: &str = "opendxg create and destroy";
    /// The same with a global handle.
    pub const NUMBERED: &str = "opendxg create with number";
    /// The same, to be shared by NT handle.
    pub const SHAREABLE_RESOURCE: &str = "opendxg create shareable";
    /// Those that are measured among many objects.
    pub const ALL: [&str; 9] = [
        OPEN_NUMBER,
        OPEN_DESCRIPTOR,
        OPEN_NAME,
        SHARE,
        QUERY,
        GET,
        SET,
        MUTEX,
        CREATE,
    ];
}

const NAME: &str = r"\BaseNamedObjects\opendxg-bench";
/// Key of the metadata, made for this program.
const KEY: Guid = Guid::new(0x6f0c_5d27, 0x3b11, 0x4c8e, 0x8f45_0a9d_e2b7_7731);

/// Objects that exist in every name space.
pub struct Shelf<'a> {
    dxg: &'a Dxg,
    device: &'a Device,
    shared: Resource,
    /// Keeps the name alive.
    nt_handle: NtHandle,
    /// Keeps the number alive.
    _numbered: Resource,
    number: GlobalHandle,
    mutex: KeyedMutex,
}

impl<'a> Shelf<'a> {
    /// Makes them.
    pub fn new(bench: &'a Bench) -> Self {
        let (dxg, device) = (&bench.dxg, &bench.device);
        let new = || device.new_resource().linear(dmabuf::SIZE);
        let shared = new().nt_shared().create().expect("create a resource");
        let options = ShareOptions::new(Access::RESOURCE_ALL).name(NAME);
        let nt_handle = dxg
            .share(&[shared.handle()], &options)
            .expect("share a resource");
        let item = InfoItem::new(KEY, 1, &[7; 64]);
        shared.set_info(&[item]).expect("store metadata");
        let numbered = new().shared().create().expect("create a resource");
        let number = numbered.global_handle().expect("a global handle");
        let mutex = dxg.create_keyed_mutex(0).expect("create a keyed mutex");
        Self {
            dxg,
            device,
            shared,
            nt_handle,
            _numbered: numbered,
            number,
            mutex,
        }
    }

    /// Opens by number and closes.
    fn open_number(&self) {
        let opened = self
            .device
            .open_resource(self.number)
            .expect("open by number");
        opened.destroy().expect("destroy a handle");
    }

    fn open_descriptor(&self) {
        let opened = self
            .device
            .open_share(&self.nt_handle)
            .expect("open by descriptor");
        opened.resource.destroy().expect("destroy a handle");
    }

    fn open_name(&self) {
        self.dxg
            .open_resource_name(NAME, Access::RESOURCE_ALL)
            .expect("open by name");
    }

    fn share(&self) {
        self.shared
            .share(Access::RESOURCE_ALL)
            .expect("share a resource");
    }

    fn query(&self) {
        self.shared.query().expect("query an object");
    }

    fn get(&self) {
        let info = self.shared.get_info(KEY, 1).expect("read metadata");
        assert_eq!(info.bytes.len(), 64);
    }

    fn set(&self) {
        self.shared
            .set_info(&[InfoItem::new(KEY, 1, &[9; 64])])
            .expect("store metadata");
    }

    fn mutex(&self) {
        let acquired = self.mutex.acquire(0, Timeout::Forever).expect("acquire");
        assert_eq!(acquired, Acquired::Owned(0));
        self.mutex.release(0, 0).expect("release");
    }

    fn create(&self) {
        let resource = self
            .device
            .new_resource()
            .linear(dmabuf::SIZE)
            .create()
            .expect("create a resource");
        resource.destroy().expect("destroy a resource");
    }

    /// One participant for each operation.
    pub fn participants(&self, at: u64) -> Vec<Participant<'_>> {
        let each: [fn(&Self); 9] = [
            Self::open_number,
            Self::open_descriptor,
            Self::open_name,
            Self::share,
            Self::query,
            Self::get,
            Self::set,
            Self::mutex,
            Self::create,
        ];
        let all = operations::ALL.into_iter().zip(each);
        all.map(|(name, operation)| Participant::at(name, at, move || operation(self)))
            .collect()
    }
}

/// Measures the group. The socketpair stands for asking a server process that keeps the objects.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let shelf = Shelf::new(bench);
    let peer = Peer::start(Place::SameProcessor);
    let mut all = shelf.participants(0);
    all.push(Participant::new(
        names::SOCKETPAIR,
        PingPong::new(&peer, Socket::new()),
    ));
    all.push(Participant::new(names::NO_OP, || {
        bench.dxg.no_op().expect("no-op")
    }));
    let device = &bench.device;
    all.push(Participant::new(operations::NUMBERED, move || {
        let resource = device.new_resource().linear(dmabuf::SIZE).shared().create();
        resource
            .expect("create a resource")
            .destroy()
            .expect("destroy a resource");
    }));
    all.push(Participant::new(
        operations::SHAREABLE_RESOURCE,
        move || {
            let resource = device
                .new_resource()
                .linear(dmabuf::SIZE)
                .nt_shared()
                .create();
            resource
                .expect("create a resource")
                .destroy()
                .expect("destroy a resource");
        },
    ));
    if let Some(ntsync) = &bench.ntsync {
        let mutex = ntsync.mutex().expect("make a mutex");
        all.push(Participant::new(names::NTSYNC, move || {
            ntsync.acquire(&mutex).expect("acquire");
            mutex.release().expect("release");
        }));
    }
    if let Some(udmabuf) = &bench.udmabuf {
        let buffer = udmabuf.create().expect("make a dma-buf");
        let passing = Passing::new();
        let server = FileServer::new(udmabuf.create().expect("make a dma-buf"));
        all.push(Participant::new(
            names::SERVER,
            PingPong::new(&peer, server),
        ));
        all.push(Participant::new(names::PASSING, move || {
            passing.pass(&buffer)
        }));
        all.push(Participant::new(names::UDMABUF, || {
            udmabuf.create().expect("make a dma-buf");
        }));
        all.push(Participant::new(names::UDMABUF_MEMORY, || {
            udmabuf.create_with_memory().expect("make a dma-buf");
        }));
    }
    runner.group("objects", "operation on a shared object", plan, all);
}
