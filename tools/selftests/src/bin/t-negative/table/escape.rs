// SPDX-License-Identifier: MIT OR Apache-2.0
//! Escapes.

use opendxg::Status;

use super::*;

const HADAPTER: Field = any("hAdapter");
const HDEVICE: Field = any("hDevice");

/// Types without an answer. The others are other forms.
const TYPE: Field = listed(
    "Type",
    &[],
    &[
        (1, Status::NOT_SUPPORTED),
        (4, Status::NOT_SUPPORTED),
        (39, Status::NOT_SUPPORTED),
        (1024, Status::NOT_SUPPORTED),
        (0x8000_0002, Status::NOT_SUPPORTED),
        (0xffff_ffff, Status::NOT_SUPPORTED),
    ],
);

const fn escape(
    variant: &'static str,
    fields: &'static [Field],
    good: fn(&World, &mut Image) -> TestResult,
) -> Described {
    Described {
        nr: 0x0d,
        name: "D3DKMT_ESCAPE",
        variant,
        fields,
        good,
        status: Status::SUCCESS,
    }
}

pub(super) const FORMS: &[Described] = &[
    escape(
        "update resource",
        &[
            HADAPTER,
            HDEVICE,
            TYPE,
            any("Flags"),
            blob("pPrivateDriverData", 24, Some(FAULT)),
            listed(
                "PrivateDriverDataSize",
                &[0, 1, 15],
                &[(65537, INVALID), (0xffff_ffff, INVALID)],
            ),
            handle("hContext", Object::Resource),
        ],
        |world, image| {
            image.put32(8, 0x8000_0000);
            image.point(16, &[3; 16])?;
            image.put32(24, 16);
            own_resource(world, image)
        },
    ),
    escape(
        "present rectangle",
        &[
            HADAPTER,
            HDEVICE,
            TYPE,
            any("Flags"),
            blob("pPrivateDriverData", 24, Some(FAULT)),
            listed(
                "PrivateDriverDataSize",
                &[],
                &[
                    (0, INVALID),
                    (15, INVALID),
                    (17, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            handle("hContext", Object::Resource),
        ],
        |world, image| {
            image.put32(8, 0x8000_0001);
            image.point(16, &[3; 16])?;
            image.put32(24, 16);
            own_resource(world, image)
        },
    ),
    escape(
        "translate handle",
        &[
            handle("hAdapter", Object::Adapter),
            HDEVICE,
            TYPE,
            field(
                "Flags",
                Kind::Flags {
                    known: 0x40,
                    accept: &[0x40],
                    refuse: &[0],
                },
            ),
            field(
                "pPrivateDriverData",
                Kind::Memory(Memory {
                    unit: 8,
                    count_at: None,
                    writes: false,
                    null: Some(FAULT),
                    inside: &[
                        ("EscapeType", 0, 4, 0, INVALID),
                        ("EscapeType", 0, 4, 3, Status::NOT_SUPPORTED),
                        ("EscapeType", 0, 4, 0xffff_ffff, Status::NOT_SUPPORTED),
                        ("hResource", 4, 4, 0, INVALID),
                        ("hResource", 4, 4, 0xffff_ffff, INVALID),
                    ],
                }),
            ),
            listed(
                "PrivateDriverDataSize",
                &[],
                &[
                    (0, INVALID),
                    (7, INVALID),
                    // What a driver has of its own may be larger.
                    (9, FAULT),
                    (793, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            any("hContext"),
        ],
        |world, image| {
            let handle = world.resource.handle().0.to_ne_bytes();
            image.put32(0, world.adapter.handle().0);
            image.put32(12, 0x40);
            image.point(16, &[1u32.to_ne_bytes(), handle].concat())?;
            image.put32(24, 8);
            Ok(())
        },
    ),
    escape(
        "reset of an engine",
        &[
            handle("hAdapter", Object::Adapter),
            HDEVICE,
            TYPE,
            field(
                "Flags",
                Kind::Flags {
                    known: 0,
                    accept: &[0],
                    refuse: &[],
                },
            ),
            field(
                "pPrivateDriverData",
                Kind::Memory(Memory {
                    unit: 8,
                    count_at: None,
                    writes: false,
                    null: Some(FAULT),
                    inside: &[
                        // The whole adapter has no node.
                        ("TdrControl", 0, 4, 0, INVALID),
                        ("TdrControl", 0, 4, 1, Status::NOT_SUPPORTED),
                        ("TdrControl", 0, 4, 4, Status::NOT_SUPPORTED),
                        ("TdrControl", 0, 4, 7, Status::NOT_SUPPORTED),
                        ("TdrControl", 0, 4, 9, INVALID),
                        ("TdrControl", 0, 4, 0xffff_ffff, INVALID),
                        ("NodeOrdinal", 4, 4, 4, INVALID),
                        ("NodeOrdinal", 4, 4, 0xffff_ffff, INVALID),
                    ],
                }),
            ),
            listed(
                "PrivateDriverDataSize",
                &[],
                &[
                    (0, INVALID),
                    (3, INVALID),
                    (4, INVALID),
                    (7, INVALID),
                    (9, INVALID),
                    (0xffff_ffff, INVALID),
                ],
            ),
            any("hContext"),
        ],
        |world, image| {
            image.put32(8, 2);
            image.point(16, &[8, 0, 0, 0, 3, 0, 0, 0])?;
            image.put32(24, 8);
            image.put32(0, world.adapter.handle().0);
            Ok(())
        },
    ),
];

/// A resource that the call may change.
fn own_resource(world: &World, image: &mut Image) -> TestResult {
    let resource = world.device.new_resource().linear(4096).create()?;
    image.put32(28, resource.handle().0);
    image.keep(resource);
    Ok(())
}
