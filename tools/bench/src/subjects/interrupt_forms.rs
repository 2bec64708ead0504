// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a signal costs that somebody waits for, by what its interrupt tells, and whether that
//! depends on how many other native fences the adapter has (FEN-91, FEN-93, FEN-95, FEN-97).

use std::cell::Cell;

use opendxg::pm4::Pm4;
use opendxg::{Context, Device, EventFd, NativeFence, PagingQueue};

use super::gpu::NODES;
use super::Bench;
use crate::adapter::SoftAdapter;
use crate::bell::{user_queue, Bell};
use crate::measure::{Participant, Plan, Runner, Subject};

/// The group of each form, and the form: what the attribute `native_interrupts` of an adapter says.
pub const FORMS: [(&str, &str); 4] = [
    ("native-exact", "exact"),
    ("native-null", "null"),
    ("native-legacy", "legacy"),
    ("native-queue", "queue"),
];
/// Numbers of other fences of the adapter.
pub const OTHERS: [u64; 2] = [0, 100_000];
/// The participant.
pub const WOKEN: &str = "signal that wakes a waiter";

/// From the doorbell until the waiter is awake. The wait was queued before, so that each signal
/// interrupts.
struct Woken<'a> {
    bell: Bell<'a>,
    fence: NativeFence,
    event: EventFd,
    value: Cell<u64>,
}

impl Subject for Woken<'_> {
    fn before(&mut self) {
        self.value.set(self.value.get() + 1);
        let wait = self.fence.wait_async(self.value.get(), &self.event);
        wait.expect("wait");
    }

    fn run(&mut self) {
        let (address, handle) = (self.fence.gpu_address(), self.fence.handle());
        let packets = Pm4::new().signal_native_logged(address, self.value.get(), handle);
        self.bell.submit_after(&packets);
        let count = self.event.wait(None).expect("wait for an eventfd");
        assert_eq!(count, Some(1), "wake-ups of one wait");
    }
}

/// An adapter, and what is on it.
struct Place {
    device: Device,
    paging: PagingQueue,
    context: Context,
    /// Fences that nobody waits for.
    _others: Vec<NativeFence>,
    _adapter: SoftAdapter,
}

impl Place {
    fn new(bench: &Bench, form: &str, others: u64) -> Option<Self> {
        let name = format!("{form}-{others}");
        let attributes = [("native_interrupts", form)];
        let (adapter, device) = SoftAdapter::new(&bench.dxg, &name, &attributes)?;
        let context = device.create_hw_context(NODES[0]);
        let paging = device.create_paging_queue();
        let others = (0..others).map(|_| native(&device)).collect();
        Some(Self {
            context: context.expect("create a HW context"),
            paging: paging.expect("create a paging queue"),
            device,
            _others: others,
            _adapter: adapter,
        })
    }
}

fn native(device: &Device) -> NativeFence {
    let fence = device.create_native_fence(0);
    fence.expect("create a native fence")
}

/// Measures a group of [`FORMS`].
pub fn measure(runner: &mut Runner, bench: &mut Bench, (group, form): (&str, &str), plan: Plan) {
    let places: Option<Vec<_>> = OTHERS
        .into_iter()
        .map(|others| Place::new(bench, form, others))
        .collect();
    let Some(places) = places else {
        let text = format!("{group}: no adapter with this form of interrupts can be made");
        bench.missing.push(text);
        return;
    };
    let queues: Vec<_> = places
        .iter()
        .map(|place| user_queue(&place.context))
        .collect();
    let all = places.iter().zip(&queues).zip(OTHERS);
    let all = all.map(|((place, queue), others)| {
        let woken = Woken {
            bell: Bell::new(&place.paging, queue),
            fence: native(&place.device),
            event: EventFd::new().expect("make an eventfd"),
            value: 0.into(),
        };
        Participant::at(WOKEN, others, woken)
    });
    let title = format!(
        "a signal that somebody waits for, while the adapter has N other native fences; its \
         interrupts are told in the form {form}"
    );
    runner.group(group, &title, plan, all.collect());
}
