// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process reads of the operation log.

use std::fs;

use opendxg::{Dxg, EvictFlags, Luid, PagingLog};
use rustix::io::Errno;
use selftests::child::{Child, Gate};
use selftests::gpu::{Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::user::{become_user, OTHER, USER};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::engine::{local, reads, write, FILL, SUBMIT};
use crate::t_paging::log::{names, Log, Record};
use crate::t_paging::traces::{resident, TRANSFER, UPDATE};

pub(crate) fn tests(suite: Suite) -> Suite {
    ["cpu_virtual", "gpu_virtual"]
        .into_iter()
        .fold(suite, |suite, updates| {
            suite.test(
                format!("MEM-104 a process reads what is done for it and nothing else, {updates}"),
                move || private(updates),
            )
        })
        .test("MEM-104 what a process has not read is counted", overrun)
        .test("MEM-104 a process reads whole lines", lines)
}

const PAGES: u64 = 8;

/// Lets the memory manager work for this process.
fn work(gpu: &Gpu, rounds: usize) -> TestResult {
    for _ in 0..rounds {
        let allocation = local(gpu, PAGES)?;
        ensure_eq!(resident(gpu, &allocation)?, 0);
        write(&allocation, 0..PAGES)?;
        gpu.device().evict(&[&allocation], EvictFlags::empty())?;
        ensure_eq!(resident(gpu, &allocation)?, 0);
        reads(&allocation, 0..PAGES)?;
    }
    Ok(())
}

/// A device of an adapter, by a user who is not root.
fn become_client(user: u32, luid: Luid) -> TestResult<Gpu> {
    become_user(user)?;
    Gpu::on(&Dxg::open()?.open_adapter(luid)?.create_device()?, 0)
}

fn records(text: &str) -> TestResult<Vec<Record>> {
    text.lines().map(Record::parse).collect()
}

/// Two users at the same time. The one reads exactly what its calls have caused.
fn private(updates: &str) -> TestResult {
    let soft = SoftAdapter::new("paging-own")?;
    soft.set("page_table_updates", updates)?;
    soft.set("enabled", "1")?;
    let adapter = soft.open()?;
    let luid = adapter.luid();
    let log = Log::all(&adapter)?;
    let path = std::env::temp_dir().join("opendxg-own-paging-log");
    let (begun, seen) = (Gate::new()?, Gate::new()?);
    let other = Child::spawn(|| {
        let gpu = become_client(OTHER, luid)?;
        work(&gpu, 1)?;
        begun.open()?;
        work(&gpu, 8)?;
        seen.wait_for_parent()
    })?;
    begun.wait_for_child(&other)?;
    let own = Child::spawn(|| {
        let gpu = become_client(USER, luid)?;
        let file = format!("/sys/kernel/debug/opendxg/paging/{luid}");
        ensure!(fs::read(file).is_err());
        let own = gpu.device().paging_log()?;
        work(&gpu, 3)?;
        fs::write(&path, own.read()?)?;
        Ok(())
    })?;
    let (own_pid, other_pid) = (own.pid() as u64, other.pid() as u64);
    own.join()?;
    seen.open()?;
    other.join()?;
    let read = records(&fs::read_to_string(&path)?)?;
    fs::remove_file(&path)?;
    let numbers: Vec<_> = read.iter().map(|one| one.number).collect();
    ensure_eq!(numbers, (1..=read.len() as u64).collect::<Vec<_>>());
    let (first, last) = (&read[0], &read[read.len() - 1]);
    let during = first.get("time_ns")..=last.get("time_ns");
    let in_time = |one: &Record| during.contains(&one.get("time_ns"));
    let all = log.records(|one| one.get("thread") == own_pid && in_time(one))?;
    // There was something else to be read.
    let others = log.records(|one| one.get("thread") == other_pid)?;
    ensure!(others.iter().any(|one| one.what == SUBMIT));
    ensure_eq!(names(&read), names(&all));
    let process = first.get("process").max(last.get("process"));
    let mut hidden = 0;
    for (one, same) in read.iter().zip(&all) {
        ensure!([0, process].contains(&one.get("process")), "{one:?}");
        for field in ["batch", "object", "va", "from", "size", "thread", "segment"] {
            ensure_eq!(one.get(field), same.get(field), "{field} of {same:?}");
        }
        // Where pages of the system are is for root.
        match one.get("segment") {
            0 => {
                ensure_eq!(one.get("offset"), 0);
                hidden += same.get("offset");
            }
            _ => ensure_eq!(one.get("offset"), same.get("offset")),
        }
    }
    ensure!(hidden != 0);
    for what in [FILL, TRANSFER, SUBMIT, UPDATE, "VA_ALLOC", "COMMIT"] {
        ensure!(names(&read).contains(&what), "no {what}");
    }
    drop((log, adapter));
    soft.remove()
}

/// The lines of a log, and how many records were lost before each of them.
fn counted(own: &PagingLog) -> TestResult<(u64, usize)> {
    let (mut lost, mut lines) = (0, 0);
    for line in own.read()?.lines() {
        match line.strip_prefix("log lost=") {
            Some(count) => lost += count.parse::<u64>().map_err(|_| "no count")?,
            None => lines += 1,
        }
    }
    Ok((lost, lines))
}

fn overrun() -> TestResult {
    let gpu = Gpu::new()?;
    let own = gpu.device().paging_log()?;
    let allocation = gpu.allocate(PAGE)?;
    let rounds = |count: u64| -> TestResult {
        for _ in 0..count {
            resident(&gpu, &allocation)?;
            gpu.device().evict(&[&allocation], EvictFlags::empty())?;
        }
        Ok(())
    };
    // PIN, RETURN, UNPIN and RETURN.
    rounds(10)?;
    ensure_eq!(counted(&own)?, (0, 40));
    ensure_eq!(counted(&own)?, (0, 0));
    rounds(400)?;
    ensure_eq!(counted(&own)?, (1600 - 1024, 1024));
    rounds(1)?;
    ensure_eq!(counted(&own)?, (0, 4));
    // Another one begins anew.
    let second = gpu.device().paging_log()?;
    rounds(1)?;
    ensure_eq!(counted(&second)?, (0, 4));
    ensure_eq!(counted(&own)?, (0, 4));
    Ok(())
}

fn lines() -> TestResult {
    let gpu = Gpu::new()?;
    let own = gpu.device().paging_log()?;
    let mut small = [0; 16];
    ensure_eq!(rustix::io::read(&own, &mut small), Ok(0));
    let allocation = gpu.allocate(PAGE)?;
    resident(&gpu, &allocation)?;
    // It can be read by who has room.
    ensure_eq!(rustix::io::read(&own, &mut small), Err(Errno::INVAL));
    let mut large = [0; 600];
    let length = rustix::io::read(&own, &mut large)?;
    let first = large[..length].to_vec();
    ensure_eq!(first.last(), Some(&b'\n'));
    let text = String::from_utf8(first).map_err(|_| "no text")? + &own.read()?;
    let found = records(&text)?;
    ensure_eq!(names(&found), ["PIN", "RETURN MakeResident"]);
    Ok(())
}
