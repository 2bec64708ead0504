// SPDX-License-Identifier: GPL-2.0

//! Waits whose threads run signal handlers (FEN-16, FEN-19, FEN-34).
//!
//! A signal ends the sleep of a thread, its handler runs, and then the kernel makes the same call
//! again. If the wait was taken apart meanwhile, it would forget which of its elements were
//! satisfied, and miss what is signalled during the handler. So it stays queued on its fences, and
//! the call that is made again goes on with it.
//!
//! The kernel does not tell a driver whether a call is made again: the handler may be left by a
//! jump, and a handler without SA_RESTART ends the call with EINTR. A call goes on with the wait of
//! the same thread if it is the same in every respect: the place in the program, the stack, the
//! arguments and what they point to. Any other wait of the thread ends it, and so do the end of the
//! process and, sooner or later, that of the thread. When a signal without SA_RESTART is about to
//! be delivered, the wait is not kept. (The kernel's own way, `restart_block`, is not open to
//! modules: the function in it must exist as long as the task, and it ends with EINTR after every
//! handler.)
//!
//! LOCK: `state` is a leaf.

use super::waiter::Waiter;
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

/// What makes a call the same as an earlier one of the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameCall {
    /// Where in the program it is.
    pub(crate) site: [u64; 2],
    /// A digest of the arguments and of what they point to.
    pub(crate) digest: u64,
}

struct Interrupted {
    thread: Thread,
    call: SameCall,
    waiter: Arc<Waiter>,
}

impl Interrupted {
    /// The call is not made again.
    ///
    /// Context: may sleep, no locks held.
    fn end(&self) {
        self.waiter.cancel();
        self.waiter.unlink();
    }
}

type ByThread = RBTree<usize, Interrupted>;

struct State {
    /// By the address of the identity of the thread, which is referenced.
    by_thread: ByThread,
    /// With so many it is time to look for threads that are gone.
    look_at: u32,
    closed: bool,
}

/// The fewest that are looked through for threads that are gone.
const FEW: u32 = 16;

/// See the module.
#[pin_data]
pub(crate) struct InterruptedWaits {
    /// How many there are.
    count: Atomic<u32>,
    #[pin]
    state: SpinLock<State>,
}

impl InterruptedWaits {
    /// None.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(0),
            state <- new_spinlock!(
                State {
                    by_thread: RBTree::new(),
                    look_at: FEW,
                    closed: false,
                },
                "InterruptedWaits::state"
            ),
        })
    }

    /// Whether there are none, which is so nearly always: then no call need ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Keeps the wait of the calling thread until its call is made again. Fails if there is no
    /// memory or the process is gone.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn keep(&self, waiter: &Arc<Waiter>, call: SameCall) -> Result {
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

        // A call takes the one of its thread before it waits, so that nothing is replaced.
        let replaced = state.by_thread.insert(node);

        if replaced.is_none() && self.count.fetch_add(1, Relaxed) >= state.look_at {
            state.take_gone(&mut gone);

            let left = self.count.fetch_sub(count(&gone), Relaxed) - count(&gone);

            state.look_at = FEW.max(2 * left);
        }
        drop(state);
        drop(replaced);
        gone.values().for_each(Interrupted::end);
        Ok(())
    }

    /// The wait that the calling thread goes on with, if this is the call that was interrupted. If
    /// it is another one, the interrupted one ends.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn take(&self, call: Option<SameCall>) -> Option<Arc<Waiter>> {
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
