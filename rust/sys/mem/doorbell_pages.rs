// SPDX-License-Identifier: GPL-2.0

//! The pages that a process sees of a doorbell: that of a physical doorbell while it is connected
//! and of nothing otherwise, and one that is always there (GPU-19 to GPU-23).
//!
//! The addresses never change. What is behind them is *rotated*: the page is taken out of all
//! mappings, and the next access is a fault that shows the other one.
//!
//! No ring is lost. A process writes its write pointer, rings, and then reads the status. Whoever
//! disconnects rotates the pages, stores the status, and then looks at the write pointer. A ring
//! that went to the old page came before the rotation, and so did the pointer, because taking a
//! page out of mappings waits for all processors; a later one is followed by a look at the new
//! status.

use super::{
    pages::{
        Frame,
        PageSource, //
    },
    shown::{
        Memory,
        ShownFile, //
    },
    value_page::ValuePage, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// The page of the physical doorbell, or of nothing.
pub(crate) const DOORBELL: usize = 0;
/// A page that the process and the kernel share.
pub(crate) const SHARED: usize = 1;
/// The second page of the physical doorbell, or of nothing.
pub(crate) const SECONDARY: usize = 2;
/// How many there are.
const COUNT: usize = 3;

/// Is told that a process accesses a doorbell that traps.
pub(crate) trait Rung: Send + Sync {
    /// Somebody does.
    ///
    /// Context: a page fault; must not sleep.
    fn rung(&self);
}

/// A physical doorbell.
pub(crate) struct Physical {
    /// What the process writes to.
    pub(crate) page: Arc<ValuePage>,
    /// Its second page, if it has one.
    pub(crate) secondary: Option<Arc<ValuePage>>,
    /// Who is told of accesses, if they are.
    pub(crate) rung: Option<Arc<dyn Rung>>,
}

struct State {
    /// `None` while the doorbell is disconnected.
    physical: Option<Physical>,
    /// The file that shows the pages.
    file: Option<ShownFile>,
}

/// What a process sees of one doorbell.
#[pin_data]
pub(crate) struct DoorbellPages {
    shared: Arc<ValuePage>,
    /// Behind the addresses of a doorbell that is not connected. No process reads there what
    /// another one wrote.
    nothing: Arc<ValuePage>,
    /// LOCK: taken by page faults, inside the mmap lock and `Revocable::state`. Mappings are
    /// invalidated under it, which takes no mmap lock, and the driver is told of a ring, which does
    /// not sleep.
    #[pin]
    state: Mutex<State>,
}

/// The one page that a fault shows.
struct One<'a> {
    index: usize,
    page: &'a ValuePage,
}

impl DoorbellPages {
    /// Those of a doorbell that is not connected.
    ///
    /// Context: may sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let shared = Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?;
        let nothing = Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?;

        Arc::pin_init(
            pin_init!(Self {
                shared,
                nothing,
                state <- new_mutex!(
                    State {
                        physical: None,
                        file: None,
                    },
                    "DoorbellPages::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// The page that the process and the kernel share.
    pub(crate) fn shared(&self) -> &ValuePage {
        &self.shared
    }

    /// Rotates to a physical doorbell, or away from it, if that `may` be, and `then` does something
    /// when no processor writes to what was there before. Both with the lock held. The [`Rung`] of
    /// what was there is dropped under it, too: nobody has it after a later rotation.
    ///
    /// Context: may sleep. Locks that a page fault takes, but for this, may be held.
    pub(crate) fn rotate(
        &self,
        physical: Option<Physical>,
        may: impl FnOnce() -> bool,
        then: impl FnOnce(),
    ) {
        let unused = {
            let mut state = self.state.lock();

            if may() {
                let mut before = core::mem::replace(&mut state.physical, physical);

                state.invalidate();
                then();
                if let Some(before) = &mut before {
                    before.rung = None;
                }
                before
            } else {
                physical
            }
        };

        // It may be the last user of the pages.
        drop(unused);
    }

    /// The next access is a fault, which is told.
    ///
    /// Context: as [`DoorbellPages::rotate`].
    pub(crate) fn trap(&self) {
        let state = self.state.lock();

        if state
            .physical
            .as_ref()
            .is_some_and(|physical| physical.rung.is_some())
        {
            state.invalidate();
        }
    }
}

impl State {
    fn invalidate(&self) {
        if let Some(file) = &self.file {
            file.invalidate(DOORBELL..DOORBELL + 1);
            file.invalidate(SECONDARY..SECONDARY + 1);
        }
    }
}

impl Memory for DoorbellPages {
    fn count(&self) -> usize {
        COUNT
    }

    fn with_page(&self, index: usize, look: &mut dyn FnMut(&dyn PageSource)) -> Result {
        if index == SHARED {
            look(&One {
                index,
                page: &self.shared,
            });
            return Ok(());
        }

        let state = self.state.lock();
        let page = match &state.physical {
            Some(physical) => {
                if let Some(rung) = &physical.rung {
                    rung.rung();
                }
                match index {
                    DOORBELL => Some(&physical.page),
                    _ => physical.secondary.as_ref(),
                }
            }
            None => None,
        };

        // The page is shown under the lock, so that whoever rotates finds it in the mappings.
        look(&One {
            index,
            page: page.unwrap_or(&self.nothing),
        });
        Ok(())
    }

    fn add_file(&self, file: &ShownFile) -> Result {
        let before = self.state.lock().file.replace(file.clone());

        drop(before);
        Ok(())
    }

    fn remove_file(&self, _: &ShownFile) {
        let file = self.state.lock().file.take();

        drop(file);
    }
}

impl PageSource for One<'_> {
    fn count(&self) -> usize {
        COUNT
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        (index == self.index).then(|| self.page.frame())
    }

    fn taken(&self) -> usize {
        1
    }
}
