// SPDX-License-Identifier: MIT OR Apache-2.0

//! CPU events with a double below: each create has its destroy, and nothing is signalled
//! afterwards (CPU-7, CPU-21, CPU-29, CPU-31).

use std::sync::Arc;

use super::{device_of, start};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::cpu_event::{CpuEventCallbacks, CreateCpuEventArgs, Signals};
use crate::ddi::object::CpuEvent;
use crate::ddi::types::{CpuEventId, KmdError, KmdResult};
use crate::kmd::fake::cpu_events::CpuEvents;
use crate::kmd::fake::journal::Entry;
use crate::kmd::fake::Behaviour;
use crate::platform::Shared;

/// The way to an event that is counted.
struct Way(Signals);

impl CpuEventCallbacks for Way {
    fn queue_dpc(&self) {}

    fn signal_event(&self, _: &Dispatch) -> KmdResult {
        self.0.send(|| {})
    }
}

fn behaviour(events: &Shared<CpuEvents>) -> Behaviour {
    Behaviour {
        cpu_events: Some(events.clone()),
        ..Behaviour::default()
    }
}

#[test]
fn cpu_29_cpu_21_every_create_has_its_destroy_and_nothing_is_signalled_afterwards() {
    let events = Shared::new(CpuEvents::new().unwrap());
    let (journal, port) = start(behaviour(&events));
    let port = port.unwrap();
    let device = device_of(&port, 3).unwrap();
    let way = Arc::new(Way(Signals::new().unwrap()));
    let callbacks: Shared<dyn CpuEventCallbacks> = way.clone();
    let args = CreateCpuEventArgs {
        id: CpuEventId(7),
        callbacks: &callbacks,
    };
    let event = CpuEvent::create(&device, &Passive::here(), &args).unwrap();
    let dpc = || {
        Dispatch::below(&mut Passive::here(), |class| {
            port.enter().unwrap().dpc_routine(class);
        });
    };

    assert_ne!(event.client(), 0);
    events.note(0);
    events.note(0);
    dpc();
    dpc();
    assert_eq!((way.0.sent(), events.told()), (2, (2, 0)));

    // A driver that keeps what it must not keep.
    let kept = events.callbacks(0).unwrap();

    drop(event);
    way.0.end();
    assert_eq!(journal.count(Entry::DestroyCpuEvent), 1);
    events.note(0);
    dpc();
    Dispatch::below(&mut Passive::here(), |class| {
        assert_eq!(kept.signal_event(class), Err(KmdError::InvalidHandle));
    });
    assert_eq!((way.0.sent(), way.0.late()), (2, 1));
    drop((kept, callbacks, device, port));
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

#[test]
fn cpu_7_a_refusal_of_the_driver_is_returned_as_it_is() {
    for error in [
        KmdError::NoMemory,
        KmdError::InvalidParameter,
        KmdError::NotSupported,
    ] {
        let events = Shared::new(CpuEvents::new().unwrap());
        // After StartDevice, CreateProcess and CreateDevice.
        let (journal, port) = start(Behaviour {
            fail: Some((4, error)),
            ..behaviour(&events)
        });
        let port = port.unwrap();
        let device = device_of(&port, 3).unwrap();
        let callbacks: Shared<dyn CpuEventCallbacks> = Arc::new(Way(Signals::new().unwrap()));
        let args = CreateCpuEventArgs {
            id: CpuEventId(7),
            callbacks: &callbacks,
        };
        let made = CpuEvent::create(&device, &Passive::here(), &args);

        assert_eq!(made.err(), Some(error));
        drop((device, port));
        assert_eq!(journal.count(Entry::DestroyCpuEvent), 0);
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
        assert_eq!(Shared::strong_count(&callbacks), 1);
    }
}
