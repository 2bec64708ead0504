// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weak references and watches.

use std::os::fd::AsRawFd;

use opendxg::uapi::*;
use opendxg::{Access, Object as _, Status, WatchEvents};

use super::object::{HANDLE, SELF, SELF_TYPE, TYPE};
use super::*;

const WEAK_FD: Field = field("fd", 16, 4, Kind::Output(Made::Descriptor));
const WATCH_FD: Field = field("fd", 32, 4, Kind::Output(Made::Descriptor));
const EVENTS: Field = field(
    "events",
    12,
    4,
    Kind::Flags {
        known: 3,
        accept: &[1, 2, 3],
        refuse: &[0],
    },
);
const EVENT: Field = field(
    "event_fd",
    24,
    4,
    Kind::Event {
        zero: Some(Status::INVALID_HANDLE),
    },
);

/// The resource through its local handle.
fn local(world: &World, image: &mut Image) -> Outcome {
    image.put64(0, world.resource.handle().0.into());
    image.put32(8, OPENDXG_HANDLE_LOCAL);
    Ok(())
}

/// The resource on its NT handle.
fn on_handle(world: &World, image: &mut Image) -> Outcome {
    image.on(world.resource.share(Access::RESOURCE_ALL)?.into());
    Ok(())
}

/// What both forms of WATCH have.
fn watch(world: &World, image: &mut Image) {
    image.put32(12, 3);
    image.put64(16, 7);
    image.put32(24, world.event.as_raw_fd() as u32);
}

pub(super) const FORMS: &[Form] = &[
    Form {
        nr: 0xa8,
        name: "opendxg_open_weak",
        variant: "local",
        size: 24,
        fields: &[
            HANDLE,
            TYPE,
            no_flags("flags", 12),
            WEAK_FD,
            reserved(20, 4),
        ],
        good: local,
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xa8,
        name: "opendxg_open_weak",
        variant: "on an NT handle",
        size: 24,
        fields: &[
            SELF,
            SELF_TYPE,
            no_flags("flags", 12),
            WEAK_FD,
            reserved(20, 4),
        ],
        good: on_handle,
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xa9,
        name: "opendxg_resolve_weak",
        variant: "",
        size: 16,
        fields: &[
            field("fd", 0, 4, Kind::Weak),
            no_flags("flags", 4),
            field(
                "device",
                8,
                4,
                Kind::OptionalHandle {
                    kind: Object::Device,
                    bad: INVALID,
                    zero: None,
                },
            ),
            made("handle", 12, Object::Resource),
        ],
        good: |world, image| {
            image.put32(0, world.weak.as_raw_fd() as u32);
            image.put32(8, world.device.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xaa,
        name: "opendxg_watch",
        variant: "local",
        size: 40,
        fields: &[
            HANDLE,
            TYPE,
            EVENTS,
            any("cookie", 16, 8),
            EVENT,
            no_flags("flags", 28),
            WATCH_FD,
            reserved(36, 4),
        ],
        good: |world, image| {
            watch(world, image);
            local(world, image)
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xaa,
        name: "opendxg_watch",
        variant: "on an NT handle",
        size: 40,
        fields: &[
            SELF,
            SELF_TYPE,
            EVENTS,
            any("cookie", 16, 8),
            EVENT,
            no_flags("flags", 28),
            WATCH_FD,
            reserved(36, 4),
        ],
        good: |world, image| {
            watch(world, image);
            on_handle(world, image)
        },
        status: Status::SUCCESS,
    },
    Form {
        nr: 0xab,
        name: "opendxg_watch_state",
        variant: "on a watch",
        size: 32,
        fields: &[
            output("cookie", 0, 8),
            output("object_id", 8, 8),
            output("generation", 16, 8),
            output("events", 24, 4),
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
