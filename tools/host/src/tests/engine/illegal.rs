// SPDX-License-Identifier: MIT OR Apache-2.0

//! GPU-36: every field out of its range, one by one, and nothing of that packet is executed.

use super::machine::{Event, Machine, BUFFER, DATA, PROGRESS};
use super::program::{packet, Program, CHAIN, VALID};
use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::fault::{FaultKind, FaultRecord, Illegal};
use crate::engine::memory::PAGE_SIZE;
use crate::engine::queue::{Privilege, Submission, SubmitError};

/// Runs an illegal packet between two legal ones, in a queue of this privilege.
fn refused(privilege: Privilege, dwords: &[u32], expected: Illegal, what: &str) {
    let mut machine = Machine::with(privilege);
    let before = Program::new().write(DATA + 0x800, &[1]).0;
    let after = Program::new().write(DATA + 0x808, &[1]).0;
    let place = BUFFER + before.len() as u64 * 4;

    machine.submit(&[&before, dwords, &after].concat());
    machine.ram.take_trace();

    let record = FaultRecord {
        kind: FaultKind::Packet(expected),
        packet: place,
        header: dwords[0],
    };

    assert_eq!(
        machine.run(),
        Outcome::Faulted(record),
        "{what}: {dwords:x?}"
    );

    let stores: Vec<Event> = machine
        .ram
        .take_trace()
        .into_iter()
        .filter(|event| !event.is_load())
        .collect();
    let at = machine.find(DATA + 0x800).unwrap();

    assert_eq!(stores, [Event::Store32(at, 1)], "{what}: {dwords:x?}");
    assert_eq!(machine.records.0, [], "{what}");
    assert_eq!(machine.word(PROGRESS), 0, "{what}");

    // It stays stopped, and takes nothing new.
    assert_eq!(machine.step(SLICE), Outcome::Faulted(record));
    assert_eq!(machine.queue.fault(), Some(&record));
    assert_eq!(
        machine.queue.submit(Submission {
            va: BUFFER,
            length: 4,
            progress: None
        }),
        Err(SubmitError::Faulted)
    );
    // Until it is reset.
    machine.queue.reset();
    machine.done(&after);
    assert_eq!(machine.word(DATA + 0x808), 1);
}

fn low(va: u64) -> u32 {
    va as u32
}

/// A legal packet that others are made of: its opcode, and what is behind the header.
struct Legal {
    opcode: u32,
    payload: Vec<u32>,
    privilege: Privilege,
}

impl Legal {
    fn of(opcode: u32, payload: &[u32]) -> Self {
        Self {
            opcode,
            payload: payload.to_vec(),
            privilege: Privilege::Normal,
        }
    }

    fn paging(opcode: u32, payload: &[u32]) -> Self {
        Self {
            privilege: Privilege::Paging,
            ..Self::of(opcode, payload)
        }
    }

    /// The same with other bits in a dword, which counts from 1 as in the specification.
    fn with(&self, dword: usize, mask: u32, value: u32) -> Vec<u32> {
        let mut payload = self.payload.clone();
        let place = &mut payload[dword - 1];

        *place = *place & !mask | value;
        packet(self.opcode, &payload)
    }
}

fn indirect_buffer() -> Legal {
    Legal::of(0x3f, &[low(DATA), 0, VALID])
}

fn write_data() -> Legal {
    Legal::of(0x37, &[2 << 8, low(DATA), 0, 1, 2, 3])
}

fn dma_copy() -> Legal {
    Legal::of(0x50, &[0, low(DATA), 0, low(DATA + 0x100), 0, 16])
}

fn dma_fill() -> Legal {
    Legal::of(0x50, &[2 << 29, 1, 0, low(DATA + 0x100), 0, 16])
}

fn copy_data() -> Legal {
    Legal::of(
        0x40,
        &[1 | (2 << 8) | (1 << 16), low(DATA), 0, low(DATA + 8), 0],
    )
}

fn wait_reg_mem() -> Legal {
    Legal::of(0x3c, &[3 | (1 << 4), low(DATA), 0, 0, !0, 0])
}

fn wait_reg_mem64() -> Legal {
    Legal::of(0x93, &[3 | (1 << 4), low(DATA), 0, 0, 0, !0, !0, 0])
}

fn release_mem() -> Legal {
    Legal::of(0x49, &[0, (2 << 29) | (2 << 24), low(DATA), 0, 1, 0, 0])
}

fn acquire_mem() -> Legal {
    Legal::of(0x58, &[0; 6])
}

fn atomic_mem() -> Legal {
    Legal::of(0x1e, &[0x2f, low(DATA), 0, 1, 0, 0, 0, 0])
}

fn cond_exec() -> Legal {
    Legal::of(0x22, &[low(DATA), 0, 0, 0])
}

fn trap() -> Legal {
    Legal::of(0xe3, &[1, 2, 3, 0])
}

fn delay() -> Legal {
    Legal::of(0xe4, &[1])
}

fn pt_write() -> Legal {
    Legal::paging(0xe5, &[0, low(DATA), 0, 0, 0, 0, 0, 0])
}

fn invalidate() -> Legal {
    Legal::paging(0x98, &[0xffff << 5])
}

fn all() -> Vec<Legal> {
    vec![
        indirect_buffer(),
        write_data(),
        dma_copy(),
        dma_fill(),
        copy_data(),
        wait_reg_mem(),
        wait_reg_mem64(),
        release_mem(),
        acquire_mem(),
        atomic_mem(),
        cond_exec(),
        trap(),
        delay(),
        pt_write(),
        invalidate(),
    ]
}

#[test]
fn what_the_others_are_made_of_is_legal() {
    for legal in all() {
        let mut machine = Machine::with(legal.privilege);

        machine.submit(&packet(legal.opcode, &legal.payload));

        let mut outcome = machine.run();

        if let Outcome::Invalidate(_) = outcome {
            outcome = machine.run();
        }
        assert!(
            matches!(outcome, Outcome::Done(_)),
            "{:#x}: {outcome:x?}",
            legal.opcode
        );
    }
}

#[test]
fn gpu_34_types_0_and_1_are_illegal() {
    for header in [0, 1, 0x1234, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff] {
        refused(Privilege::Paging, &[header], Illegal::Header, "type");
    }
    // A filler has no other bits.
    for bit in 0..30 {
        refused(
            Privilege::Normal,
            &[0x8000_0000 | (1 << bit)],
            Illegal::Header,
            "filler",
        );
    }
}

#[test]
fn gpu_33_bits_that_must_be_0() {
    for bit in [0, 2, 3, 4, 5, 6, 7] {
        for legal in all() {
            let mut dwords = packet(legal.opcode, &legal.payload);

            dwords[0] |= 1 << bit;
            refused(legal.privilege, &dwords, Illegal::Header, "header");
        }
    }
}

#[test]
fn gpu_34_unknown_opcodes_are_illegal() {
    let known: Vec<u32> = all().iter().map(|legal| legal.opcode).collect();

    for opcode in (0..0x100)
        .filter(|opcode| !matches!(*opcode, 0x10 | 0xe0 | 0xe1 | 0xe2) && !known.contains(opcode))
    {
        // With any COUNT.
        for dwords in [7, 9] {
            refused(
                Privilege::Paging,
                &packet(opcode, &vec![0; dwords]),
                Illegal::Opcode,
                "opcode",
            );
        }
    }
}

#[test]
fn count_has_the_values_of_the_table() {
    for legal in all() {
        let dwords = legal.payload.len();
        let is_legal = |count: usize| match legal.opcode {
            0x37 => count >= 4,
            0x58 => count == 6 || count == 7,
            _ => count == dwords,
        };

        for count in (1..12).filter(|count| !is_legal(*count)) {
            let mut payload = legal.payload.clone();

            payload.resize(count, 0);
            refused(
                legal.privilege,
                &packet(legal.opcode, &payload),
                Illegal::Count,
                "COUNT",
            );
        }
        // All ones are nothing special but in a NOP.
        if legal.opcode != 0x37 {
            refused(
                legal.privilege,
                &[(3 << 30) | (0x3fff << 16) | (legal.opcode << 8)],
                Illegal::Count,
                "COUNT",
            );
        }
    }
}

#[test]
fn gpu_7_a_packet_ends_where_its_buffer_ends() {
    for legal in all() {
        let dwords = packet(legal.opcode, &legal.payload);

        // Of a NOP too, that reads nothing.
        for dwords in [dwords, packet(0x10, &[0; 5])] {
            for length in 1..dwords.len() {
                let mut machine = Machine::with(legal.privilege);

                machine.load(BUFFER, &dwords);
                machine.submit_at(BUFFER, length as u32 * 4);
                assert_eq!(
                    machine.run(),
                    Outcome::Faulted(FaultRecord {
                        kind: FaultKind::Packet(Illegal::Extent),
                        packet: BUFFER,
                        header: dwords[0],
                    })
                );
            }
        }
    }
}

#[test]
fn gpu_7_nothing_behind_the_end_of_a_buffer_is_read() {
    for legal in all() {
        let dwords = packet(legal.opcode, &legal.payload);

        // Behind the buffer is no page.
        for length in 1..dwords.len() as u64 {
            let place = DATA + 16 * PAGE_SIZE - length * 4;
            let mut machine = Machine::with(legal.privilege);

            machine.load(place, &dwords[..length as usize]);
            machine.submit_at(place, length as u32 * 4);
            assert_eq!(
                machine.run(),
                Outcome::Faulted(FaultRecord {
                    kind: FaultKind::Packet(Illegal::Extent),
                    packet: place,
                    header: dwords[0],
                })
            );
        }
    }
}

#[test]
fn gpu_7_a_packet_ends_where_its_indirect_buffer_ends() {
    let inner = DATA + PAGE_SIZE;
    let dwords = Program::new().write(DATA, &[1]).0;
    let mut machine = Machine::new();

    machine.load(inner, &dwords);
    machine.submit(&Program::new().indirect(inner, dwords.len() as u32 - 1, 0).0);
    assert_eq!(
        machine.run(),
        Outcome::Faulted(FaultRecord {
            kind: FaultKind::Packet(Illegal::Extent),
            packet: inner,
            header: dwords[0],
        })
    );
}

/// Refuses a packet with other bits in one dword.
fn field(legal: &Legal, dword: usize, mask: u32, values: &[u32], expected: Illegal) {
    for value in values {
        refused(
            legal.privilege,
            &legal.with(dword, mask, *value),
            expected,
            "field",
        );
    }
}

/// Values of a selector, shifted to its place.
fn shifted(values: impl IntoIterator<Item = u32>, shift: u32) -> Vec<u32> {
    values.into_iter().map(|value| value << shift).collect()
}

#[test]
fn selectors_out_of_range() {
    const FIELD: Illegal = Illegal::Field;
    let selector = |legal: &Legal, dword, high, low, legal_values: &[u32]| {
        let ones = (1_u32 << (high - low + 1)) - 1;
        let others = (0..=ones).filter(|value| !legal_values.contains(value));

        field(legal, dword, ones << low, &shifted(others, low), FIELD);
    };

    // VALID.
    field(&indirect_buffer(), 3, VALID, &[0], FIELD);
    // DST_SEL, and SRC_SEL.
    selector(&write_data(), 1, 11, 8, &[2, 5]);
    selector(&dma_copy(), 1, 21, 20, &[0, 3]);
    selector(&dma_fill(), 1, 21, 20, &[0, 3]);
    selector(&dma_copy(), 1, 30, 29, &[0, 2, 3]);
    selector(&copy_data(), 1, 3, 0, &[1, 2, 5, 9]);
    selector(&copy_data(), 1, 11, 8, &[2, 5]);
    // SAS, DAS.
    selector(&dma_copy(), 6, 27, 26, &[0]);
    selector(&dma_fill(), 6, 27, 26, &[0]);
    for wait in [wait_reg_mem(), wait_reg_mem64()] {
        // FUNCTION, MEM_SPACE, OPERATION.
        selector(&wait, 1, 2, 0, &[0, 1, 2, 3, 4, 5, 6]);
        selector(&wait, 1, 5, 4, &[1]);
        selector(&wait, 1, 7, 6, &[0, 3]);
    }
    // DST_SEL, INT_SEL, DATA_SEL. INT_SEL 6 goes with no data.
    selector(&release_mem(), 2, 17, 16, &[0, 1]);
    selector(&release_mem(), 2, 26, 24, &[0, 1, 2, 3, 4]);
    selector(&release_mem(), 2, 31, 29, &[0, 1, 2, 3]);
    // The operation, with and without a result.
    let ops = [0x27, 0x28, 0x2f, 0x30, 0x34, 0x35, 0x36];
    let ops: Vec<u32> = ops.iter().flat_map(|op| [*op, *op | 0x40]).collect();

    selector(&atomic_mem(), 1, 6, 0, &ops);
    // COMMAND: what cannot be compared cannot be waited for.
    selector(&atomic_mem(), 1, 11, 8, &[0]);
    field(
        &atomic_mem(),
        1,
        0xfff,
        &shifted(2..16, 8)
            .iter()
            .map(|bits| bits | 0x28)
            .collect::<Vec<_>>(),
        FIELD,
    );
    // What must be 0.
    for bit in 0..32 {
        field(&cond_exec(), 3, 0, &[1 << bit], FIELD);
        field(&trap(), 4, 0, &[1 << bit], FIELD);
        field(&pt_write(), 8, 0, &[1 << bit], FIELD);
    }
}

#[test]
fn gpu_39_addresses_that_are_not_aligned() {
    const ALIGNMENT: Illegal = Illegal::Alignment;
    const ODD4: [u32; 3] = [1, 2, 3];
    const ODD8: [u32; 7] = [1, 2, 3, 4, 5, 6, 7];
    let release32 = Legal::of(0x49, &[0, 1 << 29, low(DATA), 0, 1, 0, 0]);
    let copy32 = Legal::of(0x40, &[1 | (2 << 8), low(DATA), 0, low(DATA + 8), 0]);
    let clock = Legal::of(0x49, &[0, 3 << 29, low(DATA), 0, 1, 0, 0]);

    field(&indirect_buffer(), 1, 0, &ODD4, ALIGNMENT);
    field(&write_data(), 2, 0, &ODD4, ALIGNMENT);
    field(&copy_data(), 2, 0, &ODD8, ALIGNMENT);
    field(&copy_data(), 4, 0xf, &ODD8, ALIGNMENT);
    field(&copy32, 2, 0, &ODD4, ALIGNMENT);
    field(&copy32, 4, 0, &ODD4, ALIGNMENT);
    field(&wait_reg_mem(), 2, 0, &ODD4, ALIGNMENT);
    field(&wait_reg_mem64(), 2, 0, &ODD8, ALIGNMENT);
    field(&release_mem(), 3, 0, &ODD8, ALIGNMENT);
    field(&clock, 3, 0, &ODD8, ALIGNMENT);
    field(&release32, 3, 0, &ODD4, ALIGNMENT);
    field(&atomic_mem(), 2, 0, &ODD8, ALIGNMENT);
    field(&cond_exec(), 1, 0, &ODD4, ALIGNMENT);
    field(&pt_write(), 2, 0, &ODD8, ALIGNMENT);
    // A fill moves dwords, and so does what has a fixed address.
    field(&dma_fill(), 4, 0, &ODD4, ALIGNMENT);
    field(&dma_fill(), 6, 0, &ODD4, ALIGNMENT);
    for fixed in [1 << 28, 1 << 29] {
        let copy = Legal::of(0x50, &[0, low(DATA), 0, low(DATA + 0x100), 0, 16 | fixed]);

        field(&copy, 2, 0, &ODD4, ALIGNMENT);
        field(&copy, 4, 0, &ODD4, ALIGNMENT);
        field(&copy, 6, 0, &ODD4, ALIGNMENT);
    }
}

#[test]
fn privileges() {
    const PRIVILEGE: Illegal = Illegal::Privilege;

    // PRIV, of whoever.
    for privilege in [Privilege::Normal, Privilege::Paging] {
        refused(
            privilege,
            &indirect_buffer().with(3, 0, 1 << 31),
            PRIVILEGE,
            "PRIV",
        );
        refused(
            privilege,
            &indirect_buffer().with(3, 0, (1 << 31) | CHAIN),
            PRIVILEGE,
            "PRIV",
        );
    }
    // GPU-46.
    for legal in [pt_write(), invalidate()] {
        refused(
            Privilege::Normal,
            &packet(legal.opcode, &legal.payload),
            PRIVILEGE,
            "GPU-46",
        );
    }
}

#[test]
fn what_is_skipped_is_in_the_buffer() {
    // Behind the packet there is another one, of 5 dwords.
    for (dwords, is_legal) in [(0, true), (5, true), (6, false), (u32::MAX, false)] {
        // Whatever the word is.
        for word in [0, 1] {
            let legal = cond_exec();
            let mut machine = Machine::new();

            machine.set_word(DATA, word);
            machine.submit(
                &[
                    legal.with(4, !0, dwords),
                    Program::new().write(DATA, &[1]).0,
                ]
                .concat(),
            );

            let outcome = machine.run();

            if is_legal {
                assert!(matches!(outcome, Outcome::Done(_)), "{dwords} {word}");
            } else {
                assert!(
                    matches!(
                        outcome,
                        Outcome::Faulted(FaultRecord {
                            kind: FaultKind::Packet(Illegal::Extent),
                            packet: BUFFER,
                            ..
                        })
                    ),
                    "{dwords} {word}: {outcome:x?}"
                );
            }
        }
    }
}

#[test]
fn bits_that_are_ignored() {
    let ignored = [
        // INDIRECT_BUFFER: what is between size and VALID, VMID, cache policy.
        (indirect_buffer(), 3, 0x7f60_0000),
        // WRITE_DATA: all but DST_SEL and ADDR_INCR.
        (write_data(), 1, 0xfffe_f0ff),
        // DMA_DATA: all but the selectors; RAW_WAIT and the highest bit of the command; the upper
        // half of a pattern.
        (dma_copy(), 1, 0x9fcf_ffff),
        (dma_copy(), 6, 0xc000_0000),
        (dma_fill(), 3, 0xffff_ffff),
        // SAIC of a fill.
        (dma_fill(), 6, 0xd000_0000),
        // COPY_DATA: all but the selectors.
        (copy_data(), 1, 0xfffe_f0f0),
        // WAIT_REG_MEM: all but function, space, operation.
        (wait_reg_mem(), 1, 0xffff_ff08),
        (wait_reg_mem64(), 1, 0xffff_ff08),
        (wait_reg_mem(), 6, 0xffff_ffff),
        (wait_reg_mem64(), 8, 0xffff_ffff),
        // RELEASE_MEM: events, and what is beside the selectors, and the context id.
        (release_mem(), 1, 0xffff_ffff),
        (release_mem(), 2, 0x18fc_ffff),
        (release_mem(), 7, 0xffff_ffff),
        (acquire_mem(), 1, 0xffff_ffff),
        (atomic_mem(), 1, 0xffff_f080),
        (atomic_mem(), 8, 0xffff_ffff),
        (invalidate(), 1, 0xffff_ffff),
    ];

    for (legal, dword, bits) in ignored {
        for bits in (0..32).map(|bit| bits & (1 << bit)).chain([bits]) {
            let mut machine = Machine::with(legal.privilege);
            let mut expected = Machine::with(legal.privilege);

            machine.submit(&legal.with(dword, 0, bits));
            expected.submit(&packet(legal.opcode, &legal.payload));

            let outcomes = [&mut machine, &mut expected].map(|machine| {
                let outcome = machine.run();

                assert!(
                    matches!(outcome, Outcome::Done(_) | Outcome::Invalidate(_)),
                    "{:#x}, dword {dword}, {bits:#x}: {outcome:x?}",
                    legal.opcode
                );
                outcome
            });

            assert_eq!(outcomes[0], outcomes[1]);
            assert_eq!(machine.records.0, expected.records.0);
            assert_eq!(machine.bytes(DATA, 0x200), expected.bytes(DATA, 0x200));
        }
    }
}
