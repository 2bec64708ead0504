// SPDX-License-Identifier: GPL-2.0

//! D3DKMTCreateAllocation2: what a device makes of a request whose arguments were checked. All or
//! nothing: what was made is dropped if a later step fails (RES-25).

use super::{
    allocation::{
        self,
        Allocation,
        AllocationDescription,
        Bytes,
        Unsized, //
    },
    dma_buf,
    resource::{
        Resource,
        ResourceDescription, //
    },
    storage::Storage, //
};
use crate::{
    dxgk::{
        adapter::Adapter,
        handle::{
            open_resource::{
                OpenResource,
                Origin, //
            },
            reserved_handles::ReservedHandles,
            Parent, //
        },
        info::attachments::Value,
        object::{
            Header,
            Object,
            Strong,
            Traits, //
        },
        process::Process,
        quota::{
            account::ObjectCharge,
            holder::Amounts, //
        },
        small_vec::InlineVec,
        stats::{
            ObjectKind,
            OwnStats, //
        },
        tables::Tables, //
    },
    error::{
        shortage,
        DxgResult,
        Status, //
    },
    logic::{
        access,
        allocation_rules::{
            Creation,
            Source, //
        },
        handle,
        sync_flags::Sharing, //
    },
    sys::{
        mem::dma_slots::User,
        task::group::ThreadGroup, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// One allocation of a request.
pub(crate) struct NewAllocation {
    /// Private driver data, if there is any and this is not a standard allocation.
    pub(crate) driver_data: Option<KVVec<u8>>,
    /// Where its bytes are.
    pub(crate) source: Source,
    /// Its priority, if it is given one.
    pub(crate) priority: Option<u32>,
    /// Whether it is to be displayed.
    pub(crate) primary: bool,
}

/// What the allocations of a request belong to.
pub(crate) enum Destination {
    /// Each to a resource of its own, without a handle.
    Standalone {
        /// Private driver data of the resource of the first one.
        driver_data: Option<KVVec<u8>>,
    },
    /// A new resource.
    New {
        /// Private driver data of the resource.
        driver_data: Option<KVVec<u8>>,
        /// Private runtime data of the resource.
        runtime_data: Option<KVVec<u8>>,
    },
    /// A resource that is there.
    Existing(Arc<OpenResource>),
}

/// What a device is to make.
pub(crate) struct CreateAllocationsRequest {
    /// What the flags say.
    pub(crate) creation: Creation,
    /// What to make, in the order of the handles.
    pub(crate) allocations: InlineVec<NewAllocation>,
    /// What they belong to.
    pub(crate) destination: Destination,
}

impl CreateAllocationsRequest {
    /// Whether all the memory is new, which is zero.
    pub(crate) fn is_zeroed(&self) -> bool {
        self.allocations.iter().all(|new| new.source == Source::New)
    }
}

impl Parent {
    /// Makes what is requested on this device, and reserves its handles. The first one is that of
    /// a new resource.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn create_allocations<'a>(
        &self,
        process: &'a Process,
        tables: &'a Tables,
        mut request: CreateAllocationsRequest,
    ) -> DxgResult<ReservedHandles<'a>> {
        let count = request.allocations.len();
        let mut maker = Maker {
            parent: self,
            process,
            creation: request.creation,
            users: InlineVec::new(),
        };
        let mut allocations = InlineVec::with_capacity(count)?;
        let mut handles = ReservedHandles::new(&process.handles, count.saturating_add(1))?;

        for new in request.allocations.as_mut_slice() {
            allocations.push(maker.allocation(new)?);
        }
        match request.destination {
            Destination::Existing(open_resource) => {
                handles.reserve_more(open_resource, allocations, Some(self))?;
            }
            Destination::New {
                driver_data,
                runtime_data,
            } => {
                let open_resource = maker.resource(false, driver_data)?;

                if let Some(runtime_data) = runtime_data {
                    let value =
                        shortage(Value::new(&tables.accounts, &*self.device, runtime_data))?;

                    shortage(
                        open_resource
                            .resource()
                            .header
                            .attachments()
                            .set_blob(value),
                    )?;
                }
                if maker.creation.sharing() == Sharing::Global {
                    handles.global = Some(open_resource.name_globally(&tables.globals)?);
                }
                handles.reserve_resource(&open_resource, &allocations, Some(self))?;
                open_resource.resource().start_with(allocations);
            }
            Destination::Standalone { mut driver_data } => {
                for allocation in &allocations {
                    let open_resource = maker.resource(true, driver_data.take())?;
                    let mut one = InlineVec::new();

                    one.push(allocation.clone());
                    handles.reserve_allocations(&open_resource, &one, Some(self))?;
                    open_resource.resource().start_with(one);
                }
            }
        }
        Ok(handles)
    }
}

/// Who makes the parts of a request.
struct Maker<'a> {
    parent: &'a Parent,
    process: &'a Process,
    creation: Creation,
    /// They keep imported dma-bufs of this module until the allocations have handles.
    users: InlineVec<User<Storage>>,
}

impl Maker<'_> {
    /// The memory of an allocation.
    fn storage(&mut self, source: Source, size: u64) -> DxgResult<Arc<Storage>> {
        let write = !self.creation.is_read_only();
        let holder = &self.process.holder;
        let stats = OwnStats::of(&*self.parent.device);

        match source {
            Source::New => Storage::system(holder, stats, size),
            Source::Caller(address) => Storage::user(holder, stats, address, size, write),
            Source::Section(value) => {
                let fd = handle::nt_fd(value).ok_or(Status::INVALID_HANDLE)?;

                let (storage, user) = dma_buf::section(holder, stats, fd, size, write)?;

                if let Some(user) = user {
                    self.users.reserve(1)?;
                    self.users.push(user);
                }
                Ok(storage)
            }
        }
    }

    /// An allocation that belongs to no resource yet.
    fn allocation(&mut self, new: &mut NewAllocation) -> DxgResult<Arc<Allocation>> {
        let device = &self.parent.device;
        let adapter: &Arc<Adapter> = &device.adapter;
        let driver_data = match &self.creation.standard {
            Some(standard) => adapter.standard_allocation_data(standard.size)?,
            None => new.driver_data.take().unwrap_or_default(),
        };
        let contiguous = new.primary || self.creation.is_contiguous();
        let described = allocation::described(
            adapter,
            device.process.id,
            &driver_data,
            new.source,
            contiguous,
        )?;
        let size = described.kmd.info.size;
        let description = AllocationDescription {
            read_only: self.creation.is_read_only(),
            driver_data,
        };
        let claim = self.process.holder.charge(Amounts {
            allocations: 1,
            ..Amounts::default()
        })?;
        let bytes = match (new.source, size) {
            // It cannot be found anywhere else before it has a size (RES-23).
            (Source::Caller(address), 0) if !self.creation.is_shared() => Bytes::Unsized(Unsized {
                address,
                holder: self.process.holder.clone(),
                stats: OwnStats::of(&**device),
            }),
            (_, 0) => return Err(Status::INVALID_PARAMETER.into()),
            (source, size) => Bytes::Known(self.storage(source, size)?),
        };

        Ok(Allocation::new(
            adapter.clone(),
            claim,
            description,
            described,
            new.priority,
            bytes,
        )?)
    }

    /// A resource without allocations yet, and an open of it. `standalone`: it is the resource of
    /// one standalone allocation.
    fn resource(
        &self,
        standalone: bool,
        driver_data: Option<KVVec<u8>>,
    ) -> DxgResult<Arc<OpenResource>> {
        let kind = if standalone {
            ObjectKind::Allocation
        } else {
            ObjectKind::Resource
        };
        let header = Header::new(
            kind,
            Some(self.parent.device.adapter.clone()),
            self.creation.sharing(),
            Traits::of(self.creation.is_cross_adapter()),
            ObjectCharge::new(&self.process.account)?,
        );
        let description = ResourceDescription {
            shared: self.creation.is_shared(),
            standalone,
            open_policy: self.creation.open_policy(),
            back_buffer: self.creation.is_back_buffer(),
            creator: ThreadGroup::of_caller(),
            driver_data,
        };
        let resource = Resource::new(header, description)?;
        let strong = Strong::first(Object::Resource(resource));

        OpenResource::new(
            strong,
            access::resource::ALL,
            Origin::Opened,
            !standalone,
            &self.process.mappings,
        )
    }
}
