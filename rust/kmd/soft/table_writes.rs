// SPDX-License-Identifier: GPL-2.0

//! UpdatePageTable and FlushTlb where the paging node does them: packets that write entries, and
//! one that has translations forgotten.
//!
//! An engine may look at a table meanwhile, so that no entry is ever seen half. ODX_PT_WRITE stores
//! 8 bytes at once. Two entries of 4 bytes may be stored together, and a single one is a dword.

use super::{
    config::AdapterProfile,
    memory::SegmentIds,
    page_tables::{
        self,
        encode, //
    },
    paging_buffer::{
        halves,
        TO_MEMORY, //
    }, //
};
use crate::{
    ddi::paging::{
        Built,
        PagingBuffer,
        TableAddress,
        UpdatePageTable, //
    },
    engine::packet::{
        header,
        opcode, //
    }, //
};

/// Dwords of an ODX_PT_WRITE packet.
const TABLE_DWORDS: usize = 9;

/// Dwords of a WRITE_DATA packet that writes one.
const ENTRY_DWORDS: usize = 5;

/// What the entries of an update are in the table.
struct Bits<'a> {
    ids: &'a SegmentIds,
    update: &'a UpdatePageTable<'a>,
    /// How many of them are stored at once: those with 4 bytes in pairs.
    together: usize,
}

impl Bits<'_> {
    fn entry(&self, index: usize) -> Option<u64> {
        let bits = encode(self.ids, &self.update.entries.get(index)?).bits();

        Some(match self.together {
            2 => page_tables::short(bits),
            _ => bits,
        })
    }

    /// The 8 bytes from this entry on; `None` if there are not as many.
    fn qword(&self, index: usize) -> Option<u64> {
        let first = self.entry(index)?;

        match self.together {
            2 => Some(first | (self.entry(index.checked_add(1)?)? << 32)),
            _ => Some(first),
        }
    }

    /// What the 8 bytes from this entry on are, how much more each of the next ones is, and how
    /// many follow each other like this, at least one.
    fn run(&self, index: usize) -> Option<(u64, u64, u32)> {
        let first = self.qword(index)?;
        let mut at = index.checked_add(self.together)?;
        let Some(second) = self.qword(at) else {
            return Some((first, 0, 1));
        };
        let increment = second.wrapping_sub(first);
        let mut last = first;
        let mut count = 1;

        while let Some(next) = self.qword(at) {
            if next.wrapping_sub(last) != increment {
                break;
            }
            // OVERFLOW: at most as many as a table has.
            count += 1;
            last = next;
            at = at.checked_add(self.together)?;
        }
        Some((first, increment, count))
    }
}

/// UpdatePageTable of a table at a GPU virtual address. `MultipassOffset` counts the entries.
pub fn build(
    profile: AdapterProfile,
    ids: &SegmentIds,
    update: &UpdatePageTable<'_>,
    buffer: &mut PagingBuffer,
) -> Built {
    let TableAddress::GpuVirtual(table) = update.table else {
        return Built::Failed;
    };
    let bytes = u64::from(page_tables::format(profile).entry_bytes);
    let bits = Bits {
        ids,
        update,
        together: if bytes == 4 { 2 } else { 1 },
    };

    loop {
        // CAST: 32 bits fit a usize, and an index of a table 32 bits.
        let done = buffer.multipass_offset as usize;
        let index = u64::from(update.start).saturating_add(done as u64);
        let at = table.saturating_add(index.saturating_mul(bytes));
        let Some(entry) = bits.entry(done) else {
            return Built::All;
        };
        let run = bits.run(done).filter(|_| at % 8 == 0);
        let (is_written, count) = match run {
            Some((first, increment, count)) => (
                buffer.write(&entries(at, first, increment, count)),
                // CAST: 1 or 2.
                count.saturating_mul(bits.together as u32),
            ),
            // CAST: the lower half is all of it.
            None => (buffer.write(&one(at, entry as u32)), 1),
        };

        if !is_written {
            return Built::InsufficientDmaBuffer;
        }
        buffer.multipass_offset = buffer.multipass_offset.saturating_add(count);
    }
}

fn entries(at: u64, first: u64, increment: u64, count: u32) -> [u32; TABLE_DWORDS] {
    let [low, high] = halves(at);
    let [first_low, first_high] = halves(first);
    let [increment_low, increment_high] = halves(increment);

    [
        header(opcode::ODX_PT_WRITE, TABLE_DWORDS),
        count,
        low,
        high,
        first_low,
        first_high,
        increment_low,
        increment_high,
        0,
    ]
}

/// One entry of 4 bytes.
fn one(at: u64, entry: u32) -> [u32; ENTRY_DWORDS] {
    let [low, high] = halves(at);

    [
        header(opcode::WRITE_DATA, ENTRY_DWORDS),
        TO_MEMORY,
        low,
        high,
        entry,
    ]
}

/// FlushTlb of the process with this PASID.
pub(super) fn invalidate(pasid: u16, buffer: &mut PagingBuffer) -> Built {
    let packet = [
        header(opcode::INVALIDATE_TLBS, 2),
        u32::from(pasid).wrapping_shl(5),
    ];

    match buffer.write(&packet) {
        true => Built::All,
        false => Built::InsufficientDmaBuffer,
    }
}
