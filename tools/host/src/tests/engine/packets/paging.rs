// SPDX-License-Identifier: MIT OR Apache-2.0

//! What only the queue of the paging node may do (GPU-46).

use crate::engine::command_processor::Outcome;
use crate::engine::memory::PAGE_SIZE;
use crate::engine::page_table::Entry;
use crate::engine::queue::Privilege;
use crate::engine::translation::Scope;
use crate::tests::engine::machine::{Event, Machine, BUFFER, DATA, PROCESS};
use crate::tests::engine::program::{packet, Program};

#[test]
fn gpu_46_the_paging_queue_writes_tables_and_invalidates() {
    let mut machine = Machine::with(Privilege::Paging);
    let table = machine.entry_at(DATA);
    let window = 0x9_0000_0000;
    let pages: Vec<_> = (0..3).map(|_| machine.new_page()).collect();

    assert_eq!(pages[2].address - pages[1].address, 2 * PAGE_SIZE);

    // The table of the data is mapped, as the system page table of the paging process does it.
    let table_page =
        crate::engine::memory::Physical::new(table.place, table.address & !(PAGE_SIZE - 1));

    machine.map(window, Entry::to(table_page).writable().system_only());
    for (page, value) in pages.iter().zip(1..) {
        machine.ram.write(*page, &u64::to_le_bytes(value)).unwrap();
    }
    machine.done(&Program::new().copy(DATA, DATA + PAGE_SIZE, 8).0);

    let program = Program::new()
        .table_write(
            window + table.address % PAGE_SIZE,
            3,
            Entry::to(pages[0]).writable().bits(),
            2 * PAGE_SIZE,
        )
        // The cache knows nothing of that.
        .copy(DATA, BUFFER + PAGE_SIZE, 8)
        .invalidate(PROCESS)
        .copy(DATA, BUFFER + PAGE_SIZE + 8, 8)
        .copy(DATA + 2 * PAGE_SIZE, BUFFER + PAGE_SIZE + 16, 8);

    machine.submit(&program.0);
    machine.ram.take_trace();
    assert_eq!(machine.run(), Outcome::Invalidate(Scope::Process(PROCESS)));

    let stores: Vec<Event> = machine
        .ram
        .take_trace()
        .into_iter()
        .filter(|event| matches!(event, Event::Store64(..)))
        .collect();
    let expected: Vec<Event> = pages
        .iter()
        .zip(0..)
        .map(|(page, i)| Event::Store64(table.plus(i * 8), Entry::to(*page).writable().bits()))
        .collect();

    assert_eq!(stores, expected);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(machine.word(BUFFER + PAGE_SIZE), 0, "the old page");
    assert_eq!(machine.word(BUFFER + PAGE_SIZE + 8), 1, "the new one");
    assert_eq!(machine.word(BUFFER + PAGE_SIZE + 16), 3);
}

#[test]
fn invalidate_tlbs_names_a_process_or_all() {
    for (process, scope) in [
        (0_u32, Scope::Process(0)),
        (0xfffe, Scope::Process(0xfffe)),
        (0xffff, Scope::All),
    ] {
        let mut machine = Machine::with(Privilege::Paging);

        // What is around PASID is ignored.
        machine.submit(&packet(0x98, &[(process << 5) | 0xffe0_001f]));
        assert_eq!(machine.run(), Outcome::Invalidate(scope));
        assert!(matches!(machine.run(), Outcome::Done(_)));
    }
}
