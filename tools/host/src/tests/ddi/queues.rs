// SPDX-License-Identifier: MIT OR Apache-2.0

//! Submissions, suspensions and page tables on their way to a KMD.

use super::{context_args, context_of, in_dispatch, listener, queue_of, submission, worked, Told};
use crate::ddi::class::Passive;
use crate::ddi::object::{Context, HwQueue, Process, TableUpdate};
use crate::ddi::paging::{
    Entries, PageEntry, PageSize, PageTableEntry, RootPageTable, TableAddress,
};
use crate::ddi::queue::{Fault, FaultKind, Suspend};
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{KmdError, ProcessId, Scheduling};
use crate::platform;

#[test]
fn gpu_6_a_context_of_packets_takes_submissions_and_tells_of_their_end() {
    let (queues, worked) = worked(None);
    let (listener, callbacks) = listener();
    let args = context_of(Scheduling::Packets, &callbacks);
    let context = Context::create(&worked.device, &Passive::here(), &args).unwrap();

    for number in 1..=3 {
        let submitted = in_dispatch(|class| context.submit(class, &submission(number, None)));

        assert_eq!(submitted, Ok(()));
        assert_eq!(queues.submission(7, number), Some(submission(number, None)));
    }
    assert_eq!(queues.submitted(7), 3);
    assert_eq!(listener.told(), []);

    let fault = Fault {
        kind: FaultKind::IllegalPacket { header: 1 },
        packet: 0x1_0000,
        number: 3,
        flags: 0,
    };

    assert!(queues.complete(7, 2));
    assert!(!queues.complete(7, 2), "once");
    assert!(!queues.complete(7, 4), "not what was not submitted");
    assert!(!queues.complete(6, 3), "nobody has this id");
    assert!(queues.signal(7) && queues.fault(7, &fault));
    assert_eq!(
        listener.told(),
        [Told::Completed(2), Told::Signaled, Told::Faulted(fault)]
    );
    drop(context);
    assert!(!queues.complete(7, 3), "nothing after the destroy");
    worked.end();
}

#[test]
fn gpu_8_a_hw_queue_takes_submissions_with_their_progress_value() {
    let (queues, worked) = worked(None);
    let (listener, callbacks) = listener();
    let class = Passive::here();
    let context = Context::create(&worked.device, &class, &context_args()).unwrap();
    let queue = HwQueue::create(&context, &class, &queue_of(&callbacks)).unwrap();
    let submission = submission(1, Some(0));

    assert_eq!(
        in_dispatch(|class| queue.submit(class, &submission)),
        Ok(())
    );
    assert_eq!(queues.submission(8, 1), Some(submission));
    assert!(queues.complete(8, 1));
    assert_eq!(listener.told(), [Told::Completed(1)]);

    worked.port.stop(&class);
    assert_eq!(
        in_dispatch(|class| queue.submit(class, &submission)),
        Err(KmdError::DeviceRemoved)
    );
    drop((queue, context));
    worked.end();
}

#[test]
fn gpu_51_a_suspension_is_pending_until_it_is_told() {
    let (queues, worked) = worked(None);
    let (listener, callbacks) = listener();
    let args = context_of(Scheduling::HwQueues, &callbacks);
    let context = Context::create(&worked.device, &Passive::here(), &args).unwrap();

    assert_eq!(
        context.suspend(&mut Passive::here(), 5),
        Ok(Suspend::Pending)
    );
    assert!(queues.suspended(7, 5));
    assert_eq!(listener.told(), [Told::Suspended(5)]);
    assert_eq!(context.resume(&mut Passive::here()), Ok(()));
    drop(context);
    worked.end();
}

#[test]
fn mem_52_the_kmd_writes_the_entries_of_page_tables() {
    let (_, worked) = worked(None);
    let class = Passive::here();
    let process = Process::create(&worked.port, &class, ProcessId(2), &mut NoAddresses).unwrap();
    let table: Vec<platform::Word64> = (0..8).map(|_| platform::word64(7)).collect();
    let page = PageTableEntry::Page(PageEntry {
        segment: 0,
        address: 0x5000,
        page_size: PageSize::Kib4,
        read_only: false,
        no_execute: false,
        system_use_only: false,
        cache_coherent: false,
    });
    let entries = [PageTableEntry::Invalid, page, PageTableEntry::Zero];
    let update = TableUpdate {
        level: 0,
        table: TableAddress::CpuVirtual(&table),
        page_size: PageSize::Kib4,
        start: 2,
        entries: Entries::Each(&entries),
        initial_update: false,
        notify_eviction: false,
        driver_protection: 0,
        address: 0x2000,
    };

    process.update_page_table(&class, &update);
    process.flush_tlb(&class, 0x2000, 0x5000);

    let words: Vec<_> = table.iter().map(platform::load_acquire).collect();

    assert_eq!(words, [7, 7, 0, 0xfa00_0000_0000_5000, 1, 7, 7, 7]);

    let context = Context::create(&worked.device, &class, &context_args()).unwrap();
    let root = RootPageTable {
        segment: 0,
        address: 0x1000,
        entries: 8,
    };

    assert_eq!(context.set_root_page_table(&class, &root), Ok(()));
    assert_eq!(context.set_priority(&class, -7), Ok(()));
    drop((process, context));
    worked.end();
}
