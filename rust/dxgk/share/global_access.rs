// SPDX-License-Identifier: GPL-2.0

//! Opening objects by their global handles, and who may do it (RES-103).

use crate::dxgk::{
    memory::resource::Resource,
    object::{
        Globals,
        Object,
        Strong, //
    }, //
};
use crate::{
    logic::global_access::{
        self,
        OpenPolicy,
        Opener,
        Policy, //
    },
    sys::{
        params,
        task::{
            credentials::Credentials,
            group::ThreadGroup, //
        }, //
    }, //
};

impl Globals {
    /// A strong reference to the object that a global handle names, if it is alive and the caller
    /// may have it. A refusal looks like a dead handle (RES-103).
    pub(crate) fn open(&self, global: u32) -> Option<Strong> {
        let object = self.find(global)?;

        // The count decides; the entry may be there a moment longer.
        may_open(&object)
            .then(|| Strong::upgrade(&object))
            .flatten()
    }
}

/// What the administrator allows.
fn policy() -> Policy {
    Policy {
        global_access: params::global_access(),
        allow_nonsecure: params::allow_nonsecure(),
    }
}

/// Whether the caller may open `object` by its global handle.
fn may_open(object: &Object) -> bool {
    let creator = &object.header().creator;
    let caller = Credentials::of_caller();
    let (open_policy, admitted) = match object {
        Object::Resource(resource) => {
            let open_policy = resource.description.open_policy;

            (
                open_policy,
                open_policy == OpenPolicy::Restricted && resource.allows_caller(),
            )
        }
        _ => (OpenPolicy::Default, false),
    };
    let opener = Opener {
        same_namespace: caller.shares_ipc_with(creator),
        same_user: caller.acts_as(creator) || Credentials::caller_is_ipc_owner(),
        admitted,
    };

    global_access::may_open(policy(), open_policy, opener)
}

/// Whether the process `group` may open `resource` by its global handle.
pub(crate) fn may_group_open(resource: &Resource, group: &ThreadGroup) -> bool {
    let creator = &resource.header.creator;
    let Some((credentials, ipc_owner)) = group.credentials() else {
        return false;
    };
    let opener = Opener {
        same_namespace: credentials.shares_ipc_with(creator),
        same_user: credentials.acts_as(creator) || ipc_owner,
        admitted: resource.allows(group),
    };

    global_access::may_open(policy(), resource.description.open_policy, opener)
}
