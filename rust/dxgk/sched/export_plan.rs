// SPDX-License-Identifier: GPL-2.0

//! Finds the signal that a sync file stands for, and sees to it that nothing before it can be
//! delayed (FEN-161).
//!
//! A wait in front of the signal may be for a signal of another queue, in front of which there is
//! another wait. A plan is the list of these waits, each after those that it depends on. It is made
//! without an effect. Then each of the waits gets bounds: fences of the kernel that stand for the
//! signals that it waits for, and end it whatever becomes of the values.

use super::{
    export::{
        Found,
        Missing,
        NewExport,
        Wanted, //
    },
    list::ListedQueue, //
};
use crate::dxgk::device::Device;
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::{
        alloc::tree_place,
        dma_fence::own::{
            Owner,
            Unsignalled, //
        },
        task::sleep, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// How many signals and waits a plan looks at. What depends on more is not exported.
const MOST: usize = 256;

/// A wait of a queue that a plan has come to.
#[derive(Clone)]
struct Step {
    queue: Arc<dyn ListedQueue>,
    number: u64,
}

impl Step {
    fn is(&self, queue: u64, number: u64) -> bool {
        self.number == number && self.queue.id() == queue
    }

    fn missing(&self, from: usize) -> Option<Missing> {
        self.queue.missing(self.number, from)
    }
}

/// A value that has to come, and who knows whether it has.
enum Need<'a> {
    /// The one that is exported.
    Export(Wanted, &'a dyn Fn() -> bool),
    /// One that a wait waits for.
    Wait(Missing, Step),
}

impl Need<'_> {
    fn wanted(&self) -> Wanted {
        match self {
            Self::Export(wanted, _) => *wanted,
            Self::Wait(missing, _) => missing.wanted,
        }
    }

    /// Whether the value is there now.
    fn holds(&self) -> bool {
        match self {
            Self::Export(_, holds) => holds(),
            Self::Wait(missing, step) => step
                .missing(missing.place)
                .is_none_or(|next| next.place != missing.place),
        }
    }
}

/// What a plan looks at.
enum Task<'a> {
    /// A value: its signal is looked for.
    Signal(Need<'a>),
    /// A wait: what it waits for, from this place on.
    Wait(Step, usize),
}

/// The owner of the fence that bounds a wait. Nobody looks for it.
struct Bounding;

impl Owner for Bounding {
    fn released(this: Arc<Self>) {
        drop(this);
    }
}

/// The waits that have to be bounded before something is exported.
pub(in crate::dxgk) struct ExportPlan<'a> {
    device: &'a Device,
    wanted: Wanted,
    holds: &'a dyn Fn() -> bool,
    /// Each comes after those that it depends on.
    steps: KVec<Step>,
}

impl<'a> ExportPlan<'a> {
    /// A plan for a value, of which `holds` says whether it is there; NOT_SUPPORTED if users could
    /// delay it. Changes nothing.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn new(
        device: &'a Device,
        wanted: Wanted,
        holds: &'a dyn Fn() -> bool,
    ) -> DxgResult<Self> {
        let mut plan = Self {
            device,
            wanted,
            holds,
            steps: KVec::new(),
        };
        let mut tasks = KVec::new();

        tasks.push(
            Task::Signal(Need::Export(wanted, holds)),
            GFP_KERNEL_ACCOUNT,
        )?;
        for _ in 0..MOST {
            if sleep::is_killed() {
                return Err(DxgError::Interrupted);
            }

            let next = match tasks.pop() {
                None => return Ok(plan),
                Some(Task::Signal(need)) => match plan.find(&need, &mut None) {
                    Some(Source::Signal) => continue,
                    Some(Source::Behind(step)) => {
                        if is_open(&tasks, &step) {
                            // It waits for itself.
                            break;
                        }
                        tasks.push(Task::Signal(need), GFP_KERNEL_ACCOUNT)?;
                        Task::Wait(step, 0)
                    }
                    // It may have come to its end since.
                    None if need.holds() => continue,
                    None => break,
                },
                Some(Task::Wait(step, from)) => match step.missing(from) {
                    Some(missing) => {
                        // OVERFLOW: a place in a list.
                        let rest = Task::Wait(step.clone(), missing.place + 1);

                        tasks.push(rest, GFP_KERNEL_ACCOUNT)?;
                        Task::Signal(Need::Wait(missing, step))
                    }
                    None => {
                        plan.steps.push(step, GFP_KERNEL_ACCOUNT)?;
                        continue;
                    }
                },
            };

            tasks.push(next, GFP_KERNEL_ACCOUNT)?;
        }
        Err(Status::NOT_SUPPORTED.into())
    }

    /// Where a value comes from: a signal, if a queue of the device has one, or else what is behind
    /// a wait that may be bounded. `None` if there is neither, or the value is there. `export` is
    /// taken by the queue that has the signal.
    fn find(&self, need: &Need<'_>, export: &mut Option<NewExport>) -> Option<Source> {
        let mut behind = None;

        if need.holds() {
            return None;
        }
        for queue in self.device.adapter.queues.of_device(self.device.id()) {
            let id = queue.id();
            let is_assumed = |number| self.steps.iter().any(|step| step.is(id, number));

            match queue.find(need.wanted(), &is_assumed, export) {
                Found::Signal => return Some(Source::Signal),
                Found::Blocked(number) if behind.is_none() => {
                    behind = Some(Source::Behind(Step { queue, number }));
                }
                Found::Blocked(_) | Found::Nothing => {}
            }
        }
        behind
    }

    /// Bounds the waits, and hands `point` to the queue that has the signal, or signals it if the
    /// value is there. NOT_SUPPORTED if something has changed so that users could delay it.
    ///
    /// Context: as [`ExportPlan::new`].
    pub(in crate::dxgk) fn carry_out(mut self, point: Unsignalled) -> DxgResult {
        let steps = core::mem::replace(&mut self.steps, KVec::new());

        for step in steps {
            let mut fences = KVec::new();
            let mut from = 0;

            while let Some(missing) = step.missing(from) {
                let point = Unsignalled::new(Arc::new(Bounding, GFP_KERNEL_ACCOUNT)?)?;

                fences.push(point.fence().clone(), GFP_KERNEL_ACCOUNT)?;
                self.hand_over(&Need::Wait(missing, step.clone()), point)?;
                // OVERFLOW: as above.
                from = missing.place + 1;
            }
            step.queue.bind(step.number, &fences)?;
        }
        self.hand_over(&Need::Export(self.wanted, self.holds), point)
    }

    /// Hands `point` to the queue that has the signal, or signals it if the value is there.
    fn hand_over(&self, need: &Need<'_>, point: Unsignalled) -> DxgResult {
        let mut export = Some(NewExport {
            place: tree_place()?,
            point,
        });

        match (self.find(need, &mut export), export) {
            (Some(Source::Signal), None) => Ok(()),
            // A signal may come to its end between a look at the value and one at the queues, not
            // before both.
            (_, Some(NewExport { point, .. })) if need.holds() => {
                point.signal(Ok(()));
                Ok(())
            }
            _ => Err(Status::NOT_SUPPORTED.into()),
        }
    }
}

/// Where a value comes from.
enum Source {
    /// A signal that nobody can delay.
    Signal,
    /// Perhaps a signal, behind this wait.
    Behind(Step),
}

/// Whether this wait is being looked at.
fn is_open(tasks: &[Task<'_>], step: &Step) -> bool {
    tasks.iter().any(|task| match task {
        Task::Wait(open, _) => open.is(step.queue.id(), step.number),
        Task::Signal(_) => false,
    })
}
