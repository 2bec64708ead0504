// SPDX-License-Identifier: MIT OR Apache-2.0

//! The CPU events of a software adapter: what clients read of them (cpu-events.md section 8).

use std::sync::Arc;

use super::{started, Space};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::cpu_event::{CpuEventCallbacks, CreateCpuEventArgs, Signals};
use crate::ddi::object::CpuEvent;
use crate::ddi::port::Port;
use crate::ddi::types::{
    ContextId, CpuEventId, DeviceError, Escape, HandleData, HwQueueId, KmdError, KmdResult,
    QueueHandle,
};
use crate::kmd::soft::Config;
use crate::platform::{self, Shared};

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

    spaces[0].device.notify_error(&class, DeviceError::Marked);
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

/// An event of a device, and the way to it.
fn event_of(space: &Space, words: [u32; 4]) -> (Arc<Way>, CpuEvent) {
    let class = Passive::here();
    let way = Arc::new(Way(Signals::new().unwrap()));
    let callbacks: Shared<dyn CpuEventCallbacks> = way.clone();
    let args = CreateCpuEventArgs {
        id: CpuEventId(1),
        callbacks: &callbacks,
    };
    let event = CpuEvent::create(&space.device, &class, &args).unwrap();
    let known = Escape {
        flags: (1 << 6) | (1 << 3),
        ..Escape::default()
    };

    space
        .device
        .escape(&class, &known, &mut usage(&event, words))
        .unwrap();
    (way, event)
}

fn dpc(port: &Shared<Port>) {
    Dispatch::below(&mut Passive::here(), |class| {
        port.enter().unwrap().dpc_routine(class);
    });
}

/// A step of the way is a lock that is taken. With 10,000 events of others there are as many steps
/// as with none, and each event is signalled from what its own number finds.
#[test]
fn cpu_27_others_do_not_make_a_signal_longer() {
    let port = started(Config::default());
    let own = Space::new(&port, 1);
    let (way, _event) = event_of(&own, [RESET, 0, 0, 7]);
    let steps = |port: &Shared<Port>| {
        let before = platform::short_locks_taken();

        own.device
            .notify_error(&Passive::here(), DeviceError::Marked);
        dpc(port);
        platform::short_locks_taken() - before
    };
    let alone = steps(&port);
    let others: Vec<_> = (2..12)
        .map(|id| {
            let space = Space::new(&port, id);
            let events: Vec<_> = (0..1000)
                .map(|_| event_of(&space, [RESET, 0, 0, 0]))
                .collect();

            (space, events)
        })
        .collect();

    assert_eq!(steps(&port), alone);
    assert_eq!(way.0.sent(), 2);
    for (way, _) in others.iter().flat_map(|(_, events)| events) {
        assert_eq!(way.0.sent(), 0);
    }
}

/// StopDevice is of class P, and signals as DpcRoutine does, however many there are.
#[test]
fn cpu_20_cpu_34_stop_device_signals_everybody_once() {
    let port = started(Config::default());
    let spaces = [1, 2].map(|id| Space::new(&port, id));
    let events: Vec<_> = (0..700)
        .map(|number| event_of(&spaces[number % 2], [1 + 2 * (number as u32 % 2), 0, 0, 7]))
        .collect();
    let faults = event_of(&spaces[0], [PAGE_FAULT, 0, 0, 7]);

    port.stop(&Passive::here());
    for (way, _) in &events {
        assert_eq!((way.0.sent(), way.0.late()), (1, 0));
    }
    assert_eq!(faults.0 .0.sent(), 0);
    drop((events, faults));
}

/// A client with one context of packets, and one of HW queues with two.
struct Handles;

impl HandleData for Handles {
    fn queue(&self, handle: u32) -> Option<QueueHandle> {
        match handle {
            1 => Some(QueueHandle::Context(ContextId(31))),
            2 => Some(QueueHandle::HwQueue(HwQueueId(41), ContextId(32))),
            _ => None,
        }
    }
}

#[test]
fn cpu_42_words_that_a_class_does_not_have_are_refused() {
    let port = started(Config::default());
    let space = Space::new(&port, 1);
    let (_, event) = event_of(&space, [0; 4]);
    let set = |words: [u32; 4]| {
        let escape = Escape {
            flags: 1 << 6,
            handles: Some(&Handles),
            ..Escape::default()
        };

        space
            .device
            .escape(&Passive::here(), &escape, &mut usage(&event, words))
    };
    let refused = Err(KmdError::InvalidParameter);

    for class in 1..=7 {
        let of_queue = if class == 7 { refused } else { Ok(()) };

        assert_eq!(set([class, 1, 0, 9]), Ok(()));
        assert_eq!(set([class, 1 << 30, 0, 9]), refused, "no such node");
        assert_eq!(set([class, 0, 1, 9]), of_queue);
        assert_eq!(set([class, 0, 2, 9]), of_queue);
        assert_eq!(set([class, 0, 3, 9]), refused, "no queue");
    }
    for class in [0, 8, u32::MAX] {
        assert_eq!(set([class, u32::MAX, 3, 9]), Ok(()));
    }
}
