// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of our memory, for other drivers and for programs (RES-86).
//!
//! A dma-buf owns the object that it was made for. All its pages exist before it does, because its
//! operations may fail for want of memory only. While the object has users, its [`Slots`] keep its
//! dma-bufs, so that there is one for writing and one for reading only.
//!
//! A dma-buf is kept by a reference. Its address would not do: the release of a dma-buf comes with
//! the end of its inode, which may be long after its file was closed for the last time and freed.

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
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// What a dma-buf can be made of.
pub(crate) trait Buffer: Send + Sync + Sized + 'static {
    /// The memory, always the same.
    fn pages(&self) -> &Whole;
}

/// The dma-bufs of one object: one for reading only, one for writing.
///
/// They are kept while the object has a [`User`], and dropped with the last one. A dma-buf owns the
/// object and this, so that without users nothing but the dma-buf's own users keeps them all.
#[pin_data]
pub(crate) struct Slots {
    /// Goes from 0 to 1 and back at any time.
    users: Atomic<u32>,
    /// dma-bufs that have not been released yet, kept here or not.
    exports: Atomic<u32>,
    /// LOCK: leaf. No reference is dropped under it.
    #[pin]
    kept: Mutex<Kept>,
}

/// The dma-bufs that are kept.
#[derive(Default)]
struct Kept {
    read_only: Option<ARef<File>>,
    writable: Option<ARef<File>>,
}

impl Kept {
    fn of(&mut self, write: bool) -> &mut Option<ARef<File>> {
        if write {
            &mut self.writable
        } else {
            &mut self.read_only
        }
    }
}

/// Somebody who uses the object other than through a dma-buf.
pub(crate) struct User(Arc<Slots>);

impl Slots {
    /// Without dma-bufs and users.
    pub(crate) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                users: Atomic::new(0),
                exports: Atomic::new(0),
                kept <- new_mutex!(Kept::default(), "Slots::kept"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Adds a user.
    pub(crate) fn user(self: &Arc<Self>) -> User {
        // OVERFLOW: bounded by the handles of all processes.
        self.users.fetch_add(1, Full);
        User(self.clone())
    }

    /// Drops the dma-bufs that nobody has any more; says how many.
    ///
    /// Context: may sleep. Their end comes when the caller returns to user mode.
    pub(crate) fn drop_unused(&self) -> u32 {
        let mut kept = self.kept.lock();
        let mut unused = Kept::default();
        let mut count = 0;

        for write in [false, true] {
            let is_unused = kept.of(write).as_ref().is_some_and(|file| {
                // SAFETY: The file is referenced. Another reference is only made of one that there
                // is, and this one is behind the lock.
                unsafe { ffi::dxg_file_is_alone(file.as_ptr()) }
            });

            if is_unused {
                *unused.of(write) = kept.of(write).take();
                count += 1;
            }
        }
        drop(kept);
        drop(unused);
        count
    }

    /// Whether anybody has a dma-buf.
    ///
    /// Context: as [`Slots::drop_unused`].
    pub(crate) fn is_exported(&self) -> bool {
        self.exports.load(Relaxed) > self.drop_unused()
    }
}

impl User {
    /// The file of the dma-buf, or of a new one that owns the result of `make`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn export<T: Buffer, E>(
        &self,
        write: bool,
        make: impl FnOnce() -> Result<T, E>,
        refused: impl FnOnce(Error) -> E,
    ) -> Result<ARef<File>, E> {
        if let Some(file) = self.0.kept.lock().of(write) {
            return Ok(file.clone());
        }

        let fresh = Table::export(make()?, self.0.clone(), write).map_err(refused)?;

        // Another thread may have been faster; then the fresh one is dropped.
        Ok(self.keep(fresh, write))
    }

    /// Keeps a dma-buf of the object, unless another one is kept already; returns the one that is.
    fn keep(&self, file: ARef<File>, write: bool) -> ARef<File> {
        // The one that is not kept is dropped after the lock.
        let mut kept = self.0.kept.lock();
        let other = kept.of(write).clone();

        if other.is_none() {
            *kept.of(write) = Some(file.clone());
        }
        drop(kept);
        other.unwrap_or(file)
    }
}

impl Drop for User {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Full) != 1 {
            return;
        }

        let mut kept = self.0.kept.lock();
        // There may be another user by now.
        let unused = (self.0.users.load(Relaxed) == 0).then(|| core::mem::take(&mut *kept));

        drop(kept);
        drop(unused);
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

    fn export(object: T, slots: Arc<Slots>, write: bool) -> Result<ARef<File>> {
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
                // SAFETY: The new dma-buf has this table. Nobody else has it, so that it is not
                // released meanwhile.
                unsafe { Self::private(buf.as_ptr()) }
                    .slots
                    .exports
                    .add(1, Relaxed);
                // SAFETY: The new dma-buf holds one file, whose only reference is ours.
                let file = unsafe { NonNull::new_unchecked((*buf.as_ptr()).file) };

                // SAFETY: As above, and dma-bufs have no position that is shared.
                Ok(unsafe { ARef::from_raw(file.cast()) })
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
        unsafe { Self::private(buf) }
            .slots
            .exports
            .fetch_sub(1, Relaxed);
        // SAFETY: The last call for this dma-buf; the pointer came from `into_foreign`.
        drop(unsafe {
            <Pin<KBox<Private<T>>> as kernel::types::ForeignOwnable>::from_foreign((*buf).priv_)
        });
    }
}

/// Calls `look` with the object of a dma-buf of ours behind a descriptor, and whether the dma-buf
/// is for writing. If `look` gives a user of the object, the dma-buf is kept for it.
///
/// Context: a system call.
pub(crate) fn with<T: Buffer, R>(
    fd: u32,
    look: impl FnOnce(&T, bool) -> (R, Option<User>),
) -> core::result::Result<(R, Option<User>), NotOurs> {
    let fd = c_int::try_from(fd).map_err(|_| NotOurs::Closed)?;
    // SAFETY: Any number may be asked for; the result is an error or owns a reference.
    let buf = match from_err_ptr(unsafe { bindings::dma_buf_get(fd) }) {
        Ok(buf) => buf,
        Err(error) if error == code::EBADF => return Err(NotOurs::Closed),
        Err(_) => return Err(NotOurs::Mismatch),
    };
    // SAFETY: The reference is one to the file of the dma-buf, and we own it.
    let file = unsafe {
        let file = NonNull::new((*buf).file).ok_or(NotOurs::Mismatch)?;

        ARef::<File>::from_raw(file.cast())
    };

    // SAFETY: The reference keeps the dma-buf; a table does not change. The private data of a
    // dma-buf with our table is what the table says.
    let (object, write) = unsafe {
        if !Table::<T>::is((*buf).ops) {
            return Err(NotOurs::Mismatch);
        }

        let private = Table::<T>::private(buf);

        (&private.object, private.write)
    };
    let (result, user) = look(object, write);

    if let Some(user) = &user {
        drop(user.keep(file, write));
    }
    Ok((result, user))
}
