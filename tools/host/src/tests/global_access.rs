// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who may open an object by its global handle (RES-103).

use crate::logic::global_access::{may_open, OpenPolicy, Opener, Policy};

const USER: u32 = 0;
const ANY: u32 = 1;
const NONE: u32 = 2;

const AUDIENCES: [OpenPolicy; 3] = [
    OpenPolicy::Default,
    OpenPolicy::World,
    OpenPolicy::Restricted,
];

fn policy(global_access: u32, allow_nonsecure: bool) -> Policy {
    Policy {
        global_access,
        allow_nonsecure,
    }
}

fn policies() -> impl Iterator<Item = Policy> {
    [USER, ANY, NONE, 3, u32::MAX]
        .into_iter()
        .flat_map(|access| [false, true].map(|allow| policy(access, allow)))
}

/// Every opener, by the bits of a number.
fn openers() -> impl Iterator<Item = Opener> {
    (0..8).map(|bits| Opener {
        same_namespace: bits & 1 != 0,
        same_user: bits & 2 != 0,
        admitted: bits & 4 != 0,
    })
}

/// The creator's user in another process, and somebody else; neither was admitted.
const SAME: Opener = Opener {
    same_namespace: true,
    same_user: true,
    admitted: false,
};
const OTHER: Opener = Opener {
    same_user: false,
    ..SAME
};

#[test]
fn res_103_the_same_user_others_or_nobody() {
    for (access, same, other) in [
        (USER, true, false),
        (ANY, true, true),
        (NONE, false, false),
        (3, false, false),
        (u32::MAX, false, false),
    ] {
        for allow in [false, true] {
            let policy = policy(access, allow);
            assert_eq!(
                may_open(policy, OpenPolicy::Default, SAME),
                same,
                "{policy:?}"
            );
            assert_eq!(
                may_open(policy, OpenPolicy::Default, OTHER),
                other,
                "{policy:?}"
            );
        }
    }
}

#[test]
fn res_103_nonsecure_widens_if_the_administrator_allows() {
    for (access, allow, other) in [
        (USER, false, false),
        (USER, true, true),
        (ANY, false, true),
        (ANY, true, true),
        (NONE, true, false),
    ] {
        let policy = policy(access, allow);
        assert_eq!(
            may_open(policy, OpenPolicy::World, OTHER),
            other,
            "{policy:?}"
        );
    }
}

#[test]
fn res_103_restricted_needs_to_be_admitted_and_allowed() {
    let admitted = |opener| Opener {
        admitted: true,
        ..opener
    };
    for (access, opener, expected) in [
        (USER, SAME, false),
        (USER, admitted(SAME), true),
        (USER, admitted(OTHER), false),
        (ANY, OTHER, false),
        (ANY, admitted(OTHER), true),
        (NONE, admitted(SAME), false),
    ] {
        for allow in [false, true] {
            let opens = may_open(policy(access, allow), OpenPolicy::Restricted, opener);
            assert_eq!(opens, expected, "{access} {opener:?}");
        }
    }
}

/// The numbers mean nothing in another IPC namespace.
#[test]
fn res_103_nobody_opens_from_another_namespace() {
    for policy in policies() {
        for opener in openers().filter(|opener| !opener.same_namespace) {
            for open_policy in AUDIENCES {
                assert!(
                    !may_open(policy, open_policy, opener),
                    "{policy:?} {opener:?}"
                );
            }
        }
    }
}

#[test]
fn res_103_restricting_narrows_and_nonsecure_widens() {
    for policy in policies() {
        for opener in openers() {
            let [usual, anybody, admitted] =
                AUDIENCES.map(|open_policy| may_open(policy, open_policy, opener));
            assert!(usual || !admitted, "{policy:?} {opener:?}");
            assert!(anybody || !usual, "{policy:?} {opener:?}");
        }
    }
}
