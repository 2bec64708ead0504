// SPDX-License-Identifier: GPL-2.0

//! Where CurrentValue of a monitored fence lives.
//!
//! Shareable fences have a page of their own. The others of one process are packed into common
//! pages, 64 bytes apart, so that making one costs no mapping (FEN-13, FEN-61). Two processes never
//! have a page in common.

use super::{
    address_space::AddressSpace,
    census::{
        Member,
        PAGES, //
    }, //
};
use crate::{
    platform::Word64,
    sys::{
        mapping::Mapped,
        value_page::ValuePage, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// Bytes between two cells of a common page.
const STRIDE: usize = 64;
/// Cells in a common page: one bit each in [`PoolState`].
const CELLS: u32 = 64;

/// A page and its place in the census.
struct CountedPage {
    page: Arc<ValuePage>,
    _member: Member,
}

impl CountedPage {
    fn new() -> Result<Self> {
        Ok(Self {
            page: Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?,
            _member: PAGES.enter(),
        })
    }
}

/// A common page, mapped in its process. LOCK: the two atomics are only touched under
/// `CellPool::state`.
struct PoolPage {
    counted: CountedPage,
    mapped: Mapped,
    /// Bit n is set while cell n is taken.
    taken: Atomic<u64>,
    /// Where the page is in `PoolState::pages`.
    index: Atomic<usize>,
}

impl PoolPage {
    /// Takes a free cell, if there is one.
    fn take(&self) -> Option<u32> {
        let taken = self.taken.load(Relaxed);
        let cell = taken.trailing_ones();

        (cell < CELLS).then(|| {
            self.taken.store(taken | 1 << cell, Relaxed);
            cell
        })
    }

    /// Gives a cell back; true if no other is taken.
    fn put(&self, cell: u32) -> bool {
        let left = self.taken.load(Relaxed) & !(1 << (cell % CELLS));

        self.taken.store(left, Relaxed);
        left == 0
    }
}

/// The common pages of one process.
#[pin_data]
pub(crate) struct CellPool {
    space: Arc<AddressSpace>,
    /// LOCK: nothing is mapped or unmapped under it.
    #[pin]
    state: Mutex<PoolState>,
}

struct PoolState {
    /// Pages in any order.
    pages: KVec<Arc<PoolPage>>,
    /// No page before this one has a free cell.
    first_free: usize,
}

impl PoolState {
    /// Takes a free cell of a page that has one.
    fn take(&mut self) -> Option<(Arc<PoolPage>, u32)> {
        while let Some(page) = self.pages.get(self.first_free) {
            if let Some(cell) = page.take() {
                return Some((page.clone(), cell));
            }
            self.first_free += 1;
        }
        None
    }

    /// Adds a page.
    fn add(&mut self, page: Arc<PoolPage>) -> Result {
        page.index.store(self.pages.len(), Relaxed);
        Ok(self.pages.push(page, GFP_KERNEL_ACCOUNT)?)
    }

    /// Gives a cell back; hands out its page if that was the last cell in use.
    fn put(&mut self, page: &PoolPage, cell: u32) -> Option<Arc<PoolPage>> {
        let index = page.index.load(Relaxed);

        self.first_free = self.first_free.min(index);
        if !page.put(cell) {
            return None;
        }

        // The last page takes the place of the one that goes.
        let last = self.pages.pop()?;

        match self.pages.get_mut(index) {
            Some(place) => {
                last.index.store(index, Relaxed);
                Some(core::mem::replace(place, last))
            }
            None => Some(last),
        }
    }
}

impl CellPool {
    /// The pool of the process behind `space`, empty.
    pub(crate) fn new(space: Arc<AddressSpace>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                space,
                state <- new_mutex!(
                    PoolState {
                        pages: KVec::new(),
                        first_free: 0,
                    },
                    "CellPool::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// A cell that shows `value`, and its address in the process.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn cell(self: &Arc<Self>, value: u64) -> Result<(ValueCell, usize)> {
        let taken = self.state.lock().take();
        let (page, index) = match taken {
            Some(found) => found,
            None => (self.grow()?, 0),
        };
        // CAST: a cell number is below 64.
        let offset = index as usize * STRIDE;
        let addr = page.mapped.addr + offset;
        let cell = ValueCell {
            page: page.counted.page.clone(),
            word: offset / size_of::<u64>(),
            home: Home::Pool {
                pool: self.clone(),
                page,
                cell: index,
            },
        };

        crate::platform::store_release(cell.word(), value);
        Ok((cell, addr))
    }

    /// Adds a page whose first cell is taken.
    fn grow(&self) -> Result<Arc<PoolPage>> {
        let counted = CountedPage::new()?;
        let mapped = self.space.map(&counted.page)?;
        let added = Arc::new(
            PoolPage {
                counted,
                mapped,
                taken: Atomic::new(1),
                index: Atomic::new(0),
            },
            GFP_KERNEL_ACCOUNT,
        )
        .map_err(Error::from)
        .and_then(|page| {
            self.state.lock().add(page.clone())?;
            Ok(page)
        });

        added.inspect_err(|_| self.space.unmap(mapped))
    }
}

/// Where a cell came from.
enum Home {
    /// A page of its own.
    Alone { _counted: CountedPage },
    /// A common page of a process.
    Pool {
        pool: Arc<CellPool>,
        page: Arc<PoolPage>,
        cell: u32,
    },
}

/// One CurrentValue word.
///
/// Writers: the fence it belongs to, under the fence lock. Readers: everybody, at any time, also
/// processes through their read-only mapping.
pub(crate) struct ValueCell {
    page: Arc<ValuePage>,
    word: usize,
    home: Home,
}

impl ValueCell {
    /// A cell in a page of its own that shows `value`, not mapped anywhere yet.
    pub(crate) fn alone(value: u64) -> Result<Self> {
        let counted = CountedPage::new()?;
        let cell = Self {
            page: counted.page.clone(),
            word: 0,
            home: Home::Alone { _counted: counted },
        };

        crate::platform::store_release(cell.word(), value);
        Ok(cell)
    }

    /// The word.
    pub(crate) fn word(&self) -> &Word64 {
        self.page.word(self.word)
    }

    /// The page, if no other fence has a cell in it.
    pub(crate) fn own_page(&self) -> Option<&Arc<ValuePage>> {
        match self.home {
            Home::Alone { .. } => Some(&self.page),
            Home::Pool { .. } => None,
        }
    }
}

impl Drop for ValueCell {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let Home::Pool { pool, page, cell } = &self.home else {
            return;
        };
        let empty = pool.state.lock().put(page, *cell);

        if let Some(page) = empty {
            pool.space.unmap(page.mapped);
        }
    }
}
