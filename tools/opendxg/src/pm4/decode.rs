// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets as people read them.

use super::{opcode, FILLER, HEADER_ONLY, MOST_WORDS, TYPE_3};

/// What AMD's documents and `Documentation/software-gpu.md` call a packet; `None` if there is none
/// of this number.
pub fn name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        opcode::NOP => "NOP",
        opcode::ATOMIC_MEM => "ATOMIC_MEM",
        opcode::COND_EXEC => "COND_EXEC",
        opcode::WRITE_DATA => "WRITE_DATA",
        opcode::WAIT_REG_MEM => "WAIT_REG_MEM",
        opcode::INDIRECT_BUFFER => "INDIRECT_BUFFER",
        opcode::COPY_DATA => "COPY_DATA",
        opcode::RELEASE_MEM => "RELEASE_MEM",
        opcode::DMA_DATA => "DMA_DATA",
        opcode::ACQUIRE_MEM => "ACQUIRE_MEM",
        opcode::WAIT_REG_MEM64 => "WAIT_REG_MEM64",
        opcode::INVALIDATE_TLBS => "INVALIDATE_TLBS",
        opcode::SIGNAL_FENCE => "ODX_SIGNAL_FENCE",
        opcode::WAIT_FENCE => "ODX_WAIT_FENCE",
        opcode::WRITE_LOG => "ODX_WRITE_LOG",
        opcode::TRAP => "ODX_TRAP",
        opcode::DELAY => "ODX_DELAY",
        opcode::PT_WRITE => "ODX_PT_WRITE",
        _ => return None,
    })
}

/// A packet in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// Its first word.
    pub header: u32,
    /// The words behind it, as far as the buffer has them.
    pub words: &'a [u32],
    /// How many there should be.
    pub count: usize,
}

impl Packet<'_> {
    /// What it is called: `filler` for one of type 2, `None` if there is no such packet.
    pub fn name(&self) -> Option<&'static str> {
        match self.header {
            FILLER => Some("filler"),
            header if header & TYPE_3 == TYPE_3 => name((header >> 8) as u8),
            _ => None,
        }
    }
}

/// The packets of a buffer, one after the other. What follows one that is none is not looked at:
/// its extent is not known. The last one may be cut off.
pub fn packets(words: &[u32]) -> impl Iterator<Item = Packet<'_>> {
    let mut rest = words;
    core::iter::from_fn(move || {
        let (&header, behind) = rest.split_first()?;
        let is_packet = header & TYPE_3 == TYPE_3;
        let last = (header >> 16) & HEADER_ONLY;
        let is_nop = (header >> 8) & 0xff == u32::from(opcode::NOP);
        let count = match (is_packet, last) {
            (false, _) => 0,
            (true, HEADER_ONLY) if is_nop => 0,
            (true, last) => last as usize + 1,
        };
        let (words, rest_of_it) = behind.split_at(count.min(MOST_WORDS + 1).min(behind.len()));
        rest = match is_packet || header == FILLER {
            true => rest_of_it,
            false => &[],
        };
        Some(Packet {
            header,
            words,
            count,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pm4::Pm4;

    #[test]
    fn gpu_33_what_is_built_is_read() {
        let built = Pm4::new().nop(0).delay(7).filler().set32(0x1000, 5).nop(2);
        let found: Vec<_> = packets(built.words())
            .map(|packet| (packet.name().unwrap(), packet.words.len()))
            .collect();
        assert_eq!(
            found,
            [
                ("NOP", 0),
                ("ODX_DELAY", 1),
                ("filler", 0),
                ("COPY_DATA", 5),
                ("NOP", 2)
            ]
        );
    }

    #[test]
    fn gpu_36_the_rest_behind_no_packet_is_unknown() {
        let words = [0x1234_5678, 0xc000_e400, 7];
        let found: Vec<_> = packets(&words).collect();
        assert_eq!((found.len(), found[0].name()), (1, None));
        assert_eq!(packets(&[0xc000_0100, 7]).next().unwrap().name(), None);
    }

    #[test]
    fn a_packet_may_be_cut_off() {
        let words = &Pm4::new().set32(0x1000, 5).words()[..3].to_vec();
        let found: Vec<_> = packets(words).collect();
        assert_eq!((found.len(), found[0].count), (1, 5));
        assert_eq!(found[0].words.len(), 2);
    }
}
