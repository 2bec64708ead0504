// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of our memory, for other drivers and for programs (RES-86).
//!
//! A dma-buf owns the object that it was made for. All its pages exist before it does, because its
//! operations may fail for want of memory only. The makers of dma-bufs of one object keep
//! [`Slots`]. These remember the live dma-bufs without keeping them, so there is at most one for
//! writing and one for reading only.

use super::{
    pages::{
        PageSource,
        Whole, //
    },
    shown, //
};
use crate::compat::{
    self,
    dma, //
};
use crate::sys::alloc::pin_arc;
use crate::sys::{
    ffi,
    file::object_file::NotOurs, //
};
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    error::{
        code,
        from_err_ptr, //
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
    }, //
};

/// What a dma-buf can be made of.
pub(crate) trait Buffer: Send + Sync + Sized + 'static {
    /// The memory, always the same.
    fn pages(&self) -> &Whole;
}

/// The live dma-bufs of one object: for reading only, and for writing.
#[pin_data]
pub(crate) struct Slots {
    /// LOCK: leaf. INVARIANT: the dma-buf of an entry has not been freed, because its release
    /// removes the entry before.
    #[pin]
    live: Mutex<[Option<Live>; 2]>,
}

/// A dma-buf that may be about to end: how to find it without keeping it.
struct Live {
    /// Which dma-buf it is. Only compared.
    buf: NonNull<bindings::dma_buf>,
    /// Its file. Its memory may be freed or belong to another file, because other references may
    /// keep a dma-buf whose file was closed for the last time.
    file: *mut bindings::file,
    /// The file's inode, referenced. No other file ever has it.
    inode: NonNull<bindings::inode>,
}

// SAFETY: Files and inodes may be used by any thread; see the functions for what keeps them.
unsafe impl Send for Live {}

impl Live {
    /// How to find a dma-buf again. The caller holds its file.
    fn new(buf: NonNull<bindings::dma_buf>, file: &File) -> Result<Self> {
        let file = file.as_ptr();
        // SAFETY: The file is open, and its inode never changes.
        let inode = NonNull::new(unsafe { (*file).f_inode }).ok_or(EINVAL)?;

        // SAFETY: An open file has a reference to its inode.
        unsafe { bindings::ihold(inode.as_ptr()) };
        Ok(Self { buf, file, inode })
    }

    /// The file, unless it was closed for the last time.
    fn upgrade(&mut self) -> Option<ARef<File>> {
        // SAFETY: The helper expects what it finds to be anything or nothing. The inode is
        // referenced, so that a file that has it is the one it was.
        let file = unsafe { ffi::dxg_file_try_get(&mut self.file, self.inode.as_ptr()) };

        // SAFETY: We own a reference, and dma-bufs have no position that is shared.
        Some(unsafe { ARef::from_raw(NonNull::new(file)?.cast()) })
    }
}

impl Drop for Live {
    /// Context: may sleep.
    fn drop(&mut self) {
        // SAFETY: We own the reference and give it back once.
        unsafe { bindings::iput(self.inode.as_ptr()) }
    }
}

impl Slots {
    /// Without dma-bufs.
    pub(crate) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                live <- new_mutex!([None, None], "Slots::live"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether there is a dma-buf.
    pub(crate) fn any(&self) -> bool {
        self.live.lock().iter().any(Option::is_some)
    }

    /// The file of the live dma-buf, or of a new one that owns the result of `make`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn export<T: Buffer, E>(
        self: &Arc<Self>,
        write: bool,
        make: impl FnOnce() -> Result<T, E>,
        refused: impl FnOnce(Error) -> E,
    ) -> Result<ARef<File>, E> {
        let which = usize::from(write);

        if let Some(file) = Self::upgrade(&mut self.live.lock()[which]) {
            return Ok(file);
        }

        let (file, fresh) = Table::export(make()?, self.clone(), write).map_err(refused)?;
        let mut live = self.live.lock();

        // Another thread may have been faster; ours is dropped with no lock held.
        if let Some(other) = Self::upgrade(&mut live[which]) {
            drop(live);
            return Ok(other);
        }

        let dead = live[which].replace(fresh);

        drop(live);
        drop(dead);
        Ok(file)
    }

    fn upgrade(entry: &mut Option<Live>) -> Option<ARef<File>> {
        entry.as_mut().and_then(Live::upgrade)
    }

    fn remove(&self, dead: NonNull<bindings::dma_buf>) {
        let mut live = self.live.lock();
        let entry = live
            .iter_mut()
            .find(|entry| entry.as_ref().is_some_and(|live| live.buf == dead))
            .and_then(Option::take);

        drop(live);
        drop(entry);
    }
}

/// A mapping of a dma-buf in a device.
struct DeviceMapping {
    device: *mut bindings::device,
    table: *mut bindings::sg_table,
    direction: dma::Direction,
}

// SAFETY: The device is attached and the table lives until the mapping is removed from the list.
unsafe impl Send for DeviceMapping {}

/// What a dma-buf of ours owns.
#[pin_data]
struct Private<T> {
    /// LOCK: leaf, inside the reservation lock of the dma-buf.
    #[pin]
    mappings: Mutex<KVec<DeviceMapping>>,
    write: bool,
    slots: Arc<Slots>,
    object: T,
}

impl<T: Buffer> Private<T> {
    /// Passes the ownership of the mapped pages between processors and the device.
    fn sync(&self, for_device: bool) {
        for mapping in self.mappings.lock().iter() {
            // SAFETY: See `DeviceMapping`.
            unsafe {
                ffi::dxg_sg_sync(mapping.device, mapping.table, mapping.direction, for_device)
            };
        }
    }
}

/// The operations of dma-bufs of kind `T`, whose private data is a `Pin<KBox<Private<T>>>`.
struct Table<T>(PhantomData<T>);

impl<T: Buffer> Table<T> {
    /// Those for reading only. They have no operations for kernel mappings, which are always
    /// writable. An operation that refuses would look like a bug of the exporter.
    const READ_ONLY: bindings::dma_buf_ops = bindings::dma_buf_ops {
        map_dma_buf: Some(Self::map),
        unmap_dma_buf: Some(Self::unmap),
        release: Some(Self::release),
        begin_cpu_access: Some(Self::begin_cpu_access),
        end_cpu_access: Some(Self::end_cpu_access),
        mmap: Some(Self::mmap),
        // SAFETY: All members are nullable functions.
        ..unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    };

    const WRITABLE: bindings::dma_buf_ops = bindings::dma_buf_ops {
        vmap: Some(Self::vmap),
        vunmap: Some(Self::vunmap),
        ..Self::READ_ONLY
    };

    const FAULTS: bindings::vm_operations_struct = bindings::vm_operations_struct {
        fault: Some(Self::fault),
        ..shown::NO_FAULTS
    };

    /// The one address of each table.
    #[inline(never)]
    fn address(write: bool) -> *const bindings::dma_buf_ops {
        if write {
            &Self::WRITABLE
        } else {
            &Self::READ_ONLY
        }
    }

    /// Whether these are operations of such dma-bufs.
    fn is(operations: *const bindings::dma_buf_ops) -> bool {
        [false, true]
            .into_iter()
            .any(|write| operations == Self::address(write))
    }

    fn export(object: T, slots: Arc<Slots>, write: bool) -> Result<(ARef<File>, Live)> {
        let size = object
            .pages()
            .count()
            .checked_mul(PAGE_SIZE)
            .ok_or(ENOMEM)?;
        let private = KBox::pin_init(
            pin_init!(Private {
                mappings <- new_mutex!(KVec::new(), "Private::mappings"),
                write,
                slots,
                object,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let private =
            <Pin<KBox<Private<T>>> as kernel::types::ForeignOwnable>::into_foreign(private);
        let access = if write { O_RDWR } else { O_RDONLY };
        let info = bindings::dma_buf_export_info {
            exp_name: c"opendxg".as_char_ptr(),
            owner: compat::module(),
            ops: Self::address(write),
            size,
            flags: (access | O_CLOEXEC) as c_int,
            resv: ptr::null_mut(),
            priv_: private,
        };
        // SAFETY: The information is complete; table and name live as long as the module, which the
        // dma-buf pins.
        let buf = from_err_ptr(unsafe { bindings::dma_buf_export(&info) });

        match buf.map(NonNull::new) {
            Ok(Some(buf)) => {
                // SAFETY: The new dma-buf holds one file, whose only reference is ours.
                let file = unsafe { NonNull::new_unchecked((*buf.as_ptr()).file) };

                // SAFETY: As above, and dma-bufs have no position that is shared.
                let file: ARef<File> = unsafe { ARef::from_raw(file.cast()) };
                let live = Live::new(buf, &file)?;

                Ok((file, live))
            }
            failed => {
                // SAFETY: No dma-buf took it over.
                drop(unsafe {
                    <Pin<KBox<Private<T>>> as kernel::types::ForeignOwnable>::from_foreign(private)
                });
                failed?;
                Err(ENOMEM)
            }
        }
    }

    /// # Safety
    ///
    /// `buf` must be a dma-buf with this table.
    unsafe fn private<'a>(buf: *mut bindings::dma_buf) -> &'a Private<T> {
        // SAFETY: Such a dma-buf has this private data until it is released.
        unsafe { &*(*buf).priv_.cast::<Private<T>>() }
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::map_dma_buf`.
    unsafe extern "C" fn map(
        attachment: *mut bindings::dma_buf_attachment,
        direction: dma::Direction,
    ) -> *mut bindings::sg_table {
        // SAFETY: The attachment is one of a dma-buf with this table, and is valid for the call.
        let (private, device) = unsafe { (Self::private((*attachment).dmabuf), (*attachment).dev) };

        Self::map_in(private, device, direction).unwrap_or_else(|error| error.to_ptr())
    }

    fn map_in(
        private: &Private<T>,
        device: *mut bindings::device,
        direction: dma::Direction,
    ) -> Result<*mut bindings::sg_table> {
        // A device that may write would bypass the read-only right of the users.
        if !private.write && direction != dma::TO_DEVICE {
            return Err(code::EACCES);
        }

        let (pages, count) = private.object.pages().as_raw();
        // SAFETY: The device is attached, and there are as many pages; they stay in place as long
        // as the dma-buf.
        let table = unsafe { ffi::dxg_sg_map(device, pages, count, direction) };
        let table = from_err_ptr(table)?;
        let mapping = DeviceMapping {
            device,
            table,
            direction,
        };

        if private
            .mappings
            .lock()
            .push(mapping, GFP_KERNEL_ACCOUNT)
            .is_err()
        {
            // SAFETY: Mapped just now, and nobody has seen it.
            unsafe { ffi::dxg_sg_unmap(device, table, direction) };
            return Err(ENOMEM);
        }
        Ok(table)
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::unmap_dma_buf`.
    unsafe extern "C" fn unmap(
        attachment: *mut bindings::dma_buf_attachment,
        table: *mut bindings::sg_table,
        direction: dma::Direction,
    ) {
        // SAFETY: As in `map`.
        let (private, device) = unsafe { (Self::private((*attachment).dmabuf), (*attachment).dev) };

        private
            .mappings
            .lock()
            .retain(|mapping| mapping.table != table);
        // SAFETY: The table came from `map` with the same device and direction.
        unsafe { ffi::dxg_sg_unmap(device, table, direction) };
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::begin_cpu_access`.
    unsafe extern "C" fn begin_cpu_access(
        buf: *mut bindings::dma_buf,
        _direction: dma::Direction,
    ) -> c_int {
        // SAFETY: The dma-buf has this table.
        unsafe { Self::private(buf) }.sync(false);
        0
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::end_cpu_access`.
    unsafe extern "C" fn end_cpu_access(
        buf: *mut bindings::dma_buf,
        _direction: dma::Direction,
    ) -> c_int {
        // SAFETY: The dma-buf has this table.
        unsafe { Self::private(buf) }.sync(true);
        0
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::mmap`.
    unsafe extern "C" fn mmap(
        buf: *mut bindings::dma_buf,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: The dma-buf has this table.
        let private = unsafe { Self::private(buf) };
        let count = private.object.pages().count();

        // SAFETY: The VMA is being set up for the duration of the call, and holds the dma-buf.
        unsafe {
            ffi::dxg_show_pages(
                vma,
                count,
                private.write,
                &Self::FAULTS,
                ptr::from_ref(private).cast_mut().cast(),
            )
        }
    }

    /// # Safety
    ///
    /// Called by the kernel as `vm_operations_struct::fault` of a mapping that `mmap` made.
    unsafe extern "C" fn fault(vmf: *mut bindings::vm_fault) -> bindings::vm_fault_t {
        // SAFETY: The mapping holds the dma-buf, and so the private data.
        let private = unsafe {
            let vma = (*vmf).__bindgen_anon_1.vma;

            &*(*vma).vm_private_data.cast::<Private<T>>()
        };

        let pages = private.object.pages();

        // SAFETY: The mapping was set up by `mmap`; the dma-buf keeps the pages in place.
        unsafe { shown::show(vmf, pages, pages.count()) }
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::vmap`.
    unsafe extern "C" fn vmap(buf: *mut bindings::dma_buf, map: *mut bindings::iosys_map) -> c_int {
        // SAFETY: The dma-buf has this table.
        let (pages, count) = unsafe { Self::private(buf) }.object.pages().as_raw();
        // SAFETY: There are as many pages; they stay in place as long as the dma-buf.
        let addr = unsafe { ffi::dxg_vmap(pages, count) };

        if addr.is_null() {
            return ENOMEM.to_errno();
        }
        // SAFETY: `map` is valid for the write.
        unsafe {
            (*map).__bindgen_anon_1.vaddr = addr;
            (*map).is_iomem = false;
        }
        0
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::vunmap`.
    unsafe extern "C" fn vunmap(_buf: *mut bindings::dma_buf, map: *mut bindings::iosys_map) {
        // SAFETY: The address came from `vmap`.
        unsafe { ffi::dxg_vunmap((*map).__bindgen_anon_1.vaddr) }
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::release`.
    unsafe extern "C" fn release(buf: *mut bindings::dma_buf) {
        // SAFETY: The dma-buf has this table.
        let private = unsafe { Self::private(buf) };

        if let Some(buf) = NonNull::new(buf) {
            private.slots.remove(buf);
        }
        // SAFETY: The last call for this dma-buf; the pointer came from `into_foreign`.
        drop(unsafe {
            <Pin<KBox<Private<T>>> as kernel::types::ForeignOwnable>::from_foreign((*buf).priv_)
        });
    }
}

/// Calls `look` with the object of a dma-buf of ours behind a descriptor, and whether the dma-buf
/// is for writing.
///
/// Context: a system call.
pub(crate) fn with<T: Buffer, R>(
    fd: u32,
    look: impl FnOnce(&T, bool) -> R,
) -> core::result::Result<R, NotOurs> {
    let fd = c_int::try_from(fd).map_err(|_| NotOurs::Closed)?;
    // SAFETY: Any number may be asked for; the result is an error or owns a reference.
    let buf = match from_err_ptr(unsafe { bindings::dma_buf_get(fd) }) {
        Ok(buf) => buf,
        Err(error) if error == code::EBADF => return Err(NotOurs::Closed),
        Err(_) => return Err(NotOurs::Mismatch),
    };

    // SAFETY: The reference keeps the dma-buf; a table does not change. The private data of a
    // dma-buf with our table is what the table says.
    let result = unsafe {
        if Table::<T>::is((*buf).ops) {
            let private = Table::<T>::private(buf);

            Ok(look(&private.object, private.write))
        } else {
            Err(NotOurs::Mismatch)
        }
    };

    // SAFETY: We own the reference and give it back once.
    unsafe { bindings::dma_buf_put(buf) };
    result
}
