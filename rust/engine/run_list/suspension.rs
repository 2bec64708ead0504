// SPDX-License-Identifier: GPL-2.0

//! SuspendContext and ResumeContext (GPU-51, GPU-52). These take as long as the context has queues.

use super::{
    Arena,
    ContextIndex,
    Refused,
    RunList,
    State,
    Suspension, //
};

impl RunList {
    /// SuspendContext: no queue of the context runs from now on, or from the end of a slice on
    /// (GPU-51).
    ///
    /// A later request takes the place of one that is not complete.
    pub fn suspend(
        &mut self,
        arena: &mut impl Arena,
        context: ContextIndex,
        fence_id: u64,
    ) -> Result<Suspension, Refused> {
        let node = arena.context(context).ok_or(Refused)?;
        let is_new = !node.is_suspended;
        let is_running = node.running != 0;
        let mut at = node.queues.first;

        node.is_suspended = true;
        node.request = is_running.then_some(fence_id);

        while let (Some(index), true) = (at, is_new) {
            let Some(queue) = arena.queue(index) else {
                break;
            };

            at = queue.sibling.after;
            match queue.state {
                State::Ready | State::Blocked => {
                    queue.has_work = true;
                    self.take_out(arena, index);
                    self.set(arena, index, State::Suspended)?;
                }
                State::Empty => self.set(arena, index, State::Suspended)?,
                State::Running | State::Suspended | State::Faulted | State::Gone => {}
            }
        }
        Ok(if is_running {
            Suspension::Pending
        } else {
            Suspension::Suspended
        })
    }

    /// ResumeContext: the queues of the context run again. Those that were blocked look again
    /// (GPU-52). A request that is not complete is forgotten.
    pub fn resume(&mut self, arena: &mut impl Arena, context: ContextIndex) -> Result<(), Refused> {
        let node = arena.context(context).ok_or(Refused)?;
        let mut at = node.queues.first;

        node.is_suspended = false;
        node.request = None;

        while let Some(index) = at {
            let Some(queue) = arena.queue(index) else {
                break;
            };

            at = queue.sibling.after;
            if queue.state == State::Suspended {
                if queue.has_work {
                    self.make_ready(arena, index)?;
                } else {
                    self.set(arena, index, State::Empty)?;
                }
            }
        }
        Ok(())
    }
}
