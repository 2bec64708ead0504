// SPDX-License-Identifier: GPL-2.0

//! Waits whose threads run signal handlers (FEN-16, FEN-19, FEN-34).
//!
//! A signal ends the sleep of a thread, its handler runs, and then the kernel restarts the call.
//! If the wait was dropped meanwhile, it would forget which of its elements were satisfied, and
//! miss signals during the handler. So it stays queued on its fences, and the restarted call
//! continues with it.
//!
//! The kernel does not tell a driver whether a call is restarted: the handler may be left by a
//! jump, and a handler without SA_RESTART ends the call with EINTR. So a call continues the wait
//! of its thread if it is the same in every respect: the place in the program, the stack, the
//! arguments and what they point to. Any other wait of the thread ends the kept one. So does the
//! end of the process and, eventually, that of the thread. When a signal without SA_RESTART is
//! about to be delivered, the wait is not kept.
//!
//! The kernel's `restart_block` is not usable in a module: its function must exist as long as the
//! task, and it ends with EINTR after every handler.
//!
//! LOCK: `state` is a leaf.

use super::{
    waiter::Waiter,
    wake::WakeThread, //
};
use crate::sys::task::thread::Thread;
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// What identifies a restarted call of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameCall {
    /// Instruction and stack pointer.
    pub(crate) site: [u64; 2],
    /// A digest of the arguments and of what they point to.
    pub(crate) digest: u64,
}

struct Interrupted {
    thread: Thread,
    call: SameCall,
    waiter: Arc<Waiter<WakeThread>>,
}

impl Interrupted {
    /// The call is not restarted.
    ///
    /// Context: may sleep, no locks held.
    fn end(&self) {
        self.waiter.cancel();
        self.waiter.unlink();
    }
}

type ByThread = RBTree<usize, Interrupted>;

struct State {
    /// By the address of the thread's identity, which is referenced.
    by_thread: ByThread,
    /// At this number, look for threads that are gone.
    look_at: u32,
    closed: bool,
}

/// The least number at which to look for threads that are gone.
const LOOK_AT_LEAST: u32 = 16;

/// The interrupted waits of one process.
#[pin_data]
pub(crate) struct InterruptedWaits {
    /// How many there are.
    count: Atomic<u32>,
    #[pin]
    state: SpinLock<State>,
}

impl InterruptedWaits {
    /// No waits.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(0),
            state <- new_spinlock!(
                State {
                    by_thread: RBTree::new(),
                    look_at: LOOK_AT_LEAST,
                    closed: false,
                },
                "InterruptedWaits::state"
            ),
        })
    }

    /// Whether there are none, which is nearly always so.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Keeps the wait of the calling thread until its call is restarted. Fails without memory or
    /// if the process is gone.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn keep(&self, waiter: &Arc<Waiter<WakeThread>>, call: SameCall) -> Result {
        let thread = Thread::of_caller()?;
        let key = thread.as_ptr().addr();
        let interrupted = Interrupted {
            thread,
            call,
            waiter: waiter.clone(),
        };
        let node = RBTreeNode::new(key, interrupted, GFP_KERNEL_ACCOUNT)?;
        let mut gone = ByThread::new();
        let mut state = self.state.lock();

        if state.closed {
            drop(state);
            drop(node);
            return Err(ESRCH);
        }

        // A call takes the wait of its thread before it sleeps, so nothing is replaced.
        let replaced = state.by_thread.insert(node);

        if replaced.is_none() && self.count.fetch_add(1, Relaxed) >= state.look_at {
            state.take_gone(&mut gone);

            let gone = count(&gone);
            // OVERFLOW: they were counted when they were kept.
            let left = self.count.fetch_sub(gone, Relaxed) - gone;

            // OVERFLOW: those left have threads that live: at most 2^22 (PID_MAX_LIMIT).
            state.look_at = LOOK_AT_LEAST.max(2 * left);
        }
        drop(state);
        drop(replaced);
        gone.values().for_each(Interrupted::end);
        Ok(())
    }

    /// The wait of the calling thread, if this is the restarted call. If it is another call, the
    /// kept wait ends.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn take(&self, call: Option<SameCall>) -> Option<Arc<Waiter<WakeThread>>> {
        let key = Thread::of_caller().ok()?.as_ptr().addr();
        let node = self.state.lock().by_thread.remove_node(&key)?;

        self.count.fetch_sub(1, Relaxed);

        let (_, interrupted) = node.to_key_value();

        if call == Some(interrupted.call) {
            return Some(interrupted.waiter);
        }
        interrupted.end();
        None
    }

    /// Ends all: the process is gone.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn close(&self) {
        let all = {
            let mut state = self.state.lock();

            state.closed = true;
            core::mem::take(&mut state.by_thread)
        };

        self.count.fetch_sub(count(&all), Relaxed);
        all.values().for_each(Interrupted::end);
    }
}

fn count(waits: &ByThread) -> u32 {
    // OVERFLOW: bounded by threads.
    waits.values().fold(0, |count, _| count + 1)
}

impl State {
    /// Moves the waits of threads that are gone to `gone`. Looks at all, but not before there are
    /// twice as many as the last time.
    fn take_gone(&mut self, gone: &mut ByThread) {
        let mut cursor = self.by_thread.cursor_front_mut();

        while let Some(at) = cursor {
            if at.current().1.thread.is_dead() {
                let (next, node) = at.remove_current();

                gone.insert(node);
                cursor = next;
            } else {
                cursor = at.move_next();
            }
        }
    }
}
