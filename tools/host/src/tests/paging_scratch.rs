// SPDX-License-Identifier: MIT OR Apache-2.0

//! The scratch area of the paging process, and what is built for the paging node (MEM-66 to
//! MEM-68).

use crate::ddi::caps::{GpuMmuCaps, PageTableLevel, PageTableUpdateMode};
use crate::ddi::paging::{Built, Direction, FillVirtual, PagingBuffer, TransferVirtual};
use crate::ddi::types::AllocationCookie;
use crate::kmd::soft::paging_buffer;
use crate::logic::gpu_ranges::Bounds;
use crate::logic::page_levels::Levels;
use crate::logic::paging_scratch::{PagingSpace, Scratch, MOST};
use proptest::collection::vec;
use proptest::prelude::*;

const PAGE: u64 = 4096;
/// Dwords of a packet.
const PACKET: usize = 7;

proptest! {
    /// A batch is in the area, whatever was there before, and two after each other have no page in
    /// common unless the second one begins again.
    #[test]
    fn mem_66_mem_67_a_batch_is_in_the_area(
        area in 2..=100_000_u64,
        batches in vec((1..=2_u64, 1..10_000_u64), 1..50),
    ) {
        let mut scratch = Scratch::default();
        let mut last = 0;
        for (parts, pages) in batches {
            let count = Scratch::chunk(area, parts, pages);
            prop_assert!((1..=MOST.min(pages)).contains(&count));
            let taken = parts * count;
            prop_assert!(taken <= area);
            let first = scratch.take(area, taken);
            prop_assert!(first + taken <= area);
            prop_assert!(first == last || first == 0 && last + taken > area);
            last = first + taken;
        }
    }

    /// However small the buffers are, the packets are the same: all bytes, once, in order.
    #[test]
    fn mem_68_small_buffers_have_the_same_packets(
        pages in 1..2000_u64,
        room in PACKET..70,
        fills in any::<bool>(),
    ) {
        let size = pages * PAGE;
        let (source, destination) = (0x20_0000, 0x1_0000_0000);
        let build = |buffer: &mut PagingBuffer| match fills {
            true => paging_buffer::fill(
                &FillVirtual {
                    allocation: AllocationCookie(1),
                    offset: 0,
                    size,
                    pattern: 0xabcd,
                    destination,
                },
                buffer,
            ),
            false => paging_buffer::transfer(
                &TransferVirtual {
                    allocation: AllocationCookie(1),
                    offset: 0,
                    size,
                    source,
                    destination,
                    direction: Direction::LocalToSystem,
                },
                buffer,
            ),
        };
        let mut buffer = PagingBuffer::new();
        let mut packets = Vec::new();
        loop {
            buffer.begin(room);
            let built = build(&mut buffer);
            let written = buffer.written();
            prop_assert!(!written.is_empty() && written.len() <= room);
            prop_assert_eq!(written.len() % PACKET, 0);
            packets.extend_from_slice(written);
            if built == Built::All {
                break;
            }
            prop_assert_eq!(built, Built::InsufficientDmaBuffer);
            prop_assert!(buffer.room() < PACKET);
        }
        let mut done = 0;
        for packet in packets.chunks(PACKET) {
            let address = |at: usize| u64::from(packet[at]) | (u64::from(packet[at + 1]) << 32);
            prop_assert_eq!(packet[0], 0xc005_5000);
            let from = if fills { 0xabcd } else { source + done };
            prop_assert_eq!(address(2), from);
            prop_assert_eq!(address(4), destination + done);
            done += u64::from(packet[6]);
        }
        prop_assert_eq!(done, size);
    }
}

#[test]
fn a_buffer_takes_whole_packets_only() {
    let mut buffer = PagingBuffer::new();
    assert!(!buffer.write(&[1]));
    buffer.begin(usize::MAX);
    assert!(buffer.write(&[1, 2]));
    let room = buffer.room();
    assert!(!buffer.write(&vec![3; room + 1]));
    assert_eq!(buffer.written(), [1, 2]);
    assert!(buffer.write(&vec![3; room]));
    assert_eq!(buffer.room(), 0);
}

/// The pages of a MiB.
const MIB: u64 = 256;

fn levels(bits: &[u32]) -> Levels {
    let mut caps = GpuMmuCaps {
        address_bits: 12 + bits.iter().sum::<u32>(),
        page_table_update_mode: PageTableUpdateMode::GpuVirtual,
        page_table_levels: bits.len() as u32,
        ..GpuMmuCaps::default()
    };
    for (level, bits) in caps.levels.iter_mut().zip(bits) {
        *level = PageTableLevel {
            index_bits: *bits,
            table_bytes: 4096,
            segment: 0,
            paging_process_segment: 0,
        };
    }
    Levels::new(&caps).unwrap()
}

/// Both profiles of section 8: the scratch area begins behind the system page table, and the last
/// 64 MiB are not part of it.
#[test]
fn mem_61_mem_62_the_addresses_of_the_paging_process() {
    for (bits, first) in [(&[9, 9, 9, 9][..], 2 * MIB), (&[10, 10][..], 4 * MIB)] {
        let space = PagingSpace::new(&levels(bits), true, None).unwrap();
        let permanent = 960 * MIB;
        assert_eq!(
            space,
            PagingSpace {
                scratch: Bounds {
                    first,
                    end: permanent
                },
                buffer: permanent,
                fences: Bounds {
                    first: permanent + 1,
                    end: 1024 * MIB
                },
                by_node: true,
            }
        );
        assert_eq!(space.end(), 1024 * MIB);
    }
}

/// Who wants all of the scratch area for fences gets one half of it.
#[test]
fn fen_65_mem_62_fences_leave_half_of_the_scratch_area() {
    let levels = levels(&[10, 10]);
    let wish = |end| {
        Some(Bounds {
            first: 4 * MIB,
            end,
        })
    };
    let by_processor = PagingSpace::new(&levels, false, wish(20 * MIB)).unwrap();
    assert_eq!(by_processor.fences, wish(12 * MIB).unwrap());
    assert_eq!(by_processor.scratch.first, 12 * MIB);
    assert_eq!(by_processor.scratch.end, 20 * MIB);
    let by_node = PagingSpace::new(&levels, true, wish(960 * MIB)).unwrap();
    assert_eq!(by_node.fences, wish(482 * MIB).unwrap());
    // Half a table of it is left out.
    assert_eq!(by_node.scratch.first, 484 * MIB);
    assert_eq!(by_node.scratch.end, 960 * MIB);
}

proptest! {
    /// Wherever fences are wanted, they are there, and nothing else is: not a page of the scratch
    /// area, nor one where the system page table shows a table of it.
    #[test]
    fn fen_65_mem_62_fences_are_where_they_are_wanted(
        is_short in any::<bool>(),
        by_node in any::<bool>(),
        first in prop_oneof![1..2048_u64, 1..500_000_u64],
        pages in prop_oneof![1..100_u64, 3000..6000_u64, 240_000..250_000_u64, 1..500_000_u64],
    ) {
        let levels = match is_short {
            true => levels(&[10, 10]),
            false => levels(&[9, 9, 9, 9]),
        };
        let wish = Bounds { first, end: first + pages };
        let Some(space) = PagingSpace::new(&levels, by_node, Some(wish)) else {
            // Only where a table of each page of the scratch area has to be shown.
            prop_assert!(by_node && wish.first < levels.pages_of_table(0));
            return Ok(());
        };
        let PagingSpace { scratch, buffer, fences, .. } = space;
        prop_assert!(wish.first <= fences.first && fences.first < fences.end);
        prop_assert!(fences.end <= wish.end);
        let apart = |one: Bounds, other: Bounds| one.end <= other.first || other.end <= one.first;
        prop_assert!(apart(fences, scratch), "{space:?}");
        prop_assert!(apart(fences, Bounds { first: buffer, end: buffer + 1 }), "{space:?}");
        prop_assert!(scratch.first < scratch.end && scratch.end <= buffer);
        let table = levels.pages_of_table(0);
        prop_assert!(scratch.first >= table);
        if by_node {
            let tables = Bounds {
                first: scratch.first / table,
                end: scratch.end.div_ceil(table),
            };
            prop_assert!(tables.end <= table && apart(fences, tables), "{space:?}");
        }
    }
}
