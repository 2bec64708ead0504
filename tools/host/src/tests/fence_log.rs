// SPDX-License-Identifier: MIT OR Apache-2.0

//! The reader of a log of native fences, against an engine that is stopped after each store.

use crate::engine::log::{ENTRY_SIZE, HEADER_SIZE};
use crate::logic::fence_log::{Clocks, Entry, LogSize, LogType, LogWords, Read, Reader};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

/// All sizes that a log can have.
fn sizes() -> impl Iterator<Item = LogSize> + Clone {
    std::iter::successors(Some(LogSize::FIRST), |size| {
        (*size < LogSize::LAST).then(|| size.larger())
    })
}

/// A log, and the stores that an engine has still to make; how many of them it makes before the
/// next load is for the test to say.
struct Log {
    size: LogSize,
    words: Vec<Cell<u64>>,
    stores: RefCell<Vec<(usize, u64)>>,
    pace: Cell<usize>,
    written: Cell<u64>,
}

impl Log {
    /// One of which so many entries have been written, all of them before the test.
    fn at(size: LogSize, written: u64) -> Self {
        let log = Self {
            size,
            words: vec![Cell::new(0); size.pages() as usize * 512],
            stores: RefCell::default(),
            pace: Cell::new(0),
            written: Cell::new(written),
        };

        for (word, value) in LogType::Signals.header(size) {
            log.words[word].set(value);
        }
        log.words[0].set(log.header(written));
        log
    }

    /// How many entries it has.
    fn entries(&self) -> u64 {
        self.size.entries().into()
    }

    /// The header when so many entries have been written.
    fn header(&self, written: u64) -> u64 {
        (((written / self.entries()) & 0xffff_ffff) << 32) | (written % self.entries())
    }

    /// Who has read so many entries.
    fn reader(&self, read: u64) -> Reader {
        let mut reader = Reader::new(LogType::Signals, self.size.entries());

        reader.read(self, self.header(read), |_| {});
        reader
    }

    /// The engine is going to write so many entries. The value of one is its number, and so is
    /// everything else of it.
    fn writes(&self, count: u64) {
        for _ in 0..count {
            let number = self.written.get();
            let first = 5 + 6 * (number % self.entries()) as usize;
            let words = [
                (first, number),
                (first + 1, u64::from(number as u32)),
                (first + 3, number),
                (first + 5, number + 1),
            ];

            self.stores.borrow_mut().extend(words);
            self.stores.borrow_mut().push((0, self.header(number + 1)));
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
    let one = LogSize::FIRST;

    assert_eq!(one.entries(), 84);
    assert_eq!(LogType::Waits.header(one), [(1, 1), (2, 84)]);
    assert_eq!(LogType::Signals.header(one), [(1, 2), (2, 84)]);
    assert_eq!(LogType::Signals.header(LogSize::LAST), [(1, 2), (2, 1364)]);
}

#[test]
fn gpu_81_how_large_a_log_is() {
    let all: Vec<_> = sizes().map(|size| (size.pages(), size.entries())).collect();

    assert_eq!(all, [(1, 84), (2, 169), (4, 340), (8, 681), (16, 1364)]);
    for (pages, entries) in all {
        let bytes = HEADER_SIZE + u64::from(entries) * ENTRY_SIZE;

        // As many as fit, and no more.
        assert!(bytes <= u64::from(pages) * 4096);
        assert!(bytes + ENTRY_SIZE > u64::from(pages) * 4096);
    }
    assert_eq!(LogSize::LAST.larger(), LogSize::LAST);
    assert!(LogSize::FIRST < LogSize::TRACED && LogSize::TRACED < LogSize::LAST);
}

#[test]
fn gpu_79_what_is_lost_when_nobody_reads() {
    for size in sizes() {
        let n = u64::from(size.entries());

        for (unread, lost) in [
            (0, 0),
            (1, 0),
            (n - 1, 0),
            // The engine may be writing over the first one.
            (n, 1),
            (n + 1, 2),
            (10 * n, 9 * n + 1),
        ] {
            for before in [0, 1, n - 1, n, 1000] {
                let log = Log::at(size, 0);
                let mut reader = log.reader(0);

                for _ in 0..before {
                    log.writes(1);
                    log.run(usize::MAX);
                    look(&mut reader, &log);
                }
                log.writes(unread);
                log.run(usize::MAX);

                let (seen, read) = look(&mut reader, &log);

                assert_eq!(read.lost, lost, "{unread} of {n} behind {before}");
                assert!(seen.iter().copied().eq(before + lost..before + unread));
                assert_eq!(look(&mut reader, &log).0, []);
            }
        }
    }
}

/// A changed WraparoundCount alone is no overflow, and it wraps itself.
#[test]
fn gpu_79_the_wraparounds_wrap() {
    for size in sizes() {
        let n = u64::from(size.entries());

        for behind in [1, 2, n - 1] {
            let start = (n << 32) - behind;
            let log = Log::at(size, start);
            let mut reader = log.reader(start);

            log.writes(2 * behind.min(n / 2 - 1));
            log.run(usize::MAX);

            let (seen, read) = look(&mut reader, &log);

            assert_eq!(read.lost, 0);
            assert_eq!(seen.first(), Some(&start));
            assert_eq!(seen.len() as u64, 2 * behind.min(n / 2 - 1));
        }
    }
}

#[test]
fn gpu_84_what_a_process_writes_into_a_header() {
    for size in sizes() {
        let n = u64::from(size.entries());

        for word in [n, n + 1, u64::MAX, 0xffff_ffff, (5 << 32) | n] {
            let log = Log::at(size, 0);
            let mut reader = log.reader(0);

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
        for (from, to) in [(10, 3), (0, n << 31), (3, (n << 32) - 1)] {
            let log = Log::at(size, from);
            let mut reader = log.reader(from);
            let mut entries = 0;

            log.words[0].set(log.header(to));

            let read = reader.read(&log, log.header(to), |_| entries += 1);

            assert!(entries < n);
            assert!(read.lost > 0);
        }
    }
}

/// What the header says of the number of entries and of the type is not read back.
#[test]
fn gpu_84_the_rest_of_the_header_says_nothing() {
    for size in sizes() {
        for (ty, entries) in [(0, 0), (1, 1), (u64::MAX, u64::MAX), (2, 1 << 32)] {
            let log = Log::at(size, 0);
            let mut reader = log.reader(0);

            log.words[1].set(ty);
            log.words[2].set(entries);
            log.writes(u64::from(size.entries()) - 1);
            log.run(usize::MAX);

            let (seen, read) = look(&mut reader, &log);

            assert_eq!(read, Read::default());
            assert!(seen.iter().copied().eq(0..u64::from(size.entries()) - 1));
        }
    }
}

#[test]
fn gpu_84_entries_of_another_kind_are_counted() {
    let log = Log::at(LogSize::FIRST, 0);
    let mut reader = Reader::new(LogType::Waits, LogSize::FIRST.entries());

    log.writes(5);
    log.run(usize::MAX);

    let (seen, read) = look(&mut reader, &log);

    assert_eq!((seen, read.bad, read.lost), (vec![], 5, 0));
}

#[test]
fn gpu_82_times_that_go_back_are_counted() {
    let log = Log::at(LogSize::FIRST, 0);
    let mut reader = log.reader(0);

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
        (size, start) in prop::sample::select(sizes().collect::<Vec<_>>()).prop_flat_map(|size| {
            let (n, numbers) = (u64::from(size.entries()), u64::from(size.entries()) << 32);
            let start = prop_oneof![0..3 * n, numbers - 3 * n..numbers - 1];

            (Just(size), start)
        }),
        // As much as a page of entries, or as many as there are.
        turns in prop::collection::vec((0..4_u64, 0..300_u64, 0..400_usize, 0..40_usize), 1..12),
    ) {
        let log = Log::at(size, start);
        let mut reader = log.reader(start);
        let mut told = start;

        for (rounds, writes, stores, pace) in turns {
            log.writes(writes + rounds.saturating_sub(1) * log.entries() / 2);
            log.run(stores * (rounds as usize + 1));
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
