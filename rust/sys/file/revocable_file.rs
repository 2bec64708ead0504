// SPDX-License-Identifier: GPL-2.0

//! Mappings that can be revoked: one memory, shown in processes through a file of its own.
//!
//! The file has no descriptor. A mapping of pages holds the file, and the file holds the memory
//! until it is revoked. From then on no process has pages of it, and touching the mapping is
//! SIGBUS. The address range stays occupied until its process unmaps it, so nothing else can appear
//! there.
//!
//! Before that, the memory may move. It knows the files that show it and invalidates their mappings
//! ([`ShownFile::invalidate`]); the next touch shows the pages in their new place.
//!
//! The exporter of a foreign dma-buf makes its mappings itself. They hold the dma-buf and nothing
//! of this module, and their pages cannot be taken out. Revoking replaces the mapping in the
//! calling process by an empty mapping of the revocable file.

use super::object_file::{
    Operations,
    EMPTY, //
};
use crate::compat;
use crate::sys::{
    ffi,
    mem::{
        dma_import::Imported,
        pages::PageSource,
        shown::{
            self,
            Memory,
            ShownFile, //
        }, //
    },
    task::caller::Identity, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    fs::{
        file::flags::{
            O_CLOEXEC,
            O_RDONLY,
            O_RDWR, //
        },
        File, //
    },
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
    types::ForeignOwnable, //
};

/// A memory to show.
#[derive(Clone)]
pub(crate) enum Source {
    /// Memory of which this module knows the pages.
    Pages(Arc<dyn Memory>),
    /// A dma-buf of another driver.
    Buffer(Arc<Imported>),
}

impl Source {
    fn count(&self) -> usize {
        match self {
            Self::Pages(memory) => memory.count(),
            Self::Buffer(buffer) => buffer.count(),
        }
    }
}

/// What mappings of the file show, until it is revoked.
#[pin_data]
struct Revocable {
    count: usize,
    write: bool,
    /// LOCK: inside the mmap lock of faulting processes; the lock of the memory is taken inside. A
    /// fault inserts its page under it, and only while the memory is there. So after the memory was
    /// taken out, invalidating finds all pages. Nothing that could need an mmap lock is done under
    /// it.
    #[pin]
    state: Mutex<State>,
}

struct State {
    /// `None` after revocation.
    source: Option<Source>,
    /// The file of the exporter's mappings, once there are any: the exporter may choose one.
    exporters: Option<ARef<File>>,
}

/// A file whose mappings can be revoked. Dropping it revokes.
pub(crate) struct RevocableFile {
    file: ShownFile,
    revocable: Arc<Revocable>,
    /// The process that it is for.
    owner: Identity,
}

impl RevocableFile {
    /// A file that shows `source` to the caller, for reading only or also for writing.
    ///
    /// Context: a system call.
    pub(crate) fn new(source: Source, write: bool) -> Result<Self> {
        let owner = Identity::of_caller()?;
        let memory = match &source {
            Source::Pages(memory) => Some(memory.clone()),
            Source::Buffer(_) => None,
        };
        let revocable = Arc::pin_init(
            pin_init!(Revocable {
                count: source.count(),
                write,
                state <- new_mutex!(
                    State {
                        source: Some(source),
                        exporters: None,
                    },
                    "Revocable::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let private = revocable.clone().into_foreign();
        let access = if write { O_RDWR } else { O_RDONLY };
        // SAFETY: Table and name live as long as the module, which the file pins. The table takes
        // the private data for an `Arc<Revocable>`.
        let file = from_err_ptr(unsafe {
            ffi::dxg_revocable_file(
                c"[DxgkMemory]".as_char_ptr(),
                &raw const OPERATIONS.0,
                private,
                (access | O_CLOEXEC) as c_int,
            )
        });

        match file.map(NonNull::new) {
            Ok(Some(file)) => {
                let made = Self {
                    // SAFETY: We own the only reference to a new file that nobody can seek.
                    file: ShownFile::new(unsafe { ARef::from_raw(file.cast()) }),
                    revocable,
                    owner,
                };

                // Nobody has mapped it yet.
                if let Some(memory) = memory {
                    memory.add_file(&made.file)?;
                }
                Ok(made)
            }
            failed => {
                // SAFETY: No file took the reference over.
                drop(unsafe { Arc::<Revocable>::from_foreign(private) });
                failed?;
                Err(ENOMEM)
            }
        }
    }

    fn size(&self) -> usize {
        // OVERFLOW: mapping checks the size again; what fits in no address space is refused there.
        self.revocable.count.saturating_mul(PAGE_SIZE)
    }

    /// Maps the memory into the caller.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn map(&self) -> Result<usize> {
        // SAFETY: The file is open, and this runs in the context of a process.
        let addr =
            unsafe { ffi::dxg_map_file(self.file.as_ptr(), self.size(), self.revocable.write) };

        // The last page of the address space holds error values.
        if addr.wrapping_neg() < PAGE_SIZE {
            // CAST: the value is the negative errno as an unsigned long.
            to_result(addr as i32)?;
        }
        Ok(addr)
    }

    /// Removes a mapping from the caller, except parts that the caller has replaced.
    ///
    /// Context: a system call of the process that mapped it, no locks held.
    pub(crate) fn unmap(&self, addr: usize) {
        let exporters = self.revocable.state.lock().exporters.clone();
        let file = exporters.map_or(self.file.as_ptr(), |file| file.as_ptr());

        // SAFETY: This runs in the context of the owner of the address space; the helper looks for
        // mappings of this file only, and uses the pointer of a file that it has not found for
        // nothing else.
        unsafe { ffi::dxg_unmap_file(file, addr, self.size()) }
    }

    /// Takes the memory out of every process, for good. A foreign dma-buf is taken out of the
    /// calling process only, if that has it mapped.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn revoke(&self, mapped: Option<usize>) {
        let source = self.revocable.state.lock().source.take();

        match &source {
            Some(Source::Pages(memory)) => {
                self.file.invalidate(0..memory.count());
                // Not before: until then, the memory must find the pages to take them out.
                memory.remove_file(&self.file);
            }
            Some(Source::Buffer(_)) => {
                if let Some(addr) = mapped.filter(|_| self.owner.is_caller()) {
                    self.cover(addr);
                }
            }
            None => {}
        }
        // Dropped after the last page is gone from the last process.
        drop(source);
    }

    /// Replaces the exporter's mapping by one that shows nothing.
    fn cover(&self, addr: usize) {
        let Some(exporters) = self.revocable.state.lock().exporters.clone() else {
            return;
        };
        let (old, new) = (exporters.as_ptr(), self.file.as_ptr());

        // SAFETY: Both files are open, and this runs in the context of the owner of the address
        // space; the helper replaces mappings of the first file only.
        unsafe { ffi::dxg_cover_file(old, new, addr, self.size(), self.revocable.write) }
    }
}

impl Drop for RevocableFile {
    fn drop(&mut self) {
        self.revoke(None);
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
/// Called by the kernel as `file_operations::mmap` of a file with an `Arc<Revocable>`.
unsafe extern "C" fn mmap(file: *mut bindings::file, vma: *mut bindings::vm_area_struct) -> c_int {
    // SAFETY: The file is open and holds an `Arc<Revocable>`.
    let (private, revocable) = unsafe {
        let private = (*file).private_data;

        (private, Arc::<Revocable>::borrow(private))
    };

    let source = revocable.state.lock().source.clone();

    if let Some(Source::Buffer(buffer)) = source {
        // SAFETY: The VMA is being set up for the duration of the call.
        return match unsafe { buffer.show(vma, revocable.write) } {
            Ok(file) => {
                let known = revocable.state.lock().exporters.replace(file);

                drop(known);
                0
            }
            Err(error) => error.to_errno(),
        };
    }
    // SAFETY: The VMA is being set up for the duration of the call. It holds the file, which holds
    // what it shows.
    unsafe {
        ffi::dxg_show_pages(
            vma,
            revocable.count,
            revocable.write,
            &raw const FAULTS.0,
            private,
        )
    }
}

/// # Safety
///
/// Called by the kernel as `file_operations::release` of a file with an `Arc<Revocable>`.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: The last call for this file; the pointer came from `into_foreign`.
    drop(unsafe { Arc::<Revocable>::from_foreign((*file).private_data) });
    0
}

static FAULTS: shown::Faults = shown::Faults(bindings::vm_operations_struct {
    fault: Some(fault),
    ..shown::NO_FAULTS
});

/// # Safety
///
/// Called by the kernel as `vm_operations_struct::fault` of a mapping that [`mmap`] made.
unsafe extern "C" fn fault(vmf: *mut bindings::vm_fault) -> bindings::vm_fault_t {
    // SAFETY: The mapping holds the file, and so what it shows.
    let revocable = unsafe {
        let vma = (*vmf).__bindgen_anon_1.vma;

        Arc::<Revocable>::borrow((*vma).vm_private_data)
    };
    let state = revocable.state.lock();
    let Some(Source::Pages(memory)) = &state.source else {
        return shown::fault_error(EFAULT);
    };

    // SAFETY: The mapping was set up by `mmap`. The pages stay in place until they are taken out of
    // the mappings of this file: by the memory, which knows the file, or by `revoke`, which takes
    // the source out under the lock held here and lets the memory go afterwards.
    unsafe { shown::fault(vmf, &**memory) }
}
