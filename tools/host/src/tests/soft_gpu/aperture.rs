// SPDX-License-Identifier: MIT OR Apache-2.0

//! The aperture of the software adapter (MEM-4, MEM-5, MEM-78).

use std::sync::atomic::Ordering::Release;

use super::{endless, page, runs, started, submit, word, Commands, Ear, Scene, CODE, DATA, PAGE};
use crate::ddi::caps::AdapterQuery;
use crate::ddi::class::Passive;
use crate::ddi::object::{Allocation, ApertureRange, InAperture};
use crate::ddi::port::Port;
use crate::ddi::segments::Segments;
use crate::ddi::types::{AllocationId, CreateAllocationArgs};
use crate::kmd::soft::Config;
use crate::physical::Frame;
use crate::platform::Shared;

/// The aperture of an adapter with memory of its own.
const APERTURE: u32 = 2;

/// An allocation of two pages that is accessed physically.
fn physical(port: &Shared<Port>) -> Allocation {
    let words = [0x4147_5844_u32, 1, 0x2000, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let args = CreateAllocationArgs {
        id: AllocationId(1),
        private_data: &data,
        existing: false,
    };
    let allocation = Allocation::create(port, &Passive::here(), &args).unwrap();

    assert!(allocation.info.accessed_physically);
    assert_eq!(allocation.info.preferred_segment, APERTURE);
    allocation
}

fn unmap(allocation: &Allocation, first: u64, count: u64) {
    let range = ApertureRange {
        segment: APERTURE,
        first,
        count,
    };

    allocation.unmap_aperture(&Passive::here(), &range, 0);
}

/// MEM-4, MEM-5: pages that lie anywhere are one range there, named by segment and offset.
#[test]
fn mem_4_the_aperture_shows_pages_of_the_system_as_one_range() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);
    let allocation = physical(&port);
    let class = Passive::here();
    let (first, gap, second) = (Frame::new(), Frame::new(), Frame::new());

    allocation.map_aperture(
        &class,
        (APERTURE, 5),
        0,
        &[second.address(), first.address()],
    );
    scene.space.set(DATA + PAGE, page(APERTURE, 5 * PAGE));
    scene.space.set(DATA + 2 * PAGE, page(APERTURE, 6 * PAGE));

    let dwords = Commands::default()
        .write(DATA + PAGE + 8, 5)
        .write(DATA + 2 * PAGE + 16, 6)
        .into(&scene.code);

    submit(&context, 1, CODE, dwords);
    ear.completed(1);
    assert_eq!((word(&second, 1), word(&first, 2)), (5, 6));
    assert!((0..512).all(|index| word(&gap, index) == 0));

    // Part of it goes, and the rest stays.
    unmap(&allocation, 6, 1);

    let dwords = Commands::default()
        .write(DATA + PAGE + 8, 7)
        .write(DATA + 2 * PAGE + 16, 8)
        .into(&scene.code);

    submit(&context, 2, CODE, dwords);
    assert_eq!(ear.wait(|told| !told.faults.is_empty()).faults.len(), 1);
    assert_eq!((word(&second, 1), word(&first, 2)), (7, 6));
}

/// Pages that follow each other in the aperture lie anywhere: a copy finds each of them.
#[test]
fn mem_4_a_copy_goes_where_each_page_of_the_aperture_leads() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);
    let allocation = physical(&port);
    let frames: [Frame; 4] = std::array::from_fn(|_| Frame::new());
    let shown = [3, 0, 2].map(|at: usize| frames[at].address());
    let sources: [Frame; 3] = std::array::from_fn(|_| Frame::new());
    let (from, to) = (DATA + 0x10 * PAGE, DATA + 0x20 * PAGE);

    allocation.map_aperture(&Passive::here(), (APERTURE, 5), 0, &shown);
    for (page, source) in (0..).zip(&sources) {
        source.words()[1].store(page + 10, Release);
        scene.space.map(from + page * PAGE, source);
        scene
            .space
            .set(to + page * PAGE, self::page(APERTURE, (5 + page) * PAGE));
    }

    let dwords = Commands::default()
        .copy(from, to, 3 * PAGE as u32)
        .into(&scene.code);

    submit(&context, 1, CODE, dwords);
    ear.completed(1);
    assert_eq!([0, 1, 2, 3].map(|at| word(&frames[at], 1)), [11, 0, 12, 10]);
}

/// What is beyond the aperture is nowhere, whatever is asked for.
#[test]
fn mem_78_there_is_nothing_beyond_the_aperture() {
    let port = started(Config::default());
    let mut segments = Segments::new();

    port.enter()
        .unwrap()
        .query_adapter_info(&Passive::here(), AdapterQuery::Segments(&mut segments));

    let pages = segments.get(APERTURE).unwrap().size / PAGE;
    let scene = Scene::new(&port, 1);
    let allocation = physical(&port);
    let class = Passive::here();
    let frame = Frame::new();

    for (id, first) in [(7, pages - 1), (8, pages), (9, u64::MAX / PAGE)] {
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(0, id, &ear);

        allocation.map_aperture(&class, (APERTURE, first), 0, &[frame.address()]);
        scene
            .space
            .set(DATA + PAGE, page(APERTURE, first.wrapping_mul(PAGE)));
        scene.space.process.flush_tlb(&class, 0, 0);

        let dwords = Commands::default()
            .write(DATA + PAGE, first)
            .into(&scene.code);

        submit(&context, 1, CODE, dwords);
        match first < pages {
            true => ear.completed(1),
            false => drop(ear.wait(|told| !told.faults.is_empty())),
        }
    }
    assert_eq!(word(&frame, 0), pages - 1);
    unmap(&allocation, pages - 1, u64::MAX);
}

/// MEM-58, MEM-78: on return of UnmapApertureSegment no engine is at the page any more, although it
/// keeps the translation that leads to the aperture.
#[test]
fn mem_78_after_an_unmap_no_engine_uses_the_page() {
    let port = started(Config::default());
    let allocation = physical(&port);
    let class = Passive::here();

    for round in 0..50 {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(round % 3, 7, &ear);

        allocation.map_aperture(&class, (APERTURE, 0), 0, &[scene.data.address()]);
        scene.space.set(DATA, page(APERTURE, 0));
        submit(&context, 1, CODE, endless(&scene));
        runs(&scene);
        unmap(&allocation, 0, 1);
        scene.data.words()[0].store(0, Release);
        ear.wait(|told| told.faults.len() == 1);
        assert_eq!(word(&scene.data, 0), 0, "round {round}");
    }
}
