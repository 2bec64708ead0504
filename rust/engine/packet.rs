// SPDX-License-Identifier: GPL-2.0

//! Headers of packets, and the table of all packets (GPU-33 to GPU-37).

use super::{
    fault::Illegal,
    fields::{
        bit,
        bits,
        Fields, //
    },
    operation::Operation,
    packets,
    queue::Privilege, //
};

/// Type 2: a filler of one dword.
pub const FILLER: u32 = 0x8000_0000;

/// Numbers of packets.
pub mod opcode {
    pub const NOP: u8 = 0x10;
    pub const ATOMIC_MEM: u8 = 0x1e;
    pub const COND_EXEC: u8 = 0x22;
    pub const WRITE_DATA: u8 = 0x37;
    pub const WAIT_REG_MEM: u8 = 0x3c;
    pub const INDIRECT_BUFFER: u8 = 0x3f;
    pub const COPY_DATA: u8 = 0x40;
    pub const RELEASE_MEM: u8 = 0x49;
    pub const DMA_DATA: u8 = 0x50;
    pub const ACQUIRE_MEM: u8 = 0x58;
    pub const WAIT_REG_MEM64: u8 = 0x93;
    pub const INVALIDATE_TLBS: u8 = 0x98;
    pub const ODX_SIGNAL_FENCE: u8 = 0xe0;
    pub const ODX_WAIT_FENCE: u8 = 0xe1;
    pub const ODX_WRITE_LOG: u8 = 0xe2;
    pub const ODX_TRAP: u8 = 0xe3;
    pub const ODX_DELAY: u8 = 0xe4;
    pub const ODX_PT_WRITE: u8 = 0xe5;
}

/// COUNT of a NOP that has a header only.
const NOP_ALONE: u32 = 0x3fff;

/// The header of a packet with so many dwords, itself included: two at least.
pub const fn header(opcode: u8, dwords: usize) -> u32 {
    // CAST: 14 bits, and 8 bits. OVERFLOW: as above.
    (3 << 30) | ((dwords as u32).wrapping_sub(2) << 16) | ((opcode as u32) << 8)
}

/// What may be in COUNT, which is one less than the dwords behind the header.
enum Count {
    /// Anything, and none of it is read. All ones are no dword at all.
    Any,
    /// This only.
    Is(u32),
    /// From the first to the last of these.
    Between(u32, u32),
    /// This or more. So many dwords are read to decode the packet, and there is one more at least.
    AtLeast(u32),
}

impl Count {
    /// How many dwords are behind the header, and how many of them are read to decode it.
    fn dwords(&self, count: u32) -> Result<(u32, u32), Illegal> {
        // OVERFLOW: 14 bits.
        let dwords = count.saturating_add(1);

        match *self {
            Self::Any if count == NOP_ALONE => Ok((0, 0)),
            Self::Any => Ok((dwords, 0)),
            Self::Is(only) if count == only => Ok((dwords, dwords)),
            Self::Between(first, last) if (first..=last).contains(&count) => Ok((dwords, dwords)),
            Self::AtLeast(first) if count >= first => Ok((dwords, first)),
            Self::Is(_) | Self::Between(..) | Self::AtLeast(_) => Err(Illegal::Count),
        }
    }
}

/// A row of the table.
pub(super) struct Packet {
    opcode: u8,
    count: Count,
    /// Whether only the kernel's queue of the paging node may run it (GPU-46).
    is_paging: bool,
    /// What it means. All fields are checked here, before anything is done.
    decode: Decode,
}

type Decode = fn(&Fields) -> Result<Operation, Illegal>;

/// A packet of all queues.
const fn row(opcode: u8, count: Count, decode: Decode) -> Packet {
    Packet {
        opcode,
        count,
        is_paging: false,
        decode,
    }
}

/// A packet of the kernel's queue of the paging node.
const fn paging_row(opcode: u8, count: Count, decode: Decode) -> Packet {
    Packet {
        is_paging: true,
        ..row(opcode, count, decode)
    }
}

/// All packets. What is not here is illegal.
static PACKETS: [Packet; 18] = {
    use Count::{
        Any,
        AtLeast,
        Between,
        Is, //
    };

    [
        row(opcode::NOP, Any, packets::nop),
        row(opcode::ATOMIC_MEM, Is(7), packets::atomic_mem),
        row(opcode::COND_EXEC, Is(3), packets::cond_exec),
        row(opcode::WRITE_DATA, AtLeast(3), packets::write_data),
        row(opcode::WAIT_REG_MEM, Is(5), packets::wait_reg_mem),
        row(opcode::INDIRECT_BUFFER, Is(2), packets::indirect_buffer),
        row(opcode::COPY_DATA, Is(4), packets::copy_data),
        row(opcode::RELEASE_MEM, Is(6), packets::release_mem),
        row(opcode::DMA_DATA, Is(5), packets::dma_data),
        row(opcode::ACQUIRE_MEM, Between(5, 6), packets::acquire_mem),
        row(opcode::WAIT_REG_MEM64, Is(7), packets::wait_reg_mem64),
        row(opcode::ODX_SIGNAL_FENCE, Is(8), packets::odx_signal_fence),
        row(opcode::ODX_WAIT_FENCE, Is(8), packets::odx_wait_fence),
        row(opcode::ODX_WRITE_LOG, Is(6), packets::odx_write_log),
        row(opcode::ODX_TRAP, Is(3), packets::odx_trap),
        row(opcode::ODX_DELAY, Is(0), packets::odx_delay),
        paging_row(opcode::INVALIDATE_TLBS, Is(0), packets::invalidate_tlbs),
        paging_row(opcode::ODX_PT_WRITE, Is(7), packets::odx_pt_write),
    ]
};

/// What a header says.
pub(super) enum Header {
    /// A dword to be skipped.
    Filler,
    /// What this row of the table says.
    Packet {
        packet: &'static Packet,
        /// How many dwords are behind the header.
        dwords: u32,
        /// How many of them are read to decode it.
        fields: u32,
    },
}

impl Header {
    /// Looks at a header that is in a queue with this privilege.
    pub(super) fn decode(header: u32, privilege: Privilege) -> Result<Self, Illegal> {
        if header == FILLER {
            return Ok(Self::Filler);
        }
        // Bit 1 is a shader type, which is ignored.
        if bits(header, 31, 30) != 3 || bits(header, 7, 2) != 0 || bit(header, 0) {
            return Err(Illegal::Header);
        }

        let number = bits(header, 15, 8);
        let count = bits(header, 29, 16);
        let packet = PACKETS
            .iter()
            .find(|packet| u32::from(packet.opcode) == number)
            .ok_or(Illegal::Opcode)?;

        if packet.is_paging && privilege != Privilege::Paging {
            return Err(Illegal::Privilege);
        }

        let (dwords, fields) = packet.count.dwords(count)?;

        Ok(Self::Packet {
            packet,
            dwords,
            fields,
        })
    }
}

impl Packet {
    /// What it means.
    pub(super) fn decode(&self, fields: &Fields) -> Result<Operation, Illegal> {
        (self.decode)(fields)
    }
}
