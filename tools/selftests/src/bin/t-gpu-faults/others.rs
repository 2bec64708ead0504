// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who does not fault does not notice: other devices of the process, other processes.

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{ExecutionState, GpuMap};
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, one, reaches, Gpu, NODES, PAGE, READ_WRITE};
use selftests::rounds::{rounds, seed, Dice};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-68 other devices of the process go on", same_process)
        .test(
            "GPU-68 MEM-100 the fence sequence of another process is complete",
            other_process,
        )
        .test(
            "GPU-68 other contexts of the device stop with it",
            same_device,
        )
        .test(
            "MEM-101 random addresses never reach another process",
            random_addresses,
        )
        .test("GPU-112 random words as commands", random_words)
        .test(
            "GPU-97 memory that a faulted device leaves can be used again",
            reused,
        )
}

fn bad() -> [(Pm4, ExecutionState); 2] {
    [
        (
            Pm4::new().write(0x6000_0000_0000, &[1]),
            ExecutionState::DmaPageFault,
        ),
        (Pm4::new().word(0), ExecutionState::DmaFault),
    ]
}

fn same_process() -> TestResult {
    for (commands, state) in bad() {
        let others: TestResult<Vec<Gpu>> = NODES.iter().map(|&node| Gpu::node(node)).collect();
        let others = others?;
        for node in NODES {
            let gpu = Gpu::node(node)?;
            let mut before = Vec::new();
            for other in &others {
                let word = other.buffer(PAGE)?;
                let add = Pm4::new().atomic(Atomic::Add, word.at(0), 1, 0).delay(10);
                let add = other.commands(&add)?;
                for _ in 0..20 {
                    other.submit(&add)?;
                }
                before.push((word, add, other.mark()?));
            }
            gpu.fails(&commands, state)?;
            for (other, (word, _, mark)) in others.iter().zip(&before) {
                other.until(*mark)?;
                ensure_eq!(word.get64(0), 20);
            }
        }
    }
    Ok(())
}

fn other_process() -> TestResult {
    let turns = u64::from(rounds(200));
    let (start, faulted) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_fence(0)?;
        let word = gpu.buffer(PAGE)?;
        let add = Pm4::new().atomic(Atomic::Add, word.at(0), 1, 0);
        let add = gpu.commands(&add)?;
        for turn in 1..=turns {
            gpu.submit(&add)?;
            gpu.context().signal(&one(&fence, turn))?;
            if turn == turns / 4 {
                start.open()?;
            }
            if turn % 16 == 0 {
                reaches(&fence, turn)?;
                ensure!(word.get64(0) >= turn);
            }
        }
        faulted.wait()?;
        reaches(&fence, turns)?;
        ensure_eq!(word.get64(0), turns);
        gpu.run(&Pm4::new().nop(0))
    })?;
    start.wait()?;
    for node in NODES {
        for (commands, state) in bad() {
            Gpu::node(node)?.fails(&commands, state)?;
        }
    }
    faulted.open()?;
    child.join()
}

fn same_device() -> TestResult {
    let gpu = Gpu::new()?;
    let second = Gpu::on(gpu.device(), 1)?;
    let word = gpu.buffer(PAGE)?;
    let write = gpu.commands(&Pm4::new().set32(word.at(0), 1))?;
    gpu.fails(&Pm4::new().word(0), ExecutionState::DmaFault)?;
    reaches(second.done(), u64::MAX)?;
    selftests::fails_with(
        second.context().submit(write.address(), write.length()),
        opendxg::Status::DEVICE_REMOVED,
    )?;
    ensure_eq!(word.get32(0), 0);
    Ok(())
}

/// A process writes to and reads from random addresses; this one's memory keeps what it has.
fn random_addresses() -> TestResult {
    let gpu = Gpu::node(2)?;
    let (system, local) = (gpu.buffer(16 * PAGE)?, gpu.local_buffer(16 * PAGE)?);
    for buffer in [&system, &local] {
        buffer.fill(0x1122_3344);
    }
    let bases = [system.address(), local.address(), gpu.done().gpu_address()];
    let seed = seed();
    let child = Child::spawn(|| {
        let mut dice = Dice::new(seed);
        for round in 0..rounds(40) {
            let gpu = Gpu::node(round % 3)?;
            let own = gpu.buffer(PAGE)?;
            for _ in 0..4 {
                let address = match dice.below(4) {
                    0 => u64::from(dice.below(u32::MAX)) << dice.below(33),
                    1 => bases[dice.below(3) as usize] + u64::from(dice.below(PAGE as u32)),
                    2 => own.end() + u64::from(dice.below(1 << 20)),
                    _ => bases[dice.below(3) as usize] ^ (1 << dice.below(48)),
                };
                let bytes = u64::from(dice.below(3 * PAGE as u32)) & !3;
                let commands = match dice.below(3) {
                    0 => Pm4::new().fill(address & !3, 0xdead_beef, bytes),
                    1 => Pm4::new().copy(own.at(0), address, bytes.min(PAGE)),
                    _ => Pm4::new().copy(address, own.at(0), bytes.min(PAGE)),
                };
                // What was written to is memory of this process, or nothing.
                let commands = gpu.commands(&commands)?;
                gpu.submit(&commands)?;
                if let Ok(mark) = gpu.mark() {
                    reaches(gpu.done(), mark)?;
                }
                ensure!(
                    !own.read(0, 1024).contains(&0x1122_3344),
                    "read the memory of another process"
                );
                if gpu.device().execution_state()? != ExecutionState::Active {
                    break;
                }
            }
        }
        Ok(())
    })?;
    child.join()?;
    for buffer in [&system, &local] {
        buffer.holds(0..16 * PAGE, 0x1122_3344)?;
    }
    gpu.run(&Pm4::new().copy(local.at(0), system.at(0), PAGE))
}

fn random_words() -> TestResult {
    let seed = seed();
    let witness = Gpu::new()?;
    let kept = witness.buffer(PAGE)?;
    kept.fill(6);
    let child = Child::spawn(|| {
        let mut dice = Dice::new(seed);
        // The opcodes that there are, more often than others; no waits, which need not end.
        let known = [
            0x10, 0x1e, 0x22, 0x37, 0x3f, 0x40, 0x49, 0x50, 0x58, 0x98, 0xe0, 0xe3, 0xe4, 0xe5,
        ];
        for round in 0..rounds(60) {
            let gpu = Gpu::node(round % 3)?;
            let own = gpu.buffer(4 * PAGE)?;
            let mut commands = Pm4::new();
            while commands.len() < 200 {
                let word = match dice.below(4) {
                    0 => dice.below(u32::MAX),
                    1 => {
                        let opcode = known[dice.below(known.len() as u32) as usize];
                        let is_loop = opcode == 0x1e;
                        let count = if is_loop { 7 } else { dice.below(9) };
                        0xc000_0000 | (count << 16) | (opcode << 8)
                    }
                    2 => own.address() as u32 + (dice.below(4096) & !7),
                    _ => (own.address() >> 32) as u32,
                };
                commands = commands.word(word);
            }
            let commands = gpu.commands(&commands)?;
            gpu.submit(&commands)?;
            // An indirect buffer may lead back here for ever, and a delay may be long: the queue is
            // destroyed then as it is.
            let _ = gpu.mark();
        }
        Ok(())
    })?;
    child.join()?;
    kept.holds(0..PAGE, 6)?;
    witness.run(&Pm4::new().nop(0))
}

fn reused() -> TestResult {
    let base = 0x5300_0000_0000;
    let map = GpuMap {
        base,
        pages: 4,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    for round in 0..rounds(10) {
        let first = Gpu::node(round % 3)?;
        let memory = first.local_buffer(4 * PAGE)?;
        let range = first.paging().map(Some(memory.allocation()), &map)?;
        reaches(first.paging().fence(), range.value)?;
        let commands = Pm4::new()
            .fill(base, 0x7777_7777, 4 * PAGE)
            .write(0x6000_0000_0000, &[1]);
        first.fails(&commands, ExecutionState::DmaPageFault)?;
        memory.holds(0..4 * PAGE, 0x7777_7777)?;
        first.device().adapter().free_gpu_range(base, 4 * PAGE)?;
        drop(memory);
        // The next one has the address for other memory.
        let second = Gpu::on(&fixture::device()?, round % 3)?;
        let memory = second.local_buffer(4 * PAGE)?;
        memory.holds(0..4 * PAGE, 0)?;
        let range = second.paging().map(Some(memory.allocation()), &map)?;
        reaches(second.paging().fence(), range.value)?;
        second.run(&Pm4::new().write(base, &[1]))?;
        ensure_eq!(memory.get32(0), 1);
        second.device().adapter().free_gpu_range(base, 4 * PAGE)?;
        is_in(first.device(), ExecutionState::DmaPageFault)?;
    }
    Ok(())
}
