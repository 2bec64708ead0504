// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weak references and watches.

use std::os::fd::AsRawFd;

use opendxg::uapi::*;
use opendxg::{Access, Object as _, Status, WatchEvents};

use super::object::{HANDLE, SELF, SELF_TYPE, TYPE};
use super::*;

const WEAK_FD: Field = field("fd", Kind::Output(Made::Descriptor));
const WATCH_FD: Field = field("fd", Kind::Output(Made::Descriptor));
const EVENTS: Field = field(
    "events",
    Kind::Flags {
        known: 3,
        accept: &[1, 2, 3],
        refuse: &[0],
    },
);
const EVENT: Field = field(
    "event_fd",
    Kind::Event {
        zero: Some(Status::INVALID_HANDLE),
    },
);

/// The resource through its local handle.
fn local(world: &World, image: &mut Image) -> TestResult {
    image.put64(0, world.resource.handle().0.into());
    image.put32(8, OPENDXG_HANDLE_LOCAL);
    Ok(())
}

/// The resource on its NT handle.
fn on_handle(world: &World, image: &mut Image) -> TestResult {
    image.on(world.resource.share(Access::RESOURCE_ALL)?.into());
    Ok(())
}

/// What both forms of WATCH have.
fn watch(world: &World, image: &mut Image) {
    image.put32(12, 3);
    image.put64(16, 7);
    image.put32(24, world.event.as_raw_fd() as u32);
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0xa8,
        name: "opendxg_open_weak",
        variant: "local",
        fields: &[HANDLE, TYPE, no_flags("flags"), WEAK_FD, reserved(20, 4)],
        good: local,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xa8,
        name: "opendxg_open_weak",
        variant: "on an NT handle",
        fields: &[SELF, SELF_TYPE, no_flags("flags"), WEAK_FD, reserved(20, 4)],
        good: on_handle,
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xa9,
        name: "opendxg_resolve_weak",
        variant: "",
        fields: &[
            field("fd", Kind::Weak),
            no_flags("flags"),
            field(
                "device",
                Kind::OptionalHandle {
                    kind: Object::Device,
                    bad: INVALID,
                    zero: None,
                },
            ),
            made("handle", Object::Resource),
        ],
        good: |world, image| {
            image.put32(0, world.weak.as_raw_fd() as u32);
            image.put32(8, world.device.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xaa,
        name: "opendxg_watch",
        variant: "local",
        fields: &[
            HANDLE,
            TYPE,
            EVENTS,
            any("cookie"),
            EVENT,
            no_flags("flags"),
            WATCH_FD,
            reserved(36, 4),
        ],
        good: |world, image| {
            watch(world, image);
            local(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xaa,
        name: "opendxg_watch",
        variant: "on an NT handle",
        fields: &[
            SELF,
            SELF_TYPE,
            EVENTS,
            any("cookie"),
            EVENT,
            no_flags("flags"),
            WATCH_FD,
            reserved(36, 4),
        ],
        good: |world, image| {
            watch(world, image);
            on_handle(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0xab,
        name: "opendxg_watch_state",
        variant: "on a watch",
        fields: &[
            output("cookie"),
            output("object_id"),
            output("generation"),
            output("events"),
            reserved(28, 4),
        ],
        good: |world, image| {
            let events = WatchEvents::DESTROY | WatchEvents::CHANGE;
            image.on(world.resource.watch(events, 7, &world.event)?.into());
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
