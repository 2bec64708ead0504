// SPDX-License-Identifier: GPL-2.0

//! Moves memory to another backing.

use super::{
    super::{
        pages::PageSource,
        shrinker::NoReclaim, //
    },
    Movable,
    Moving,
    Placed,
    State, //
};
use crate::{
    logic::moving::{
        Progress,
        STEP, //
    },
    sys::{
        task::sleep,
        work, //
    }, //
};
use core::ops::Range;
use kernel::{
    prelude::*,
    sync::{
        atomic::Acquire,
        Arc, //
    }, //
};

/// Why memory does not move. It is as it was before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MoveError {
    /// It stays where it is for good.
    Fixed,
    /// Somebody has addresses of its pages, such as a dma-buf.
    Pinned,
    /// It is being moved, or gets new pages all the time. Try again later.
    Busy,
    /// The new backing has another size.
    Size,
    /// Processors cannot copy the bytes, because one of the backings has no `struct page`.
    NoPage,
    /// There is no memory, or the caller was killed.
    Failed(Error),
}

/// Who copies bytes from one backing to the other.
pub(crate) trait CopyPages<P> {
    /// Copies those of these pages that both backings have. Nobody uses them meanwhile. False if it
    /// cannot: then the processor copies them.
    ///
    /// Context: may sleep; the lock of the memory is held, for which page faults wait.
    fn copy(
        &self,
        from: (P, &dyn PageSource),
        to: (P, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool;
}

/// The processor copies, for tests.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) struct ByProcessor;

#[cfg(CONFIG_KUNIT = "y")]
impl<P> CopyPages<P> for ByProcessor {
    fn copy(&self, _: (P, &dyn PageSource), _: (P, &dyn PageSource), _: Range<usize>) -> bool {
        false
    }
}

/// How often a move looks for pages that were touched while it prepared the others.
const ROUNDS: usize = 4;

impl<P: Copy + Send + Unpin> Movable<P> {
    /// Moves the bytes to another backing, whose pages are zeros and which nobody else uses. When
    /// this returns, no mapping leads to a page of the old one. Either everything has moved, or
    /// everything is as it was before.
    ///
    /// Context: may sleep, no locks held. Other users of the memory wait for one step at most,
    /// except those that pin it.
    pub(crate) fn move_to(
        &self,
        place: P,
        pages: Arc<dyn PageSource>,
        by: &dyn CopyPages<P>,
    ) -> Result<(), MoveError> {
        self.go_to(place, pages, Some(by))
    }

    /// The same, but the bytes are dropped, and those of the other backing take their place. What
    /// it has no page for is zeros.
    pub(crate) fn replace_by(&self, place: P, pages: Arc<dyn PageSource>) -> Result<(), MoveError> {
        self.go_to(place, pages, None)
    }

    fn go_to(
        &self,
        place: P,
        pages: Arc<dyn PageSource>,
        by: Option<&dyn CopyPages<P>>,
    ) -> Result<(), MoveError> {
        if pages.count() != self.count {
            return Err(MoveError::Size);
        }

        let to = Placed {
            place,
            pages: pages.clone(),
        };
        let from = self.begin(to)?;

        if let Err(error) = self.prepare(&*from, by.map(|_| &*pages)) {
            let given_up = self.state.lock().moving.take();

            drop(given_up);
            return Err(error);
        }
        while self.step(by) {
            work::breathe();
        }
        Ok(())
    }

    /// Announces a move. Nothing changes yet. Returns the pages to move.
    fn begin(&self, to: Placed<P>) -> Result<Arc<dyn PageSource>, MoveError> {
        let moving = Moving { to, progress: None };
        let moving =
            KBox::new(moving, GFP_KERNEL_ACCOUNT).map_err(|_| MoveError::Failed(ENOMEM))?;
        // If there is another move, this one is dropped after the lock.
        let mut state = self.state.lock();

        if state.moving.is_some() {
            return Err(MoveError::Busy);
        }
        state.moving = Some(moving);
        Ok(state.now.pages.clone())
    }

    /// Takes a new page for each old one in `to`, where bytes are copied to, and starts the move.
    /// From then on nothing can fail.
    fn prepare(&self, from: &dyn PageSource, to: Option<&dyn PageSource>) -> Result<(), MoveError> {
        // From here on nobody lets go of pages.
        if to.is_some() {
            from.take_used().map_err(MoveError::Failed)?;
        }

        for _ in 0..ROUNDS {
            let ready = self.take(from, to)?;
            let mut state = self.state.lock();

            // ORDERING: pairs with `unpin`. Without pins and faults that take pages, their number
            // stays what it is.
            if self.pins.load(Acquire) != 0 {
                return Err(MoveError::Pinned);
            }
            if state.taking == 0 && state.now.pages.taken() == ready {
                if let Some(moving) = &mut state.moving {
                    moving.progress = Some(Progress::new(self.count));
                }
                return Ok(());
            }
        }
        Err(MoveError::Busy)
    }

    /// Takes a new page for each old one, and says how many these are.
    fn take(&self, from: &dyn PageSource, to: Option<&dyn PageSource>) -> Result<usize, MoveError> {
        let mut ready = 0;

        if from.is_complete() && to.is_none_or(|to| to.is_complete()) {
            return Ok(self.count);
        }
        for index in 0..self.count {
            if index % STEP == 0 {
                if sleep::is_killed() {
                    return Err(MoveError::Failed(EINTR));
                }
                work::breathe();
            }
            let Some(old) = from.present(index) else {
                continue;
            };

            if let Some(to) = to {
                let new = to.page(index).map_err(MoveError::Failed)?;

                if !old.has_page() || !new.has_page() {
                    return Err(MoveError::NoPage);
                }
            }
            ready += 1;
        }
        Ok(ready)
    }

    /// Moves the next pages, or ends the move. False if that was the end.
    fn step(&self, by: Option<&dyn CopyPages<P>>) -> bool {
        // Whoever copies may need memory.
        let _no_reclaim = NoReclaim::here();
        let mut state = self.state.lock();
        let State {
            now, moving, files, ..
        } = &mut *state;
        let Some(Moving {
            to,
            progress: Some(progress),
        }) = moving.as_deref_mut()
        else {
            return false;
        };

        if let Some(step) = progress.next() {
            for (_, file) in files.iter() {
                file.invalidate(step.clone());
            }
            // INVARIANT: No mapping has these pages any more.
            if let Some(by) = by {
                copy(by, now, to, step.clone());
            }
            progress.advance(step);
            return true;
        }

        core::mem::swap(now, to);

        // It has the old backing now.
        let old = moving.take();

        drop(state);
        self.moved.notify_all();
        drop(old);
        false
    }
}

/// Copies the pages of a step.
fn copy<P: Copy>(by: &dyn CopyPages<P>, now: &Placed<P>, to: &Placed<P>, step: Range<usize>) {
    let (from, onto) = (&*now.pages, &*to.pages);

    if by.copy((now.place, from), (to.place, onto), step.clone()) {
        return;
    }
    for index in step {
        if let Some((old, new)) = from.present(index).zip(onto.present(index)) {
            // `prepare` has looked whether both have a page.
            let _copied = old.copy_to(new);
        }
    }
}
