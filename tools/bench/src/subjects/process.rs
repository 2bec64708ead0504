// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads and processes that end: what the driver adds, whether they use it or not.

use std::fs::File;

use opendxg::{KeyedMutex, Timeout};

use super::{names, Bench};
use crate::measure::{Participant, Plan, Runner, Subject};

/// Word that makes this program end at once.
pub const EXIT: &str = "--exit";

/// A thread that owns nothing starts and ends while another thread owns a keyed mutex (RES-100).
struct BesideOwner {
    mutex: KeyedMutex,
}

impl Subject for BesideOwner {
    fn begin(&mut self, _operations: usize) {
        self.mutex.acquire(0, Timeout::Forever).expect("acquire");
    }

    fn run(&mut self) {
        thread();
    }

    fn end(&mut self) {
        self.mutex.release(0, 0).expect("release");
    }
}

fn thread() {
    std::thread::spawn(|| {})
        .join()
        .expect("a thread that does nothing");
}

/// Runs `act` in a child, which then ends, and waits for it. `act` may make system calls only.
fn child(act: impl FnOnce()) {
    // SAFETY: The child makes system calls and ends without running anything of the bench.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            act();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid, "a child");
        assert_eq!(status, 0, "status of the child");
    }
}

fn open(path: &std::ffi::CStr) {
    // SAFETY: A live string. The descriptor ends with the child.
    if unsafe { libc::open(path.as_ptr(), libc::O_RDWR) } < 0 {
        // SAFETY: As in `child`.
        unsafe { libc::_exit(1) }
    }
}

/// Runs this program again, which ends at once.
fn exec() {
    let words = [c"bench".as_ptr(), c"--exit".as_ptr(), std::ptr::null()];
    // SAFETY: Live strings, with a null pointer at the end.
    unsafe {
        libc::execv(c"/proc/self/exe".as_ptr(), words.as_ptr());
        libc::_exit(1);
    }
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let mutex = bench
        .dxg
        .create_keyed_mutex(0)
        .expect("create a keyed mutex");
    let mut all = vec![
        Participant::new(names::THREAD, thread),
        Participant::new(names::BESIDE_OWNER, BesideOwner { mutex }),
        Participant::new(names::CHILD, || child(|| {})),
        Participant::new(names::CHILD_OPENS, || child(|| open(c"/dev/dxg"))),
        Participant::new(names::CHILD_EXECS, || child(exec)),
        Participant::new(names::CHILD_OPENS_EXECS, || {
            child(|| {
                open(c"/dev/dxg");
                exec();
            });
        }),
    ];
    if File::open("/dev/ntsync").is_ok() {
        all.push(Participant::new(names::CHILD_OPENS_NTSYNC, || {
            child(|| open(c"/dev/ntsync"));
        }));
    }
    runner.group(
        "process",
        "threads and processes that start and end",
        plan,
        all,
    );
}
