// SPDX-License-Identifier: MIT OR Apache-2.0
//! RELEASE_MEM, ACQUIRE_MEM and the clock.

use std::time::Duration;

use opendxg::pm4::{opcode, Data, Interrupt, Pm4};
use opendxg::{Access, Dxg, EventFd, SyncFlags};
use selftests::blocked::Blocked;
use selftests::child::{Child, Gate};
use selftests::gpu::{reaches, Gpu, NODES, PAGE};
use selftests::time::{eventually, soon, A_WHILE};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::place::{everywhere, Place};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-37 GPU-39 RELEASE_MEM writes what it says", || {
            everywhere(written)
        })
        .test("GPU-38 RELEASE_MEM comes after what is before it", || {
            everywhere(after)
        })
        .test("GPU-37 ACQUIRE_MEM of both lengths", || everywhere(acquire))
        .test("GPU-37 the clock of the GPU", || everywhere(clock))
        .test(
            "GPU-44 FEN-48 GPU-62 an interrupt of RELEASE_MEM wakes who waits for a fence",
            wakes,
        )
        .test(
            "GPU-44 FEN-48 RELEASE_MEM without an interrupt wakes nobody before the end",
            silent,
        )
        .test(
            "FEN-48 the end of a command buffer wakes them without an interrupt",
            without_interrupt,
        )
        .test(
            "FEN-48 FEN-133 stores to some of many fences that come and go",
            many,
        )
        .test(
            "FEN-48 a fence that two processes show is looked at for each wait",
            shown_twice,
        )
        .test("FEN-176 FEN-48 a stream reads what engines store", streamed)
        .test("FEN-9 GPU-39 a value is never seen in halves", halves)
}

fn written(place: &Place) -> TestResult {
    let target = &place.target;
    let interrupts = [
        Interrupt::None,
        Interrupt::Only,
        Interrupt::AfterData,
        Interrupt::Confirm,
        Interrupt::Always,
    ];
    for interrupt in interrupts {
        target.fill(0);
        place.run(
            &Pm4::new()
                .release(target.at(0), Data::None, interrupt)
                .release(target.at(4), Data::Low(5), interrupt)
                .release(target.at(8), Data::Full(0x7_0000_0006), interrupt)
                .release(target.at(24), Data::Clock, interrupt),
        )?;
        let expected = [0, 5, 6, 7, 0, 0];
        ensure_eq!(target.read(0, 6), expected, "{interrupt:?}");
        ensure!(target.get64(24) != 0, "{interrupt:?}");
    }
    // No data: the address is not looked at.
    place.run(&Pm4::new().release(0x1234, Data::None, Interrupt::Always))
}

fn after(place: &Place) -> TestResult {
    let (source, target) = (&place.source, &place.target);
    let fence = place.gpu.device().create_fence(0)?;
    for round in 1..=5 {
        target.fill(0);
        let commands = Pm4::new()
            .copy(target.at(0), source.at(0), target.bytes())
            .release(fence.gpu_address(), Data::Full(round), Interrupt::AfterData);
        let commands = place.gpu.commands(&commands)?;
        place.gpu.submit(&commands)?;
        reaches(&fence, round)?;
        // Who has seen the value sees the copy, long before the buffer has to have ended.
        let last = target.bytes() - 4;
        ensure_eq!(target.get32(last), source.get32(last));
        place.gpu.finish()?;
    }
    Ok(())
}

fn acquire(place: &Place) -> TestResult {
    place.run(
        &Pm4::new()
            .acquire()
            .packet(opcode::ACQUIRE_MEM, &[u32::MAX; 7])
            .packet(opcode::ACQUIRE_MEM, &[u32::MAX; 6])
            .set32(place.target.at(0), 1),
    )?;
    ensure_eq!(place.target.get32(0), 1);
    Ok(())
}

fn clock(place: &Place) -> TestResult {
    let target = &place.target;
    let now = || -> TestResult<u64> {
        let adapter = place.gpu.device().adapter();
        Ok(adapter.clock_calibration(0)?.gpu_clock_counter)
    };
    let before = now()?;
    place.run(
        &Pm4::new()
            .timestamp(target.at(0))
            .delay(10)
            .timestamp(target.at(8))
            .release(target.at(16), Data::Clock, Interrupt::None),
    )?;
    let behind = now()?;
    let stamps = [
        before,
        target.get64(0),
        target.get64(8),
        target.get64(16),
        behind,
    ];
    ensure!(stamps.is_sorted(), "{stamps:?}");
    Ok(())
}

/// Fences of a process have pages in common. Some of these are waited for, and some may not be
/// signalled.
fn many() -> TestResult {
    let gpu = Gpu::new()?;
    let is_fixed = |number: usize| number % 3 == 0;
    let make = |number| {
        let flags = match is_fixed(number) {
            true => SyncFlags::NO_SIGNAL,
            false => SyncFlags::empty(),
        };
        gpu.device().create_fence_with(0, flags)
    };
    let fences: Result<Vec<_>, _> = (0..200).map(make).collect();
    let mut fences = fences?;
    for round in 1..=5 {
        // Some go, and others come to their places.
        for number in (round..fences.len()).step_by(5) {
            fences[number] = make(number)?;
        }
        let event = EventFd::new()?;
        let value = round as u64;
        let waited: Vec<_> = (round % 2..fences.len())
            .step_by(2)
            .filter(|number| !is_fixed(*number))
            .map(|number| &fences[number])
            .collect();
        for fence in &waited {
            fence.wait_async(value, &event)?;
        }
        let commands = waited.iter().fold(Pm4::new(), |commands, fence| {
            commands.write64(fence.gpu_address(), value)
        });
        gpu.run(&commands)?;
        let mut told = 0;
        while told < waited.len() as u64 {
            told += event.wait(Some(soon()))?.ok_or("a wait did not end")?;
        }
        ensure!(waited.iter().all(|fence| fence.value() == value));
        let fixed = fences.iter().step_by(3);
        ensure!(fixed.map(|fence| fence.value()).all(|value| value == 0));
    }
    Ok(())
}

fn wakes() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let fence = gpu.device().create_fence(0)?;
        let word = gpu.buffer(PAGE)?;
        let event = EventFd::new()?;
        fence.wait_async(5, &event)?;
        let sleeper = {
            let fence = gpu.device().create_fence(0)?;
            let address = fence.gpu_address();
            (Blocked::new(move || fence.wait(7))?, address)
        };
        // The buffer does not end before all are awake.
        let only = {
            let fence = gpu.device().create_fence(0)?;
            let address = fence.gpu_address();
            (Blocked::new(move || fence.wait(1))?, address)
        };
        let commands = Pm4::new()
            .release(fence.gpu_address(), Data::Full(5), Interrupt::AfterData)
            .release(only.1, Data::Full(1), Interrupt::Only)
            .release(sleeper.1, Data::Full(7), Interrupt::Always)
            .wait32(word.at(0), opendxg::pm4::Compare::Equal, 1, u32::MAX);
        let commands = gpu.commands(&commands)?;
        gpu.submit(&commands)?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "node {node}");
        only.0.join()??;
        sleeper.0.join()??;
        word.set32(0, 1);
        gpu.finish()?;
    }
    Ok(())
}

fn silent() -> TestResult {
    for interrupt in [Interrupt::None, Interrupt::Confirm] {
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_fence(0)?;
        let word = gpu.buffer(PAGE)?;
        let event = EventFd::new()?;
        fence.wait_async(5, &event)?;
        let commands = Pm4::new()
            .release(fence.gpu_address(), Data::Full(5), interrupt)
            .set32(word.at(4), 1)
            .wait32(word.at(0), opendxg::pm4::Compare::Equal, 1, u32::MAX);
        let commands = gpu.commands(&commands)?;
        gpu.submit(&commands)?;
        eventually("the engine is past it", || word.get32(4) == 1)?;
        ensure_eq!(event.wait(Some(A_WHILE))?, None, "{interrupt:?}");
        ensure_eq!(fence.value(), 5);
        word.set32(0, 1);
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "{interrupt:?}");
        gpu.finish()?;
    }
    Ok(())
}

/// Who looks for stores loses sight of a fence when nobody waits for it. The next wait says so to
/// all who show it.
fn shown_twice() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    let luid = gpu.device().adapter().luid();
    let (opened, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
        let _fence = device.open_fence(&handle, SyncFlags::empty())?;
        opened.open()?;
        end.wait_for_parent()
    })?;
    opened.wait_for_child(&child)?;
    for round in 0..5 {
        let (by_cpu, by_gpu) = (2 * round + 1, 2 * round + 2);
        let event = EventFd::new()?;
        fence.wait_async(by_cpu, &event)?;
        fence.signal(by_cpu)?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "round {round}");
        // Something else may have been stored: nobody waits.
        gpu.run(&Pm4::new().nop(0))?;
        fence.wait_async(by_gpu, &event)?;
        gpu.run(&Pm4::new().write64(fence.gpu_address(), by_gpu))?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "round {round}");
    }
    end.open()?;
    child.join()
}

/// Engines may store any value, also a lower one, and the same one again.
fn streamed() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let fence = gpu.device().create_fence(5)?;
        let streams = [fence.stream(5)?, fence.stream(5)?];
        for value in [6, 3, 0, u64::MAX, 4] {
            for stream in &streams {
                ensure_eq!(stream.wait(Some(Duration::ZERO))?, None, "node {node}");
            }
            gpu.run(&Pm4::new().write64(fence.gpu_address(), value))?;
            for stream in &streams {
                ensure_eq!(stream.wait(Some(soon()))?, Some(value), "node {node}");
            }
            gpu.run(&Pm4::new().write64(fence.gpu_address(), value))?;
        }
    }
    Ok(())
}

fn without_interrupt() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let fence = gpu.device().create_fence(0)?;
        let event = EventFd::new()?;
        fence.wait_async(5, &event)?;
        gpu.run(&Pm4::new().write64(fence.gpu_address(), 5))?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "node {node}");
        ensure_eq!(fence.value(), 5);
    }
    Ok(())
}

/// Two engines store values whose halves differ, all the time; this thread and a third engine look.
fn halves() -> TestResult {
    const VALUES: [u64; 2] = [0x0000_0000_ffff_ffff, 0xffff_ffff_0000_0000];
    let gpu = Gpu::node(2)?;
    let (word, seen) = (gpu.buffer(PAGE)?, gpu.buffer(16 * PAGE)?);
    word.set64(0, VALUES[0]);
    let writers = [Gpu::on(gpu.device(), 0)?, Gpu::on(gpu.device(), 1)?];
    let stores = |first: usize| {
        (0..300).fold(Pm4::new(), |all, turn| {
            let value = VALUES[(first + turn) % 2];
            match turn % 3 {
                0 => all.write64(word.at(0), value),
                1 => all.set64(word.at(0), value),
                _ => all.release(word.at(0), Data::Full(value), Interrupt::None),
            }
        })
    };
    let stores = [
        writers[0].commands(&stores(0))?,
        writers[1].commands(&stores(1))?,
    ];
    let looks = (0..1000).fold(Pm4::new(), |all, turn| {
        all.move64(seen.at(8 * turn), word.at(0))
    });
    let looks = gpu.commands(&looks)?;
    for _ in 0..selftests::rounds::rounds(10) {
        for (writer, stores) in writers.iter().zip(&stores) {
            writer.submit(stores)?;
        }
        gpu.submit(&looks)?;
        let mark = gpu.mark()?;
        while !gpu.is_done(mark) {
            let value = word.get64(0);
            ensure!(VALUES.contains(&value), "{value:#x}");
        }
        for turn in 0..1000 {
            let value = seen.get64(8 * turn);
            ensure!(VALUES.contains(&value), "{value:#x}, seen by an engine");
        }
    }
    writers.iter().try_for_each(Gpu::finish)?;
    gpu.finish()
}
