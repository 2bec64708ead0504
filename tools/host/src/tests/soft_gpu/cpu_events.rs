// SPDX-License-Identifier: MIT OR Apache-2.0

//! The CPU events of a software adapter: what clients read of them (cpu-events.md section 8).

use std::sync::Arc;

use super::{started, Space};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::cpu_event::{CpuEventCallbacks, CreateCpuEventArgs, Signals};
use crate::ddi::object::CpuEvent;
use crate::ddi::types::{CpuEventId, Escape, KmdResult};
use crate::kmd::soft::Config;
use crate::platform::Shared;

const RESET: u32 = 3;
const PAGE_FAULT: u32 = 2;

struct Way(Signals);

impl CpuEventCallbacks for Way {
    fn queue_dpc(&self) {}

    fn signal_event(&self, _: &Dispatch) -> KmdResult {
        self.0.send(|| {})
    }
}

/// The usage escape, as the OS part hands it down.
fn usage(event: &CpuEvent, usage: [u32; 4]) -> Vec<u8> {
    let mut data = 2_u32.to_le_bytes().to_vec();

    data.extend([0; 4]);
    data.extend(event.client().to_le_bytes());
    for word in usage.iter().chain(&[0; 4]) {
        data.extend(word.to_le_bytes());
    }
    data
}

/// A request for records.
fn request(event: &CpuEvent) -> Vec<u8> {
    let mut data = b"ODXR\x01\0\0\0".to_vec();

    data.extend(event.client().to_le_bytes());
    data.resize(792, 0);
    data
}

fn dword(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
}

#[test]
fn cpu_43_who_waits_hears_that_a_client_has_put_its_device_in_error() {
    let port = started(Config::default());
    let spaces = [1, 2].map(|id| Space::new(&port, id));
    let class = Passive::here();
    let known = Escape {
        flags: (1 << 6) | (1 << 3),
        ..Escape::default()
    };
    // Of the whole device, of one node, of another class, of another device.
    let events = [
        (0, [RESET, 0, 0, 7], 1),
        (0, [RESET, 2, 0, 7], 1),
        (0, [PAGE_FAULT, 0, 0, 7], 0),
        (1, [RESET, 0, 0, 7], 0),
    ]
    .map(|(space, words, expected)| {
        let device = &spaces[space].device;
        let way = Arc::new(Way(Signals::new().unwrap()));
        let callbacks: Shared<dyn CpuEventCallbacks> = way.clone();
        let args = CreateCpuEventArgs {
            id: CpuEventId(1),
            callbacks: &callbacks,
        };
        let event = CpuEvent::create(device, &class, &args).unwrap();

        device
            .escape(&class, &known, &mut usage(&event, words))
            .unwrap();
        (device, way, event, expected)
    });

    spaces[0].device.notify_error(&class);
    Dispatch::below(&mut Passive::here(), |class| {
        port.enter().unwrap().dpc_routine(class);
    });
    for (device, way, event, expected) in &events {
        let mut data = request(event);

        device
            .escape(&class, &Escape::default(), &mut data)
            .unwrap();
        assert_eq!((way.0.sent(), dword(&data, 16)), (*expected, *expected));
        if *expected == 1 {
            // The class, the node, the cookie, the reason.
            let record = [24, 28, 64, 68].map(|at| dword(&data, at));

            assert_eq!(record, [RESET, u32::MAX, 7, 1]);
        }
    }
}
