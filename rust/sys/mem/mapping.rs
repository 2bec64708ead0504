// SPDX-License-Identifier: GPL-2.0

//! Maps value pages into a process, read-only for good.
//!
//! Each process has an anonymous file for this, without a descriptor. A mapping holds this file,
//! not the device. So closing the device works while values are mapped, and a mapping that a
//! forked child inherited does not keep what its parent owned. The file pins the module.
//!
//! A page is mapped in three steps: it is announced under a token, the file is mapped at that
//! token, and the announcement is withdrawn. The file's `mmap` operation inserts the announced
//! page, so no VMA has to be looked up.

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

/// Pages that a call is mapping at this moment, by token.
#[pin_data]
struct Announced {
    /// LOCK: leaf, taken inside the mmap lock.
    #[pin]
    pages: SpinLock<RBTree<usize, Arc<ValuePage>>>,
}

/// A page of this module in a process.
#[derive(Clone, Copy)]
pub(crate) struct Mapped {
    /// The address.
    pub(crate) addr: usize,
    token: usize,
}

/// Maps pages into one process.
pub(crate) struct Mapper {
    file: ARef<File>,
    announced: Arc<Announced>,
}

impl Mapper {
    /// A mapper without mappings.
    pub(crate) fn new() -> Result<Self> {
        let announced = Arc::pin_init(
            pin_init!(Announced {
                pages <- new_spinlock!(RBTree::new(), "Mapper::announced"),
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
        static NEXT_TOKEN: Atomic<usize> = Atomic::new(1);

        // Tokens become page offsets of the file, which have 52 bits: enough for a mapping every
        // microsecond for a century.
        let token = NEXT_TOKEN.fetch_add(1, Relaxed);
        let node = RBTreeNode::new(token, page.clone(), GFP_KERNEL_ACCOUNT)?;

        self.announced.pages.lock().insert(node);

        // SAFETY: `file` is open, and this runs in the context of the process.
        let addr = unsafe { ffi::dxg_map_page(self.file.as_ptr(), token) };
        let withdrawn = self.announced.pages.lock().remove_node(&token);

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

    /// Removes a mapping from the caller, unless the caller has replaced it.
    ///
    /// Context: a system call of the process that owns the mapping, no locks held.
    pub(crate) fn unmap(&self, mapped: Mapped) {
        // SAFETY: This runs in the context of the owner of the address space; the helper checks
        // that the mapping is one of this file with this token.
        let _ours = unsafe { ffi::dxg_unmap_page(self.file.as_ptr(), mapped.addr, mapped.token) };
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
        let (token, whole) = unsafe { (ffi::dxg_vma_token(vma), ffi::dxg_vma_is_page(vma)) };
        let page = announced.pages.lock().get(&token).cloned();
        let page = page.filter(|_| whole).ok_or(EINVAL)?;

        show(new, &page)?;
        // SAFETY: The VMA is valid and not yet visible to others. `COPIES` expects an
        // `Arc<ValuePage>`, which `close` drops.
        unsafe {
            (*vma).vm_ops = &raw const COPIES.0;
            (*vma).vm_private_data = page.into_foreign();
        }
        Ok(0)
    })
}

/// What the kernel tells of mappings of value pages, each of which owns an `Arc<ValuePage>`.
static COPIES: Faults = Faults(bindings::vm_operations_struct {
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

    page.add_copy();
    // The copy has the same pointer and owns a reference of its own.
    let _same = Arc::from(page).into_foreign();
}

/// # Safety
///
/// Called by the kernel as `vm_operations_struct::close` of a mapping that [`mmap`] or [`open`]
/// prepared, as the last call for it.
unsafe extern "C" fn close(vma: *mut bindings::vm_area_struct) {
    // SAFETY: The mapping owns this reference.
    drop(unsafe { Arc::<ValuePage>::from_foreign((*vma).vm_private_data) });
}

/// Shows `page` in a new mapping, never writable (FEN-8) and inherited by fork (FEN-11).
fn show(vma: &VmaNew, page: &ValuePage) -> Result {
    vma.try_clear_maywrite()?;
    vma.try_clear_mayexec()?;
    vma.set_dontexpand();
    vma.set_dontdump();
    vma.set_mixedmap().vm_insert_page(vma.start(), page.page())
}

/// # Safety
///
/// Called by the kernel as `file_operations::release` of a file with an `Arc<Announced>`.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: The last call for this file; the pointer came from `into_foreign`.
    drop(unsafe { Arc::<Announced>::from_foreign((*file).private_data) });
    0
}
