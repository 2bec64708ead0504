// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused: other users, bad requests, times that make no sense.

use std::io::ErrorKind;

use opendxg::pm4::Pm4;
use opendxg::Status;
use selftests::child::Child;
use selftests::user::become_user;
use selftests::{ensure_eq, fails_with, fixture, Failure, Suite, TestResult};

use super::faulty::{bytes, Faulty};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-98 only who controls the machine may", users)
        .test("GPU-98 bad commands change nothing", commands)
        .test("GPU-92 TDR times", times)
}

fn users() -> TestResult {
    Child::spawn(|| {
        become_user(1000)?;
        let adapter = fixture::adapter()?;
        let device = adapter.create_device()?;
        let gpu = selftests::gpu::Gpu::on(&device, 0)?;
        fails_with(adapter.reset(None), Status::ACCESS_DENIED)?;
        fails_with(adapter.reset(Some(0)), Status::ACCESS_DENIED)?;
        for command in (1..=10).chain([12, 13]) {
            let mut data = bytes(command, 0, 0);
            fails_with(adapter.private_escape(&mut data), Status::ACCESS_DENIED)?;
        }
        gpu.run(&Pm4::new().nop(0))
    })?
    .join()
}

fn commands() -> TestResult {
    let faulty = Faulty::new("commands")?;
    let gpu = faulty.gpu(0)?;
    let invalid = Status::INVALID_PARAMETER;
    let good = bytes(6, 0, 0);
    for (at, byte) in [(0, 0), (4, 2), (8, 0), (8, 14), (12, 4), (16, 2)] {
        let mut data = good.clone();
        data[at] = byte;
        fails_with(faulty.adapter.private_escape(&mut data), invalid)?;
    }
    for (command, node, argument) in [(1, 0, 1), (2, 0, 1), (3, 0, 2), (5, 0, 1_000_000_001)]
        .into_iter()
        .chain([(7, 1, 0), (7, 0, 1), (8, 1, 0), (8, 0, 8), (9, 0, 8)])
        .chain([(12, 1, 0), (12, 0, 4), (13, 1, 0), (13, 0, 1)])
    {
        let mut data = bytes(command, node, argument);
        fails_with(faulty.adapter.private_escape(&mut data), invalid)?;
    }
    fails_with(
        faulty.adapter.private_escape(&mut good[..23].to_vec()),
        invalid,
    )?;
    fails_with(faulty.adapter.reset(Some(4)), invalid)?;
    gpu.run(&Pm4::new().nop(0))
}

fn times() -> TestResult {
    let faulty = Faulty::new("times")?;
    for bad in ["9", "0", "-1", "3600001", "x", " "] {
        match faulty.soft.set("tdr_delay_ms", bad) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            other => return Err(Failure::Failed(format!("{bad}: {other:?}"))),
        }
    }
    ensure_eq!(faulty.soft.get("tdr_delay_ms")?, "300");
    for good in ["10", "3600000"] {
        faulty.soft.set("tdr_delay_ms", good)?;
        ensure_eq!(faulty.soft.get("tdr_delay_ms")?, good);
    }
    Ok(())
}
