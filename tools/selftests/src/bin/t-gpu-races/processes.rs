// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that end, become another program, or fork, whatever the engines do for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{Access, Device, Dxg, SyncFlags};
use selftests::child::{in_child, Child, Gate};
use selftests::gpu::{one, reaches, Gpu, BLOCK, PAGE};
use selftests::hog::{Busy, Hog};
use selftests::program::become_again;
use selftests::rounds::{crowd, rounds, seed, Dice};
use selftests::{ensure, ensure_eq, fixture, task, Suite, TestResult};

use crate::t_gpu_races::caller::Caller;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-30 GPU-97 a process is killed whatever its work does",
            Duration::from_secs(60),
            || ends(End::Killed),
        )
        .slow(
            "GPU-30 a process ends whatever its work does",
            Duration::from_secs(60),
            || ends(End::Exit),
        )
        .slow(
            "GPU-30 a process becomes another program whatever its work does",
            Duration::from_secs(60),
            || ends(End::Exec),
        )
        .slow(
            "GPU-30 processes are killed at random moments",
            Duration::from_secs(90),
            random,
        )
        .slow(
            "GPU-30 MEM-115 killed in the middle of calls",
            Duration::from_secs(60),
            || calls(End::Killed),
        )
        .slow(
            "GPU-30 MEM-115 exec in the middle of calls",
            Duration::from_secs(60),
            || calls(End::Exec),
        )
        .slow(
            "GPU-30 MEM-115 exit in the middle of calls",
            Duration::from_secs(60),
            || calls(End::Exit),
        )
        .slow(
            "GPU-70 MEM-113 fork in the middle of calls",
            Duration::from_secs(60),
            fork_in_calls,
        )
        .test("GPU-70 MEM-113 fork while engines work", fork)
        .test(
            "FEN-40 MEM-15 MEM-46 calls that sleep end by a signal",
            sleepers,
        )
        .test(
            "GPU-97 memory of a killed process is not written to any more",
            reused,
        )
}

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Exit,
    Exec,
}

/// All of it at once, on every node.
fn everything() -> TestResult<Vec<(Gpu, Busy)>> {
    let device = fixture::device()?;
    let begin = |(number, hog): (u32, Hog)| -> TestResult<(Gpu, Busy)> {
        let gpu = Gpu::on(&device, number % 3)?;
        let busy = hog.begin(&gpu)?;
        Ok((gpu, busy))
    };
    (0..).zip(Hog::ALL).map(begin).collect()
}

fn ends(end: End) -> TestResult {
    let witness = Gpu::new()?;
    let luid = witness.device().adapter().luid();
    let each = Hog::ALL.into_iter().map(Some).chain([None]);
    for (number, hog) in (0..).zip(each) {
        let ready = Gate::new()?;
        let shared = witness.device().create_shareable_fence(0)?;
        let handle = shared.share(Access::ALL)?;
        let child = Child::spawn(|| {
            let all = match hog {
                None => everything()?,
                Some(hog) => {
                    let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
                    let gpu = Gpu::on(&device, number % 3)?;
                    // What comes behind its work does not come.
                    let fence = device.open_fence(&handle, SyncFlags::empty())?;
                    let busy = hog.begin(&gpu)?;
                    gpu.context().signal(&one(&fence, 1))?;
                    core::mem::forget(fence);
                    vec![(gpu, busy)]
                }
            };
            if let Some(hog) = hog.filter(|hog| hog.runs()) {
                all[0]
                    .1
                    .runs()
                    .map_err(|error| format!("{hog:?}: {error}"))?;
            }
            ready.open()?;
            match end {
                End::Exit => {
                    core::mem::forget(all);
                    Ok(())
                }
                End::Exec => Err(become_again(&[super::NOTHING])),
                End::Killed => loop {
                    std::thread::sleep(Duration::from_secs(1));
                },
            }
        })?;
        ready.wait()?;
        match end {
            End::Killed => child.kill()?,
            End::Exit => child.join()?,
            End::Exec => child.join()?,
        }
        // The end of one of two contexts that wait for each other may release the other one.
        if hog.is_some_and(|hog| ![Hog::Updates, Hog::Embrace].contains(&hog)) {
            ensure_eq!(shared.value(), 0, "{hog:?}");
        }
        witness.run(&Pm4::new().nop(0))?;
    }
    Ok(())
}

/// Processes that make things and work are killed at any moment.
fn random() -> TestResult {
    let mut dice = Dice::new(seed());
    let witness = Gpu::node(1)?;
    let word = witness.buffer(PAGE)?;
    let add = witness.commands(&Pm4::new().atomic(Atomic::Add, word.at(0), 1, 0))?;
    for round in 1..=u64::from(rounds(20)) {
        let child = Child::spawn(|| loop {
            let all = everything()?;
            ensure!(all.iter().all(|(_, busy)| busy.parts() > 0));
            let gpu = Gpu::node(2)?;
            let memory = gpu.local_buffer(16 * PAGE)?;
            gpu.run(&Pm4::new().fill(memory.at(0), 1, 16 * PAGE))?;
        })?;
        std::thread::sleep(Duration::from_micros(dice.below(60_000).into()));
        child.kill()?;
        witness.submit(&add)?;
        witness.finish()?;
        ensure_eq!(word.get64(0), round);
    }
    Ok(())
}

/// Threads make all calls until it is over: a thread of its own for each, on one device.
fn call(device: &Device, seed: u64, over: &AtomicBool) -> TestResult {
    crowd(3, |part| {
        let mut caller = Caller::new(device, seed.wrapping_add(part as u64))?;
        while !over.load(Ordering::Relaxed) {
            caller.step()?;
        }
        Ok(())
    })
}

/// A process ends while its threads are in calls.
fn calls(end: End) -> TestResult {
    let mut dice = Dice::new(seed());
    let witness = Gpu::new()?;
    let luid = witness.device().adapter().luid();
    for _ in 0..rounds(8) {
        let ready = Gate::new()?;
        let seed = u64::from(dice.below(u32::MAX));
        let moment = Duration::from_micros(dice.below(60_000).into());
        let child = Child::spawn(|| {
            let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
            let never = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let calls = scope.spawn(|| call(&device, seed, &never));
                ready.open()?;
                std::thread::sleep(moment);
                ensure!(!calls.is_finished(), "the calls have failed");
                match end {
                    End::Exec => Err(become_again(&[super::NOTHING])),
                    // SAFETY: ends this process and what its threads do.
                    End::Exit => unsafe { libc::_exit(0) },
                    End::Killed => {
                        let ended = calls.join().map_err(|_| "panic in a thread")?;
                        ended.and(Err("calls end by themselves".into()))
                    }
                }
            })
        })?;
        ready.wait()?;
        match end {
            End::Killed => {
                std::thread::sleep(moment);
                child.kill()?;
            }
            End::Exit | End::Exec => child.join()?,
        }
        witness.run(&Pm4::new().nop(0))?;
    }
    Ok(())
}

/// A process forks while its threads are in calls. The child calls itself, and has nothing of the
/// parent's.
fn fork_in_calls() -> TestResult {
    let device = fixture::device()?;
    let luid = device.adapter().luid();
    let (seed, over) = (seed(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| call(&device, seed, &over));
        let forks = || -> TestResult {
            for round in 0..u64::from(rounds(10)) {
                in_child(|| {
                    let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
                    let mut caller = Caller::new(&device, seed ^ round)?;
                    for _ in 0..20 {
                        caller.step()?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        };
        let forked = forks();
        over.store(true, Ordering::Relaxed);
        calls.join().map_err(|_| "panic in a thread")??;
        forked
    })?;
    // Its own work goes on.
    Gpu::on(&device, 0)?.run(&Pm4::new().nop(0))
}

/// An engine writes into memory of the caller while the process forks: the parent's pages stay the
/// GPU's.
fn fork() -> TestResult {
    let gpu = Gpu::new()?;
    let shared = gpu.buffer(4 * PAGE)?;
    let busy = Hog::Copies.begin(&gpu)?;
    busy.runs()?;
    let second = Gpu::on(gpu.device(), 1)?;
    let add = second.commands(&Pm4::new().atomic(Atomic::Add, shared.at(0), 1, 0))?;
    for turn in 1..=u64::from(rounds(10)) {
        let seen = Gate::new()?;
        let child = Child::spawn(|| {
            seen.wait()?;
            // Both have the same memory.
            ensure_eq!(shared.get64(0), turn);
            shared.set64(8, turn);
            // What the child makes is its own.
            let gpu = Gpu::node(0)?;
            let own = gpu.buffer(PAGE)?;
            gpu.run(&Pm4::new().set32(own.at(0), 7))?;
            ensure_eq!(own.get32(0), 7);
            Ok(())
        })?;
        second.submit(&add)?;
        second.finish()?;
        seen.open()?;
        child.join()?;
        ensure_eq!((shared.get64(0), shared.get64(8)), (turn, turn));
    }
    let turns = busy.turns();
    selftests::time::eventually("it still works", || busy.turns() > turns)
}

fn sleepers() -> TestResult {
    // Each is a process with one thread that sleeps in one call.
    type Sleeper = fn(&Gpu) -> TestResult;
    let wait: Sleeper = |gpu| {
        let busy = Hog::Loop.begin(gpu)?;
        let mark = gpu.mark()?;
        busy.runs()?;
        Ok(gpu.done().wait(mark)?)
    };
    let update: Sleeper = |gpu| {
        let fence = gpu.device().create_fence(0)?;
        let word = gpu.allocate(PAGE)?;
        let reserve = opendxg::GpuReserve {
            size: BLOCK,
            kind: opendxg::Reservation::Zero,
            ..opendxg::GpuReserve::default()
        };
        let range = gpu.paging().reserve(&reserve)?;
        let map = opendxg::GpuUpdate::Map {
            address: range.address,
            size: PAGE,
            allocation: &word,
            offset: 0,
            length: 0,
            protection: None,
        };
        loop {
            gpu.context().update_gpu_ranges(&[map], &fence, 1)?;
        }
    };
    for (name, sleeper) in [("a wait", wait), ("an update", update)] {
        for signal in [libc::SIGKILL, libc::SIGTERM] {
            let child = Child::spawn(|| sleeper(&Gpu::new()?))?;
            task::until_blocked(child.pid()).map_err(|error| format!("{name}: {error}"))?;
            selftests::time::a_while();
            child.signal(signal)?;
            child.ends_soon()?;
            child.dies_of(signal)?;
        }
    }
    Ok(())
}

/// Local memory that a killed process was writing to belongs to the next one.
fn reused() -> TestResult {
    for round in 0..rounds(4) {
        let ready = Gate::new()?;
        let child = Child::spawn(|| {
            let gpu = Gpu::node(round % 3)?;
            let memory = gpu.local_buffer(64 * PAGE)?;
            let fill = Pm4::new().fill(memory.at(0), 0x6666_6666, 64 * PAGE);
            let bytes = (fill.len() as u64 + 4) * 4;
            let commands = gpu.commands(&fill.clone().pad_to(fill.len() + 4))?;
            let fill = fill.chain(commands.address(), bytes);
            commands.buffer().write(0, fill.words());
            gpu.submit(&commands)?;
            selftests::time::eventually("it fills", || memory.get32(0) != 0)?;
            ready.open()?;
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        })?;
        ready.wait()?;
        child.kill()?;
        in_child(|| {
            let gpu = Gpu::new()?;
            let mut all = Vec::new();
            for _ in 0..4 {
                let memory = gpu.local_buffer(64 * PAGE)?;
                memory.holds(0..64 * PAGE, 0)?;
                memory.fill(1);
                all.push(memory);
            }
            selftests::time::a_while();
            let fence = gpu.device().create_fence(0)?;
            gpu.context().signal(&one(&fence, 1))?;
            reaches(&fence, 1)?;
            all.iter()
                .try_for_each(|memory| memory.holds(0..64 * PAGE, 1))
        })?;
    }
    Ok(())
}
