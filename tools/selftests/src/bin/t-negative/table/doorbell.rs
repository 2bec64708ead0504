// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doorbells.

use selftests::user_queue::user_queue;

use super::*;

const DOORBELL: &[Field] = &[handle("hDoorbell", Object::Doorbell), no_flags("Flags")];

/// A call on a doorbell.
const fn on_doorbell(nr: u32, name: &'static str) -> Described {
    Described {
        nr,
        name,
        variant: "",
        fields: DOORBELL,
        good: |world, image| {
            image.put32(0, world.handle(Object::Doorbell));
            Ok(())
        },
        status: Status::SUCCESS,
    }
}

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0xe0,
        name: "D3DKMT_CREATE_DOORBELL",
        variant: "",
        fields: &[
            handle("hHwQueue", Object::UserQueue),
            handle("hRingBuffer", Object::Ring),
            handle("hRingBufferControl", Object::Ring),
            field(
                "Flags",
                Kind::Flags {
                    known: 3,
                    accept: &[0, 1, 2, 3],
                    refuse: &[],
                },
            ),
            field(
                "PrivateDriverDataSize",
                Kind::Values {
                    accept: &[0, 1, 8],
                    refuse: &[],
                },
            ),
            field("PrivateDriverData", Kind::Blob),
            output("DoorbellCPUVirtualAddress"),
            output("DoorbellSecondaryCPUVirtualAddress"),
            output("DoorbellStatusCPUVirtualAddress"),
            output("HwQueueProgressFenceLastQueuedValueCPUVirtualAddress"),
            made("hDoorbell", Object::Doorbell),
        ],
        good: |world, image| {
            image.put32(0, world.handle(Object::UserQueue));
            image.put32(4, world.handle(Object::Ring));
            image.put32(8, world.handle(Object::Ring));
            image.put32(16, 8);
            image.point(24, &[0; 8])
        },
        status: Status::SUCCESS,
    },
    on_doorbell(0xe1, "D3DKMT_CONNECT_DOORBELL"),
    on_doorbell(0xe3, "D3DKMT_NOTIFY_WORK_SUBMISSION"),
    Described {
        nr: 0xe2,
        name: "D3DKMT_DESTROY_DOORBELL",
        variant: "",
        fields: DOORBELL,
        good: |world, image| {
            let ring = world.ring().allocation();
            let context = world.device.create_hw_context(0)?;
            let queue = user_queue(&context)?;
            let doorbell = queue.create_doorbell(ring, ring)?.into_raw();
            image.put32(0, doorbell.0);
            queue.into_raw();
            // The queue ends with it.
            image.keep(context);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];
