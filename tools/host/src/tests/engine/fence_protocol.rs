// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of an engine that carries out packets of native fences, and of a KMD, another
//! engine, a reader of logs or a process beside it.
//!
//! Everything here is what ships: the command processor, the KMD's fences, the reader. So each
//! barrier that is taken out of these is missed by a scene (FEN-171); `tools/host/barriers.py`
//! does that.

use std::sync::atomic::{AtomicU64, Ordering};

use loom::{
    sync::{
        atomic::{fence, Ordering::Relaxed, Ordering::SeqCst},
        Arc,
    },
    thread::spawn,
};

use super::{
    program::Program,
    shared_words::{Runner, SharedWords, CONTROL, LOG, OWN, SHARED},
};
use crate::{
    ddi::{
        native_fence::{
            CurrentValueUpdate::{AlwaysSignaled, Store},
            FenceUpdate, NativeFenceCallbacks, OpenNativeFenceArgs,
        },
        types::OpenNativeFenceCookie,
    },
    engine::{
        command_processor::Outcome,
        run_list::List,
        shell::{Interrupts, Record},
    },
    kmd::soft::MonitoredValues,
    logic::fence_log::{LogType, LogWords, Reader},
    platform::{load32_acquire, load_acquire, word64, Word64},
    tests::{interleavings::explore_within, native_fences::Scene},
};

/// Where the process sees both words.
const CURRENT: u64 = SHARED;
const MONITORED: u64 = SHARED + 8;
/// The value of the first entry of the log. A header has 5 words.
const FIRST_ENTRY: u64 = LOG + 5 * 8;
/// Entries of the log.
const ENTRIES: u32 = 2;

/// A fence that a process has open, and a log.
struct Gpu {
    fence: Arc<Scene>,
    process: u16,
    open: OpenNativeFenceCookie,
    header: Word64,
    entry: Word64,
}

impl SharedWords for Gpu {
    fn word(&self, va: u64) -> Option<&Word64> {
        match va {
            CURRENT => Some(&self.fence.current),
            MONITORED => Some(&self.fence.monitored),
            LOG => Some(&self.header),
            FIRST_ENTRY => Some(&self.entry),
            _ => None,
        }
    }
}

/// Of the log only the words that engines and the reader share are there.
impl LogWords for Gpu {
    fn load(&self, word: usize) -> u64 {
        match word {
            0 => load_acquire(&self.header),
            5 => load_acquire(&self.entry),
            _ => 0,
        }
    }
}

/// The line of an engine to the CPU.
impl Interrupts for &Gpu {
    fn report(&mut self, record: Record) {
        assert_eq!(record, Record::NativeFenceSignaled(self.fence.index()));
        self.fence
            .lock
            .hold(|class| self.fence.interrupts.signaled(class));
    }
}

impl Gpu {
    fn new() -> Arc<Self> {
        Self::with(MonitoredValues::Direct)
    }

    fn with(monitored_values: MonitoredValues) -> Arc<Self> {
        let fence = Scene::with(monitored_values);
        let process = fence.fences.add_process().unwrap();
        let open = OpenNativeFenceArgs {
            current_value: CURRENT,
            monitored_value: MONITORED,
        };
        let open = fence.fences.open(fence.fence, process, &open).unwrap();

        Arc::new(Self {
            fence,
            process: process as u16,
            open,
            header: word64(0),
            entry: word64(0),
        })
    }
}

fn runner(gpu: &Arc<Gpu>, program: &Program) -> Runner<Gpu> {
    Runner::new(gpu, gpu.process, program, None)
}

/// An engine carries out a program, to its end.
fn run(gpu: &Arc<Gpu>, program: &Program) {
    let outcome = runner(gpu, program)
        .logged(ENTRIES)
        .step(&*gpu.fence.fences, &mut &**gpu);

    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:x?}");
}

/// An engine waits for a value; false if it sleeps and nobody will wake it, when `others` have done
/// what they do.
fn wait(gpu: &Arc<Gpu>, value: u64, others: impl FnOnce()) -> bool {
    let mut runner = runner(gpu, &Program::new().wait_fence(CURRENT, value));
    let fences = &gpu.fence.fences;
    let goes_on = match runner.step(&**fences, &mut &**gpu) {
        Outcome::BlockedOnFence(index) => {
            // The run list has the queue in the list of the fence, and looks again.
            fences.set_waiting(index, 0, List::from_word((1 << 32) | 1));
            runner.is_reached(&**fences)
        }
        // It has gone on, or the fence is closed.
        _ => true,
    };

    others();
    goes_on || gpu.fence.bell.pop().is_some()
}

/// In a thread.
fn beside<T: Send + Sync + 'static>(
    all: &Arc<T>,
    body: impl FnOnce(&Arc<T>) + Send + 'static,
) -> impl FnOnce() {
    let all = all.clone();
    let thread = spawn(move || body(&all));

    move || thread.join().unwrap()
}

fn signal(value: u64) -> Program {
    Program::new().signal_fence(0, CURRENT, value)
}

/// A wait for 1 begins on the CPU while an engine signals it.
fn explore_registration(monitored_values: MonitoredValues) {
    explore_within(Some(3), move || {
        let gpu = Gpu::with(monitored_values);
        let engine = beside(&gpu, |gpu| run(gpu, &signal(1)));
        let update = FenceUpdate {
            fence: gpu.fence.fence,
            value: 0,
            word: &gpu.fence.monitored,
            current_value: &gpu.fence.current,
        };

        gpu.fence.monitor(&update);

        let sample = load_acquire(&gpu.fence.current);

        engine();
        assert!(
            sample >= 1 || load32_acquire(&gpu.fence.interrupts.0) != 0,
            "nobody knows"
        );
    });
}

#[test]
fn fen_76_a_signal_packet_against_a_wait_of_the_cpu() {
    explore_registration(MonitoredValues::Direct);
}

#[test]
fn fen_75_a_signal_packet_against_a_wait_of_the_cpu_by_a_copy() {
    explore_registration(MonitoredValues::Shadow);
}

#[test]
fn gpu_53_a_wait_packet_against_a_signal_packet() {
    explore_within(Some(3), || {
        let gpu = Gpu::new();
        let engine = beside(&gpu, |gpu| run(gpu, &signal(1)));

        assert!(wait(&gpu, 1, engine), "it sleeps");
    });
}

#[test]
fn gpu_53_a_wait_packet_against_a_cpu_signal() {
    explore_within(Some(3), || {
        let gpu = Gpu::new();
        let cpu = beside(&gpu, |gpu| gpu.fence.update(1, Store));

        assert!(wait(&gpu, 1, cpu), "it sleeps");
    });
}

/// CloseNativeFence: the queue is not left behind with a fence that is not there.
#[test]
fn gpu_58_a_wait_packet_against_a_close() {
    explore_within(Some(3), || {
        let gpu = Gpu::new();
        let close = beside(&gpu, |gpu| gpu.fence.fences.close(gpu.open));

        assert!(wait(&gpu, 1, close), "it sleeps");
    });
}

/// M23: an engine that signals while the fence becomes AlwaysSignaled does not leave its value.
#[test]
fn fen_104_a_signal_packet_against_always_signaled() {
    explore_within(None, || {
        let gpu = Gpu::new();
        let engine = beside(&gpu, |gpu| run(gpu, &signal(1)));

        gpu.fence.update(u64::MAX, AlwaysSignaled);
        engine();
        assert_eq!(load_acquire(&gpu.fence.current), u64::MAX);
    });
}

/// M23: and a queue that waits for more goes on.
#[test]
fn fen_104_a_wait_packet_against_always_signaled_and_a_signal_packet() {
    explore_within(Some(2), || {
        let gpu = Gpu::new();
        let engine = beside(&gpu, |gpu| run(gpu, &signal(1)));
        let cpu = beside(&gpu, |gpu| gpu.fence.update(u64::MAX, AlwaysSignaled));
        let others = || {
            engine();
            cpu();
        };

        assert!(wait(&gpu, 5, others), "it sleeps");
    });
}

/// An entry of the log of signals, without the signal.
fn entry(value: u64) -> Program {
    Program::new().write_log(2, 7, value, !0, false)
}

/// What the reader trusts, of `read`.
fn values(gpu: &Gpu, reader: &mut Reader, header: u64) -> Vec<u64> {
    let mut values = Vec::new();

    reader.read(gpu, header, |entry| values.push(entry.value));
    values
}

/// GPU-77, GPU-78: who sees the header sees the entry.
#[test]
fn gpu_78_a_reader_that_sees_the_header_sees_the_entry() {
    let seen = std::sync::Arc::new(AtomicU64::new(0));
    let count = seen.clone();

    explore_within(None, move || {
        let gpu = Gpu::new();
        let count = count.clone();
        let reads = beside(&gpu, move |gpu| {
            let mut reader = Reader::new(LogType::Signals, ENTRIES);

            if let Some(header) = reader.moved(&**gpu) {
                assert_eq!(values(gpu, &mut reader, header), [1]);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });

        run(&gpu, &entry(1));
        reads();
    });
    assert_ne!(seen.load(Ordering::Relaxed), 0);
}

/// GPU-79: the engine writes over the entry that is read. It is the old one, or it is lost.
#[test]
fn gpu_79_a_reader_does_not_trust_what_is_written_over() {
    explore_within(None, || {
        let gpu = Gpu::new();

        run(&gpu, &entry(1));

        let mut reader = Reader::new(LogType::Signals, ENTRIES);
        let header = reader.moved(&*gpu).unwrap();
        // The second one has the other place.
        let engine = beside(&gpu, |gpu| {
            run(gpu, &Program::new().dwords(&entry(2).0).dwords(&entry(3).0))
        });
        let values = values(&gpu, &mut reader, header);

        engine();
        assert!([vec![1], vec![]].contains(&values), "{values:?}");
    });
}

/// What a process shares with the engine of its ring.
struct Ringed {
    data: Word64,
    written: Word64,
}

impl SharedWords for Ringed {
    fn word(&self, va: u64) -> Option<&Word64> {
        match va {
            SHARED => Some(&self.data),
            CONTROL => Some(&self.written),
            _ => None,
        }
    }
}

/// GPU-17: what a process has written before the write pointer is there for the packets.
#[test]
fn gpu_17_packets_of_a_ring_see_what_came_before_the_write_pointer() {
    let seen = std::sync::Arc::new(AtomicU64::new(0));
    let count = seen.clone();

    explore_within(None, move || {
        let program = Program::new().move_word(SHARED, OWN, true);
        let length = program.0.len() as u64;
        let shared = Arc::new(Ringed {
            data: word64(0),
            written: word64(0),
        });
        let process = beside(&shared, move |shared| {
            shared.data.store(1, Relaxed);
            fence(SeqCst);
            shared.written.store(length, Relaxed);
        });
        let mut runner = Runner::of_ring(&shared, &program);
        let outcome = runner.step(&(), &mut NoLine);

        assert!(matches!(outcome, Outcome::Idle), "{outcome:x?}");
        // It was told how much has been done.
        if runner.own(CONTROL + 64) != 0 {
            assert_eq!(runner.own(OWN), 1);
            count.fetch_add(1, Ordering::Relaxed);
        }
        process();
    });
    assert_ne!(seen.load(Ordering::Relaxed), 0);
}

struct NoLine;

impl Interrupts for NoLine {
    fn report(&mut self, record: Record) {
        panic!("{record:?}");
    }
}
