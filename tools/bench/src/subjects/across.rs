// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines of two adapters that release each other's waits by native fences (FEN-159).

use opendxg::pm4::Pm4;
use opendxg::{Access, Context, Device, Dxg, MonitoredFence, NativeFence, PagingQueue, SyncFlags};

use super::gpu::NODES;
use crate::adapter::SoftAdapter;
use crate::gpu::{one, Commands};
use crate::measure::Subject;

/// What a fence of several adapters is made with.
const CROSS: SyncFlags = SyncFlags::SHARED
    .union(SyncFlags::NT_SECURITY_SHARING)
    .union(SyncFlags::CROSS_ADAPTER);

/// Commands of two sides that go to and fro so often, by two fences whose addresses are these.
pub(super) fn volley(first: [u64; 2], second: [u64; 2], hops: u32) -> [Pm4; 2] {
    let values = 1..=u64::from(hops / 2);
    [
        values.clone().fold(Pm4::new(), |all, value| {
            all.signal_native(first[0], value)
                .wait_native(first[1], value)
        }),
        values.fold(Pm4::new(), |all, value| {
            all.wait_native(second[0], value)
                .signal_native(second[1], value)
        }),
    ]
}

/// Two command buffers, one on each adapter.
pub(super) struct Across {
    contexts: [Context; 2],
    sides: [Commands; 2],
    fences: [NativeFence; 2],
    _opened: [NativeFence; 2],
    /// Where the first side ends.
    end: MonitoredFence,
    round: u64,
    hops: u32,
    _paging: [PagingQueue; 2],
    // The adapters go last.
    _devices: [Device; 2],
    _adapters: [SoftAdapter; 2],
}

impl Across {
    /// On two adapters of its own, with this `fence_doorbells`; `None` if they cannot be made.
    pub(super) fn new(dxg: &Dxg, fence_doorbells: &str, hops: u32) -> Option<Self> {
        let make = |side: &str| {
            let name = format!("across-{fence_doorbells}-{side}");
            SoftAdapter::new(dxg, &name, &[("fence_doorbells", fence_doorbells)])
        };
        let ((first, here), (second, there)) = (make("first")?, make("second")?);
        let fences = [(); 2].map(|()| {
            here.create_native_fence_with(0, CROSS)
                .expect("create a native fence")
        });
        let opened = fences.each_ref().map(|fence| {
            let handle = fence.share(Access::ALL).expect("share a fence");
            there
                .open_native_fence(&handle, SyncFlags::empty())
                .expect("open a native fence")
        });
        let devices = [here, there];
        let paging = devices
            .each_ref()
            .map(|device| device.create_paging_queue().expect("create a paging queue"));
        let addresses =
            [&fences, &opened].map(|pair| pair.each_ref().map(|fence| fence.gpu_address()));
        let [serves, returns] = volley(addresses[0], addresses[1], hops);
        let contexts = devices
            .each_ref()
            .map(|device| device.create_context(NODES[0]).expect("create a context"));
        Some(Self {
            contexts,
            sides: [
                Commands::new(&paging[0], &serves),
                Commands::new(&paging[1], &returns),
            ],
            fences,
            _opened: opened,
            end: devices[0].create_fence(0).expect("create a fence"),
            round: 0,
            hops,
            _paging: paging,
            _devices: devices,
            _adapters: [first, second],
        })
    }
}

impl Subject for Across {
    fn before(&mut self) {
        for fence in &self.fences {
            fence.signal_rewind(0).expect("rewind");
        }
    }

    fn run(&mut self) {
        self.round += 1;
        for (context, commands) in self.contexts.iter().zip(&self.sides) {
            context
                .submit(commands.address, commands.length)
                .expect("submit");
        }
        // The last hop is on the second side, and the first one waits for it.
        self.contexts[0]
            .signal(&one(&self.end, self.round))
            .expect("queue a signal");
        self.end.wait(self.round).expect("wait");
    }

    fn batch(&self) -> u32 {
        self.hops
    }
}
