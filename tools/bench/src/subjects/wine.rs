// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people use today: named objects of Wine, which its server keeps, beside the same work here.
//!
//! A Windows program sets, waits for, opens and closes objects of Wine; all of this asks the
//! server. D3DKMT objects of newer Wine are kept there, too (`Documentation/wine.md`).

use std::cell::RefCell;
use std::path::Path;

use opendxg::{Access, Acquired, MonitoredFence, NtHandle, ShareOptions, SyncFlags, Timeout};

use self::names_of_requests::*;
use super::balls::{Ball, Fence, Socket};
use super::objects::operations::{CREATE, OPEN_NUMBER};
use super::ping_pong::PingPong;
use super::{names, Bench};
use crate::dmabuf;
use crate::library::Library;
use crate::machine;
use crate::measure::{Participant, Plan, Runner};
use crate::peer::{Peer, Place};
use crate::result::{Competitor, Count};
use crate::wine::{self, Program, Request};

/// The groups.
pub const SIGNAL: &str = "wine-signal";
/// A wait that does not sleep.
pub const WAIT: &str = "wine-wait";
/// By name, number, handle.
pub const OPEN: &str = "wine-open";
/// And destroy.
pub const MAKE: &str = "wine-create";
/// A free mutex.
pub const MUTEX: &str = "wine-mutex";
/// On one processor.
pub const PING_PONG: &str = "wine-ping-pong";
/// On two of them.
pub const PING_PONG_2: &str = "wine-ping-pong-2";

/// Names of participants.
pub mod names_of_requests {
    /// An event.
    pub const SET_EVENT: &str = "Wine SetEvent";
    /// An event that is set.
    pub const WAIT_EVENT: &str = "Wine WaitForSingleObject";
    /// By name.
    pub const OPEN_EVENT: &str = "Wine OpenEvent, CloseHandle";
    /// By name.
    pub const OPEN_MAPPING: &str = "Wine OpenFileMapping, CloseHandle";
    /// By handle.
    pub const DUPLICATE: &str = "Wine DuplicateHandle, CloseHandle";
    /// Without a name.
    pub const CREATE_EVENT: &str = "Wine CreateEvent, CloseHandle";
    /// A wait and a release.
    pub const TAKE_MUTEX: &str = "Wine mutex";
    /// Two events.
    pub const EVENTS: &str = "Wine two events";
    /// OpenSyncObjectNtHandleFromName and close.
    pub const FENCE_BY_NAME: &str = "opendxg fence by name";
    /// OpenSyncObjectFromNtHandle2 and DestroySynchronizationObject.
    pub const FENCE_BY_HANDLE: &str = "opendxg fence by descriptor";
    /// OpenNtHandleFromName and close.
    pub const RESOURCE_BY_NAME: &str = "opendxg resource by name";
    /// The value in memory.
    pub const MAPPED_VALUE: &str = "opendxg mapped value";
    /// A fence that can be shared by NT handle.
    pub const SHAREABLE_FENCE: &str = "opendxg shareable fence";
}

/// Operations of the Windows program, and what they are called here.
const OPERATIONS: [(&str, &str); 8] = [
    ("set", SET_EVENT),
    ("wait", WAIT_EVENT),
    ("open-event", OPEN_EVENT),
    ("open-mapping", OPEN_MAPPING),
    ("duplicate", DUPLICATE),
    ("create", CREATE_EVENT),
    ("mutex", TAKE_MUTEX),
    ("ping-pong", EVENTS),
];

const FENCE_NAME: &str = r"\BaseNamedObjects\opendxg-bench-fence";
const RESOURCE_NAME: &str = r"\BaseNamedObjects\opendxg-bench-resource";

/// One run of the Windows program.
struct Today {
    program: RefCell<Program>,
    timer_ns: f64,
}

impl Today {
    fn start(path: &Path, runner: &Runner) -> Self {
        Self {
            program: RefCell::new(Program::start(path)),
            timer_ns: runner.timer_ns,
        }
    }

    fn participant(&self, name: &'static str) -> Participant<'_> {
        let (operation, _) = OPERATIONS
            .into_iter()
            .find(|&(_, known)| known == name)
            .expect("an operation of the Windows program");
        Participant::new(name, Request::new(&self.program, operation, self.timer_ns))
    }

    /// How often the server reads while the operations are done.
    ///
    /// # Panics
    ///
    /// An operation does without the server: then this is no figure of the server.
    fn counts(&self) -> Vec<Count> {
        const TIMES: usize = 1000;
        let during = |operation, times| {
            let before = wine::reads_of_server();
            self.program.borrow_mut().time(operation, times);
            wine::reads_of_server() - before
        };
        let count = |(operation, name)| {
            // To be told, and to answer, may take some reads, too.
            let around = during(operation, 0);
            let found = during(operation, TIMES).saturating_sub(around);
            assert!(
                found >= TIMES as u64,
                "{name} does not ask wineserver: {found} of {TIMES}"
            );
            Count {
                what: format!("reads of wineserver: {name}"),
                of: TIMES as u64,
                found,
                expected: None,
            }
        };
        OPERATIONS.into_iter().map(count).collect()
    }
}

/// A fence with a name.
fn named_fence(bench: &Bench) -> (MonitoredFence, NtHandle) {
    let fence = bench
        .device
        .create_shareable_fence(0)
        .expect("create a fence");
    let options = ShareOptions::new(Access::ALL).name(FENCE_NAME);
    let handle = bench.dxg.share(&[fence.handle()], &options);
    (fence, handle.expect("share a fence"))
}

/// Which Wine it is, and what its figures are.
pub fn competitor(bench: &Bench) -> Competitor {
    let ntsync = match bench.ntsync {
        Some(_) => "with /dev/ntsync, which newer versions use",
        None => "without /dev/ntsync",
    };
    Competitor {
        version: wine::version(),
        note: format!(
            "each of its operations is a round trip to wineserver or more, \
             and sharing by D3DKMT in newer versions consists of such round trips; {ntsync}"
        ),
    }
}

/// Measures all groups against the Windows program at this path.
pub fn measure(
    runner: &mut Runner,
    bench: &Bench,
    path: &Path,
    plan: Plan,
    far: Plan,
) -> Vec<Count> {
    let peer = Peer::start(Place::SameProcessor);
    // Its children stay on the processor of this process: the Windows program, the server.
    let today = Today::start(path, runner);
    signal_and_wait(runner, bench, &today, &peer, plan);
    open(runner, bench, &today, &peer, plan);
    create(runner, bench, &today, plan);
    mutex(runner, bench, &today, plan);
    let title = "round trip of two processes on one processor";
    ping_pong(runner, bench, &today, &peer, (PING_PONG, title), plan);
    let counts = today.counts();
    drop(today);
    drop(peer);
    wine::wait_for_end_of_server();

    if machine::cpus() >= 2 {
        // The server and both Windows processes are on any processor.
        let today = Today::start(path, runner);
        let peer = Peer::start(Place::AnotherProcessor);
        let title = "round trip of two processes on two processors";
        ping_pong(runner, bench, &today, &peer, (PING_PONG_2, title), far);
        drop(today);
        wine::wait_for_end_of_server();
    }
    counts
}

fn signal_and_wait(runner: &mut Runner, bench: &Bench, today: &Today, peer: &Peer, plan: Plan) {
    let (fence, _name) = named_fence(bench);
    let own = bench
        .device
        .create_shareable_fence(0)
        .expect("create a fence");
    let library = Library::load();
    let (mut value, mut own_value) = (0, 0);
    let mut all = vec![
        Participant::new(names::OPENDXG, || {
            value += 1;
            fence.signal(value).expect("signal a fence");
        }),
        today.participant(SET_EVENT),
        Participant::new(names::SOCKETPAIR, PingPong::new(peer, Socket::new())),
    ];
    if let Some(library) = library {
        let (device, own, own_value) = (&bench.device, &own, &mut own_value);
        all.push(Participant::new(names::LIBRARY, move || {
            *own_value += 1;
            library.signal(device, own, *own_value);
        }));
    }
    let title = "signal a shared fence, or set a named event, that nobody waits for";
    runner.group(SIGNAL, title, plan, all);
    assert_eq!(fence.value(), value, "value after all signals");
    assert_eq!(own.value(), own_value, "value after all signals");

    let mut all = vec![
        Participant::new(MAPPED_VALUE, || assert!(fence.value() >= 1)),
        Participant::new(names::OPENDXG, || fence.wait(1).expect("wait")),
        today.participant(WAIT_EVENT),
    ];
    if let Some(library) = library {
        let (device, fence) = (&bench.device, &fence);
        all.push(Participant::new(names::LIBRARY, move || {
            library.wait(device, fence, 1);
        }));
    }
    runner.group(
        WAIT,
        "wait for something that has happened already",
        plan,
        all,
    );
}

fn open(runner: &mut Runner, bench: &Bench, today: &Today, peer: &Peer, plan: Plan) {
    let (dxg, device) = (&bench.dxg, &bench.device);
    let (_fence, handle) = named_fence(bench);
    let resource = || device.new_resource().linear(dmabuf::SIZE);
    let named = resource().nt_shared().create().expect("create a resource");
    let options = ShareOptions::new(Access::RESOURCE_ALL).name(RESOURCE_NAME);
    let shared = dxg.share(&[named.handle()], &options);
    let _name = shared.expect("share a resource");
    let numbered = resource().shared().create().expect("create a resource");
    let number = numbered.global_handle().expect("a global handle");
    let all = vec![
        Participant::new(FENCE_BY_NAME, || {
            let opened = dxg.open_sync_name(FENCE_NAME, Access::ALL);
            opened.expect("open by name");
        }),
        Participant::new(RESOURCE_BY_NAME, || {
            let opened = dxg.open_resource_name(RESOURCE_NAME, Access::RESOURCE_ALL);
            opened.expect("open by name");
        }),
        Participant::new(FENCE_BY_HANDLE, || {
            let opened = device.open_fence(&handle, SyncFlags::empty());
            let opened = opened.expect("open a fence");
            opened.destroy().expect("destroy a handle");
        }),
        Participant::new(OPEN_NUMBER, || {
            let opened = device.open_resource(number).expect("open by number");
            opened.destroy().expect("destroy a handle");
        }),
        today.participant(OPEN_EVENT),
        today.participant(OPEN_MAPPING),
        today.participant(DUPLICATE),
        Participant::new(names::SOCKETPAIR, PingPong::new(peer, Socket::new())),
    ];
    runner.group(OPEN, "open an object that exists, and close it", plan, all);
}

fn create(runner: &mut Runner, bench: &Bench, today: &Today, plan: Plan) {
    let device = &bench.device;
    let all = vec![
        Participant::new(SHAREABLE_FENCE, || {
            let fence = device.create_shareable_fence(0).expect("create a fence");
            fence.destroy().expect("destroy a fence");
        }),
        Participant::new(CREATE, || {
            let resource = device.new_resource().linear(dmabuf::SIZE).create();
            let resource = resource.expect("create a resource");
            resource.destroy().expect("destroy a resource");
        }),
        today.participant(CREATE_EVENT),
    ];
    runner.group(MAKE, "create an object and destroy it", plan, all);
}

fn mutex(runner: &mut Runner, bench: &Bench, today: &Today, plan: Plan) {
    let mutex = bench
        .dxg
        .create_keyed_mutex(0)
        .expect("create a keyed mutex");
    let all = vec![
        Participant::new(names::KEYED_MUTEX, || {
            let acquired = mutex.acquire(0, Timeout::Forever).expect("acquire");
            assert_eq!(acquired, Acquired::Owned(0));
            mutex.release(0, 0).expect("release");
        }),
        today.participant(TAKE_MUTEX),
    ];
    runner.group(MUTEX, "acquire and release a free mutex", plan, all);
}

fn ping_pong(
    runner: &mut Runner,
    bench: &Bench,
    today: &Today,
    peer: &Peer,
    (name, title): (&str, &str),
    plan: Plan,
) {
    let fence = Fence::new(&bench.device, false);
    let socket = Socket::new();
    let all = vec![
        Participant::new(fence.name(), PingPong::new(peer, fence)),
        Participant::new(socket.name(), PingPong::new(peer, socket)),
        today.participant(EVENTS),
    ];
    runner.group(name, title, plan, all);
}
