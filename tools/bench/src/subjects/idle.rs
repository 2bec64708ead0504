// SPDX-License-Identifier: MIT OR Apache-2.0
//! What engines without work and queues that wait cost.

use std::thread::sleep;
use std::time::Duration;

use opendxg::pm4::{Compare, Pm4};
use opendxg::{Context, NativeFence};

use super::gpu::{Work, NODES};
use super::Bench;
use crate::gpu::{engine_time, one, Buffer, Commands};
use crate::result::Count;

/// How long nothing must happen.
const A_WHILE: Duration = Duration::from_secs(1);
/// Queues that wait.
const QUEUES: usize = 100;

/// How long the threads of the GPU run while there is no work, and while queues wait.
pub fn measure(bench: &Bench) -> Vec<Count> {
    let work = Work::new(bench);
    let begin = work.fence();
    let mut counts = vec![time_of("ns of engine threads in 1 s without work", Some(0))];
    let contexts: Vec<Context> = (0..QUEUES).map(|_| work.context(NODES[0])).collect();
    for context in &contexts {
        context.wait(&one(&begin, 1)).expect("queue a wait");
        context
            .submit(work.nothing.address, work.nothing.length)
            .expect("submit");
    }
    let what = format!("ns of engine threads in 1 s, {QUEUES} queues waiting");
    counts.push(time_of(&what, Some(0)));
    begin.signal(1).expect("signal a fence");
    drop(contexts);
    counts.push(native(bench));
    counts.extend([1, QUEUES].map(|queues| polling(bench, queues)));
    counts
}

/// The same of queues that wait for each other by native fences: the first one waits for what never
/// comes, and each other one for the one before it.
fn native(bench: &Bench) -> Count {
    let work = Work::new(bench);
    let fences = device_fences(bench, QUEUES + 1);
    let contexts: Vec<Context> = (0..QUEUES).map(|_| work.context(NODES[0])).collect();
    let mut all = Vec::new();
    for (context, pair) in contexts.iter().zip(fences.windows(2)) {
        let packets = Pm4::new()
            .wait_native(pair[0].gpu_address(), 1)
            .signal_native(pair[1].gpu_address(), 1);
        let commands = Commands::new(&work.paging, &packets);
        context
            .submit(commands.address, commands.length)
            .expect("submit");
        all.push(commands);
    }
    let what = format!("ns of engine threads in 1 s, {QUEUES} queues waiting for native fences");
    let count = time_of(&what, Some(0));
    let last = &fences[QUEUES];
    fences[0].signal(1).expect("signal a fence");
    last.wait(1).expect("wait");
    count
}

/// So many native fences.
fn device_fences(bench: &Bench, count: usize) -> Vec<NativeFence> {
    let make = || bench.device.create_native_fence(0);
    (0..count)
        .map(|_| make().expect("create a native fence"))
        .collect()
}

/// The same of queues whose commands look at memory until it changes: that is work.
fn polling(bench: &Bench, queues: usize) -> Count {
    let device = bench
        .device
        .adapter()
        .create_device()
        .expect("create a device");
    let work = Work::on(&device);
    let word = Buffer::new(&work.paging, 8);
    let wait = Pm4::new().wait64(word.address, Compare::Equal, 1, u64::MAX);
    let wait = Commands::new(&work.paging, &wait);
    let fence = work.fence();
    let contexts: Vec<Context> = (0..queues).map(|_| work.context(NODES[0])).collect();
    for context in &contexts {
        context.submit(wait.address, wait.length).expect("submit");
    }
    let count = time_of(
        &format!("ns of engine threads in 1 s, commands of {queues} polling"),
        None,
    );
    let bytes = word.allocation.lock_write().expect("map an allocation");
    bytes.write(0, &1_u64.to_le_bytes());
    drop(bytes);
    for (context, value) in contexts.iter().zip(1..) {
        context.signal(&one(&fence, value)).expect("queue a signal");
        fence.wait(value).expect("wait");
    }
    count
}

/// How long the threads of the GPU run while this process does nothing.
fn time_of(what: &str, expected: Option<u64>) -> Count {
    // What has just ended may need a moment to come to rest.
    sleep(A_WHILE / 4);
    let (before, threads) = engine_time();
    sleep(A_WHILE);
    let (after, _) = engine_time();
    assert!(threads > 0, "no threads of engines");
    Count {
        what: what.into(),
        of: A_WHILE.as_nanos() as u64,
        found: after - before,
        expected,
    }
}
