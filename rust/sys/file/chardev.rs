// SPDX-License-Identifier: GPL-2.0

//! The device node and its file operations.
//!
//! It is a character device of its own, not a misc device: all misc devices are opened under one
//! lock. Our open may wait for the address space of its caller, and would block every other open.
//! Only a reference to the module is held while `open` runs.
//!
//! The callbacks only turn C arguments into safe ones.

use super::object_file::EMPTY;
use crate::compat;
use crate::sys::{
    ffi,
    params, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        from_err_ptr,
        from_result,
        to_result, //
    },
    ffi::{
        c_int,
        c_long,
        c_uint,
        c_ulong, //
    },
    prelude::*,
    seq_file::SeqFile,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::ForeignOwnable, //
};

/// The kind of file behind a node.
pub(crate) trait OpenDevice: Send + Sync + Sized + 'static {
    /// What all opens share.
    type Shared: Send + Sync + 'static;

    /// A process opens the node.
    fn open(shared: ArcBorrow<'_, Self::Shared>) -> Result<Arc<Self>>;
    /// A descriptor is closed, by `close` or because its table goes.
    fn flush(&self);
    /// The last reference to the open file goes.
    fn release(&self);
    /// An ioctl; `arg` is an address in the caller. The result is that of the system call.
    fn ioctl(&self, cmd: u32, arg: u64) -> isize;
    /// Prints into `/proc/PID/fdinfo/FD`.
    fn show(&self, m: &SeqFile);
}

/// What an open file finds through its operations, which are the first field.
#[repr(C)]
struct Table<T: OpenDevice> {
    operations: bindings::file_operations,
    shared: Arc<T::Shared>,
}

// SAFETY: Nobody writes the operations, whose owner pointer is only handed to the kernel; what is
// shared may be used anywhere.
unsafe impl<T: OpenDevice> Send for Table<T> {}
// SAFETY: As above.
unsafe impl<T: OpenDevice> Sync for Table<T> {}

/// A node in `/dev`, removed when this is dropped.
struct Node(NonNull<bindings::cdev>);

// SAFETY: It is only removed, which any task may do.
unsafe impl Send for Node {}
// SAFETY: There is nothing to call.
unsafe impl Sync for Node {}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: Added when this was made, and removed once.
        unsafe { ffi::dxg_node_remove(self.0.as_ptr()) }
    }
}

/// A registered node whose files are `T`. Dropping it removes the node; open files keep the module
/// loaded.
pub(crate) struct Registration<T: OpenDevice> {
    _node: Node,
    /// Goes after the node. INVARIANT: open files and those that are being opened, which keep the
    /// module and so this, use the table in its place.
    _table: KBox<Table<T>>,
}

impl<T: OpenDevice> Registration<T> {
    /// Makes `/dev/<name>`.
    pub(crate) fn new(name: &CStr, shared: Arc<T::Shared>) -> Result<Self> {
        let table = KBox::new(
            Table::<T> {
                operations: Table::<T>::OPERATIONS,
                shared,
            },
            GFP_KERNEL,
        )?;
        let operations = (&raw const *table).cast::<bindings::file_operations>();
        // SAFETY: The name is copied during the call. The table is complete, has a place of its
        // own on the heap, and stays longer than the node.
        let node = from_err_ptr(unsafe {
            ffi::dxg_node_add(name.as_char_ptr(), params::mode(), operations)
        })?;

        Ok(Self {
            _node: Node(NonNull::new(node).ok_or(ENOMEM)?),
            _table: table,
        })
    }
}

/// The operations of the files. They are not mapped: values have a file of their own (`mapping`).
impl<T: OpenDevice> Table<T> {
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        owner: compat::module(),
        open: Some(Self::open),
        flush: Some(Self::flush),
        release: Some(Self::release),
        unlocked_ioctl: Some(Self::ioctl),
        compat_ioctl: Some(Self::compat_ioctl),
        show_fdinfo: Some(Self::show_fdinfo),
        poll: Some(poll),
        llseek: Some(bindings::noop_llseek),
        ..EMPTY
    };

    /// # Safety
    ///
    /// `file` is a file of our device whose `open` has succeeded, and not released yet.
    unsafe fn private<'a>(file: *mut bindings::file) -> ArcBorrow<'a, T> {
        // SAFETY: `open` stored an `Arc` there, and `release` takes it back last.
        unsafe { Arc::<T>::borrow((*file).private_data) }
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::open`.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        from_result(|| {
            // SAFETY: Both are valid for the call.
            to_result(unsafe { bindings::generic_file_open(inode, file) })?;

            // SAFETY: The operations of a file of this module are the first field of a table,
            // which stays as long as the file keeps the module.
            let shared = unsafe { &(*(*file).f_op.cast::<Self>()).shared };
            let opened = T::open(shared.as_arc_borrow())?;

            // SAFETY: An open in progress owns its file's private data.
            unsafe { (*file).private_data = opened.into_foreign() };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::flush`.
    unsafe extern "C" fn flush(file: *mut bindings::file, _id: bindings::fl_owner_t) -> c_int {
        // SAFETY: The kernel flushes open files only.
        unsafe { Self::private(file) }.flush();
        0
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::release`.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: This is the last call for this file; the pointer came from `open`.
        let opened = unsafe { Arc::<T>::from_foreign((*file).private_data) };

        opened.release();
        0
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::unlocked_ioctl`.
    unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
        // SAFETY: The file is open for the duration of the call.
        let opened = unsafe { Self::private(file) };

        // CAST: an unsigned long has at most 64 bits.
        opened.ioctl(cmd, arg as u64)
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::compat_ioctl`.
    unsafe extern "C" fn compat_ioctl(
        file: *mut bindings::file,
        cmd: c_uint,
        arg: c_ulong,
    ) -> c_long {
        // 32-bit callers send the same bytes (abi.md section 2.3); only their pointer is narrow.
        // CAST: a pointer of a 32-bit caller has 32 bits.
        let arg = arg as u32;

        // SAFETY: The same promises as for `ioctl`. CAST: u32 fits an unsigned long.
        unsafe { Self::ioctl(file, cmd, arg as c_ulong) }
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::show_fdinfo`.
    unsafe extern "C" fn show_fdinfo(m: *mut bindings::seq_file, file: *mut bindings::file) {
        // SAFETY: Both are valid for the call.
        let (opened, m) = unsafe { (Self::private(file), SeqFile::from_raw(m)) };

        opened.show(m);
    }
}

/// # Safety
///
/// Called by the kernel as `file_operations::poll`.
unsafe extern "C" fn poll(
    _file: *mut bindings::file,
    _table: *mut bindings::poll_table_struct,
) -> bindings::__poll_t {
    // The device itself never has an event; without this it would always be readable.
    0
}
