// SPDX-License-Identifier: MIT OR Apache-2.0

//! GPU-38, GPU-109: what one engine stores in order, another one sees in order, whichever packets
//! they use.
//!
//! Two engines run two queues at the same time. Only the two words that they share are loom's; all
//! else is memory that does not change, or a page of their own. So what orders the words is what
//! the engine does, and nothing in its surroundings.

use std::cell::Cell;

use loom::sync::atomic::Ordering;
use loom::sync::Arc;
use loom::thread;

use super::program::{Program, DATA_QWORD, EQUAL};
use super::shared_words::{Runner, OWN, SHARED};
use crate::engine::command_processor::Outcome;
use crate::engine::queue::Progress;
use crate::engine::shell::{Interrupts, Record};
use crate::platform::mutation::without;
use crate::platform::{word64, Part, Word64};

/// The shared words: what is passed, and what says that it has been.
const DATA: u64 = SHARED;
const FLAG: u64 = SHARED + 8;

type Words = [Word64; 2];

/// What is stored, by packets of every kind.
const ONES: u64 = 0x1_0000_0001;

/// Tells others of an interrupt by a word that orders nothing.
struct Line<'a>(&'a Word64);

impl Interrupts for Line<'_> {
    fn report(&mut self, _: Record) {
        self.0.store(ONES, Ordering::Relaxed);
        // Others look now. To loom a barrier is no place for that, and the next one is near.
        thread::yield_now();
    }
}

/// What a queue left in its own page.
fn run(shared: &Arc<Words>, program: &Program) -> Option<[u64; 4]> {
    run_with(shared, program, None)
}

/// The same of a submission with a progress value.
fn run_with(
    shared: &Arc<Words>,
    program: &Program,
    progress: Option<Progress>,
) -> Option<[u64; 4]> {
    let mut runner = Runner::new(shared, 1, program, progress);

    match runner.step(&(), &mut Line(&shared[1])) {
        Outcome::Done(_) => Some([0, 8, 16, 24].map(|at| runner.own(OWN + at))),
        // The other one has not come so far.
        Outcome::Blocked { .. } => None,
        outcome => panic!("{outcome:x?}"),
    }
}

/// Packets that store [`ONES`] in a shared word.
fn writers() -> Vec<(&'static str, fn(u64) -> Program)> {
    vec![
        ("WRITE_DATA", |va| Program::new().write64(va, ONES)),
        ("COPY_DATA", |va| Program::new().store_word(ONES, va, true)),
        ("DMA_DATA", |va| Program::new().fill(va, 1, 8)),
        ("RELEASE_MEM", |va| {
            Program::new().release(DATA_QWORD, 0, va, ONES)
        }),
        ("ATOMIC_MEM", |va| Program::new().atomic(0x27, va, ONES, 0)),
    ]
}

/// Packets that put a shared word into a page of their own, or do not go on before it is there.
fn readers() -> Vec<(&'static str, fn(u64, u64) -> Program)> {
    vec![
        ("COPY_DATA", |from, to| {
            Program::new().move_word(from, to, true)
        }),
        ("DMA_DATA", |from, to| Program::new().copy(from, to, 8)),
        ("WAIT_REG_MEM64", |from, to| {
            Program::new()
                .wait64(from, EQUAL, ONES, !0, 0)
                .write64(to, ONES)
        }),
    ]
}

/// Two queues, in all interleavings, of which the reader sees the flag in some.
fn pass(writer: Program, reader: Program) {
    pass_from(
        move |shared| {
            run(shared, &writer);
        },
        reader,
    );
}

/// A thread and a queue, in all interleavings.
fn pass_from(writer: impl Fn(&Arc<Words>) + Send + Sync + 'static, reader: Program) {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = seen.clone();
    let writer = std::sync::Arc::new(writer);

    loom::model(move || {
        let shared: Arc<Words> = Arc::new([word64(0), word64(0)]);
        let other = {
            let (shared, writer) = (shared.clone(), writer.clone());

            thread::spawn(move || writer(&shared))
        };

        if let Some([flag, data, ..]) = run(&shared, &reader) {
            if flag == ONES {
                assert_eq!(data, ONES, "the flag without the data");
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        other.join().unwrap();
    });
    assert_ne!(seen.load(std::sync::atomic::Ordering::Relaxed), 0);
}

fn joined(first: Program, second: Program) -> Program {
    first.dwords(&second.0)
}

#[test]
fn gpu_38_messages_pass_between_queues_by_each_pair_of_packets() {
    for (data_name, data) in writers() {
        for (flag_name, flag) in writers() {
            for (read_name, read) in readers() {
                println!("{data_name}, {flag_name}; {read_name}");
                pass(
                    joined(data(DATA), flag(FLAG)),
                    joined(
                        read(FLAG, OWN),
                        Program::new().move_word(DATA, OWN + 8, true),
                    ),
                );
            }
        }
    }
}

#[test]
fn gpu_62_what_was_stored_is_visible_before_the_interrupt() {
    pass(
        // The interrupt sets the flag.
        Program::new().release(DATA_QWORD, 2, DATA, ONES),
        flag_then_data(),
    );
}

/// A queue whose progress value is the data, and a shell that tells its end by the flag.
fn retire(shared: &Arc<Words>) {
    let progress = Progress {
        va: DATA,
        value: ONES,
    };

    run_with(shared, &Program::new(), Some(progress)).unwrap();
    // Orders nothing.
    shared[1].store(ONES, Ordering::Relaxed);
}

/// The reader of the flag, and then of the data.
fn flag_then_data() -> Program {
    Program::new()
        .move_word(FLAG, OWN, true)
        .move_word(DATA, OWN + 8, true)
}

#[test]
fn gpu_109_the_progress_value_is_visible_before_the_end_is_told() {
    pass_from(retire, flag_then_data());
}

#[test]
#[should_panic = "the flag without the data"]
fn mutant_no_barrier_behind_the_progress_value() {
    without(Part::FullFence, || pass_from(retire, flag_then_data()));
}

#[test]
#[should_panic = "the flag without the data"]
fn mutant_no_barrier_between_packets() {
    without(Part::FullFence, || {
        pass(
            Program::new().write64(DATA, ONES).write64(FLAG, ONES),
            flag_then_data(),
        );
    });
}

/// Each of two queues stores one word and then looks at the other. Whether it ever happened that
/// neither saw what the other had stored.
fn neither_sees(between: fn(Program) -> Program) -> bool {
    let neither = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let found = neither.clone();

    loom::model(move || {
        let shared: Arc<Words> = Arc::new([word64(0), word64(0)]);
        let program = move |own, other| {
            between(Program::new().write64(own, ONES)).move_word(other, OWN, true)
        };
        let other = {
            let shared = shared.clone();

            thread::spawn(move || run(&shared, &program(DATA, FLAG)).unwrap()[0])
        };
        let here = run(&shared, &program(FLAG, DATA)).unwrap()[0];

        if other.join().unwrap() == 0 && here == 0 {
            found.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    neither.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn gpu_38_release_mem_and_acquire_mem_are_full_barriers() {
    assert!(!neither_sees(|program| program.acquire()));
    assert!(!neither_sees(|program| program.release(0, 0, 0, 0)));
}

#[test]
fn mutant_no_full_barrier() {
    let seen = Cell::new(false);

    without(Part::FullFence, || {
        seen.set(neither_sees(|program| program.acquire()));
    });
    assert!(seen.get());
}
