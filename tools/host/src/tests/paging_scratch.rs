// SPDX-License-Identifier: MIT OR Apache-2.0

//! The scratch area of the paging process, and what is built for the paging node (MEM-66 to
//! MEM-68).

use crate::ddi::paging::{Built, Direction, FillVirtual, PagingBuffer, TransferVirtual};
use crate::ddi::types::AllocationCookie;
use crate::kmd::soft::paging_buffer;
use crate::logic::paging_scratch::{Scratch, MOST, PAGES};
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
        area in 2..=PAGES,
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
