// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a KMD may ask of context allocations, and what is built for them.

use crate::ddi::context_allocation::{
    flags, CreateContextAllocationArgs, MapContextAllocationArgs, UsedBy, MAX_PRIVATE_DATA,
    MAX_SIZE,
};
use crate::ddi::paging::{Built, PagingBuffer};
use crate::ddi::types::{AllocationCookie, ContextId, DeviceId};
use crate::kmd::soft::paging_buffer;
use crate::kmd::soft::save_area;
use crate::kmd::soft::{SaveAreaKind, SaveAreas};
use crate::logic::context_allocations::{
    check_create, check_map, checksum, may_map, used_by, Segments,
};
use crate::logic::gpu_va_rules::{ClientSpace, Position, Protection};
use proptest::collection::vec;
use proptest::prelude::*;

const PAGE: u64 = 4096;
/// Segment 1 has memory, segment 2 is the aperture.
const SEGMENTS: Segments = Segments {
    memory: 1 << 1,
    aperture: 1 << 2,
};
const SPACE: ClientSpace = ClientSpace {
    first: 16,
    end: 1 << 20,
};
const GOOD: CreateContextAllocationArgs = CreateContextAllocationArgs {
    context: ContextId(1),
    device: DeviceId(0),
    flags: 0,
    size: 4 * PAGE,
    alignment: 4096,
    supported_segments: (1 << 1) | (1 << 2),
    eviction_segments: 1 << 2,
    preferred_segment: 2,
    driver: AllocationCookie(7),
};

/// The segments that it may be in, the best one first; `None` if it is refused.
fn places(args: &CreateContextAllocationArgs) -> Option<Vec<u32>> {
    Some(check_create(args, SEGMENTS).ok()?.collect())
}

#[test]
fn mem_82_mem_84_where_one_may_be() {
    assert_eq!(places(&GOOD), Some(vec![2, 1]));
    // So may what is accessed physically: the aperture makes one range of system memory.
    let physical = CreateContextAllocationArgs {
        flags: flags::ACCESSED_PHYSICALLY,
        ..GOOD
    };
    assert_eq!(places(&physical), Some(vec![2, 1]));
    let change = |change: fn(&mut CreateContextAllocationArgs)| {
        let mut args = GOOD;
        change(&mut args);
        places(&args)
    };
    assert!(change(|args| args.size = MAX_SIZE).is_some());
    for refused in [
        change(|args| args.size = 0),
        change(|args| args.size = PAGE + 1),
        change(|args| args.size = MAX_SIZE + PAGE),
        change(|args| args.alignment = 0),
        change(|args| args.alignment = 2048),
        change(|args| args.alignment = 12288),
        change(|args| args.supported_segments = 0),
        change(|args| args.supported_segments |= 1),
        change(|args| args.supported_segments |= 1 << 3),
        change(|args| args.preferred_segment = 0),
        change(|args| args.preferred_segment = 32),
        change(|args| args.supported_segments = 1 << 1),
        change(|args| args.eviction_segments |= 1),
        change(|args| args.eviction_segments |= 1 << 3),
    ] {
        assert_eq!(refused, None);
    }
}

#[test]
fn mem_82_whose_one_is() {
    let whose = |flags, context, device| {
        let args = CreateContextAllocationArgs {
            context: ContextId(context),
            device: DeviceId(device),
            flags,
            ..GOOD
        };
        used_by(&args).ok()
    };
    let shared = flags::SHARED_ACROSS_CONTEXTS;
    let others = flags::KNOWN & !shared;
    for more in [0, others] {
        assert_eq!(
            whose(more, 1, 0),
            Some(UsedBy::Context(ContextId(1))),
            "{more:#x}"
        );
        assert_eq!(
            whose(more | shared, 0, 2),
            Some(UsedBy::Device(DeviceId(2))),
            "{more:#x}"
        );
    }
    // It needs the one that its flag says, and no other.
    for (flags, context, device) in [
        (0, 0, 0),
        (0, 0, 2),
        (0, 1, 2),
        (shared, 0, 0),
        (shared, 1, 0),
        (shared, 1, 2),
    ] {
        assert_eq!(whose(flags, context, device), None);
    }
    for reserved in (0..u32::BITS).map(|bit| 1 << bit) {
        let is_known = flags::KNOWN & reserved != 0;
        assert_eq!(
            whose(others | reserved, 1, 0).is_some(),
            is_known && reserved != shared
        );
        assert_eq!(whose(shared | reserved, 0, 2).is_some(), is_known);
    }
}

#[test]
fn mem_86_what_is_privileged_is_not_mapped() {
    for bits in 0..=flags::KNOWN {
        let args = CreateContextAllocationArgs {
            flags: bits,
            ..GOOD
        };
        let is_private = args.has(flags::ACCESSED_PHYSICALLY | flags::PROTECTED);
        let is_open = !is_private || args.has(flags::USER_VISIBLE);
        let map = MapContextAllocationArgs {
            pages: 1,
            ..MapContextAllocationArgs::default()
        };
        assert_eq!(may_map(&args), is_open);
        assert_eq!(check_map(&args, &map, SPACE).is_ok(), is_open);
    }
}

#[test]
fn mem_85_mem_86_where_it_is_mapped_and_how() {
    let map = |map: MapContextAllocationArgs| check_map(&GOOD, &map, SPACE);
    let whole = MapContextAllocationArgs {
        pages: 4,
        driver_protection: 5,
        ..MapContextAllocationArgs::default()
    };
    let made = map(whole).unwrap();
    assert_eq!((made.offset, made.pages, made.driver_protection), (0, 4, 5));
    // Read-only, unless the KMD says otherwise.
    let is_writable = |protection| {
        let map = map(MapContextAllocationArgs {
            protection,
            ..whole
        });
        map.map(|map| match map.protection {
            Protection::Pages { write, execute } => (write, execute),
            other => panic!("{other:?}"),
        })
        .ok()
    };
    assert_eq!(is_writable(0), Some((false, false)));
    assert_eq!(is_writable(1), Some((true, false)));
    // Neither zero pages nor none.
    for protection in [4, 8, 16, 5] {
        assert_eq!(is_writable(protection), None);
    }
    let base = 32 * PAGE;
    let fixed = map(MapContextAllocationArgs { base, ..whole }).unwrap();
    assert_eq!(fixed.position, Position::Fixed(32));
    for refused in [
        MapContextAllocationArgs { pages: 0, ..whole },
        MapContextAllocationArgs { pages: 5, ..whole },
        MapContextAllocationArgs { offset: 1, ..whole },
        MapContextAllocationArgs {
            offset: u64::MAX,
            ..whole
        },
        MapContextAllocationArgs {
            base: base + 1,
            ..whole
        },
        MapContextAllocationArgs {
            base: 15 * PAGE,
            ..whole
        },
    ] {
        assert!(map(refused).is_err(), "{refused:?}");
    }
}

#[test]
fn mem_82_what_save_areas_there_are() {
    let private = SaveAreas {
        kind: SaveAreaKind::Private,
        ..SaveAreas::default()
    };
    let all = SaveAreas {
        kind: SaveAreaKind::Visible,
        of_devices: true,
        in_system_memory: true,
        are_left: true,
    };
    for (text, areas) in [
        ("none", SaveAreas::default()),
        ("private", private),
        ("visible device system left", all),
    ] {
        assert_eq!(SaveAreas::named(text), Some(areas));
        assert_eq!(areas.words().concat(), text);
    }
    assert_eq!(SaveAreas::named("visible left system device"), Some(all));
    for text in [
        "",
        "device",
        "none device",
        "private visible",
        "private device device",
        "private  device",
        "private no",
    ] {
        assert_eq!(SaveAreas::named(text), None, "{text}");
    }
}

#[test]
fn mem_75_checksums_of_private_data_differ() {
    let one = save_area::update_of(1, 0x1000, 512);
    let sums = [
        checksum(&[]),
        checksum(&one),
        checksum(&one[1..]),
        checksum(&save_area::update_of(2, 0x1000, 512)),
        checksum(&save_area::update_of(1, 0x2000, 512)),
    ];
    for (at, sum) in sums.iter().enumerate() {
        assert!(!sums[..at].contains(sum));
    }
}

proptest! {
    /// However small the buffers are, all bytes are written once, in order, dword by dword.
    #[test]
    fn mem_68_mem_87_small_buffers_write_the_same(
        bytes in vec(any::<u8>(), 1..=MAX_PRIVATE_DATA),
        room in 5..70_usize,
    ) {
        let destination = 0x1_2345_6000;
        let mut buffer = PagingBuffer::new();
        let mut memory = Vec::new();
        loop {
            buffer.begin(room);
            let built = paging_buffer::write(&mut buffer, destination, &bytes);
            let mut rest = buffer.written();
            prop_assert!(!rest.is_empty() && rest.len() <= room);
            while let [header, control, low, high, more @ ..] = rest {
                prop_assert_eq!((header >> 30, (header >> 8) & 0xff), (3, 0x37));
                prop_assert_eq!(*control, 5 << 8);
                let at = u64::from(*low) | (u64::from(*high) << 32);
                prop_assert_eq!(at, destination + memory.len() as u64 * 4);
                let (data, next) = more.split_at(((header >> 16) & 0x3fff) as usize - 2);
                prop_assert!(!data.is_empty());
                memory.extend_from_slice(data);
                rest = next;
            }
            prop_assert!(rest.is_empty());
            if built == Built::All {
                break;
            }
            prop_assert_eq!(built, Built::InsufficientDmaBuffer);
        }
        let written: Vec<_> = memory.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        prop_assert_eq!(&written[..bytes.len()], &bytes[..]);
        prop_assert!(written.len() < bytes.len() + 4);
        prop_assert!(written[bytes.len()..].iter().all(|byte| *byte == 0));
    }
}
