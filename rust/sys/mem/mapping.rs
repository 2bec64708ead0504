// SPDX-License-Identifier: GPL-2.0

//! Maps value pages into a process, read-only for good.
//!
//! Each process has an anonymous file for this, without a descriptor. A mapping holds this file,
//! not the device. So closing the device works while values are mapped, and a mapping that a
//! forked child inherited does not keep what its parent owned. The file pins the module.
//!
//! A page is mapped in three steps: it is announced under a token, the file is mapped at that
//! token, and the announcement is withdrawn. The file's `mmap` operation inserts the announced
//! page, so no VMA has to be looked up. A window ([`super::value_window`]) is mapped in the same
//! way, with nothing in it.

use super::{
    shown::{
        Faults,
        NO_FAULTS, //
    },
    value_page::ValuePage, //
};
use crate::compat;
use crate::sys::{
    ffi,
    file::object_file::{
        anonymous_file,
        Operations,
        EMPTY, //
    }, //
};
use kernel::{
    bindings,
    error::{
        from_result,
        to_result, //
    },
    ffi::c_int,
    fs::File,
    mm::virt::VmaNew,
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    types::ForeignOwnable, //
};

/// What a call is mapping at this moment.
#[derive(Clone)]
enum New {
    Page(Arc<ValuePage>),
    /// So many pages that show nothing.
    Window(usize),
}

/// What calls are mapping, by token.
#[pin_data]
struct Announced {
    /// LOCK: leaf, taken inside the mmap lock.
    #[pin]
    mappings: SpinLock<RBTree<usize, New>>,
}

/// A page or a window of this module in a process.
#[derive(Clone, Copy)]
pub(crate) struct Mapped {
    /// The address.
    pub(crate) addr: usize,
    /// The page offset in the file.
    pub(super) token: usize,
}

/// Maps pages into one process.
pub(crate) struct Mapper {
    pub(super) file: ARef<File>,
    announced: Arc<Announced>,
}

impl Mapper {
    /// A mapper without mappings.
    pub(crate) fn new() -> Result<Self> {
        let announced = Arc::pin_init(
            pin_init!(Announced {
                mappings <- new_spinlock!(RBTree::new(), "Mapper::announced"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // SAFETY: The table's callbacks take the private data for an `Arc<Announced>`.
        let file = unsafe {
            anonymous_file(
                c"[DxgkFenceValues]",
                &raw const OPERATIONS.0,
                announced.clone(),
            )
        }?;

        Ok(Self { file, announced })
    }

    /// Maps `page` into the caller.
    ///
    /// Context: a system call of the process, no locks held (takes the mmap lock).
    pub(crate) fn map(&self, page: &Arc<ValuePage>) -> Result<Mapped> {
        self.map_new(New::Page(page.clone()), 1)
    }

    /// Maps so many pages that show nothing yet.
    ///
    /// Context: as [`Mapper::map`].
    pub(super) fn map_empty(&self, pages: usize) -> Result<Mapped> {
        self.map_new(New::Window(pages), pages)
    }

    fn map_new(&self, new: New, pages: usize) -> Result<Mapped> {
        static NEXT_TOKEN: Atomic<usize> = Atomic::new(1);

        // Tokens become page offsets of the file, which have 52 bits: enough for a mapping every
        // microsecond for a century. No two mappings have a page offset in common.
        let token = NEXT_TOKEN.fetch_add(pages, Relaxed);
        let node = RBTreeNode::new(token, new, GFP_KERNEL_ACCOUNT)?;

        self.announced.mappings.lock().insert(node);

        // SAFETY: `file` is open, and this runs in the context of the process.
        let addr = unsafe { ffi::dxg_map_pages(self.file.as_ptr(), token, pages) };
        let withdrawn = self.announced.mappings.lock().remove_node(&token);

        drop(withdrawn);
        // The last page of the address space holds error values.
        if addr.wrapping_neg() < PAGE_SIZE {
            // CAST: the value is the negative errno as an unsigned long.
            to_result(addr as i32)?;
        }
        Ok(Mapped { addr, token })
    }

    /// Whether nobody sees `page`, which was mapped by [`Mapper::map`], but the caller where it
    /// was mapped.
    ///
    /// Context: a system call of the process, no locks held (takes the mmap lock).
    pub(crate) fn is_alone(&self, mapped: Mapped, page: &ValuePage) -> bool {
        let Mapped { addr, token } = mapped;

        // SAFETY: The file is open and the page is allocated; this runs in the context of the
        // process.
        unsafe { ffi::dxg_page_is_alone(self.file.as_ptr(), addr, token, page.page().as_ptr()) }
    }

    /// Removes the mapping of a page from the caller, unless the caller has replaced it.
    ///
    /// Context: a system call of the process that owns the mapping, no locks held.
    pub(crate) fn unmap(&self, mapped: Mapped) {
        self.unmap_pages(mapped, 1);
    }

    /// The same for a mapping of so many pages: what the caller has left of it.
    ///
    /// Context: as [`Mapper::unmap`].
    pub(super) fn unmap_pages(&self, mapped: Mapped, pages: usize) {
        let Mapped { addr, token } = mapped;

        // SAFETY: This runs in the context of the owner of the address space; the helper checks
        // that the mapping is one of this file with this token.
        unsafe { ffi::dxg_unmap_pages(self.file.as_ptr(), addr, token, pages) }
    }
}

static OPERATIONS: Operations = Operations(bindings::file_operations {
    owner: compat::module(),
    mmap: Some(mmap),
    release: Some(release),
    ..EMPTY
});

/// # Safety
///
/// Called by the kernel as `file_operations::mmap` of a file with an `Arc<Announced>`.
unsafe extern "C" fn mmap(file: *mut bindings::file, vma: *mut bindings::vm_area_struct) -> c_int {
    from_result(|| {
        // SAFETY: The file is open and holds an `Arc<Announced>`; the VMA is being set up for the
        // duration of the call.
        let (announced, new) = unsafe {
            (
                Arc::<Announced>::borrow((*file).private_data),
                VmaNew::from_raw(vma),
            )
        };
        // SAFETY: The VMA is valid and not yet visible to others.
        let token = unsafe { ffi::dxg_vma_token(vma) };
        let announced = announced
            .mappings
            .lock()
            .get(&token)
            .cloned()
            .ok_or(EINVAL)?;
        let pages = match announced {
            New::Page(_) => 1,
            New::Window(pages) => pages,
        };

        // SAFETY: As above.
        if !unsafe { ffi::dxg_vma_has_pages(vma, pages) } {
            return Err(EINVAL);
        }
        restrict(new)?;

        let mixed = new.set_mixedmap();

        match announced {
            New::Page(page) => {
                mixed.vm_insert_page(new.start(), page.page())?;
                // SAFETY: As above. `CHANGES` expects an `Arc<ValuePage>`, which `close` drops.
                unsafe {
                    (*vma).vm_ops = &raw const CHANGES.0;
                    (*vma).vm_private_data = page.into_foreign();
                }
            }
            // SAFETY: As above. Without an operation for faults, a place that shows nothing is
            // SIGBUS.
            New::Window(_) => unsafe { (*vma).vm_ops = &raw const EMPTY_PLACES.0 },
        }
        Ok(0)
    })
}

/// What the kernel tells of windows: nothing.
static EMPTY_PLACES: Faults = Faults(NO_FAULTS);

/// What the kernel tells of mappings of value pages, each of which owns an `Arc<ValuePage>`.
static CHANGES: Faults = Faults(bindings::vm_operations_struct {
    open: Some(open),
    close: Some(close),
    ..NO_FAULTS
});

/// # Safety
///
/// Called by the kernel as `vm_operations_struct::open` of a copy of a mapping that [`mmap`] made,
/// under the mmap lock, before the copy shows the page.
unsafe extern "C" fn open(vma: *mut bindings::vm_area_struct) {
    // SAFETY: The mapping that was copied owns an `Arc<ValuePage>`.
    let page = unsafe { Arc::<ValuePage>::borrow((*vma).vm_private_data) };

    page.add_change();
    // The copy has the same pointer and owns a reference of its own.
    let _same = Arc::from(page).into_foreign();
}

/// # Safety
///
/// Called by the kernel as `vm_operations_struct::close` of a mapping that [`mmap`] or [`open`]
/// prepared, as the last call for it.
unsafe extern "C" fn close(vma: *mut bindings::vm_area_struct) {
    // SAFETY: The mapping owns this reference.
    let page = unsafe { Arc::<ValuePage>::from_foreign((*vma).vm_private_data) };

    page.add_change();
}

/// Makes a new mapping one that is never writable (FEN-8) and inherited by fork (FEN-11).
fn restrict(vma: &VmaNew) -> Result {
    vma.try_clear_maywrite()?;
    vma.try_clear_mayexec()?;
    vma.set_dontexpand();
    vma.set_dontdump();
    Ok(())
}

/// # Safety
///
/// Called by the kernel as `file_operations::release` of a file with an `Arc<Announced>`.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: The last call for this file; the pointer came from `into_foreign`.
    drop(unsafe { Arc::<Announced>::from_foreign((*file).private_data) });
    0
}
