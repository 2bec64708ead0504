// SPDX-License-Identifier: MIT OR Apache-2.0
//! Illegal packets (GPU-36): each field out of its range, once.

use opendxg::pm4::{header, opcode, Pm4};
use opendxg::uapi::DXGK_PAGE_FAULT_WRITE as WRITE;
use opendxg::ExecutionState;
use selftests::gpu::{is_in, reaches, Gpu, NODES, PAGE};
use selftests::rounds::is_brief;
use selftests::{ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-36 GPU-33 GPU-34 headers that are illegal", headers)
        .test("GPU-36 fields that are illegal, WRITE_DATA", || {
            each(&write_data)
        })
        .test("GPU-36 fields that are illegal, DMA_DATA", || {
            each(&dma_data)
        })
        .test("GPU-36 GPU-39 fields that are illegal, COPY_DATA", || {
            each(&copy_data)
        })
        .test("GPU-36 fields that are illegal, waits", || each(&waits))
        .test("GPU-36 GPU-39 fields that are illegal, RELEASE_MEM", || {
            each(&release_mem)
        })
        .test("GPU-36 fields that are illegal, the others", || {
            each(&others)
        })
        .test("GPU-36 GPU-7 a packet beyond the end of its buffer", || {
            each(&beyond)
        })
        .test("GPU-36 the same in every kind of queue", queues)
}

/// A packet that is illegal, with the reason.
type Row = (&'static str, Pm4);

/// The address of a buffer, low and high.
fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

/// Executes each packet between two others, on a device of its own: the one before has its effect,
/// the packet and what follows have none, and the device tells where the packet is.
fn each(rows: &dyn Fn(u64) -> Vec<Row>) -> TestResult {
    let count = rows(0x10000).len();
    for number in 0..count {
        let node = NODES[number % NODES.len()];
        let gpu = Gpu::node(node)?;
        let word = gpu.buffer(2 * PAGE)?;
        let Some((name, packet)) = rows(word.at(PAGE)).into_iter().nth(number) else {
            return Err("the rows differ".into());
        };
        let before = Pm4::new().set32(word.at(0), 1);
        let commands = before.clone().append(&packet);
        // A packet that extends beyond the end has nothing behind it.
        let commands = match name.starts_with("beyond") {
            true => commands,
            false => commands.set32(word.at(4), 1).pad_to(commands_end(&packet)),
        };
        let commands = gpu.commands(&commands)?;
        gpu.submit(&commands)?;
        if let Ok(mark) = gpu.mark() {
            reaches(gpu.done(), mark)?;
        }
        is_in(gpu.device(), ExecutionState::DmaFault)
            .map_err(|error| format!("{name}: {error}"))?;
        ensure_eq!((word.get32(0), word.get32(4)), (1, 0), "{name}");
        word.holds(PAGE..2 * PAGE, 0)
            .map_err(|error| format!("{name}: {error}"))?;
        // The record tells where the packet is.
        let fault = gpu.device().page_fault()?;
        let packet = commands.address() + 4 * before.len() as u64;
        ensure_eq!((fault.address, fault.flags & WRITE), (packet, 0), "{name}");
        if is_brief() && number > 2 {
            break;
        }
    }
    println!("# {count} packets");
    Ok(())
}

/// Enough words behind a packet whose header may count too many.
fn commands_end(packet: &Pm4) -> usize {
    packet.len() + 40
}

fn headers() -> TestResult {
    each(&|at| {
        let [low, high] = halves(at);
        let write = |header: u32| {
            [header, 5 << 8, low, high, 7]
                .iter()
                .fold(Pm4::new(), |all, &word| all.word(word))
        };
        let good = header(opcode::WRITE_DATA, 4);
        let mut rows = vec![
            ("type 0", write(good & 0x3fff_ffff)),
            ("type 1", write((good & 0x3fff_ffff) | 0x4000_0000)),
            ("type 2 with bits", Pm4::new().word(0x8000_0001)),
            ("type 2 with a high bit", Pm4::new().word(0xa000_0000)),
            ("predicate", write(good | 1)),
            ("zero", Pm4::new().word(0)),
        ];
        for bit in 2..8 {
            rows.push(("a reserved bit of the header", write(good | (1 << bit))));
        }
        for unknown in [0x00, 0x11, 0x46, 0x92, 0xdf, 0xe6, 0xff] {
            rows.push(("no such packet", Pm4::new().packet(unknown, &[0; 4])));
        }
        rows
    })
}

fn write_data(at: u64) -> Vec<Row> {
    let [low, high] = halves(at);
    let packet = |control, low| Pm4::new().packet(opcode::WRITE_DATA, &[control, low, high, 7]);
    let mut rows = vec![
        ("a byte off", packet(5 << 8, low + 1)),
        ("two bytes off", packet(5 << 8, low + 2)),
        (
            "no data",
            Pm4::new().packet(opcode::WRITE_DATA, &[5 << 8, low, high]),
        ),
        ("one word", Pm4::new().packet(opcode::WRITE_DATA, &[5 << 8])),
    ];
    for selector in (0..16).filter(|selector| ![2, 5].contains(selector)) {
        rows.push(("the destination", packet(selector << 8, low)));
    }
    rows
}

fn dma_data(at: u64) -> Vec<Row> {
    let packet = |control: u32, source, destination, last| {
        Pm4::new().dma((1 << 31) | control, source, destination, last)
    };
    let fill = 2 << 29;
    let [low, high] = halves(at);
    vec![
        ("destination 1", packet(1 << 20, at, at, 4)),
        ("destination 2", packet(2 << 20, at, at, 4)),
        ("source 1", packet(1 << 29, at, at, 4)),
        ("SAS", packet(0, at, at, (1 << 26) | 4)),
        ("DAS", packet(0, at, at, (1 << 27) | 4)),
        ("a fill of 3 bytes", packet(fill, 7, at, 3)),
        ("a fill a byte off", packet(fill, 7, at + 1, 4)),
        ("a fill two bytes off", packet(fill, 7, at + 2, 4)),
        (
            "too few words",
            Pm4::new().packet(opcode::DMA_DATA, &[1 << 31, low, high, low, high]),
        ),
        (
            "too many words",
            Pm4::new().packet(opcode::DMA_DATA, &[1 << 31, low, high, low, high, 4, 0]),
        ),
    ]
}

fn copy_data(at: u64) -> Vec<Row> {
    let packet = |control, source, destination| {
        let ([from, from_high], [to, to_high]) = (halves(source), halves(destination));
        let words = [control, from, from_high, to, to_high];
        Pm4::new().packet(opcode::COPY_DATA, &words)
    };
    let (memory, wide) = (1 | (5 << 8), 1 << 16);
    let mut rows = vec![
        ("a source a byte off", packet(memory, at + 1, at)),
        ("a destination a byte off", packet(memory, at, at + 2)),
        ("a source of 64 bits off", packet(memory | wide, at + 4, at)),
        (
            "a destination of 64 bits off",
            packet(memory | wide, at, at + 4),
        ),
        (
            "a value of 64 bits off",
            packet(5 | (5 << 8) | wide, 7, at + 4),
        ),
        (
            "few",
            Pm4::new().packet(opcode::COPY_DATA, &[memory, 0, 0, 0]),
        ),
        (
            "many",
            Pm4::new().packet(opcode::COPY_DATA, &[memory, 0, 0, 0, 0, 0]),
        ),
    ];
    for selector in (0..16).filter(|selector| ![1, 2, 5, 9].contains(selector)) {
        rows.push(("the source", packet(selector | (5 << 8), at, at)));
    }
    for selector in (0..16).filter(|selector| ![2, 5].contains(selector)) {
        rows.push(("the destination", packet(1 | (selector << 8), at, at)));
    }
    rows
}

fn waits(at: u64) -> Vec<Row> {
    let [low, high] = halves(at);
    // The word is 0: every wait would end.
    let short = |control, low| {
        let words = [control, low, high, 0, 0, 0];
        Pm4::new().packet(opcode::WAIT_REG_MEM, &words)
    };
    let long = |control, low| {
        let words = [control, low, high, 0, 0, 0, 0, 0];
        Pm4::new().packet(opcode::WAIT_REG_MEM64, &words)
    };
    let (memory, always) = (1 << 4, 0);
    let mut rows = vec![
        ("a byte off", short(memory | always, low + 1)),
        ("a byte off, 64", long(memory, low + 1)),
        ("a word off, 64", long(memory, low + 4)),
        (
            "few",
            Pm4::new().packet(opcode::WAIT_REG_MEM, &[memory, low, high, 0, 0]),
        ),
        (
            "many",
            Pm4::new().packet(opcode::WAIT_REG_MEM, &[memory, low, high, 0, 0, 0, 0]),
        ),
        (
            "few, 64",
            Pm4::new().packet(opcode::WAIT_REG_MEM64, &[memory, low, high, 0, 0, 0, 0]),
        ),
    ];
    for control in [
        memory | 7,
        always,
        2 << 4,
        3 << 4,
        memory | (1 << 6),
        memory | (2 << 6),
    ] {
        rows.push(("the control word", short(control, low)));
        rows.push(("the control word, 64", long(control, low)));
    }
    rows
}

fn release_mem(at: u64) -> Vec<Row> {
    let [low, high] = halves(at);
    let packet = |select: u32, low| {
        let words = [0x514, select, low, high, 7, 7, 0];
        Pm4::new().packet(opcode::RELEASE_MEM, &words)
    };
    let (data32, data64, clock) = (1 << 29, 2 << 29, 3 << 29);
    let mut rows = vec![
        ("destination 2", packet(data32 | (2 << 16), low)),
        ("destination 3", packet(data32 | (3 << 16), low)),
        ("32 bits two bytes off", packet(data32, low + 2)),
        ("64 bits a word off", packet(data64, low + 4)),
        ("the clock a word off", packet(clock, low + 4)),
        (
            "few",
            Pm4::new().packet(opcode::RELEASE_MEM, &[0x514, data32, low, high, 7, 7]),
        ),
        (
            "many",
            Pm4::new().packet(opcode::RELEASE_MEM, &[0x514, data32, low, high, 7, 7, 0, 0]),
        ),
    ];
    for data in 4..8 {
        rows.push(("the data", packet(data << 29, low)));
    }
    for interrupt in [5, 7] {
        rows.push(("the interrupt", packet(data32 | (interrupt << 24), low)));
    }
    rows
}

fn others(at: u64) -> Vec<Row> {
    let [low, high] = halves(at);
    let atomic = |operation, low| {
        let words = [operation, low, high, 1, 0, 0, 0, 0];
        Pm4::new().packet(opcode::ATOMIC_MEM, &words)
    };
    let indirect = |low, last| Pm4::new().packet(opcode::INDIRECT_BUFFER, &[low, high, last]);
    let mut rows = vec![
        ("an atomic a word off", atomic(0x2f, low + 4)),
        ("the command of an atomic", atomic(0x2f | (2 << 8), low)),
        (
            "few, atomic",
            Pm4::new().packet(opcode::ATOMIC_MEM, &[0x2f, low, high, 1, 0, 0, 0]),
        ),
        ("a buffer that is not valid", indirect(low, 0)),
        ("a privileged buffer", indirect(low, (1 << 31) | (1 << 23))),
        ("a buffer a byte off", indirect(low + 1, 1 << 23)),
        ("a buffer two bytes off", indirect(low + 2, 1 << 23)),
        (
            "few, buffer",
            Pm4::new().packet(opcode::INDIRECT_BUFFER, &[low, high]),
        ),
        (
            "many, buffer",
            Pm4::new().packet(opcode::INDIRECT_BUFFER, &[low, high, 1 << 23, 0]),
        ),
        (
            "a condition a byte off",
            Pm4::new().packet(opcode::COND_EXEC, &[low + 1, high, 0, 0]),
        ),
        (
            "a reserved word",
            Pm4::new().packet(opcode::COND_EXEC, &[low, high, 1, 0]),
        ),
        (
            "few, condition",
            Pm4::new().packet(opcode::COND_EXEC, &[low, high, 0]),
        ),
        (
            "few, barrier",
            Pm4::new().packet(opcode::ACQUIRE_MEM, &[0; 5]),
        ),
        (
            "many, barrier",
            Pm4::new().packet(opcode::ACQUIRE_MEM, &[0; 8]),
        ),
        ("many, delay", Pm4::new().packet(opcode::DELAY, &[0, 0])),
        ("few, trap", Pm4::new().packet(opcode::TRAP, &[0, 0, 0])),
        (
            "a reserved word of a trap",
            Pm4::new().packet(opcode::TRAP, &[0, 0, 0, 1]),
        ),
    ];
    for operation in [0, 0x01, 0x26, 0x29, 0x31, 0x3f, 0x40, 0x7f] {
        rows.push(("the operation of an atomic", atomic(operation, low)));
    }
    rows
}

fn beyond(at: u64) -> Vec<Row> {
    let write = Pm4::new().write(at, &[1, 2, 3]);
    let cut = |words: usize| {
        let words = &write.words()[..words];
        words.iter().fold(Pm4::new(), |all, &word| all.word(word))
    };
    let mut rows: Vec<Row> = (1..write.len())
        .map(|words| ("beyond the end", cut(words)))
        .collect();
    rows.push((
        "beyond the end, NOP",
        Pm4::new().word(header(opcode::NOP, 1)),
    ));
    rows.push((
        "beyond the end, skipped",
        Pm4::new().skip_if_zero(at, 3).nop(0).nop(0),
    ));
    rows
}

fn queues() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let word = gpu.buffer(PAGE)?;
        let commands = Pm4::new().set32(word.at(0), 1).word(0).set32(word.at(4), 1);
        let commands = gpu.commands(&commands)?;
        let context = gpu.device().create_hw_context(node)?;
        let queue = context.create_hw_queue()?;
        queue.submit(1, commands.address(), commands.length())?;
        reaches(queue.progress(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::DmaFault)?;
        ensure_eq!(word.get64(0), 1, "node {node}");

        // In an indirect buffer.
        let gpu = Gpu::node(node)?;
        let word = gpu.buffer(PAGE)?;
        let inner = gpu.commands(&Pm4::new().set32(word.at(0), 1).word(0))?;
        let outer = Pm4::new()
            .indirect(inner.address(), inner.length().into())
            .set32(word.at(4), 1);
        gpu.fails(&outer, ExecutionState::DmaFault)?;
        ensure_eq!(word.get64(0), 1, "node {node}");
    }
    Ok(())
}
