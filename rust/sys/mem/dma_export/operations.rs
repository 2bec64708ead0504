// SPDX-License-Identifier: GPL-2.0

//! What the kernel calls for dma-bufs of this module.

use super::super::{
    dma_slots::{
        DmaSlots,
        Exported, //
    },
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
use crate::sys::ffi;
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
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
    },
    types::ForeignOwnable, //
};

/// What one dma-buf owns.
pub(crate) trait Buffer: Send + Sync + Sized + 'static {
    /// What it is made of.
    type Object: Exported;

    /// The object, always the same.
    fn object(&self) -> &Arc<Self::Object>;

    /// The memory, always the same.
    fn pages(&self) -> &Whole;
}

/// A mapping of a dma-buf in a device.
struct DeviceMapping {
    device: *mut bindings::device,
    table: *mut bindings::sg_table,
    direction: dma::Direction,
}

// SAFETY: The device is attached and the table lives until the mapping is removed from the list.
unsafe impl Send for DeviceMapping {}

/// The private data of a dma-buf.
#[pin_data]
pub(super) struct Private<T> {
    /// LOCK: leaf, inside the reservation lock of the dma-buf.
    #[pin]
    mappings: Mutex<KVec<DeviceMapping>>,
    /// Whether it is for writing.
    pub(super) write: bool,
    /// What it owns.
    pub(super) buffer: T,
}

impl<T: Buffer> Private<T> {
    fn slots(&self) -> &DmaSlots {
        self.buffer.object().slots()
    }

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
pub(super) struct Table<T>(PhantomData<T>);

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
    pub(super) fn is(operations: *const bindings::dma_buf_ops) -> bool {
        [false, true]
            .into_iter()
            .any(|write| operations == Self::address(write))
    }

    /// The file of a new dma-buf.
    pub(super) fn export(buffer: T, write: bool) -> Result<ARef<File>> {
        let size = buffer
            .pages()
            .count()
            .checked_mul(PAGE_SIZE)
            .ok_or(ENOMEM)?;
        let private = KBox::pin_init(
            pin_init!(Private {
                mappings <- new_mutex!(KVec::new(), "Private::mappings"),
                write,
                buffer,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let private = <Pin<KBox<Private<T>>> as ForeignOwnable>::into_foreign(private);
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
                    .slots()
                    .count_export();
                // SAFETY: The new dma-buf holds one file, whose only reference we own.
                let file = unsafe { NonNull::new_unchecked((*buf.as_ptr()).file) };

                // SAFETY: As above, and dma-bufs have no position that is shared.
                Ok(unsafe { ARef::from_raw(file.cast()) })
            }
            failed => {
                // SAFETY: No dma-buf took it over.
                drop(unsafe { <Pin<KBox<Private<T>>> as ForeignOwnable>::from_foreign(private) });
                failed?;
                Err(ENOMEM)
            }
        }
    }

    /// The private data of a dma-buf.
    ///
    /// # Safety
    ///
    /// `buf` must be a dma-buf with this table.
    pub(super) unsafe fn private<'a>(buf: *mut bindings::dma_buf) -> &'a Private<T> {
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

        let (pages, count) = private.buffer.pages().as_raw();
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
        let count = private.buffer.pages().count();

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

        // SAFETY: The mapping was set up by `mmap`; the dma-buf keeps the pages in place.
        unsafe { shown::show(vmf, private.buffer.pages()) }
    }

    /// # Safety
    ///
    /// Called by the kernel as `dma_buf_ops::vmap`.
    unsafe extern "C" fn vmap(buf: *mut bindings::dma_buf, map: *mut bindings::iosys_map) -> c_int {
        // SAFETY: The dma-buf has this table.
        let (pages, count) = unsafe { Self::private(buf) }.buffer.pages().as_raw();
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
        unsafe { Self::private(buf) }.slots().forget_export();
        // SAFETY: The last call for this dma-buf; the pointer came from `into_foreign`.
        drop(unsafe { <Pin<KBox<Private<T>>> as ForeignOwnable>::from_foreign((*buf).priv_) });
    }
}
