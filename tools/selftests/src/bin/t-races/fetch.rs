// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that another thread changes during the call: each is read once.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use opendxg::raw::Errno;
use opendxg::raw::{self, Argument, Raw};
use opendxg::uapi::*;
use selftests::memory::Page;
use selftests::rounds::{crowd, rounds};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const SIGNAL: u32 = raw::code(
    D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::NR,
    D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::SIZE,
);

/// A word that one thread changes while the kernel reads it.
///
/// # Safety
///
/// `address` is that of an aligned word in a writable [`Page`] that outlives the result.
unsafe fn word<'a>(address: u64) -> &'a AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU32::from_ptr(address as usize as *mut u32) }
}

/// As [`word`], for 64 bits.
///
/// # Safety
///
/// As for [`word`].
unsafe fn long<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(address as usize as *mut u64) }
}

/// Runs `call` again and again while another thread runs `flip` without end.
fn while_flipping(call: impl Fn() -> TestResult + Sync, flip: impl Fn(u32) + Sync) -> TestResult {
    let done = AtomicBool::new(false);
    crowd(2, |part| {
        if part == 0 {
            let outcome = (0..rounds(3000)).try_for_each(|_| call());
            done.store(true, Ordering::Relaxed);
            return outcome;
        }
        let mut turn = 0u32;
        while !done.load(Ordering::Relaxed) {
            turn = turn.wrapping_add(1);
            flip(turn & 1);
        }
        Ok(())
    })
}

fn argument(device: u32, count: u32, handles: u64, values: u64) -> Page {
    let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    arg.hDevice = device;
    arg.ObjectCount = count;
    arg.ObjectHandleArray = handles;
    arg.FenceValueArray = values;
    arg.Flags = D3DDDICB_SIGNALFLAGS_AllowFenceRewind;
    Page::beginning_with(selftests::poison::bytes(&arg)).expect("memory")
}

/// Offset of a member of the signal argument.
macro_rules! member {
    ($name:ident) => {
        core::mem::offset_of!(D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU, $name) as u64
    };
}

/// The count changes between one good element and two of which the second is bad.
fn count_flips(raw: &Raw) -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let handles = [fence.handle().0, 0];
    let values = [AtomicU64::new(1), AtomicU64::new(0)];
    let arg = argument(
        device.handle().0,
        1,
        handles.as_ptr() as u64,
        values.as_ptr() as u64,
    );
    let address = arg.address();
    // SAFETY: in `arg`, which lives to the end of this test.
    let count = unsafe { word(address + member!(ObjectCount)) };
    let seen = [AtomicU32::new(0), AtomicU32::new(0)];
    while_flipping(
        || {
            let before = fence.value();
            values[0].store(before ^ 3, Ordering::Relaxed);
            match raw.ioctl(SIGNAL, address) {
                Ok(0) => {
                    seen[0].fetch_add(1, Ordering::Relaxed);
                    ensure_eq!(fence.value(), before ^ 3);
                }
                Err(Errno::INVAL) => {
                    seen[1].fetch_add(1, Ordering::Relaxed);
                    // FEN-36: nothing was done.
                    ensure_eq!(fence.value(), before);
                }
                other => return Err(format!("mixed outcome {other:?}").into()),
            }
            Ok(())
        },
        |turn| count.store(1 + turn, Ordering::Relaxed),
    )?;
    println!("# calls with one element and with two: {seen:?}");
    Ok(())
}

/// The count changes between what is there and far more than is mapped.
fn count_runs_away(raw: &Raw) -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let handles = Page::ending_with(&fence.handle().0.to_ne_bytes())?;
    let values = Page::ending_with(&1u64.to_ne_bytes())?;
    let arg = argument(device.handle().0, 1, handles.end() - 4, values.end() - 8);
    let address = arg.address();
    // SAFETY: in `arg`, which lives to the end of this test.
    let count = unsafe { word(address + member!(ObjectCount)) };
    while_flipping(
        || {
            let answer = raw.ioctl(SIGNAL, address);
            let known = [Ok(0), Err(Errno::FAULT), Err(Errno::INVAL)];
            ensure!(known.contains(&answer), "{answer:?}");
            Ok(())
        },
        |turn| {
            for far in [4096, u32::MAX, 2, 1024] {
                count.store([1, far][turn as usize], Ordering::Relaxed);
            }
        },
    )
}

/// Handle and value of one element change together; every stored value belongs to its own fence.
fn array_flips(raw: &Raw) -> TestResult {
    let device = fixture::device()?;
    let (first, second) = (device.create_fence(0)?, device.create_fence(0)?);
    let lists = Page::new()?;
    let arg = argument(device.handle().0, 1, lists.address(), lists.address() + 8);
    let address = arg.address();
    // SAFETY: both are in `lists`, which lives to the end of this test.
    let (handle, value) = unsafe { (word(lists.address()), long(lists.address() + 8)) };
    handle.store(first.handle().0, Ordering::Relaxed);
    while_flipping(
        || {
            ensure_eq!(raw.ioctl(SIGNAL, address), Ok(0));
            for fence in [&first, &second] {
                ensure!(matches!(fence.value(), 0 | 10 | 20), "{}", fence.value());
            }
            Ok(())
        },
        |turn| {
            let handles = [first.handle().0, second.handle().0];
            handle.store(handles[turn as usize], Ordering::Relaxed);
            value.store([10, 20][turn as usize], Ordering::Relaxed);
        },
    )
}

/// The pointer to the array changes between an array and memory that is not mapped.
fn pointer_flips(raw: &Raw) -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let handles = Page::beginning_with(&fence.handle().0.to_ne_bytes())?;
    let values = Page::beginning_with(&5u64.to_ne_bytes())?;
    let arg = argument(device.handle().0, 1, handles.address(), values.address());
    let address = arg.address();
    // SAFETY: in `arg`, which lives to the end of this test.
    let pointer = unsafe { long(address + member!(ObjectHandleArray)) };
    let (mapped, unmapped) = (handles.address(), handles.end());
    while_flipping(
        || {
            let answer = raw.ioctl(SIGNAL, address);
            ensure!(matches!(answer, Ok(0) | Err(Errno::FAULT)), "{answer:?}");
            Ok(())
        },
        |turn| pointer.store([mapped, unmapped][turn as usize], Ordering::Relaxed),
    )
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-5 FEN-36 the count of a list changes during the call",
            || count_flips(&fixture::raw()?),
        )
        .test(
            "RES-5 the count grows beyond the list during the call",
            || count_runs_away(&fixture::raw()?),
        )
        .test("FEN-18 the list changes during the call", || {
            array_flips(&fixture::raw()?)
        })
        .test(
            "RES-5 the address of the list changes during the call",
            || pointer_flips(&fixture::raw()?),
        )
}
