// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls about devices and contexts.

use opendxg::uapi::*;
use opendxg::Status;

use super::*;

/// Creates something on an adapter or device whose handle comes first.
const ON_DEVICE: fn(&World, &mut Image) -> TestResult = |world, image| {
    image.put32(0, world.device.handle().0);
    Ok(())
};

pub(super) const FORMS: &[Described] = &[
    Described {
        nr: 0x02,
        name: "D3DKMT_CREATEDEVICE",
        variant: "",
        fields: &[
            handle("hAdapter", Object::Adapter),
            ignored(4, 4),
            field(
                "Flags",
                Kind::Flags {
                    known: 7,
                    accept: &[1, 2, 4, 7],
                    refuse: &[],
                },
            ),
            made("hDevice", Object::Device),
            output("pCommandBuffer"),
            output("CommandBufferSize"),
            output("pAllocationList"),
            output("AllocationListSize"),
            output("pPatchLocationList"),
            output("PatchLocationListSize"),
        ],
        good: |world, image| {
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x19,
        name: "D3DKMT_DESTROYDEVICE",
        variant: "",
        fields: &[handle("hDevice", Object::Device)],
        good: |world, image| {
            let device = world.adapter.create_device()?;
            image.put32(0, device.handle().0);
            image.keep(device);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    state(
        "execution",
        D3DKMT_DEVICESTATE_EXECUTION,
        &[
            handle("hDevice", Object::Device),
            STATE_TYPE,
            output("ExecutionState"),
            ignored(12, 4),
            ignored(16, 24),
            ignored(40, 8),
            ignored(48, 8),
        ],
    ),
    state(
        "reset",
        D3DKMT_DEVICESTATE_RESET,
        &[
            handle("hDevice", Object::Device),
            STATE_TYPE,
            output("ResetState"),
            ignored(12, 44),
        ],
    ),
    state(
        "page fault",
        D3DKMT_DEVICESTATE_PAGE_FAULT,
        &[
            handle("hDevice", Object::Device),
            STATE_TYPE,
            output("PageFaultState"),
            ignored(40, 16),
        ],
    ),
    Described {
        nr: 0x03,
        name: "D3DKMT_CREATECONTEXT",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            below("NodeOrdinal", Limit::Four),
            below("EngineAffinity", Limit::Two),
            field(
                "Flags",
                Kind::Flags {
                    known: 0x3f,
                    accept: &[],
                    refuse: &[],
                },
            ),
            field("pPrivateDriverData", Kind::Blob),
            any("PrivateDriverDataSize"),
            any("ClientHint"),
            // Outputs of a call that never succeeds.
            any("hContext"),
            any("pCommandBuffer"),
            any("CommandBufferSize"),
            any("pAllocationList"),
            any("AllocationListSize"),
            any("pPatchLocationList"),
            any("PatchLocationListSize"),
            any("CommandBuffer"),
        ],
        good: |world, image| {
            image.put32(24, 8);
            image.point(16, &[0; 8])?;
            ON_DEVICE(world, image)
        },
        status: Status::NOT_SUPPORTED,
    },
    Described {
        nr: 0x04,
        name: "D3DKMT_CREATECONTEXTVIRTUAL",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            below("NodeOrdinal", Limit::Four),
            below("EngineAffinity", Limit::Two),
            field(
                "Flags",
                Kind::Flags {
                    known: 0x3f,
                    accept: &[1, 2, 4, 8, 0x10, 0x20, 0x3f],
                    refuse: &[],
                },
            ),
            field("pPrivateDriverData", Kind::Blob),
            field(
                "PrivateDriverDataSize",
                Kind::Values {
                    accept: &[0, 1, 8],
                    refuse: &[],
                },
            ),
            any("ClientHint"),
            made("hContext", Object::Context),
        ],
        good: |world, image| {
            image.put32(24, 8);
            image.point(16, &[0; 8])?;
            ON_DEVICE(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x05,
        name: "D3DKMT_DESTROYCONTEXT",
        variant: "",
        fields: &[handle("hContext", Object::Context)],
        good: |world, image| {
            let context = world.device.create_context(0)?;
            image.put32(0, context.handle().0);
            image.keep(context);
            Ok(())
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x17,
        name: "D3DKMT_CREATEHWCONTEXT",
        variant: "",
        fields: &[
            handle("hDevice", Object::Device),
            below("NodeOrdinal", Limit::Four),
            below("EngineAffinity", Limit::Two),
            field(
                "Flags",
                Kind::Flags {
                    known: 0,
                    accept: &[0],
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
            field("pPrivateDriverData", Kind::Blob),
            made("hHwContext", Object::HwContext),
        ],
        good: |world, image| {
            image.put32(16, 8);
            image.point(24, &[0; 8])?;
            ON_DEVICE(world, image)
        },
        status: Status::SUCCESS,
    },
    Described {
        nr: 0x1a,
        name: "D3DKMT_DESTROYHWCONTEXT",
        variant: "",
        fields: &[handle("hHwContext", Object::HwContext)],
        good: |world, image| {
            let context = world.device.create_hw_context(0)?;
            image.put32(0, context.handle().0);
            image.keep(context);
            Ok(())
        },
        status: Status::SUCCESS,
    },
];

const STATE_TYPE: Field = field(
    "StateType",
    Kind::Enum {
        unknown: &[0, 7, 8, 0x8000_0001, u32::MAX],
        unsupported: &[
            D3DKMT_DEVICESTATE_PRESENT,
            D3DKMT_DEVICESTATE_PRESENT_DWM,
            D3DKMT_DEVICESTATE_PRESENT_QUEUE,
        ],
    },
);

/// GetDeviceState with one of its arms.
const fn state(variant: &'static str, kind: u32, fields: &'static [Field]) -> Described {
    Described {
        nr: 0x0e,
        name: "D3DKMT_GETDEVICESTATE",
        variant,
        fields,
        good: match kind {
            D3DKMT_DEVICESTATE_EXECUTION => {
                |world, image| ask(world, image, D3DKMT_DEVICESTATE_EXECUTION)
            }
            D3DKMT_DEVICESTATE_RESET => |world, image| ask(world, image, D3DKMT_DEVICESTATE_RESET),
            _ => |world, image| ask(world, image, D3DKMT_DEVICESTATE_PAGE_FAULT),
        },
        status: Status::SUCCESS,
    }
}

fn ask(world: &World, image: &mut Image, kind: u32) -> TestResult {
    image.put32(4, kind);
    ON_DEVICE(world, image)
}
