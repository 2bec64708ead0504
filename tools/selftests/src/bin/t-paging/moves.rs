// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in local memory moves all the time, while processors and engines use it.

use opendxg::pm4::Pm4;
use selftests::gpu::{Buffer, Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{Log, Record};
use crate::t_paging::switches::leave_room;
use crate::t_paging::traces::TRANSFER;

/// Directions of a TransferVirtual.
const FROM_SEGMENT: u64 = 0x40;
const TO_SEGMENT: u64 = 0x80;
const BOTH: u64 = FROM_SEGMENT | TO_SEGMENT;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-107 all moves to other pages of its segment, and nobody notices",
            || moves(false),
        )
        .test(
            "MEM-107 all moves to system memory and back where no others are free",
            || moves(true),
        )
        .test("MEM-107 an adapter is removed while all moves", removed)
}

/// How many transfers of each direction the log has: from the segment, to it, and within it.
fn transfers(log: &Log) -> TestResult<[usize; 3]> {
    let (_, text) = log.text()?;
    let all = text.lines().map(Record::parse);
    let all = all.collect::<TestResult<Vec<_>>>()?;
    let count = |flags| {
        let found = |one: &&Record| one.what == TRANSFER && one.get("flags") & BOTH == flags;
        all.iter().filter(found).count()
    };
    Ok([count(FROM_SEGMENT), count(TO_SEGMENT), count(BOTH)])
}

/// The GPU counts in one page and copies it to the other, the processor counts beside.
fn use_them(gpu: &Gpu, one: &Buffer, other: &Buffer, round: u64) -> TestResult {
    let mut commands = Pm4::new();
    for step in 0..64 {
        let at = 8 * step;
        commands =
            commands
                .write64(one.at(at), round * 64 + step)
                .copy(other.at(at), one.at(at), 8);
    }
    gpu.run(&commands)?;
    for step in 0..64 {
        ensure_eq!(other.get64(8 * step), round * 64 + step);
    }
    let last = one.bytes() - 8;
    ensure_eq!(one.get64(last), round);
    one.set64(last, round + 1);
    Ok(())
}

fn moves(is_full: bool) -> TestResult {
    let soft = SoftAdapter::enabled("paging-moves")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let (one, other) = (gpu.local_buffer(4 * PAGE)?, gpu.local_buffer(4 * PAGE)?);
    let log = Log::new(&gpu)?;
    if is_full {
        leave_room(&gpu, &log, 0)?;
    }
    log.control("move 1")?;
    let mut round = 0;
    eventually("there are many moves", || {
        let Ok(()) = use_them(&gpu, &one, &other, round) else {
            return true;
        };
        round += 1;
        transfers(&log).is_ok_and(|all| all.iter().sum::<usize>() >= 40)
    })?;
    // It says what was wrong before.
    use_them(&gpu, &one, &other, round)?;
    log.control("stay")?;
    let [from, to, within] = transfers(&log)?;
    match is_full {
        true => ensure!(from != 0 && to != 0 && within == 0, "{from} {to} {within}"),
        false => ensure!(from == 0 && to == 0 && within != 0, "{from} {to} {within}"),
    }
    log.control("clear")?;
    use_them(&gpu, &one, &other, round + 1)?;
    ensure_eq!(transfers(&log)?, [0, 0, 0]);
    drop((log, one, other, gpu));
    soft.remove()
}

fn removed() -> TestResult {
    let soft = SoftAdapter::enabled("paging-moved")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let one = gpu.local_buffer(4 * PAGE)?;
    let log = Log::new(&gpu)?;
    log.control("move 1")?;
    eventually("it moves", || transfers(&log).is_ok_and(|all| all[2] != 0))?;
    soft.disable()?;
    // It does not begin again.
    log.control("move 1")?;
    drop((log, one, gpu));
    soft.remove()
}
