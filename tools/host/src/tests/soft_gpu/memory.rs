// SPDX-License-Identifier: MIT OR Apache-2.0

//! Segments and allocations.

use std::sync::atomic::Ordering::Acquire;

use super::{page, started, started_unverified, submit, Commands, Ear, Scene, CODE, DATA, PAGE};
use crate::ddi::caps::{AdapterQuery, DriverCaps};
use crate::ddi::class::Passive;
use crate::ddi::port::Port;
use crate::ddi::segments::{SegmentKind, Segments};
use crate::ddi::types::{AllocationId, CreateAllocationArgs, KmdError};
use crate::kmd::soft::Config;
use crate::platform::Shared;

#[test]
fn mem_1_segments_are_local_memory_and_an_aperture() {
    let segments = |local_memory| {
        let port = started(Config {
            local_memory,
            ..Config::default()
        });
        let mut segments = Segments::new();
        let mut caps = DriverCaps::default();
        let class = Passive::here();
        let kmd = port.enter().unwrap();

        kmd.query_adapter_info(&class, AdapterQuery::Segments(&mut segments));
        kmd.query_adapter_info(&class, AdapterQuery::DriverCaps(&mut caps));
        assert_eq!(caps.local_memory, local_memory);
        assert_eq!(
            (caps.gpu_mmu.address_bits, caps.gpu_mmu.page_table_levels),
            (48, 4)
        );
        drop(kmd);
        segments
    };
    let kinds = |segments: &Segments| {
        segments
            .iter()
            .map(|(id, segment)| (id, segment.kind))
            .collect::<Vec<_>>()
    };

    let with = segments(1 << 20);

    assert_eq!(
        kinds(&with),
        [(1, SegmentKind::Memory), (2, SegmentKind::Aperture)]
    );
    assert_eq!(with.get(1).unwrap().size, 1 << 20);
    assert!(with.get(1).unwrap().memory.is_some() && with.get(0).is_none());
    assert_eq!(kinds(&segments(0)), [(1, SegmentKind::Aperture)]);
}

#[test]
fn mem_110_engines_use_local_memory_whose_pages_are_taken_at_first_use() {
    let port = started(Config {
        local_memory: 4 * PAGE,
        ..Config::default()
    });
    let mut segments = Segments::new();

    port.enter()
        .unwrap()
        .query_adapter_info(&Passive::here(), AdapterQuery::Segments(&mut segments));

    let memory = segments.get(1).unwrap().memory.clone().unwrap();
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    scene.space.set(DATA + PAGE, page(1, 3 * PAGE));
    scene.space.set(DATA + 2 * PAGE, page(1, 4 * PAGE));
    assert_eq!(memory.taken(), 0);

    let dwords = Commands::default()
        .write(DATA + PAGE + 8, 5)
        .into(&scene.code);

    submit(&context, 1, CODE, dwords);
    ear.completed(1);
    assert_eq!(memory.taken(), 1);
    assert_eq!(memory.page(3).unwrap().words()[1].load(Acquire), 5);

    // Behind its end there is nothing.
    let dwords = Commands::default()
        .write(DATA + 2 * PAGE, 5)
        .into(&scene.code);

    submit(&context, 2, CODE, dwords);
    assert_eq!(ear.wait(|told| !told.faults.is_empty()).faults.len(), 1);
}

#[test]
fn res_23_sizes_and_places_of_allocations() {
    let port = started_unverified(Config::default());
    let bare = started_unverified(Config {
        local_memory: 0,
        ..Config::default()
    });
    let describe = |port: &Shared<Port>, words: [u32; 12], existing| {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let args = CreateAllocationArgs {
            id: AllocationId(1),
            private_data: &data,
            existing,
        };
        let kmd = port.enter().unwrap();

        kmd.create_allocation(&Passive::here(), &args)
            .map(|(_, info)| {
                (
                    info.size,
                    info.alignment,
                    info.supported_segments,
                    info.preferred_segment,
                )
            })
    };
    let system = [0x4147_5844, 1, 0x2000, 0, 0, 0, 0, 0, 0, 0x1_0000, 0, 0];
    let mut local = system;
    let mut other = system;

    local[10] = 1;
    other[0] = 7;

    let refused = Err(KmdError::InvalidParameter);

    assert_eq!(describe(&port, system, false), Ok((0x2000, 0x1_0000, 4, 2)));
    assert_eq!(describe(&port, system, true), Ok((0x2000, 0x1_0000, 4, 2)));
    assert_eq!(describe(&port, local, false), Ok((0x2000, 0x1_0000, 2, 1)));
    assert_eq!(describe(&port, local, true), refused);
    assert_eq!(describe(&bare, local, false), refused, "it has none");
    assert_eq!(describe(&port, other, false), refused);
    assert_eq!(describe(&port, other, true), Ok((0, 4096, 4, 2)));

    let mut bad = system;

    bad[11] = 1;
    assert_eq!(describe(&port, bad, true), refused, "ours, but wrong");
}
