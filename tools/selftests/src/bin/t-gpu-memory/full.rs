// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local memory that is full (MEM-20 to MEM-22).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, EvictFlags, ExecutionState, MemoryGroup, Resident, ResidentFlags, Status,
};
use selftests::child::Child;
use selftests::gpu::{is_in, reaches, Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

/// Bytes of each allocation.
const PIECE: u64 = 4 << 20;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "MEM-20 MEM-21 local memory that is full",
            Duration::from_secs(90),
            full,
        )
        .slow(
            "MEM-22 the documented loop",
            Duration::from_secs(120),
            documented_loop,
        )
        .slow(
            "MEM-22 two processes in turn",
            Duration::from_secs(180),
            two_processes,
        )
        .slow(
            "MEM-21 MustSucceed that fails",
            Duration::from_secs(90),
            must_succeed,
        )
        .slow(
            "MEM-20 nothing of a list that does not fit",
            Duration::from_secs(90),
            whole_lists,
        )
}

fn resident(gpu: &Gpu, list: &[&Allocation]) -> TestResult<Resident> {
    Ok(gpu.paging().make_resident(list, ResidentFlags::empty())?)
}

/// Makes pieces resident until one does not fit.
fn fill(gpu: &Gpu) -> TestResult<(Vec<Allocation>, u64)> {
    let mut pieces = Vec::new();
    let limit = gpu
        .device()
        .adapter()
        .video_memory(MemoryGroup::Local)?
        .budget
        / PIECE
        + 8;
    for _ in 0..limit {
        let piece = gpu.allocate_local(PIECE)?;
        match resident(gpu, &[&piece])? {
            Resident::At(value) => reaches(gpu.paging().fence(), value)?,
            Resident::TooMuch { bytes_to_trim } => {
                pieces.push(piece);
                return Ok((pieces, bytes_to_trim));
            }
        }
        pieces.push(piece);
    }
    Err("local memory has no end".into())
}

fn full() -> TestResult {
    let gpu = Gpu::new()?;
    let budget = gpu
        .device()
        .adapter()
        .video_memory(MemoryGroup::Local)?
        .budget;
    let (pieces, bytes_to_trim) = fill(&gpu)?;
    ensure!(
        bytes_to_trim != 0 && bytes_to_trim <= PIECE,
        "{bytes_to_trim:#x}"
    );
    let used = (pieces.len() as u64 - 1) * PIECE;
    ensure!(
        used <= budget && used + PIECE > budget,
        "{used:#x} of {budget:#x}"
    );
    // The one that did not fit has no count.
    let last = &pieces[pieces.len() - 1];
    fails_with(
        gpu.device().evict(&[last], EvictFlags::empty()),
        Status::INVALID_PARAMETER,
    )?;
    gpu.device().evict(&[&pieces[0]], EvictFlags::empty())?;
    let value = resident(&gpu, &[last])?.value()?;
    reaches(gpu.paging().fence(), value)?;
    gpu.run(&Pm4::new().nop(0))
}

fn documented_loop() -> TestResult {
    let gpu = Gpu::new()?;
    let (mut pieces, _) = fill(&gpu)?;
    let mut wanted = pieces.pop().ok_or("no pieces")?;
    for _ in 0..rounds(10) {
        let mut evicted = Vec::new();
        let value = loop {
            match resident(&gpu, &[&wanted])? {
                Resident::At(value) => break value,
                Resident::TooMuch { bytes_to_trim } => {
                    let mut bytes = 0;
                    while bytes < bytes_to_trim {
                        let piece = pieces.remove(0);
                        gpu.device().evict(&[&piece], EvictFlags::empty())?;
                        evicted.push(piece);
                        bytes += PIECE;
                    }
                }
            }
        };
        reaches(gpu.paging().fence(), value)?;
        ensure_eq!(evicted.len(), 1);
        pieces.push(wanted);
        wanted = evicted.remove(0);
    }
    Ok(())
}

/// Each of two processes wants more than half: both make progress by evicting their own.
fn two_processes() -> TestResult {
    let children: TestResult<Vec<Child>> = (0..2)
        .map(|index| {
            Child::spawn(move || {
                let gpu = Gpu::new()?;
                for round in 0..rounds(10) {
                    let mut last = Err(String::from("none").into());
                    for flags in [ResidentFlags::empty(), ResidentFlags::CANT_TRIM_FURTHER] {
                        let piece = gpu.allocate_local(6 * PIECE)?;
                        let answer = gpu.paging().make_resident(&[&piece], flags)?;
                        last = match answer {
                            Resident::At(value) => reaches(gpu.paging().fence(), value),
                            // The other one has all of it at this moment.
                            Resident::TooMuch { bytes_to_trim } => match bytes_to_trim {
                                0 => Err("0 bytes to trim".into()),
                                _ => Ok(()),
                            },
                        };
                    }
                    last.map_err(|error| format!("process {index}, round {round}: {error}"))?;
                }
                gpu.works()
            })
        })
        .collect();
    children?.into_iter().try_for_each(Child::join)
}

fn must_succeed() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let huge = 256 << 20;
    let piece = gpu.allocate_local(huge)?;
    let flags = ResidentFlags::CANT_TRIM_FURTHER;
    let answer = gpu.paging().make_resident(&[&piece], flags)?;
    ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
    is_in(gpu.device(), ExecutionState::Active)?;
    let flags = flags | ResidentFlags::MUST_SUCCEED;
    let answer = gpu.paging().make_resident(&[&piece], flags)?;
    ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
    is_in(gpu.device(), ExecutionState::OutOfMemory)?;
    is_in(other.device(), ExecutionState::Active)
}

fn whole_lists() -> TestResult {
    let gpu = Gpu::new()?;
    let small: TestResult<Vec<Allocation>> = (0..4).map(|_| gpu.allocate_local(PAGE)).collect();
    let (small, large) = (small?, gpu.allocate_local(256 << 20)?);
    let mut list: Vec<&Allocation> = small.iter().collect();
    list.push(&large);
    let answer = resident(&gpu, &list)?;
    ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
    for one in &small {
        let evicted = gpu.device().evict(&[one], EvictFlags::empty());
        fails_with(evicted, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}
