// SPDX-License-Identifier: GPL-2.0

//! A context, as far as suspending and resuming reach it without sleeping; the rest belongs to its
//! engine.

use super::{
    listed::Listed,
    queue::Queue,
    save_area::SaveArea, //
};
use crate::{
    ddi::queue::Suspend,
    platform::{
        self,
        Shared,
        ShortLock, //
    }, //
};

/// What an engine and the OS part share of a context.
pub(super) struct Context {
    /// Which engine has it.
    pub(super) engine: usize,
    /// The PASID of the paging process, if it is the system context.
    pub(super) system: Option<u16>,
    /// Takes its submissions, if it is a context of packets.
    pub(super) packets: Option<Shared<Queue>>,
    /// What it is saved to, alone or with others of its device, if that is memory of its own.
    pub(super) save_area: Option<Shared<SaveArea>>,
    control: ShortLock<Control>,
}

/// What the engine is to do with a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// SuspendContext, with its id.
    Suspend(u64),
    /// ResumeContext.
    Resume,
}

struct Control {
    /// The latest wish, if the engine has not done it.
    wish: Option<Wish>,
    /// The last one that it did was a suspension.
    suspended: bool,
    /// The engine has it on its list of contexts to look at.
    listed: bool,
    /// The next one of that list.
    next: Option<Shared<Context>>,
    /// Its number in the engine.
    number: Option<u32>,
}

impl Context {
    /// A context that its engine does not know yet; `None` if there is no memory. May sleep.
    pub(super) fn new(
        engine: usize,
        system: Option<u16>,
        packets: Option<Shared<Queue>>,
        save_area: Option<Shared<SaveArea>>,
    ) -> Option<Shared<Self>> {
        let control = Control {
            wish: None,
            suspended: false,
            listed: false,
            next: None,
            number: None,
        };

        platform::shared(Self {
            engine,
            system,
            packets,
            save_area,
            control: platform::short_lock!(control, "soft::Context::control")?,
        })
    }

    /// SuspendContext. The second is true if the engine has to be told of the context.
    pub(super) fn suspend(&self, id: u64) -> (Suspend, bool) {
        let mut control = self.control.lock();

        if control.suspended && control.wish.is_none() {
            return (Suspend::Done, false);
        }
        control.wish = Some(Wish::Suspend(id));
        (
            Suspend::Pending,
            !core::mem::replace(&mut control.listed, true),
        )
    }

    /// ResumeContext. True if the engine has to be told of the context.
    pub(super) fn resume(&self) -> bool {
        let mut control = self.control.lock();

        control.wish = Some(Wish::Resume);
        !core::mem::replace(&mut control.listed, true)
    }

    /// Its number in the engine; `None` once the engine does not have it any more.
    pub(super) fn number(&self) -> Option<u32> {
        self.control.lock().number
    }

    /// The engine has it by this number, or not any more.
    pub(super) fn set_number(&self, number: Option<u32>) {
        self.control.lock().number = number;
    }
}

impl Listed for Context {
    /// What to do with it, which counts as done, and its number in the engine.
    type Told = (Option<Wish>, Option<u32>);

    fn follow_by(&self, next: &Shared<Self>) {
        self.control.lock().next = Some(next.clone());
    }

    fn unlist(&self) -> (Option<Shared<Self>>, Self::Told) {
        let mut control = self.control.lock();
        let wish = control.wish.take();

        control.listed = false;
        if let Some(wish) = wish {
            control.suspended = wish != Wish::Resume;
        }
        (control.next.take(), (wish, control.number))
    }
}
