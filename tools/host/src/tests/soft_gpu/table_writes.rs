// SPDX-License-Identifier: MIT OR Apache-2.0

//! Entries that the paging node writes are those that the processor would write (MEM-69), in
//! buffers of any size, and no engine ever finds half of one.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::ddi::paging::{
    Built, Entries, PageEntry, PageSize, PageTableEntry, PagingBuffer, TableAddress,
    UpdatePageTable,
};
use crate::ddi::types::ProcessCookie;
use crate::kmd::soft::memory::SegmentIds;
use crate::kmd::soft::{page_tables, table_writes, AdapterProfile};
use crate::physical::Frame;
use crate::platform::load_acquire;

/// Where the paging process has the table.
const TABLE: u64 = 0x1000;
/// Dwords of the longest packet.
const PACKET: usize = 9;

/// Entries that pages in a row have, or that pages here and there have.
fn entries() -> impl Strategy<Value = Vec<PageTableEntry>> {
    let page = |address: u64, read_only: bool| {
        PageTableEntry::Page(PageEntry {
            segment: 1,
            address: address << 12,
            page_size: PageSize::Kib4,
            read_only,
            no_execute: true,
            system_use_only: false,
            cache_coherent: false,
        })
    };
    let run = (0..4096_u64, any::<bool>(), 1..40_u64).prop_map(
        move |(first, read_only, count)| -> Vec<_> {
            (first..first + count)
                .map(|at| page(at, read_only))
                .collect()
        },
    );
    let other = prop_oneof![
        Just(PageTableEntry::Invalid),
        Just(PageTableEntry::Zero),
        (0..4096_u64, any::<bool>()).prop_map(move |(at, read_only)| page(at, read_only)),
    ];
    let others = vec(other, 1..8);
    vec(prop_oneof![run, others], 1..6).prop_map(|parts| parts.concat())
}

/// What is written to the table, by its dwords.
fn execute(packets: &[u32], table: &mut [u32]) {
    let mut rest = packets;
    while let [head, ..] = rest {
        // A type-3 packet has its opcode, and how many dwords follow the one behind the header.
        let count = ((head >> 16) & 0x3fff) as usize + 2;
        let (packet, next) = rest.split_at(count);
        let qword = |at: usize| u64::from(packet[at]) | (u64::from(packet[at + 1]) << 32);
        let at = qword(2);
        let index = usize::try_from((at - TABLE) / 4).unwrap();
        match (head >> 8) & 0xff {
            0xe5 => {
                assert_eq!(at % 8, 0, "8 bytes are stored at once");
                let (mut entry, increment) = (qword(4), qword(6));
                for pair in table[index..].chunks_mut(2).take(packet[1] as usize) {
                    (pair[0], pair[1]) = (entry as u32, (entry >> 32) as u32);
                    entry = entry.wrapping_add(increment);
                }
            }
            0x37 => {
                assert_eq!((packet.len(), at % 4), (5, 0));
                table[index] = packet[4];
            }
            other => panic!("there is no packet {other:#x}"),
        }
        rest = next;
    }
}

proptest! {
    #[test]
    fn mem_69_the_paging_node_writes_what_the_processor_would(
        is_short in any::<bool>(),
        start in 0..300_u32,
        each in entries(),
        form in 0..3,
        room in PACKET..60,
    ) {
        let profile = if is_short { AdapterProfile::Doc2 } else { AdapterProfile::Vram4 };
        let ids = SegmentIds::new(true);
        let (first, count) = (each[0], each.len() as u32);
        let (entries, listed): (_, Vec<PageTableEntry>) = match form {
            0 => (Entries::Repeat(first, count), vec![first; each.len()]),
            1 => (
                Entries::Following(first, count),
                (0..count).map(|page| first.further(u64::from(page) * 0x1000)).collect(),
            ),
            _ => (Entries::Each(&each), each.clone()),
        };
        let update = |table, entries| UpdatePageTable {
            process: ProcessCookie(1),
            level: 0,
            table,
            page_size: PageSize::Kib4,
            start,
            entries,
            initial_update: false,
            notify_eviction: false,
            driver_protection: 0,
            address: 0,
        };

        // Bytes that nobody may touch are not 0.
        let (expected, by_list) = (Frame::new(), Frame::new());

        for (frame, entries) in [(&expected, entries), (&by_list, Entries::Each(&listed))] {
            for word in frame.words() {
                crate::platform::store_release(word, u64::MAX);
            }

            let table = TableAddress::CpuVirtual(frame.words());

            page_tables::update(profile, &ids, &update(table, entries));
        }
        for (word, expected) in by_list.words().iter().zip(expected.words()) {
            prop_assert_eq!(load_acquire(word), load_acquire(expected));
        }

        let mut table = vec![u32::MAX; 1024];
        let mut buffer = PagingBuffer::new();
        buffer.multipass_offset = 0;
        loop {
            buffer.begin(room);
            let built =
                table_writes::build(
                    profile,
                    &ids,
                    &update(TableAddress::GpuVirtual(TABLE), entries),
                    &mut buffer,
                );
            prop_assert!(!buffer.written().is_empty());
            execute(buffer.written(), &mut table);
            if built == Built::All {
                break;
            }
            prop_assert_eq!(built, Built::InsufficientDmaBuffer);
        }

        let words = table.chunks(2).map(|pair| u64::from(pair[0]) | (u64::from(pair[1]) << 32));
        for (at, (word, expected)) in words.zip(expected.words()).enumerate() {
            prop_assert_eq!(word, load_acquire(expected), "word {}", at);
        }
    }
}
