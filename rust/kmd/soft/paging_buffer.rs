// SPDX-License-Identifier: GPL-2.0

//! BuildPagingBuffer, where the paging node does the work: packets that copy, fill and write.

use crate::{
    ddi::paging::{
        Built,
        FillVirtual,
        PagingBuffer,
        TransferVirtual, //
    },
    engine::packet::{
        header,
        opcode, //
    }, //
};

/// Most bytes of one packet. The engine may be asked to yield at the end of each.
const PIECE: u32 = 256 << 10;

/// Dwords of a DMA_DATA packet.
const DWORDS: usize = 7;

/// Dwords of a WRITE_DATA packet without those that it writes.
const WRITE_DWORDS: usize = 4;

/// Most dwords that one of them writes.
const MOST_WRITTEN: usize = 32;

/// `DST_SEL` of a WRITE_DATA packet: memory.
pub(super) const TO_MEMORY: u32 = 5 << 8;

/// `SRC_SEL` of a DMA_DATA packet: memory, and the packet itself.
const FROM_MEMORY: u32 = 0;
const FROM_PACKET: u32 = 2 << 29;

/// The lower and the upper half.
pub(super) fn halves(value: u64) -> [u32; 2] {
    // CAST: the halves are meant.
    [value as u32, (value >> 32) as u32]
}

/// Writes a packet for each piece of so many bytes. `MultipassOffset` counts them.
fn build(
    buffer: &mut PagingBuffer,
    size: u64,
    packet: impl Fn(u64, u32) -> [u32; DWORDS],
) -> Built {
    loop {
        let done = u64::from(buffer.multipass_offset).saturating_mul(PIECE.into());
        let left = size.saturating_sub(done);

        if left == 0 {
            return Built::All;
        }
        // CAST: at most a piece.
        let bytes = left.min(PIECE.into()) as u32;

        if !buffer.write(&packet(done, bytes)) {
            return Built::InsufficientDmaBuffer;
        }
        // OVERFLOW: an operation has fewer pieces.
        buffer.multipass_offset = buffer.multipass_offset.saturating_add(1);
    }
}

fn dma_data(control: u32, source: [u32; 2], destination: u64, bytes: u32) -> [u32; DWORDS] {
    let [source_low, source_high] = source;
    let [low, high] = halves(destination);

    [
        header(opcode::DMA_DATA, DWORDS),
        control,
        source_low,
        source_high,
        low,
        high,
        bytes,
    ]
}

/// TransferVirtual.
pub fn transfer(transfer: &TransferVirtual, buffer: &mut PagingBuffer) -> Built {
    build(buffer, transfer.size, |done, bytes| {
        let source = transfer.source.saturating_add(done);
        let destination = transfer.destination.saturating_add(done);

        dma_data(FROM_MEMORY, halves(source), destination, bytes)
    })
}

/// FillVirtual.
pub fn fill(fill: &FillVirtual, buffer: &mut PagingBuffer) -> Built {
    build(buffer, fill.size, |done, bytes| {
        let destination = fill.destination.saturating_add(done);

        dma_data(FROM_PACKET, [fill.pattern, 0], destination, bytes)
    })
}

/// Writes these bytes to memory, dword by dword; 0 behind the last ones. `MultipassOffset` counts
/// the dwords.
pub fn write(buffer: &mut PagingBuffer, destination: u64, bytes: &[u8]) -> Built {
    loop {
        // CAST: 32 bits fit a usize.
        let done = buffer.multipass_offset as usize;
        let left = bytes.len().div_ceil(4).saturating_sub(done);

        if left == 0 {
            return Built::All;
        }

        let count = left
            .min(MOST_WRITTEN)
            .min(buffer.room().saturating_sub(WRITE_DWORDS));
        // CAST: a usize fits 64 bits.
        let at = destination.saturating_add((done as u64).saturating_mul(4));
        let [low, high] = halves(at);
        let mut packet = [0; WRITE_DWORDS + MOST_WRITTEN];
        let (head, data) = packet.split_at_mut(WRITE_DWORDS);
        // OVERFLOW: as many as private data have.
        let written = bytes.get(done.saturating_mul(4)..).unwrap_or_default();

        head.copy_from_slice(&[
            // OVERFLOW: both are small.
            header(opcode::WRITE_DATA, WRITE_DWORDS.wrapping_add(count)),
            TO_MEMORY,
            low,
            high,
        ]);
        for (place, chunk) in data.iter_mut().zip(written.chunks(4)) {
            let mut dword = [0; 4];

            if let Some(front) = dword.get_mut(..chunk.len()) {
                front.copy_from_slice(chunk);
            }
            *place = u32::from_le_bytes(dword);
        }

        let length = WRITE_DWORDS.saturating_add(count);
        let packet = packet.get(..length).unwrap_or_default();

        if count == 0 || !buffer.write(packet) {
            return Built::InsufficientDmaBuffer;
        }
        // CAST: at most `MOST_WRITTEN`. OVERFLOW: private data have fewer dwords.
        buffer.multipass_offset = buffer.multipass_offset.saturating_add(count as u32);
    }
}
