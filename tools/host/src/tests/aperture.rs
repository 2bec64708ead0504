// SPDX-License-Identifier: MIT OR Apache-2.0

//! The aperture as the driver interface has it, with a double below (MEM-4, MEM-5, MEM-78).

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::{
    ddi::{
        caps::{AdapterQuery, Luid, StartInfo},
        class::Passive,
        object::{Allocation, ApertureRange, ContextAllocation, InAperture},
        paging::{is_removed, PagesOf, UnmapApertureSegment, MAX_APERTURE_PAGES},
        port::Port,
        segments::{SegmentKind, Segments},
        types::{AllocationCookie, AllocationId, ContextAllocationId, CreateAllocationArgs},
    },
    kmd::fake::{
        allocation_data,
        journal::{Broken, Entry, Journal},
        operations::{Operations, What},
        Behaviour, FakeKmd, Pause, IN_LOCAL, NOTIFY_RESIDENCY, PHYSICAL,
    },
    platform::{self, Shared},
    tests::ddi::verifier::verified,
};

fn info() -> StartInfo {
    StartInfo::of(Luid { low: 1, high: 2 }).unwrap()
}

/// The aperture of the double.
const APERTURE: u32 = 1;

struct Scene {
    journal: Shared<Journal>,
    operations: Shared<Operations>,
    port: Shared<Port>,
}

impl Scene {
    fn new() -> Self {
        Self::with(None)
    }

    /// The same, where calls of the KMD may have to wait.
    fn with(pause: Option<Shared<Pause>>) -> Self {
        let journal = Shared::new(Journal::new());
        let operations = Shared::new(Operations::new().unwrap());
        let behaviour = Behaviour {
            operations: Some(operations.clone()),
            pause,
            local_memory: 0x10_0000,
            ..Behaviour::default()
        };
        let kmd = FakeKmd::add_device(journal.clone(), behaviour);

        Self {
            journal,
            operations,
            port: Port::start(Box::new(kmd), &Passive::here(), &info()).unwrap(),
        }
    }

    fn allocation(&self, flags: u64) -> Allocation {
        let args = CreateAllocationArgs {
            id: AllocationId(9),
            private_data: &allocation_data(0x2000, flags),
            existing: false,
        };

        Allocation::create(&self.port, &Passive::here(), &args).unwrap()
    }

    fn map(&self, allocation: &Allocation, first: u64, pages: &[u64]) {
        allocation.map_aperture(&Passive::here(), (APERTURE, first), 0, pages);
    }
}

fn range(first: u64, count: u64) -> ApertureRange {
    ApertureRange {
        segment: APERTURE,
        first,
        count,
    }
}

/// MEM-5: who is to be in system memory names the aperture, and nobody names segment 0.
#[test]
fn mem_5_a_place_is_a_segment_and_system_memory_is_the_aperture() {
    let scene = Scene::new();
    let mut segments = Segments::new();

    scene
        .port
        .enter()
        .unwrap()
        .query_adapter_info(&Passive::here(), AdapterQuery::Segments(&mut segments));
    for (flags, kind) in [
        (0, SegmentKind::Aperture),
        (PHYSICAL, SegmentKind::Aperture),
        (IN_LOCAL, SegmentKind::Memory),
        (IN_LOCAL | PHYSICAL, SegmentKind::Memory),
    ] {
        let info = scene.allocation(flags).info;

        assert_eq!(segments.get(info.preferred_segment).unwrap().kind, kind);
        assert_eq!(info.supported_segments, 1 << info.preferred_segment);
        assert_eq!(info.accessed_physically, flags & PHYSICAL != 0);
    }
}

#[test]
fn mem_77_only_a_kmd_that_asks_is_told_where_an_allocation_is() {
    let scene = Scene::new();
    let class = Passive::here();
    let quiet = scene.allocation(IN_LOCAL | PHYSICAL);
    let asked = scene.allocation(IN_LOCAL | PHYSICAL | NOTIFY_RESIDENCY);

    for at in [Some((1, 0x3000)), None] {
        quiet.notify_residency(&class, at);
        assert_eq!(scene.operations.since(0).count(), 0);
    }
    asked.notify_residency(&class, Some((1, 0x3000)));
    asked.notify_residency(&class, None);

    let told: Vec<_> = scene
        .operations
        .since(0)
        .map(|told| match told.what {
            What::NotifyResidency(notify) => (told.number, notify.at),
            other => panic!("{other:?}"),
        })
        .collect();

    assert_eq!(told, [(15, Some((1, 0x3000))), (15, None)]);
    assert_eq!(scene.journal.broken(), 0);
}

#[test]
fn mem_78_the_kmd_is_told_what_the_aperture_shows() {
    let scene = Scene::new();
    let allocation = scene.allocation(PHYSICAL);

    scene.map(&allocation, 4, &[0x1000, 0x8000, 0x3000]);
    assert_eq!(scene.journal.in_aperture(), 3);
    allocation.unmap_aperture(&Passive::here(), &range(4, 3), 0x7000);
    assert_eq!(scene.journal.in_aperture(), 0);

    let told: Vec<_> = scene.operations.since(0).map(|told| told.what).collect();

    assert_eq!(
        told,
        [
            What::MapApertureSegment {
                segment: APERTURE,
                first: 4,
                page: 0,
                count: 3,
            },
            What::UnmapApertureSegment(UnmapApertureSegment {
                pages_of: PagesOf::Allocation(AllocationCookie(1)),
                segment: APERTURE,
                first: 4,
                count: 3,
                dummy: 0x7000,
            }),
        ]
    );
    assert_eq!(scene.journal.count(Entry::MapApertureSegment), 1);
    assert_eq!(scene.journal.count(Entry::UnmapApertureSegment), 1);
    drop((allocation, scene.port));
    assert!(scene.journal.is_good_end());
}

/// MEM-84: a context allocation in system memory is shown by the name that its KMD has given it,
/// also by a verifier, and is not mixed up with an allocation of a client that has the same number.
#[test]
fn mem_84_the_aperture_shows_context_allocations() {
    for is_mixed_up in [false, true] {
        let journal = Shared::new(Journal::new());
        let operations = Shared::new(Operations::new().unwrap());
        let behaviour = Behaviour {
            operations: Some(operations.clone()),
            ..Behaviour::default()
        };
        let kmd = FakeKmd::add_device(journal.clone(), behaviour);
        let port =
            Port::start(Box::new(verified(Box::new(kmd))), &Passive::here(), &info()).unwrap();
        let args = CreateAllocationArgs {
            id: AllocationId(9),
            private_data: &allocation_data(0x2000, PHYSICAL),
            existing: false,
        };
        let of_client = Allocation::create(&port, &Passive::here(), &args).unwrap();
        // The first cookie of the double, too.
        let cookie = AllocationCookie(1);
        let of_kmd = ContextAllocation::new(&port, ContextAllocationId(4), cookie);

        of_kmd.map_aperture(&Passive::here(), (APERTURE, 4), 0, &[0x1000, 0x8000]);
        assert_eq!(journal.in_aperture(), 2);
        if is_mixed_up {
            of_client.unmap_aperture(&Passive::here(), &range(4, 2), 0x7000);
            assert_eq!(journal.broken(), Broken::Aperture as u32);
            continue;
        }
        of_kmd.unmap_aperture(&Passive::here(), &range(4, 2), 0x7000);
        assert_eq!(journal.in_aperture(), 0);
        assert_eq!(
            operations.get(1).unwrap().what,
            What::UnmapApertureSegment(UnmapApertureSegment {
                pages_of: PagesOf::ContextAllocation(cookie),
                segment: APERTURE,
                first: 4,
                count: 2,
                dummy: 0x7000,
            })
        );
        drop((of_client, of_kmd, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
    }
}

/// MEM-93: there is nothing to say about the aperture whose number WDDM 2 has removed.
#[test]
fn mem_93_removed_operations_are_not_issued_for_the_aperture() {
    let scene = Scene::new();
    let allocation = scene.allocation(PHYSICAL);

    scene.map(&allocation, 4, &[0x1000]);
    allocation.unmap_aperture(&Passive::here(), &range(4, 1), 0x7000);

    let numbers: Vec<u32> = scene.operations.since(0).map(|told| told.number).collect();

    assert_eq!(numbers, [5, 6]);
    assert!(!numbers.into_iter().any(is_removed));
}

/// MEM-78: each range is unmapped exactly once, and only what is mapped.
#[test]
fn mem_78_a_double_finds_what_is_wrong_with_the_aperture() {
    type Wrong = fn(&Scene, &Allocation, &Allocation);
    let unmap = |allocation: &Allocation, first, count| {
        allocation.unmap_aperture(&Passive::here(), &range(first, count), 0);
    };
    let cases: [(Broken, Wrong); 9] = [
        (Broken::Aperture, |scene, one, other| {
            scene.map(one, 0, &[0x1000]);
            scene.map(other, 0, &[0x2000]);
        }),
        (Broken::Aperture, |scene, one, _| {
            scene.map(one, 256, &[0x1000])
        }),
        (Broken::Aperture, |scene, one, _| {
            scene.map(one, u64::MAX, &[0x1000]);
        }),
        (Broken::BadValue, |scene, one, _| scene.map(one, 0, &[])),
        (Broken::BadValue, |scene, one, _| {
            scene.map(one, 0, &[0x1008])
        }),
        (Broken::BadValue, |scene, one, _| {
            scene.map(one, 0, &[0; MAX_APERTURE_PAGES + 1]);
        }),
        (Broken::BadValue, |_, one, _| {
            one.map_aperture(&Passive::here(), (2, 0), 0, &[0]);
        }),
        (Broken::BadValue, |_, one, _| {
            one.unmap_aperture(&Passive::here(), &range(0, 1), 1);
        }),
        (Broken::ChildrenLeft, |scene, one, _| {
            scene.map(one, 0, &[0])
        }),
    ];

    for (number, (rule, wrong)) in cases.iter().enumerate() {
        let scene = Scene::new();

        wrong(&scene, &scene.allocation(PHYSICAL), &scene.allocation(0));
        assert_eq!(scene.journal.broken(), *rule as u32, "case {number}");
    }

    // Twice, nothing, another's, and more than there is.
    for (first, count, other, again) in [
        (0, 2, false, true),
        (2, 1, false, false),
        (0, 1, true, false),
        (0, 3, false, false),
    ] {
        let scene = Scene::new();
        let (mine, others) = (scene.allocation(PHYSICAL), scene.allocation(PHYSICAL));

        scene.map(&mine, 0, &[0x1000, 0x2000]);
        assert_eq!(scene.journal.broken(), 0);
        unmap(if other { &others } else { &mine }, first, count);
        if again {
            assert_eq!(scene.journal.broken(), 0);
            unmap(&mine, first, count);
        }
        assert_eq!(scene.journal.broken(), Broken::Aperture as u32);
    }
}

#[test]
fn mem_78_a_stopped_adapter_has_no_aperture() {
    let scene = Scene::new();
    let allocation = scene.allocation(PHYSICAL);
    let class = Passive::here();

    scene.port.stop(&class);
    allocation.map_aperture(&class, (APERTURE, 0), 0, &[0]);
    allocation.unmap_aperture(&class, &range(0, 1), 0);
    assert_eq!(scene.operations.count(), 0);
    drop((allocation, scene.port));
    assert!(scene.journal.is_good_end());
}

/// MEM-58, GPU-96: until StopDevice has returned engines may run. Who takes pages out of the
/// aperture meanwhile learns only then that nobody uses them.
#[test]
fn mem_58_mem_78_an_unmap_beside_stop_device_returns_after_it() {
    let pause = Shared::new(Pause::new(Entry::StopDevice).unwrap());
    let scene = Scene::with(Some(pause.clone()));
    let allocation = scene.allocation(PHYSICAL);
    let unmapped = AtomicBool::new(false);

    thread::scope(|scope| {
        scope.spawn(|| scene.port.stop(&Passive::here()));
        pause.wait_for_call();
        scope.spawn(|| {
            allocation.unmap_aperture(&Passive::here(), &range(0, 1), 0);
            unmapped.store(true, SeqCst);
        });
        // What is refused returns long before this.
        thread::sleep(Duration::from_millis(20));
        assert!(!unmapped.load(SeqCst), "engines may still run");
        pause.release();
    });
    assert!(unmapped.load(SeqCst));
    assert_eq!(scene.operations.count(), 0);
    drop((allocation, scene.port));
    assert!(scene.journal.is_good_end());
}

/// What a test writes down: as much as there is room for, with the thread.
#[test]
fn operations_know_who_told_them() {
    let scene = Scene::new();
    let allocation = scene.allocation(PHYSICAL);
    let own = platform::thread_id();

    std::thread::scope(|scope| {
        scope.spawn(|| scene.map(&allocation, 0, &[0x1000]));
    });
    allocation.unmap_aperture(&Passive::here(), &range(0, 1), 0);
    assert_ne!(scene.operations.get(0).unwrap().thread, own);
    assert_eq!(scene.operations.get(1).unwrap().thread, own);
    assert_eq!(scene.operations.get(2), None);
}
