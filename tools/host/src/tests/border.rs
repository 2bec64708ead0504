// SPDX-License-Identifier: MIT OR Apache-2.0

//! CPU events across the border of a virtual machine, in one process: a loop-back, and a double
//! that delays, reorders, merges and loses (cpu-events.md section 9). The KMD is that of the
//! software adapter, as for local events.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::ddi::start;
use super::soft_gpu::{started, Space};
use crate::ddi::border::guest::Guest;
use crate::ddi::border::host::Function;
use crate::ddi::border::mailbox::{Mailbox, RING};
use crate::ddi::border::message::{Answer, Bytes, Request, SIZE, USAGE_SIZE};
use crate::ddi::border::receiver::Receiver;
use crate::ddi::border::{Bell, EventName, Transport, MOST_EVENTS};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::cpu_event::{CpuEventCallbacks, Signals};
use crate::ddi::object::{Device, Process};
use crate::ddi::port::Port;
use crate::ddi::process::CreateProcessArgs;
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{
    ContextId, DeviceError, DeviceId, Escape, HandleData, KmdError, KmdResult, ProcessId,
    QueueHandle,
};
use crate::kmd::fake::cpu_events::CpuEvents;
use crate::kmd::fake::Behaviour;
use crate::kmd::soft::Config;
use crate::platform::Shared;

/// What guests call their process and their device, all of them the same.
const PROCESS: u64 = 77;
const DEVICE: u64 = 78;

const KNOWN: u32 = 1 << 6;
const RESET: u32 = 3;

/// The eventfd of a guest's process.
struct EventFd(Signals);

impl CpuEventCallbacks for EventFd {
    fn queue_dpc(&self) {}

    fn signal_event(&self, _: &Dispatch) -> KmdResult {
        self.0.send(|| {})
    }
}

/// Something that is asked for, and how often it was.
#[derive(Default)]
struct Rung(AtomicU32);

impl Bell for Rung {
    fn ring(&self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A call in the same kernel. Answers of the requests that `loses` names by their turn get lost.
struct Loopback {
    function: Shared<Function>,
    is_gone: AtomicBool,
    turn: AtomicU32,
    loses: Mutex<Vec<u32>>,
}

impl Transport for Loopback {
    fn call(&self, class: &Passive, request: &Bytes) -> KmdResult<Answer> {
        let turn = self.turn.fetch_add(1, SeqCst);

        if self.is_gone.load(SeqCst) {
            return Err(KmdError::DeviceRemoved);
        }

        let answer = self.function.serve(class, request);

        match self.loses.lock().unwrap().contains(&turn) {
            true => Err(KmdError::DeviceRemoved),
            false => answer,
        }
    }
}

/// A guest with one function, and its host.
struct Machine {
    guest: Guest,
    receiver: Shared<Receiver>,
    transport: Shared<Loopback>,
    mailbox: Shared<Mailbox>,
    interrupts: Shared<Rung>,
    space: Space,
    port: Shared<Port>,
}

impl Machine {
    fn new(port: &Shared<Port>, id: u64) -> Self {
        let mailbox = Shared::new(Mailbox::new().unwrap());
        let interrupts = Shared::new(Rung::default());
        let dpc = Shared::new(Rung::default());
        let function = Function::new(mailbox.clone(), interrupts.clone(), dpc).unwrap();
        let space = Space::new(port, id);

        function
            .add_device(PROCESS, DEVICE, space.device(), None)
            .unwrap();

        let transport = Shared::new(Loopback {
            function: Shared::new(function),
            is_gone: AtomicBool::new(false),
            turn: AtomicU32::new(0),
            loses: Mutex::default(),
        });

        let receiver = Shared::new(Receiver::new(mailbox.clone()).unwrap());

        Self {
            guest: Guest::new(transport.clone(), receiver.clone(), true),
            receiver,
            transport,
            mailbox,
            interrupts,
            space,
            port: port.clone(),
        }
    }

    fn create(&self) -> KmdResult<Event> {
        self.create_on(DEVICE)
    }

    fn create_on(&self, device: u64) -> KmdResult<Event> {
        let fd = Arc::new(EventFd(Signals::new().unwrap()));
        let callbacks: Shared<dyn CpuEventCallbacks> = fd.clone();
        let class = Passive::here();
        let (id, client) = self.guest.create(&class, PROCESS, device, &callbacks)?;

        Ok(Event { id, client, fd })
    }

    /// One that wants to hear of errors of the device.
    fn event(&self) -> Event {
        let event = self.create().unwrap();

        self.set_usage(&event, KNOWN, RESET).unwrap();
        event
    }

    fn set_usage(&self, event: &Event, flags: u32, class: u32) -> KmdResult<[u8; USAGE_SIZE]> {
        let mut data = [0; USAGE_SIZE];

        // The handle and the name that a process writes there mean nothing.
        for (place, word) in [(0, 2), (4, 0xdead), (8, 0xbeef), (16, class)] {
            data[place..place + 4].copy_from_slice(&u32::to_le_bytes(word));
        }
        self.guest
            .set_usage(&Passive::here(), event.id, flags, &mut data)?;
        Ok(data)
    }

    /// Something happens to the device, and the host's DpcRoutine comes.
    fn happens(&self) {
        self.space
            .device()
            .notify_error(&Passive::here(), DeviceError::Marked);
        Dispatch::below(&mut Passive::here(), |class| {
            self.port.enter().unwrap().dpc_routine(class);
        });
    }

    /// The processor of the guest runs, and sees its interrupt.
    fn runs(&self) {
        self.receiver.look();
    }
}

struct Event {
    id: EventName,
    client: u64,
    fd: Arc<EventFd>,
}

impl Event {
    fn heard(&self) -> u32 {
        self.fd.0.sent()
    }
}

#[test]
fn cpu_48_cpu_55_each_step_of_the_way() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let event = machine.event();
    let data = machine.set_usage(&event, KNOWN | (1 << 3), RESET).unwrap();

    // The driver's name of the event, and the handle of the process as it was.
    assert_eq!(data[8..16], event.client.to_le_bytes());
    assert_eq!(data[4..8], 0xdead_u32.to_le_bytes());
    machine.happens();
    // The host has returned, and the guest knows nothing yet.
    assert_eq!((machine.interrupts.0.load(SeqCst), event.heard()), (1, 0));
    machine.runs();
    assert_eq!((event.heard(), machine.receiver.dropped()), (1, 0));
    // The same records as without a border.
    let mut request = b"ODXR\x01\0\0\0".to_vec();

    request.extend(event.client.to_le_bytes());
    request.resize(792, 0);
    machine
        .space
        .device()
        .escape(&Passive::here(), &Escape::default(), &mut request)
        .unwrap();
    assert_eq!((request[16], request[24]), (1, RESET as u8));
    machine.guest.destroy(&Passive::here(), event.id);
    machine.happens();
    machine.runs();
    assert_eq!((event.heard(), machine.receiver.dropped()), (1, 0));
    assert_eq!(
        machine.set_usage(&event, KNOWN, RESET),
        Err(KmdError::InvalidParameter)
    );
}

#[test]
fn cpu_50_a_guest_that_stands_still_loses_no_event() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let events: Vec<_> = (0..100).map(|_| machine.event()).collect();
    let silent = machine.create().unwrap();

    for _ in 0..1000 {
        machine.happens();
    }
    // 100,000 signals, and one interrupt for all of them.
    assert_eq!(machine.interrupts.0.load(SeqCst), 1);
    machine.runs();
    for event in &events {
        assert!((1..=1000).contains(&event.heard()));
    }
    assert_eq!(silent.heard(), 0);
    // And again, each of them.
    let before: Vec<_> = events.iter().map(Event::heard).collect();

    machine.happens();
    machine.runs();
    for (event, before) in events.iter().zip(before) {
        assert!(event.heard() > before);
    }
    assert_eq!(machine.interrupts.0.load(SeqCst), 2);
}

#[test]
fn cpu_51_a_signal_that_comes_late_fires_no_other_event() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let first = machine.event();

    // In the ring, and then sticking.
    for _ in 0..RING + 4 {
        machine.happens();
    }
    // What came before the end is heard.
    machine.guest.destroy(&Passive::here(), first.id);
    assert_eq!(first.heard(), RING as u32 + 1);

    let second = machine.event();

    assert_eq!(second.id.place, first.id.place);
    assert_ne!(second.id.generation, first.id.generation);
    machine.runs();
    assert_eq!((first.heard(), second.heard()), (RING as u32 + 1, 0));
    assert_eq!(machine.receiver.dropped(), 0);
    // A host that makes things up.
    for id in [
        first.id,
        EventName {
            place: u32::MAX,
            generation: 1,
        },
        EventName {
            place: MOST_EVENTS as u32 - 1,
            generation: 9,
        },
    ] {
        machine.mailbox.signal(id);
    }
    machine.runs();
    assert_eq!(second.heard(), 0);
    assert_eq!(machine.receiver.dropped(), 3);
    machine.happens();
    machine.runs();
    assert_eq!(second.heard(), 1);
}

#[test]
fn cpu_52_a_guest_has_its_own_quota_and_a_reset_ends_all() {
    let port = started(Config::default());
    let (machine, other) = (Machine::new(&port, 1), Machine::new(&port, 2));
    let spaces: Vec<_> = (3..8).map(|id| Space::new(&port, id)).collect();

    for (name, space) in (DEVICE + 1..).zip(&spaces) {
        machine
            .transport
            .function
            .add_device(PROCESS, name, space.device(), None)
            .unwrap();
    }

    // The KMD has a limit for each device, and the function one for all of them.
    let mut events: Vec<_> = (0..1024).map(|_| machine.event()).collect();

    assert_eq!(machine.create().err(), Some(KmdError::NoMemory));
    while events.len() < MOST_EVENTS {
        let device = DEVICE + events.len() as u64 / 1024;

        events.push(machine.create_on(device).unwrap());
    }
    assert_eq!(
        machine.create_on(DEVICE + 5).err(),
        Some(KmdError::NoMemory)
    );
    let full = other.event();
    let ways: Vec<_> = events.iter().map(|event| event.fd.clone()).collect();

    machine.transport.function.reset();
    machine.happens();
    machine.runs();
    for way in ways {
        assert_eq!(way.0.sent(), 0);
    }
    // Nor is anything heard that was stuck.
    let stuck = other.create().unwrap();

    for _ in 0..RING {
        other.happens();
    }
    other.set_usage(&stuck, KNOWN, RESET).unwrap();
    other.happens();
    other.transport.function.reset();
    other.runs();
    assert_eq!((stuck.heard(), full.heard()), (0, RING as u32));
    // Its devices are gone as well.
    machine.guest.destroy(&Passive::here(), events[0].id);
    assert_eq!(machine.create().err(), Some(KmdError::InvalidParameter));
}

/// Every field, whatever is in the others.
#[test]
fn cpu_47_cpu_52_requests_that_make_no_sense() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let event = machine.event();
    let class = Passive::here();
    let serve = |request: &Bytes| machine.transport.function.serve(&class, request);
    let mut usage = [0; USAGE_SIZE];

    usage[0] = 2;
    usage[16] = RESET as u8;

    let good = [
        Request::Create {
            event: EventName {
                place: 9,
                generation: 1,
            },
            process: PROCESS,
            device: DEVICE,
        },
        Request::Usage {
            event: event.id,
            flags: KNOWN,
            data: usage,
        },
        Request::Destroy { event: event.id },
    ]
    .map(|request| {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
        request.encode()
    });
    let refused = Err(KmdError::InvalidParameter);

    for (number, good) in good.iter().enumerate() {
        for byte in 0..SIZE {
            let mut bad = *good;

            bad[byte] ^= 0x80;
            // Place and generation of a new event are the guest's, and so is what the KMD reads of
            // the usage; the host writes the name of the event.
            let is_free = match number {
                0 => byte == 8 || (12..16).contains(&byte),
                1 => {
                    (40..48).contains(&byte) || (48..52).contains(&byte) || (60..64).contains(&byte)
                }
                _ => false,
            };

            if !is_free {
                assert_eq!(serve(&bad), refused, "request {number}, byte {byte}");
            }
        }
    }
    // No generation, no place.
    for (place, generation) in [(0, 0), (MOST_EVENTS as u32, 1), (u32::MAX, u32::MAX)] {
        let event = EventName { place, generation };

        for request in [
            Request::Create {
                event,
                process: PROCESS,
                device: DEVICE,
            },
            Request::Destroy { event },
        ] {
            assert_eq!(serve(&request.encode()), refused);
        }
    }
    // Nothing of that has changed anything.
    machine.happens();
    machine.runs();
    assert_eq!(event.heard(), 1);
    assert_eq!(serve(&good[2]), Ok(Answer::Destroyed));
    assert_eq!(serve(&good[2]), refused);
}

#[test]
fn cpu_52_answers_that_are_lost_and_a_host_that_is_gone() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);

    // The host has made it, and the guest does not know.
    machine.transport.loses.lock().unwrap().push(0);
    assert_eq!(machine.create().err(), Some(KmdError::DeviceRemoved));

    let event = machine.event();

    assert_eq!(event.id.place, 0, "the same place");
    machine.happens();
    machine.runs();
    assert_eq!((event.heard(), machine.receiver.dropped()), (1, 0));
    machine.transport.is_gone.store(true, SeqCst);
    assert_eq!(
        machine.set_usage(&event, KNOWN, RESET),
        Err(KmdError::DeviceRemoved)
    );
    machine.guest.destroy(&Passive::here(), event.id);
    assert_eq!(machine.create().err(), Some(KmdError::DeviceRemoved));
}

#[test]
fn cpu_53_equal_ids_of_two_functions_are_two_events() {
    let port = started(Config::default());
    let machines = [1, 2].map(|id| Machine::new(&port, id));
    let events = machines.each_ref().map(Machine::event);

    assert_eq!(events[0].id, events[1].id);
    assert_ne!(events[0].client, events[1].client);
    machines[0].happens();
    machines[0].runs();
    machines[1].runs();
    assert_eq!((events[0].heard(), events[1].heard()), (1, 0));
    assert_eq!(machines[1].interrupts.0.load(SeqCst), 0);
    machines[0].guest.destroy(&Passive::here(), events[0].id);
    machines[1].happens();
    machines[1].runs();
    assert_eq!((events[0].heard(), events[1].heard()), (1, 1));
}

#[test]
fn cpu_19_cpu_54_a_secure_guest_sends_what_every_driver_knows() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let event = machine.event();
    let before = machine.transport.turn.load(SeqCst);

    let open = Guest::new(machine.transport.clone(), machine.receiver.clone(), false);

    assert_eq!(machine.guest.check_escape(), Err(KmdError::AccessDenied));
    assert_eq!(open.check_escape(), Ok(()));
    assert_eq!(machine.transport.turn.load(SeqCst), before);
    assert!(machine.set_usage(&event, KNOWN, RESET).is_ok());
    // The host sees to it that the data count as those of a guest, not the guest.
    for flags in [0, KNOWN | (1 << 5), KNOWN | 1, u32::MAX] {
        assert_eq!(
            machine.set_usage(&event, flags, RESET),
            Err(KmdError::InvalidParameter)
        );
    }
}

/// The handles of a guest's process, as its host knows them: one context.
struct Handles;

impl HandleData for Handles {
    fn queue(&self, handle: u32) -> Option<QueueHandle> {
        (handle == 5).then_some(QueueHandle::Context(ContextId(9)))
    }
}

#[test]
fn cpu_47_cpu_49_the_words_of_a_usage_may_name_a_queue_of_the_guest() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let event = machine.event();
    let usage = |device: u64, queue: u32| {
        let callbacks: Shared<dyn CpuEventCallbacks> = event.fd.clone();
        let class = Passive::here();
        let (id, _) = machine.guest.create(&class, PROCESS, device, &callbacks)?;
        let mut data = [0; USAGE_SIZE];

        for (place, word) in [(0, 2), (16, RESET), (24, queue)] {
            data[place..place + 4].copy_from_slice(&u32::to_le_bytes(word));
        }

        let answer = machine.guest.set_usage(&class, id, KNOWN, &mut data);

        machine.guest.destroy(&class, id);
        answer
    };

    machine
        .transport
        .function
        .add_device(
            PROCESS,
            DEVICE + 1,
            machine.space.device(),
            Some(Shared::new(Handles)),
        )
        .unwrap();
    assert_eq!(usage(DEVICE + 1, 5), Ok(()));
    // No handle of the device, and a device without handles.
    for (device, queue) in [(DEVICE + 1, 6), (DEVICE, 5)] {
        assert_eq!(usage(device, queue), Err(KmdError::InvalidParameter));
    }
    assert_eq!(
        usage(DEVICE + 2, 5),
        Err(KmdError::InvalidParameter),
        "no device"
    );
}

#[test]
fn cpu_30_cpu_52_a_device_that_is_gone_takes_its_events_along() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let other = Machine::new(&port, 2);
    let events = [machine.event(), other.event()];
    let Machine { transport, .. } = &machine;

    // Of another process, and another device.
    transport.function.remove_device(PROCESS + 1, DEVICE);
    transport.function.remove_device(PROCESS, DEVICE + 1);
    machine.happens();
    machine.runs();
    assert_eq!(events[0].heard(), 1);
    transport.function.remove_device(PROCESS, DEVICE);
    machine.happens();
    machine.runs();
    assert_eq!(events[0].heard(), 1);
    assert_eq!(
        machine.set_usage(&events[0], KNOWN, RESET),
        Err(KmdError::InvalidParameter)
    );
    assert_eq!(machine.create().err(), Some(KmdError::InvalidParameter));
    machine.guest.destroy(&Passive::here(), events[0].id);
    other.happens();
    other.runs();
    assert_eq!(events[1].heard(), 1);
}

/// The ring is full of what happened to others.
#[test]
fn cpu_34_cpu_50_the_last_signal_before_a_destroy_is_heard() {
    let port = started(Config::default());
    let machine = Machine::new(&port, 1);
    let event = machine.create().unwrap();
    let other = machine.event();

    for _ in 0..RING {
        machine.happens();
    }
    machine.set_usage(&event, KNOWN, RESET).unwrap();
    machine.happens();
    machine.guest.destroy(&Passive::here(), event.id);
    assert_eq!(event.heard(), 1);
    assert_eq!(other.heard(), RING as u32 + 1);
    // The interrupt finds nothing.
    machine.runs();
    assert_eq!((event.heard(), machine.receiver.dropped()), (1, 0));
}

/// A process of a guest, as the KMD has it, and a device of it.
fn guest_process(machine: &Machine, port: &Shared<Port>, process: u64, device: u64) {
    let class = Passive::here();
    let Machine { transport, .. } = machine;
    let callbacks = transport.function.process(process).unwrap();
    let args = CreateProcessArgs {
        id: ProcessId(process),
        is_of_virtual_machine: true,
        is_system: false,
        callbacks: &callbacks,
    };
    let kmd = Process::create_with(port, &class, &args, &mut NoAddresses).unwrap();
    let kmd = Device::create(&kmd, &class, DeviceId(device)).unwrap();

    transport
        .function
        .add_device(process, device, &kmd, None)
        .unwrap();
}

/// The handles of a guest's process are the ids of its events, because nothing else of it crosses.
#[test]
fn cpu_25_a_handle_is_signalled_for_a_process_of_a_virtual_machine_only() {
    let events = Shared::new(CpuEvents::new().unwrap());
    let (journal, port) = start(Behaviour {
        cpu_events: Some(events.clone()),
        ..Behaviour::default()
    });
    let port = port.unwrap();
    // The process of its space is a local one.
    let machine = Machine::new(&port, 1);
    let other = Machine::new(&port, 2);

    guest_process(&machine, &port, 11, 21);
    guest_process(&machine, &port, 12, 22);
    guest_process(&other, &port, 11, 21);

    let create = |machine: &Machine, process, device| {
        let fd = Arc::new(EventFd(Signals::new().unwrap()));
        let callbacks: Shared<dyn CpuEventCallbacks> = fd.clone();
        let class = Passive::here();
        let (id, client) = machine
            .guest
            .create(&class, process, device, &callbacks)
            .unwrap();

        Event { id, client, fd }
    };
    let event = create(&machine, 11, 21);
    let second = create(&machine, 12, 22);
    let signal = |turn, handle| {
        let (is_far, callbacks) = events.process(turn).unwrap();

        assert_eq!(is_far, turn >= 2);
        Dispatch::below(&mut Passive::here(), |class| {
            callbacks.signal_handle(class, handle)
        })
    };
    let (mine, bad) = (event.id.id(), Err(KmdError::InvalidParameter));

    for turn in 0..5 {
        assert_eq!(signal(turn, 0), bad);
    }
    // Nothing is a handle of a process that is here.
    for handle in [1, mine, u64::MAX] {
        assert_eq!(signal(0, handle), bad);
    }
    assert_eq!(signal(2, mine), Ok(()));
    assert_eq!(signal(3, second.id.id()), Ok(()));
    // Others, whatever they are: of another process, another function, or none.
    let unknown = Err(KmdError::InvalidHandle);

    assert_eq!(signal(3, mine), unknown);
    assert_eq!(signal(2, second.id.id()), unknown);
    assert_eq!(signal(4, mine), unknown);
    for handle in [1, mine + (1 << 32), mine + 7, u64::MAX] {
        assert_eq!(signal(2, handle), unknown);
    }
    machine.runs();
    other.runs();
    assert_eq!((event.heard(), second.heard()), (1, 1));
    machine.guest.destroy(&Passive::here(), event.id);
    assert_eq!(signal(2, mine), unknown);
    machine.guest.destroy(&Passive::here(), second.id);
    machine.runs();
    assert_eq!((event.heard(), second.heard()), (1, 1));
    assert_eq!(machine.receiver.dropped(), 0);
    for machine in [&machine, &other] {
        machine.transport.function.reset();
    }
    drop((machine, other, port));
    assert!(events.process(0).is_none());
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}
