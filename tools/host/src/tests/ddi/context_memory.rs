// SPDX-License-Identifier: MIT OR Apache-2.0

//! From which entries a KMD may ask for context allocations (MEM-82, MEM-88, MEM-90).

use std::sync::Mutex;

use super::{context_args, device_of, start, NOBODY};
use crate::ddi::callbacks::{Callbacks, Record};
use crate::ddi::caps::{Luid, StartInfo};
use crate::ddi::class::Passive;
use crate::ddi::context_allocation::{
    ContextMemory, CreateContextAllocationArgs, MapContextAllocationArgs,
};
use crate::ddi::object::{Context, Process};
use crate::ddi::paging::RootPageTable;
use crate::ddi::port::Port;
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{
    AllocationCookie, ContextAllocationId, ContextId, DeviceId, KmdError, KmdResult, ProcessId,
};
use crate::kmd::fake::journal::{Entry, Journal};
use crate::kmd::fake::{Behaviour, FakeKmd};
use crate::platform::Shared;

const ONE: ContextAllocationId = ContextAllocationId(5);
const ARGS: CreateContextAllocationArgs = CreateContextAllocationArgs {
    context: ContextId(7),
    device: DeviceId(0),
    flags: 0,
    size: 4096,
    alignment: 4096,
    supported_segments: 2,
    eviction_segments: 2,
    preferred_segment: 1,
    driver: AllocationCookie(3),
};
const ROOT: RootPageTable = RootPageTable {
    segment: 0,
    address: 0x1000,
    entries: 512,
};

/// What it was asked for, call by call.
#[derive(Default)]
struct Memory(Mutex<Vec<String>>);

impl Memory {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl ContextMemory for Memory {
    fn create(&self, args: &CreateContextAllocationArgs) -> KmdResult<ContextAllocationId> {
        self.note(format!("create for {}", args.context.0));
        Ok(ONE)
    }

    fn map(&self, one: ContextAllocationId, args: &MapContextAllocationArgs) -> KmdResult<u64> {
        self.note(format!("map {one:?} {}", args.pages));
        Ok(0x10000)
    }

    fn update(&self, one: ContextAllocationId, private_data: &[u8]) -> KmdResult {
        self.note(format!("update {one:?} {private_data:?}"));
        Ok(())
    }

    fn destroy(&self, one: ContextAllocationId) -> KmdResult {
        self.note(format!("destroy {one:?}"));
        Ok(())
    }
}

/// The answers to all four calls.
fn ask(callbacks: &Callbacks, class: &Passive) -> [KmdResult; 4] {
    let map = MapContextAllocationArgs {
        pages: 1,
        ..MapContextAllocationArgs::default()
    };
    [
        callbacks
            .create_context_allocation(class, &ARGS)
            .map(|_| ()),
        callbacks
            .map_context_allocation(class, ONE, &map)
            .map(|_| ()),
        callbacks.update_context_allocation(class, ONE, &[1, 2]),
        callbacks.destroy_context_allocation(class, ONE),
    ]
}

/// Each entry that a double is called by asks for everything.
#[test]
fn mem_82_mem_88_mem_90_what_waits_for_its_caller_is_refused() {
    let answers = Shared::new(Mutex::new(Vec::new()));
    let told = answers.clone();
    let record = Record::new().unwrap();
    let memory = Shared::new(Memory::default());
    let behaviour = Behaviour {
        asks: Some(Shared::new(move |callbacks: &_, class: &_, entry| {
            told.lock().unwrap().push((entry, ask(callbacks, class)));
        })),
        ..Behaviour::default()
    };
    let journal = Shared::new(Journal::new());
    let kmd = Box::new(FakeKmd::add_device(journal.clone(), behaviour));
    let info = StartInfo {
        luid: Luid::default(),
        callbacks: Callbacks::of(&record),
    };
    let class = Passive::here();
    let port = Port::start(kmd, &class, &info).unwrap();
    record.set_context_memory(Some(memory.clone()));

    let device = device_of(&port, 1).unwrap();
    let context = Context::create(&device, &class, &context_args()).unwrap();
    context.set_root_page_table(&class, &ROOT).unwrap();
    context.move_root_page_table(&class, &ROOT);
    let process = Process::create(&port, &class, ProcessId(2), &mut NoAddresses).unwrap();
    process.flush_tlb(&class, 0, 0);

    let refused = Err(KmdError::InvalidParameter);
    // A destroy waits for nobody.
    let updates = [refused, refused, Ok(()), Ok(())];
    let paging = [refused, refused, refused, Ok(())];
    assert_eq!(
        *answers.lock().unwrap(),
        [
            (Entry::CreateContext, [Ok(()); 4]),
            (Entry::SetRootPageTable, updates),
            (Entry::SetRootPageTable, updates),
            (Entry::FlushTlb, paging),
        ]
    );
    // What was refused never got there.
    let update = "update ContextAllocationId(5) [1, 2]";
    let destroy = "destroy ContextAllocationId(5)";
    assert_eq!(
        *memory.0.lock().unwrap(),
        [
            "create for 7",
            "map ContextAllocationId(5) 1",
            update,
            destroy,
            update,
            destroy,
            update,
            destroy,
            destroy,
        ]
    );
    // At the end of the adapter there is nobody to ask.
    record.set_context_memory(None);
    drop((context, device, process, port));
    assert_eq!(Shared::strong_count(&memory), 1);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// A KMD without a paging node finds nobody either.
#[test]
fn mem_82_without_a_paging_node_there_are_none() {
    let answers = Shared::new(Mutex::new(Vec::new()));
    let told = answers.clone();
    let (_, port) = start(Behaviour {
        asks: Some(Shared::new(move |callbacks: &_, class: &_, _| {
            told.lock().unwrap().push(ask(callbacks, class));
        })),
        ..Behaviour::default()
    });
    let device = device_of(&port.unwrap(), 1).unwrap();
    let args = super::context_of(crate::ddi::types::Scheduling::Packets, &NOBODY);
    drop(Context::create(&device, &Passive::here(), &args).unwrap());
    assert_eq!(*answers.lock().unwrap(), [[Err(KmdError::NotSupported); 4]]);
}
