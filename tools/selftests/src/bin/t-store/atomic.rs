// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GET sees one whole SET (RES-59).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use selftests::rounds::{together, Part};
use selftests::sharing::{key, Client, Entry, Item, Shape};
use selftests::stress::Figure;
use selftests::{ensure, ensure_eq, Suite, TestResult};

const SIZE: usize = 64 << 10;
const WRITERS: usize = 2;
const READERS: usize = 8;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite.stress(
        "RES-59 two writers, eight readers, one entry of 64 KiB with a file",
        Duration::from_secs(120),
        // Seconds.
        Figure::new(3, 60),
        whole,
    )
}

/// A pattern that tells its number in every word.
fn pattern(number: u32, length: usize) -> Vec<u8> {
    let words = (0..length as u32 / 4).map(|at| number ^ at.wrapping_mul(0x9e37_79b9));
    words.flat_map(u32::to_ne_bytes).collect()
}

/// A memory file of as many bytes as its number.
fn numbered(number: u32) -> TestResult<OwnedFd> {
    let file = selftests::fds::memfd()?;
    rustix::fs::ftruncate(&file, number.into())?;
    Ok(file)
}

fn check(entry: &Entry, number: u32) -> TestResult {
    // Bytes, schema and file all carry one number; its length depends on it, too.
    let length = SIZE - (number as usize % 64) * 4;
    ensure_eq!(entry.bytes.len(), length);
    ensure!(
        entry.bytes == pattern(number, length),
        "a mixture, number {number}"
    );
    let file = entry.file.as_ref().ok_or("no file")?;
    ensure_eq!(rustix::fs::fstat(file)?.st_size, i64::from(number));
    Ok(())
}

fn whole(figure: Figure) -> TestResult {
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Resource)?;
    let target = object.target();
    let store = |number: u32| -> TestResult<u64> {
        let bytes = pattern(number, SIZE - (number as usize % 64) * 4);
        let file = numbered(number)?;
        let item = Item::new(key(1), 0, &bytes).file(file.as_fd());
        Ok(client.set_info(target, &[item])?)
    };
    store(1)?;
    let stop = AtomicBool::new(false);
    let (sets, gets) = (AtomicU64::new(1), AtomicU64::new(0));
    let end = Instant::now() + figure.time();
    let write = |index: usize| {
        let (stop, sets, store) = (&stop, &sets, &store);
        move || -> TestResult {
            let mut number = 2 + index as u32;
            while !stop.load(Ordering::Relaxed) {
                store(number)?;
                sets.fetch_add(1, Ordering::Relaxed);
                number += WRITERS as u32;
            }
            Ok(())
        }
    };
    let read = |index: usize| {
        let (stop, sets, gets, client, fd) = (&stop, &sets, &gets, &client, &fd);
        move || -> TestResult {
            let target = match index % 2 {
                0 => target,
                _ => selftests::sharing::Target::This(fd.as_fd()),
            };
            let mut last = 0;
            let result = (|| {
                let enough = || {
                    [sets, gets]
                        .iter()
                        .all(|count| count.load(Ordering::Relaxed) > 10)
                };
                let over = || Instant::now() >= end && enough();
                while !over() && !stop.load(Ordering::Relaxed) {
                    let entry = client.get_file(target, key(1), 0)?;
                    let first = entry.bytes.first_chunk().ok_or("too short")?;
                    check(&entry, u32::from_ne_bytes(*first))?;
                    ensure!(entry.generation >= last, "back in time");
                    last = entry.generation;
                    gets.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })();
            stop.store(true, Ordering::Relaxed);
            result
        }
    };
    let mut parts: Vec<Part<'_>> = Vec::new();
    parts.extend((0..WRITERS).map(|index| Box::new(write(index)) as Part<'_>));
    parts.extend((0..READERS).map(|index| Box::new(read(index)) as Part<'_>));
    together(parts)?;
    let (sets, gets) = (sets.into_inner(), gets.into_inner());
    println!("# {sets} sets, {gets} gets");
    ensure_eq!(client.query(target)?.object.generation, sets);
    Ok(())
}
