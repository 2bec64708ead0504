// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the software adapter does with memory (MEM-51 to MEM-54).

use super::{page, submit, verified, Commands, Ear, Shared, PAGE};
use crate::ddi::caps::{AdapterQuery, DriverCaps, GpuMmuCaps};
use crate::ddi::class::Passive;
use crate::ddi::object::{Context, Device, Process, TableUpdate};
use crate::ddi::paging::{Entries, PageSize, PageTableEntry, RootPageTable, TableAddress};
use crate::ddi::port::Port;
use crate::ddi::queue::{FaultKind, QueueCallbacks};
use crate::ddi::reserve::NoAddresses;
use crate::ddi::segments::{SegmentKind, Segments};
use crate::ddi::types::{
    AllocationInfo, ContextId, CreateContextArgs, DeviceId, KmdError, KmdResult, ProcessId,
    Scheduling,
};
use crate::kmd::soft::{AdapterProfile, Config, SoftKmd};
use crate::logic::allocation_rules::align_to;
use crate::logic::page_levels::Levels;
use crate::physical::{set_memory_end, Frame};

/// An adapter without memory of its own.
fn start(profile: AdapterProfile) -> KmdResult<Shared<Port>> {
    let config = Config {
        profile,
        local_memory: 0,
        ..Config::default()
    };

    assert!(config.is_valid());
    super::start(Box::new(verified(Box::new(SoftKmd::add_device(config)))))
}

fn mmu(port: &Port) -> GpuMmuCaps {
    let mut caps = DriverCaps::default();

    port.enter()
        .unwrap()
        .query_adapter_info(&Passive::here(), AdapterQuery::DriverCaps(&mut caps));
    caps.gpu_mmu
}

#[test]
fn mem_51_each_profile_has_levels_that_make_sense() {
    for (profile, bits, levels, entries) in [
        (AdapterProfile::Vram4, 48, 4, 512),
        (AdapterProfile::Uma, 48, 4, 512),
        (AdapterProfile::Doc2, 32, 2, 1024),
    ] {
        let caps = mmu(&start(profile).unwrap());
        let found = Levels::new(&caps).expect("good");

        assert_eq!((caps.address_bits, found.count()), (bits, levels));
        assert_eq!(found.entries(0), entries);
        assert_eq!(AdapterProfile::named(profile.name()), Some(profile));
    }
    assert_eq!(AdapterProfile::named("doc"), None);
}

/// Entries of 4 bytes do not lead to memory above 4 GiB: the adapter does not start.
#[test]
fn mem_51_entries_that_do_not_reach_all_memory_are_refused() {
    set_memory_end((1 << 32) + 1);
    assert_eq!(
        start(AdapterProfile::Doc2).err(),
        Some(KmdError::NotSupported)
    );
    assert!(start(AdapterProfile::Vram4).is_ok());
    set_memory_end(1 << 32);
    assert!(start(AdapterProfile::Doc2).is_ok());
}

#[test]
fn mem_54_a_root_is_as_large_as_is_asked_for() {
    for (profile, asked, entries, bytes) in [
        (AdapterProfile::Vram4, 1, 512, 4096),
        (AdapterProfile::Doc2, 1, 64, 256),
        (AdapterProfile::Doc2, 64, 64, 256),
        (AdapterProfile::Doc2, 65, 128, 512),
        (AdapterProfile::Doc2, 1024, 1024, 4096),
        (AdapterProfile::Doc2, u32::MAX, 1024, 4096),
    ] {
        let port = start(profile).unwrap();
        let process =
            Process::create(&port, &Passive::here(), ProcessId(1), &mut NoAddresses).unwrap();

        assert_eq!(
            process.root_page_table_size(&Passive::here(), asked),
            Ok((entries, bytes)),
            "{profile:?} {asked}"
        );
    }
}

/// Entries of 4 bytes are written next to each other, one by one and repeated, and engines read
/// them.
#[test]
fn mem_52_engines_read_entries_of_4_bytes() {
    const CODE: u64 = 5 << 22;
    const DATA: u64 = CODE + 3 * PAGE;

    let port = start(AdapterProfile::Doc2).unwrap();
    let class = Passive::here();
    let process = Process::create(&port, &class, ProcessId(1), &mut NoAddresses).unwrap();
    let device = Device::create(&process, &class, DeviceId(1)).unwrap();
    let [root, leaf, code, first, second] = [(); 5].map(|()| Frame::new());
    let update = |table: &Frame, level, start, entries: Entries<'_>| {
        process.update_page_table(
            &class,
            &TableUpdate {
                level,
                table: TableAddress::CpuVirtual(table.words()),
                page_size: PageSize::Kib4,
                start,
                entries,
                initial_update: false,
                notify_eviction: false,
                driver_protection: 0,
                address: 0,
            },
        );
    };
    let lead = page(0, leaf.address());
    let pages = [page(0, first.address()), page(0, second.address())];

    update(&leaf, 0, 0, Entries::Repeat(PageTableEntry::Zero, 1024));
    update(&leaf, 0, 0, Entries::Each(&[page(0, code.address())]));
    update(&leaf, 0, 3, Entries::Each(&pages));
    update(&root, 1, 5, Entries::Each(&[lead]));

    let ear = Shared::new(Ear::default());
    let callbacks: Shared<dyn QueueCallbacks> = ear.clone();
    let context = Context::create(
        &device,
        &class,
        &CreateContextArgs {
            id: ContextId(1),
            scheduling: Scheduling::Packets,
            node: 0,
            engines: 0,
            is_system: false,
            private_data: &[],
            callbacks: &callbacks,
        },
    )
    .unwrap();
    let root_table = |entries| RootPageTable {
        segment: 0,
        address: root.address(),
        entries,
    };
    // What is between them, and behind them, reads as zero and takes what is stored.
    let dwords = Commands::default()
        .write(DATA, 7)
        .write(DATA + PAGE + 8, 8)
        .write(DATA + 2 * PAGE, 9)
        .write(DATA - PAGE, 9)
        .into(&code);

    context.set_root_page_table(&class, &root_table(6)).unwrap();
    submit(&context, 1, CODE, dwords);
    ear.completed(1);
    assert_eq!((super::word(&first, 0), super::word(&second, 1)), (7, 8));

    // MEM-59: an index that the root does not have faults.
    context.move_root_page_table(&class, &root_table(5));
    process.flush_tlb(&class, 0, 0);
    submit(&context, 2, CODE, dwords);

    let told = ear.wait(|told| !told.faults.is_empty());

    assert!(matches!(
        told.faults[0].kind,
        FaultKind::PageFault { level: 1, .. }
    ));
}

/// An entry that does not fit is invalid: it leads nowhere else.
#[test]
fn mem_53_an_entry_of_4_bytes_leads_to_no_other_page() {
    let port = start(AdapterProfile::Doc2).unwrap();
    let class = Passive::here();
    let process = Process::create(&port, &class, ProcessId(1), &mut NoAddresses).unwrap();
    let table = Frame::new();

    for (index, address) in (0..).zip([1u64 << 32, (1 << 32) - PAGE, 1 << 51]) {
        process.update_page_table(
            &class,
            &TableUpdate {
                level: 0,
                table: TableAddress::CpuVirtual(table.words()),
                page_size: PageSize::Kib4,
                start: index,
                entries: Entries::Each(&[page(0, address)]),
                initial_update: false,
                notify_eviction: false,
                driver_protection: 0,
                address: 0,
            },
        );
    }
    assert_eq!(super::word(&table, 0) & u64::from(u32::MAX), 0);
    assert_eq!((super::word(&table, 0) >> 32) & !0xfff, 0xffff_f000);
    assert_eq!(super::word(&table, 1), 0);
}

/// MEM-2: what could be in such a segment begins there at a page, and takes whole ones.
#[test]
fn mem_2_sizes_and_alignments_of_whole_pages() {
    let info = |size, alignment| AllocationInfo {
        size,
        alignment,
        priority: 0,
        supported_segments: 2,
        preferred_segment: 1,
        accessed_physically: false,
        explicit_residency_notification: false,
        cpu_visible: true,
        notify_end: None,
    };

    for (page, size, alignment, expected) in [
        (PageSize::Kib64, 4096, 4096, Some((65536, 65536))),
        (PageSize::Kib64, 65536, 1 << 20, Some((65536, 1 << 20))),
        (PageSize::Kib64, 65537, 65536, Some((131_072, 65536))),
        // Its size is not known yet.
        (PageSize::Kib64, 0, 4096, Some((0, 65536))),
        (PageSize::Kib64, u64::MAX, 4096, None),
        (PageSize::Kib4, 12288, 8192, Some((12288, 8192))),
    ] {
        let mut found = info(size, alignment);
        let aligned = align_to(&mut found, page);

        assert_eq!(aligned.is_ok(), expected.is_some());
        assert_eq!(
            (found.size, found.alignment),
            expected.unwrap_or((size, alignment))
        );
    }
}

/// MEM-2, MEM-57: with pages of 64 KiB the memory is whole ones, and a table has 32 entries.
#[test]
fn mem_2_mem_57_an_adapter_with_pages_of_64_kib() {
    let with = |profile, local_memory| Config {
        profile,
        local_memory,
        use_64kb_pages: true,
        ..Config::default()
    };

    for (bytes, is_valid) in [(0, true), (64 << 10, true), (68 << 10, false)] {
        assert_eq!(with(AdapterProfile::Vram4, bytes).is_valid(), is_valid);
    }
    for (profile, entries, bytes) in [
        (AdapterProfile::Vram4, 32, 256),
        (AdapterProfile::Uma, 32, 256),
        (AdapterProfile::Doc2, 64, 256),
    ] {
        let local_memory = match profile {
            AdapterProfile::Uma => 0,
            _ => 1 << 20,
        };
        let kmd = SoftKmd::add_device(with(profile, local_memory));
        let port = super::start(Box::new(verified(Box::new(kmd)))).unwrap();
        let caps = mmu(&port);
        let levels = Levels::new(&caps).expect("good");
        let mut segments = Segments::new();

        assert_eq!(caps.leaf_table_bytes_64kb, bytes);
        assert!(levels.has_64kb_pages());
        assert_eq!(levels.leaf_entries(PageSize::Kib64), entries);
        port.enter()
            .unwrap()
            .query_adapter_info(&Passive::here(), AdapterQuery::Segments(&mut segments));
        for (_, segment) in segments.iter() {
            assert_eq!(segment.use_64kb_pages, segment.kind == SegmentKind::Memory);
        }
    }
    assert_eq!(
        mmu(&start(AdapterProfile::Vram4).unwrap()).leaf_table_bytes_64kb,
        0
    );
}
