// SPDX-License-Identifier: MIT OR Apache-2.0

//! The reader of a log of native fences, against an engine that is stopped after each store.

use crate::engine::log::{ENTRY_SIZE, HEADER_SIZE};
use crate::logic::fence_log::{Clocks, Entry, LogType, LogWords, Read, Reader, ENTRIES};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

const N: u64 = ENTRIES as u64;

/// A log, and the stores that an engine has still to make; how many of them it makes before the
/// next load is for the test to say.
struct Log {
    words: Vec<Cell<u64>>,
    stores: RefCell<Vec<(usize, u64)>>,
    pace: Cell<usize>,
    written: Cell<u64>,
}

impl Log {
    /// One of which so many entries have been written, all of them before the test.
    fn at(written: u64) -> Self {
        let log = Self {
            words: vec![Cell::new(0); 512],
            stores: RefCell::default(),
            pace: Cell::new(0),
            written: Cell::new(written),
        };

        for (word, value) in LogType::Signals.header() {
            log.words[word].set(value);
        }
        log.words[0].set(header(written));
        log
    }

    /// The engine is going to write so many entries. The value of one is its number, and so is
    /// everything else of it.
    fn writes(&self, count: u64) {
        for _ in 0..count {
            let number = self.written.get();
            let first = 5 + 6 * (number % N) as usize;
            let words = [
                (first, number),
                (first + 1, u64::from(number as u32)),
                (first + 3, number),
                (first + 5, number + 1),
            ];

            self.stores.borrow_mut().extend(words);
            self.stores.borrow_mut().push((0, header(number + 1)));
            self.written.set(number + 1);
        }
    }

    /// The engine makes so many of its stores.
    fn run(&self, stores: usize) {
        let mut left = self.stores.borrow_mut();
        let count = stores.min(left.len());

        for (word, value) in left.drain(..count) {
            self.words[word].set(value);
        }
    }
}

impl LogWords for Log {
    fn load(&self, word: usize) -> u64 {
        self.run(self.pace.get());
        self.words[word].get()
    }
}

/// The header when so many entries have been written.
fn header(written: u64) -> u64 {
    (((written / N) & 0xffff_ffff) << 32) | (written % N)
}

/// What a look finds. Each entry has to be whole.
fn look(reader: &mut Reader, log: &Log) -> (Vec<u64>, Read) {
    let mut seen = Vec::new();
    let Some(header) = reader.moved(log) else {
        return (seen, Read::default());
    };
    let read = reader.read(log, header, |entry| {
        let number = entry.value;

        assert_eq!(
            *entry,
            Entry {
                value: number,
                handle: number as u32,
                observed: number,
                end: number + 1,
            },
            "an entry that is half of another"
        );
        seen.push(number);
    });

    (seen, read)
}

#[test]
fn gpu_72_gpu_73_the_layout() {
    assert_eq!(HEADER_SIZE + N * ENTRY_SIZE, 4072);
    assert_eq!((4096 - HEADER_SIZE) / ENTRY_SIZE, N);
    assert_eq!(LogType::Waits.header(), [(1, 1), (2, 84)]);
    assert_eq!(LogType::Signals.header(), [(1, 2), (2, 84)]);
}

#[test]
fn gpu_79_what_is_lost_when_nobody_reads() {
    for (unread, lost) in [
        (0, 0),
        (1, 0),
        (N - 1, 0),
        // The engine may be writing over the first one.
        (N, 1),
        (N + 1, 2),
        (10 * N, 9 * N + 1),
    ] {
        for before in [0, 1, N - 1, N, 1000] {
            let log = Log::at(0);
            let mut reader = Reader::new(LogType::Signals);

            for _ in 0..before {
                log.writes(1);
                log.run(usize::MAX);
                look(&mut reader, &log);
            }
            log.writes(unread);
            log.run(usize::MAX);

            let (seen, read) = look(&mut reader, &log);

            assert_eq!(read.lost, lost, "{unread} behind {before}");
            assert!(seen.iter().copied().eq(before + lost..before + unread));
            assert_eq!(look(&mut reader, &log).0, []);
        }
    }
}

/// A changed WraparoundCount alone is no overflow, and it wraps itself.
#[test]
fn gpu_79_the_wraparounds_wrap() {
    let last = N << 32;

    for behind in [1, 2, N - 1] {
        let start = last - behind;
        let log = Log::at(start);
        let mut reader = Reader::new(LogType::Signals);

        reader.read(&log, header(start), |_| {});
        log.writes(2 * behind.min(N / 2 - 1));
        log.run(usize::MAX);

        let (seen, read) = look(&mut reader, &log);

        assert_eq!(read.lost, 0);
        assert_eq!(seen.first(), Some(&start));
        assert_eq!(seen.len() as u64, 2 * behind.min(N / 2 - 1));
    }
}

#[test]
fn gpu_84_what_a_process_writes_into_a_header() {
    for word in [N, N + 1, u64::MAX, 0xffff_ffff, (5 << 32) | 84] {
        let log = Log::at(0);
        let mut reader = Reader::new(LogType::Signals);

        log.words[0].set(word);

        let (seen, read) = look(&mut reader, &log);

        assert_eq!((seen, read.lost), (vec![], 1), "{word:#x}");
        // It goes on when the header makes sense.
        log.words[0].set(0);
        log.writes(3);
        log.run(usize::MAX);
        assert_eq!(look(&mut reader, &log).0, [0, 1, 2]);
    }
    // Back, and far ahead: as many entries as there are places, and no more.
    for (from, to) in [(10, 3), (0, N << 31), (3, (N << 32) - 1)] {
        let log = Log::at(from);
        let mut reader = Reader::new(LogType::Signals);
        let mut entries = 0;

        reader.read(&log, header(from), |_| {});
        log.words[0].set(header(to));

        let read = reader.read(&log, header(to), |_| entries += 1);

        assert!(entries < N);
        assert!(read.lost > 0);
    }
}

#[test]
fn gpu_84_entries_of_another_kind_are_counted() {
    let log = Log::at(0);
    let mut reader = Reader::new(LogType::Waits);

    log.writes(5);
    log.run(usize::MAX);

    let (seen, read) = look(&mut reader, &log);

    assert_eq!((seen, read.bad, read.lost), (vec![], 5, 0));
}

#[test]
fn gpu_82_times_that_go_back_are_counted() {
    let log = Log::at(0);
    let mut reader = Reader::new(LogType::Signals);

    log.writes(4);
    log.run(usize::MAX);
    for (entry, end) in [7, 7, 0, 3].into_iter().enumerate() {
        log.words[5 + 6 * entry + 5].set(end);
    }

    let mut seen = 0;
    let read = reader.read(&log, reader.clone().moved(&log).unwrap(), |_| seen += 1);

    // Those that are skipped have no time. The entry counts all the same.
    assert_eq!((seen, read.backwards), (4, 1));
}

#[test]
fn gpu_83_gpu_time_as_cpu_time() {
    for gpu_frequency in [1_000_000_000, 19_200_000, 100_000_001, 3] {
        let clocks = Clocks {
            gpu_frequency,
            gpu: 1_000 * gpu_frequency,
            cpu_ns: 5_000_000_000_000,
        };

        assert_eq!(clocks.cpu_ns(0), 0);
        assert_eq!(clocks.cpu_ns(clocks.gpu), clocks.cpu_ns);
        assert_eq!(
            clocks.cpu_ns(clocks.gpu - 3 * gpu_frequency),
            clocks.cpu_ns - 3_000_000_000
        );
        assert_eq!(
            clocks.cpu_ns(clocks.gpu + gpu_frequency),
            clocks.cpu_ns + 1_000_000_000
        );
        assert_eq!(
            clocks.cpu_ns(clocks.gpu + 1),
            clocks.cpu_ns + 1_000_000_000 / gpu_frequency
        );
    }
}

proptest! {
    /// The engine makes so many stores between two loads of the reader, from before the header is
    /// looked at until after the last entry: every entry that is told is whole, none is told twice,
    /// and those that are not are counted.
    #[test]
    fn gpu_79_no_entry_is_half_of_another(
        start in prop_oneof![0..200_u64, (N << 32) - 200..(N << 32) - 1],
        turns in prop::collection::vec((0..300_u64, 0..400_usize, 0..40_usize), 1..12),
    ) {
        let log = Log::at(start);
        let mut reader = Reader::new(LogType::Signals);
        let mut told = start;

        reader.read(&log, header(start), |_| {});
        for (writes, stores, pace) in turns {
            log.writes(writes);
            log.run(stores);
            log.pace.set(pace);

            let (seen, read) = look(&mut reader, &log);

            log.pace.set(0);
            for number in &seen {
                prop_assert!(*number >= told);
                told = number + 1;
            }
            // Whatever was lost lies between.
            prop_assert!(seen.len() as u64 + read.lost <= log.written.get());
        }
        log.run(usize::MAX);

        let (seen, _) = look(&mut reader, &log);
        let last = log.written.get();

        // The end of the log is always there.
        if last > told && last > start {
            prop_assert_eq!(seen.last().copied(), Some(last - 1));
        }
    }
}
