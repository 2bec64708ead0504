// SPDX-License-Identifier: GPL-2.0

//! Who may open an object by its global handle (RES-103).

/// Who is meant to open an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPolicy {
    /// Whatever the administrator allows.
    Default,
    /// World, if the administrator allows that for single objects.
    World,
    /// Only the creator and processes that it has admitted, within what the administrator allows.
    Restricted,
}

/// What the administrator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// 0: the same user; 1: every user; others: no user.
    pub global_access: u32,
    /// Whether a creator may let every user open an object.
    pub allow_nonsecure: bool,
}

/// How the opener relates to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Lives in the IPC namespace of the creator.
    pub same_namespace: bool,
    /// Acts as the user who made it, or may act as every user.
    pub same_user: bool,
    /// Is the creator or was admitted.
    pub admitted: bool,
}

/// Whether the handle resolves for the opener.
pub fn may_open(policy: Policy, open_policy: OpenPolicy, opener: Opener) -> bool {
    let usual = match policy.global_access {
        0 => opener.same_user,
        1 => true,
        _ => return false,
    };

    opener.same_namespace
        && match open_policy {
            OpenPolicy::Default => usual,
            OpenPolicy::World => usual || policy.allow_nonsecure,
            OpenPolicy::Restricted => usual && opener.admitted,
        }
}
