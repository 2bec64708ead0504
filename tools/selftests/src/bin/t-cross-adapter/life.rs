// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a cross-adapter fence: who has it, where it is, and what becomes of it when an
//! adapter or a process goes (FEN-120 to FEN-122, FEN-135 to FEN-143).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, EventFd, ExecutionState, Status, SyncFlags};
use selftests::child::in_child;
use selftests::gpu::{Gpu, PAGE};
use selftests::time::{a_while, soon};
use selftests::trace::{traced_kmd, Event};
use selftests::{call, ensure, ensure_eq, fails_with, fixture, module, skip, Suite, TestResult};

use super::scene::{adapter, create, open, By, Side, Waits, CROSS};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-135 what is refused", refused)
        .test("FEN-136 one CurrentValue for all engines", one_value)
        .test(
            "FEN-137 MonitoredValue is 0, and a signal of 0 is silent",
            monitored,
        )
        .test("FEN-121 FEN-122 one native fence for each adapter", natives)
        .test("FEN-121 FEN-122 the NT handle goes last", nt_handle_last)
        .test(
            "FEN-120 FEN-122 a process opens it elsewhere and dies",
            dies,
        )
        .test("FEN-141 FEN-134 which call opens it where", calls)
        .test(
            "FEN-142 as a native and as a monitored fence at once",
            both_ways,
        )
        .test("FEN-138 a handle that was duplicated", duplicated)
        .test("FEN-143 an adapter is removed", removed)
        .test("FEN-143 an adapter is reset", reset)
        .test("FEN-143 FEN-104 a device is in error", in_error)
        .test("FEN-138 an adapter in the middle is gone", gone_between)
}

fn refused() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    for (flags, ty) in [
        (SyncFlags::CROSS_ADAPTER, D3DDDI_NATIVEFENCE_TYPE_DEFAULT),
        (
            SyncFlags::CROSS_ADAPTER | SyncFlags::SHARED,
            D3DDDI_NATIVEFENCE_TYPE_DEFAULT,
        ),
        (CROSS, D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU),
    ] {
        let mut arg = D3DKMT_CREATENATIVEFENCE::zeroed();
        arg.hDevice = gpu.device().handle().0;
        arg.Info.Flags = flags.bits();
        arg.Info.Type = ty;
        call::refused(&raw, &mut arg, IP)?;
    }
    Ok(())
}

fn one_value() -> TestResult {
    let here = Side::first("here", true)?;
    let there = here.another("there", true)?;
    // FEN-120: one address in a process.
    ensure_eq!(here.fence().value_address(), there.fence().value_address());
    // A store that nobody is told of.
    let store = Pm4::new().write64(here.fence().gpu_address(), 77);
    here.gpu.run(&store)?;
    let seen = there.gpu.buffer(PAGE)?;
    let load = Pm4::new().copy(seen.at(0), there.fence().gpu_address(), 8);
    there.gpu.run(&load)?;
    ensure_eq!([seen.get64(0), there.fence().value()], [77; 2]);
    ensure_eq!(there.propagations(), 0);
    Ok(())
}

fn monitored() -> TestResult {
    let here = Side::first("here", true)?;
    let there = here.another("there", true)?;
    let check = || -> TestResult {
        ensure_eq!([here.monitored_value()?, there.monitored_value()?], [0; 2]);
        Ok(())
    };
    check()?;
    let event = EventFd::new()?;
    here.fence().wait_async(5, &event)?;
    there.fence().wait_async(9, &event)?;
    check()?;
    there.signal(By::Packet, 5)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    check()?;
    // M22: nobody waits for 0.
    let before = here.propagations();
    there.signal(By::Packet, 0)?;
    a_while();
    ensure_eq!(here.propagations(), before);
    ensure_eq!(here.fence().value(), 0);
    there.signal(By::Packet, 9)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    check()
}

// Numbers of `rust/ddi/verifier/entry.rs`.
const CREATE: u64 = 59;
const OPEN: u64 = 60;
const CLOSE: u64 = 61;
const DESTROY: u64 = 62;

/// The creates, opens, closes and destroys of native fences that `work` causes.
fn native_calls(work: impl FnOnce() -> TestResult) -> TestResult<Vec<(u64, u64)>> {
    let log = traced_kmd(work)?;
    let kind = |event: &Event| (event.get("kind"), event.get("object"));
    Ok(log
        .iter()
        .map(kind)
        .filter(|(kind, _)| (CREATE..=DESTROY).contains(kind))
        .collect())
}

/// The same without what they are called for.
fn native_kinds(work: impl FnOnce() -> TestResult) -> TestResult<Vec<u64>> {
    Ok(native_calls(work)?.iter().map(|(kind, _)| *kind).collect())
}

fn needs_verifier() -> TestResult {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    Ok(())
}

/// The one fence that a call of this kind was for.
fn only(calls: &[(u64, u64)], kind: u64) -> TestResult<u64> {
    let mut found = calls.iter().filter(|(own, _)| *own == kind);
    match (found.next(), found.next()) {
        (Some((_, object)), None) => Ok(*object),
        _ => Err(format!("not one call of {kind} in {calls:?}").into()),
    }
}

fn natives() -> TestResult {
    needs_verifier()?;
    let (x, y) = (adapter("x", true)?, adapter("y", true)?);
    let (on_x, on_y) = (x.device()?, y.device()?);
    let mut made = None;
    let calls = native_calls(|| {
        made = Some(create(&on_x, true)?);
        Ok(())
    })?;
    ensure_eq!(
        calls.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [CREATE, OPEN]
    );
    let fence_x = only(&calls, CREATE)?;
    let made = made.ok_or("no fence")?;
    let handle = made.fence().share(Access::ALL)?;
    let mut opened = Vec::new();
    let calls = native_calls(|| {
        opened.push(open(&on_y, &handle, true)?);
        opened.push(open(&on_y, &handle, true)?);
        Ok(())
    })?;
    ensure_eq!(
        calls.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [CREATE, OPEN, OPEN]
    );
    let fence_y = only(&calls, CREATE)?;
    ensure!(fence_x != fence_y);
    // Another device of the adapter sees the same addresses.
    let (first, second) = (opened[0].native()?, opened[1].native()?);
    ensure_eq!(first.gpu_address(), second.gpu_address());
    ensure_eq!(first.monitored_address(), second.monitored_address());
    // Without an NT handle the native fence goes with the last opening on its adapter.
    drop(handle);
    let calls = native_kinds(|| {
        opened.pop();
        Ok(())
    })?;
    ensure_eq!(calls, [CLOSE]);
    let calls = native_calls(|| {
        drop(made);
        Ok(())
    })?;
    ensure_eq!(
        calls.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [CLOSE, DESTROY]
    );
    ensure_eq!(only(&calls, DESTROY)?, fence_x);
    // The other adapter still works with it.
    let gpu = Gpu::on(&on_y, 0)?;
    let fence = opened[0].native()?;
    let event = EventFd::new()?;
    fence.wait_async(3, &event)?;
    gpu.run(&Pm4::new().signal_native(fence.gpu_address(), 3))?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    let calls = native_calls(|| {
        opened.clear();
        Ok(())
    })?;
    ensure_eq!(
        calls.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [CLOSE, DESTROY]
    );
    ensure_eq!(only(&calls, DESTROY)?, fence_y);
    Ok(())
}

fn nt_handle_last() -> TestResult {
    needs_verifier()?;
    let (x, y) = (adapter("x", true)?, adapter("y", true)?);
    let (on_x, on_y) = (x.device()?, y.device()?);
    let made = create(&on_x, true)?;
    let handle = made.fence().share(Access::ALL)?;
    let again = open(&on_y, &handle, true)?;
    // A second handle of the same object.
    let other = again.fence().share(Access::ALL)?;
    let calls = native_kinds(|| {
        drop(again);
        drop(handle);
        Ok(())
    })?;
    ensure_eq!(calls, [CLOSE]);
    // It is there when it is opened again.
    let calls = native_kinds(|| {
        drop(open(&on_y, &other, true)?);
        Ok(())
    })?;
    ensure_eq!(calls, [OPEN, CLOSE]);
    let calls = native_kinds(|| {
        drop(other);
        Ok(())
    })?;
    ensure_eq!(calls, [DESTROY]);
    let calls = native_kinds(|| {
        drop(made);
        Ok(())
    })?;
    ensure_eq!(calls, [CLOSE, DESTROY]);
    Ok(())
}

fn dies() -> TestResult {
    needs_verifier()?;
    let x = Side::first("x", true)?;
    let y = adapter("y", true)?;
    let handle = x.fence().share(Access::ALL)?;
    let calls = native_kinds(|| {
        in_child(|| {
            let gpu = Gpu::on(&y.device()?, 0)?;
            let there = open(gpu.device(), &handle, true)?;
            // It ends with its queue waiting.
            let wait = Pm4::new().wait_native(there.fence().gpu_address(), 5);
            let commands = gpu.commands(&wait)?;
            gpu.submit(&commands)?;
            core::mem::forget((commands, there, gpu));
            Ok(())
        })?;
        drop(handle);
        // What it had is gone when its process is.
        y.disable()
    })?;
    ensure_eq!(calls, [CREATE, OPEN, CLOSE, DESTROY]);
    let event = EventFd::new()?;
    x.fence().wait_async(1, &event)?;
    x.signal(By::Packet, 1)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    Ok(())
}

fn calls() -> TestResult {
    let (native, other, without) = (
        adapter("native", true)?,
        adapter("other", true)?,
        adapter("without", false)?,
    );
    let (native, other, without) = (native.device()?, other.device()?, without.device()?);
    let none = SyncFlags::empty();
    let fence = create(&native, true)?;
    let handle = fence.fence().share(Access::ALL)?;
    fails_with(other.open_fence(&handle, none), IP)?;
    fails_with(native.open_fence(&handle, none), IP)?;
    fails_with(
        without.open_native_fence(&handle, none),
        Status::NOT_SUPPORTED,
    )?;
    drop((
        without.open_fence(&handle, none)?,
        other.open_native_fence(&handle, none)?,
    ));
    // One of a single adapter.
    let single = native
        .create_shareable_native_fence(0)?
        .share(Access::ALL)?;
    fails_with(without.open_fence(&single, none), IP)?;
    fails_with(other.open_native_fence(&single, none), IP)?;
    // A monitored one, whichever adapter has made it.
    for device in [&native, &without] {
        let fence = create(device, false)?;
        let handle = fence.fence().share(Access::ALL)?;
        drop((
            other.open_fence(&handle, none)?,
            without.open_fence(&handle, none)?,
        ));
        drop((
            other.open_native_fence(&handle, none)?,
            native.open_native_fence(&handle, none)?,
        ));
        fails_with(
            without.open_native_fence(&handle, none),
            Status::NOT_SUPPORTED,
        )?;
    }
    Ok(())
}

fn both_ways() -> TestResult {
    let soft = adapter("both", true)?;
    let without = Side::first("without", false)?;
    let handle = without.fence().share(Access::ALL)?;
    let (waits, stores) = (Gpu::on(&soft.device()?, 0)?, Gpu::on(&soft.device()?, 1)?);
    let monitored = open(stores.device(), &handle, false)?;
    let native = open(waits.device(), &handle, true)?;
    ensure_eq!(
        monitored.fence().value_address(),
        native.fence().value_address()
    );
    let at = native.fence().gpu_address();
    // An engine that does not know it: its adapter notices what it has stored.
    let commands = waits.commands(&Pm4::new().wait_native(at, 5))?;
    waits.submit(&commands)?;
    let mark = waits.mark()?;
    stores.run(&Pm4::new().write64(monitored.fence().gpu_address(), 5))?;
    waits.until(mark)?;
    // The other way round.
    stores
        .context()
        .wait(&selftests::gpu::one(monitored.fence(), 6))?;
    let mark = stores.mark()?;
    waits.run(&Pm4::new().signal_native(at, 6))?;
    stores.until(mark)?;
    // One goes, the other one stays.
    drop(native);
    stores.run(&Pm4::new().write64(monitored.fence().gpu_address(), 7))?;
    ensure_eq!(without.fence().value(), 7);
    let native = open(waits.device(), &handle, true)?;
    drop(monitored);
    waits.run(&Pm4::new().signal_native(native.fence().gpu_address(), 8))?;
    ensure_eq!(without.fence().value(), 8);
    Ok(())
}

fn duplicated() -> TestResult {
    let x = Side::first("x", true)?;
    let y = x.another("y", true)?;
    let (at, again) = (y.fence().gpu_address(), y.fence().duplicate()?);
    let (opened, gpu) = (y.opened, y.gpu);
    // The one that was opened goes first.
    drop(opened);
    let commands = gpu.commands(&Pm4::new().wait_native(at, 5))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    x.signal(By::Packet, 5)?;
    gpu.until(mark)?;
    drop(again);
    Ok(())
}

/// A fence on three adapters, and who waits for it.
struct Three {
    sides: [Side; 3],
    /// The first waits for 5 in a packet, and the third one for 5 in a queue and for 6 on the CPU.
    pending: [Waits; 3],
}

impl Three {
    fn new(flags: SyncFlags) -> TestResult<Self> {
        let first = Side::with("first", true, CROSS | flags)?;
        let second = first.another("second", true)?;
        let third = first.another("third", false)?;
        Ok(Self {
            pending: [
                first.wait(By::Packet, 5)?,
                third.wait(By::Queue, 5)?,
                third.wait(By::Cpu, 6)?,
            ],
            sides: [first, second, third],
        })
    }

    fn end(&self) -> TestResult {
        let [first, _, third] = &self.sides;
        first.ends(&self.pending[0])?;
        third.ends(&self.pending[1])?;
        third.ends(&self.pending[2])
    }
}

/// The second one of three adapters loses the fence: waits end everywhere.
fn lost(lose: impl FnOnce(&Side) -> TestResult) -> TestResult {
    let three = Three::new(SyncFlags::empty())?;
    let [first, second, third] = &three.sides;
    lose(second)?;
    three.end()?;
    ensure_eq!(
        [first.fence().value(), third.fence().value()],
        [u64::MAX; 2]
    );
    // Signals store nothing, and waits pass.
    first.signal(By::Packet, 3)?;
    first.fence().signal_rewind(4)?;
    third.signal(By::Queue, 4)?;
    ensure_eq!(first.fence().value(), u64::MAX);
    first.ends(&first.wait(By::Packet, 9)?)?;
    // So it is for those who come later.
    let late = first.another("late", true)?;
    late.signal(By::Packet, 3)?;
    ensure_eq!(late.fence().value(), u64::MAX);
    late.ends(&late.wait(By::Packet, 7)?)
}

fn removed() -> TestResult {
    lost(|side| side.soft().disable())
}

fn reset() -> TestResult {
    lost(|side| Ok(side.soft().open()?.reset(None)?))
}

fn in_error() -> TestResult {
    lost(|side| {
        // An illegal packet.
        let illegal = Pm4::new().word(0x1234_5678);
        side.gpu.fails(&illegal, ExecutionState::DmaFault)
    })
}

/// A fence that keeps its value: the others go on with it.
fn gone_between() -> TestResult {
    let three = Three::new(SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR)?;
    let [first, second, third] = &three.sides;
    second.soft().disable()?;
    ensure_eq!(first.fence().value(), 0);
    third.signal(By::Cpu, 6)?;
    three.end()?;
    let wait = third.wait(By::Cpu, 7)?;
    first.signal(By::Packet, 7)?;
    third.ends(&wait)?;
    let wait = first.wait(By::Packet, 8)?;
    third.signal(By::Queue, 8)?;
    first.ends(&wait)
}
