// SPDX-License-Identifier: GPL-2.0

//! One open of a resource in one process: the handle of the resource with those of its
//! allocations, or one handle that was made by duplication (RES-78). It holds one strong
//! reference, for all its handles.

use crate::dxgk::{
    info::attachments::Value,
    memory::{
        allocation::Allocation,
        resource::Resource, //
    },
    object::{
        Globals,
        Object,
        ReservedGlobal,
        Strong, //
    },
    small_vec::InlineVec,
    sync::fence_mappings::FenceMappings, //
};
use crate::{
    error::{
        shortage,
        DxgResult,
        Status, //
    },
    logic::{
        access::resource as resource_access,
        global_access::OpenPolicy, //
    },
    sys::{
        alloc::pin_arc,
        task::group::ThreadGroup, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    types::ScopeGuard, //
};

/// Where an open resource comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Creation, or an open: it has the handles of all allocations.
    Opened,
    /// The same, by a global handle.
    OpenedByGlobal,
    /// Duplication of one handle.
    Duplicated,
}

/// One open of a resource in a process.
#[pin_data(PinnedDrop)]
pub(crate) struct OpenResource {
    strong: Strong,
    resource: Arc<Resource>,
    mappings: Arc<FenceMappings>,
    /// Access of its handles.
    pub(crate) access: u32,
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Whether it has the handle of the resource; handles of allocations are then part of it.
    pub(crate) has_resource_handle: bool,
    /// Whether it is still one of the process's open resources: until its handles are gone.
    counted: AtomicFlag,
    /// The handles of its allocations, if it has the handle of the resource; `None` once the open
    /// resource is being destroyed. LOCK: the handle table is not touched under it.
    #[pin]
    handles: Mutex<Option<List>>,
}

/// Handles of allocations.
struct List {
    numbers: InlineVec<u32>,
    /// How many more there is room for, because they are about to be added.
    expected: usize,
}

impl OpenResource {
    /// An open resource of the resource that `strong` refers to, without handles.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        strong: Strong,
        access: u32,
        origin: Origin,
        has_resource_handle: bool,
        mappings: &Arc<FenceMappings>,
    ) -> DxgResult<Arc<Self>> {
        let Object::Resource(resource) = strong.object() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let resource = resource.clone();

        resource.header.openers.enter(mappings)?;

        // If allocating fails, the drop of the open resource does not run.
        let undo = ScopeGuard::new_with_data(resource.clone(), |resource| {
            resource.header.openers.leave(mappings);
        });
        let open_resource = pin_arc(
            pin_init!(Self {
                strong,
                resource,
                mappings: mappings.clone(),
                access,
                origin,
                has_resource_handle,
                counted: AtomicFlag::new(true),
                handles <- new_mutex!(
                    Some(List {
                        numbers: InlineVec::new(),
                        expected: 0,
                    }),
                    "OpenResource::handles"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        drop(undo.dismiss());
        Ok(open_resource)
    }

    /// The resource, as an object.
    pub(crate) fn object(&self) -> &Object {
        self.strong.object()
    }

    /// What this is an open of.
    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Gives the resource a global handle, which still has to be committed.
    pub(crate) fn name_globally<'a>(&self, globals: &'a Globals) -> DxgResult<ReservedGlobal<'a>> {
        self.strong.name_globally(globals)
    }

    /// Another strong reference to the resource.
    pub(crate) fn another_strong(&self) -> DxgResult<Strong> {
        // The own reference keeps the count above 0.
        self.strong
            .another()
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Whether its handles may write (RES-35).
    pub(crate) fn may_write(&self) -> bool {
        self.access & resource_access::WRITE != 0
    }

    /// ACCESS_DENIED unless its handles may write.
    pub(crate) fn check_may_write(&self) -> DxgResult {
        if !self.may_write() {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(())
    }

    /// Checks that the calling process decides who may open the resource: access must be
    /// restricted, which is INVALID_PARAMETER otherwise, and the process must have made it, which
    /// is ACCESS_DENIED otherwise (RES-103).
    pub(crate) fn check_may_admit(&self) -> DxgResult {
        let description = &self.resource.description;

        if description.open_policy != OpenPolicy::Restricted {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if description.creator != ThreadGroup::of_caller() {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(())
    }

    /// Replaces the private runtime data of the resource (RES-68). NO_MEMORY over a limit,
    /// ACCESS_DENIED if it is sealed.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn replace_runtime_data(&self, bytes: KVVec<u8>) -> DxgResult {
        let header = &self.resource.header;
        let value = shortage(Value::new(header.accounts(), header, bytes))?;

        shortage(header.attachments().set_blob(value))
    }

    /// Gives a new open resource, which nobody knows yet, the handles of its allocations.
    pub(in crate::dxgk) fn start_with(&self, numbers: InlineVec<u32>) {
        if let Some(list) = &mut *self.handles.lock() {
            list.numbers = numbers;
        }
    }

    /// Makes room for handles that are about to be added.
    fn make_room(&self, more: usize) -> DxgResult {
        let mut handles = self.handles.lock();
        let list = (*handles).as_mut().ok_or(Status::INVALID_PARAMETER)?;
        let expected = list.expected.saturating_add(more);

        list.numbers.reserve(expected)?;
        list.expected = expected;
        Ok(())
    }

    /// Adds handles that were expected, or none of them. Cannot fail.
    fn add(&self, more: &[u32], expected: usize) {
        if let Some(list) = &mut *self.handles.lock() {
            list.expected = list.expected.saturating_sub(expected);
            for number in more {
                // There is room for all of them.
                list.numbers.push(*number);
            }
        }
    }

    /// These handles, in increasing order, are gone.
    pub(crate) fn forget_handles(&self, sorted: &[u32]) {
        if let Some(list) = &mut *self.handles.lock() {
            list.numbers
                .retain(|number| sorted.binary_search(number).is_err());
        }
    }

    /// Called when its last handle is gone: the process has one open resource less. A call in
    /// progress may use it a little longer (RES-76).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(&self) {
        if self.counted.xchg(false, Relaxed) {
            self.resource.header.openers.leave(&self.mappings);
        }
    }

    /// Takes the handles, because the open resource is destroyed; none if that has begun already.
    pub(crate) fn take_handles(&self) -> Option<InlineVec<u32>> {
        self.handles.lock().take().map(|list| list.numbers)
    }
}

/// Handles and allocations that an open resource and its resource are about to get. Room for them
/// is reserved, and they cannot be found there yet (RES-3). Dropping this leaves nothing behind.
pub(crate) struct PendingAllocations {
    open_resource: Arc<OpenResource>,
    handles: InlineVec<u32>,
    allocations: InlineVec<Arc<Allocation>>,
    done: bool,
}

impl PendingAllocations {
    /// Makes room for these allocations in the resource of `open_resource`, and for their handles
    /// in the open resource.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(
        open_resource: Arc<OpenResource>,
        handles: InlineVec<u32>,
        allocations: InlineVec<Arc<Allocation>>,
    ) -> DxgResult<Self> {
        open_resource.make_room(handles.len())?;

        // Its drop gives back what both have.
        let mut pending = Self {
            open_resource,
            handles,
            allocations: InlineVec::new(),
            done: false,
        };

        pending
            .open_resource
            .resource()
            .make_room(allocations.len())?;
        pending.allocations = allocations;
        Ok(pending)
    }

    /// Adds them. Cannot fail.
    pub(crate) fn commit(&mut self) {
        let (handles, allocations) = (&self.handles, &self.allocations);

        self.open_resource
            .resource()
            .add(allocations, allocations.len());
        self.open_resource.add(handles, handles.len());
        self.done = true;
    }

    /// Whether the open resource is being destroyed, or was.
    pub(crate) fn is_too_late(&self) -> bool {
        self.open_resource.handles.lock().is_none()
    }
}

impl Drop for PendingAllocations {
    fn drop(&mut self) {
        if !self.done {
            self.open_resource
                .resource()
                .add(&[], self.allocations.len());
            self.open_resource.add(&[], self.handles.len());
        }
    }
}

#[pinned_drop]
impl PinnedDrop for OpenResource {
    /// Context: may sleep, no locks held.
    fn drop(self: Pin<&mut Self>) {
        self.leave();
    }
}
