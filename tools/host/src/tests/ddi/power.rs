// SPDX-License-Identifier: MIT OR Apache-2.0

//! SetPowerState: what the double and the verifier find (GPU-28, GPU-105).

use super::{context_args, context_of, device_of, info, NOBODY};
use crate::ddi::class::Passive;
use crate::ddi::doorbell::{CreateDoorbellArgs, Disconnect, DoorbellCallbacks};
use crate::ddi::object::{Context, Doorbell, HwQueue};
use crate::ddi::port::Port;
use crate::ddi::power::PowerState::{self, D0, D3};
use crate::ddi::types::{CreateHwQueueArgs, DoorbellId, HwQueueId, Scheduling};
use crate::kmd::fake::doorbells::Doorbells;
use crate::kmd::fake::journal::{Broken, Entry, Journal};
use crate::kmd::fake::{Behaviour, FakeKmd};
use crate::platform::Shared;

struct Nothing;

impl DoorbellCallbacks for Nothing {
    fn disconnect(&self, _: &Passive, _: Disconnect) {}

    fn trap(&self, _: &Passive) {}
}

/// A context of HW queues with a doorbell, and one of packets.
struct Made {
    port: Shared<Port>,
    packets: Shared<Context>,
    hardware: Shared<Context>,
    doorbell: Shared<Doorbell>,
}

impl Made {
    fn new(journal: &Shared<Journal>) -> Self {
        let class = &Passive::here();
        let doorbells = Shared::new(Doorbells::new(journal.clone()).unwrap());
        let behaviour = Behaviour {
            doorbells: Some(doorbells),
            ..Behaviour::default()
        };
        let kmd = Box::new(FakeKmd::add_device(journal.clone(), behaviour));
        let port = Port::start(kmd, class, &info()).unwrap();
        let device = device_of(&port, 1).unwrap();
        let packets = context_of(Scheduling::Packets, &NOBODY);
        let packets = Context::create(&device, class, &packets).unwrap();
        let hardware = Context::create(&device, class, &context_args()).unwrap();
        let queue = CreateHwQueueArgs {
            id: HwQueueId(8),
            disable_gpu_timeout: false,
            user_mode_submission: true,
            progress_fence: 0x1000,
            native_progress_fence: false,
            private_data: &[],
            callbacks: &NOBODY,
        };
        let queue = HwQueue::create(&hardware, class, &queue).unwrap();
        let callbacks: Shared<dyn DoorbellCallbacks> = Shared::new(Nothing);
        let doorbell = CreateDoorbellArgs {
            id: DoorbellId(3),
            ring: 0x2000,
            ring_size: 0x1000,
            control: 0x3000,
            control_size: 0x1000,
            resizes_ring: false,
            wants_secondary: false,
            private_data: &[],
            callbacks: &callbacks,
        };
        let doorbell = Doorbell::create(&queue, class, &doorbell).unwrap();

        Self {
            port,
            packets,
            hardware,
            doorbell,
        }
    }

    fn go_to(&self, state: PowerState) {
        let kmd = self.port.enter().unwrap();

        kmd.set_power_state(&Passive::here(), state);
    }

    fn suspend(&self) {
        for context in [&self.packets, &self.hardware] {
            context.suspend(&mut Passive::here(), 1).unwrap();
        }
    }

    fn connect(&self) {
        drop(self.doorbell.connect(&Passive::here()));
    }

    fn disconnect(&self) {
        self.doorbell.disconnect(&Passive::here());
    }
}

#[test]
fn gpu_28_gpu_105_a_double_finds_wrong_power_states() {
    type Case = fn(&Made);
    let right: [Case; 3] = [
        |made| {
            made.suspend();
            made.go_to(D3);
        },
        |made| {
            made.connect();
            made.suspend();
            made.disconnect();
            made.go_to(D3);
            made.go_to(D0);
            made.connect();
            made.disconnect();
        },
        |made| {
            made.suspend();
            made.disconnect();
            for _ in 0..3 {
                made.go_to(D3);
                made.go_to(D0);
            }
        },
    ];
    let wrong: [Case; 7] = [
        |made| made.go_to(D0),
        |made| made.go_to(D3),
        |made| {
            made.packets.suspend(&mut Passive::here(), 1).unwrap();
            made.go_to(D3);
        },
        |made| {
            made.suspend();
            made.hardware.resume(&mut Passive::here()).unwrap();
            made.go_to(D3);
        },
        |made| {
            made.connect();
            made.suspend();
            made.go_to(D3);
            made.disconnect();
        },
        |made| {
            made.suspend();
            made.go_to(D3);
            made.connect();
            made.disconnect();
        },
        |made| {
            made.suspend();
            made.go_to(D3);
            made.go_to(D3);
        },
    ];
    let broken = |case: Case| {
        let journal = Shared::new(Journal::new());
        let made = Made::new(&journal);

        case(&made);
        drop(made);
        (journal.broken(), journal.count(Entry::SetPowerState))
    };

    for (number, case) in right.into_iter().enumerate() {
        let (broken, count) = broken(case);

        assert_eq!(broken, 0, "case {number}");
        assert_ne!(count, 0);
    }
    for (number, case) in wrong.into_iter().enumerate() {
        assert_eq!(broken(case).0, Broken::BadPower as u32, "case {number}");
    }
}
