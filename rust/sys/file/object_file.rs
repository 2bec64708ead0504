// SPDX-License-Identifier: GPL-2.0

//! Anonymous-inode files that stand for one of our objects: NT handles, fence points, fence
//! streams, weak references and watches.
//!
//! The operations table of a file says that it is ours and of which kind. Descriptors are looked up
//! and made inside system calls only, and installed last.

use crate::compat;
use crate::sys::{
    ffi,
    wait_queue::WaitQueue, //
};
use core::marker::PhantomData;
use kernel::{
    bindings,
    error::{
        code,
        from_err_ptr, //
    },
    ffi::{
        c_int,
        c_uint, //
    },
    fs::{
        file::{
            flags::{
                O_CLOEXEC,
                O_RDONLY, //
            },
            FileDescriptorReservation, //
        },
        File,
        LocalFile, //
    },
    iov::IovIterDest,
    prelude::*,
    seq_file::SeqFile,
    str::CString,
    sync::{
        aref::ARef,
        Arc,
        ArcBorrow, //
    },
    types::ForeignOwnable, //
};

/// `poll` events, as numbered for user space.
pub(crate) mod events {
    /// Data to read: the condition holds.
    pub(crate) const IN: u32 = 0x0001 | 0x0040;
    /// It could not be found out, for want of memory.
    pub(crate) const ERROR: u32 = 0x0008;
    /// The other side is gone: the condition can never hold.
    pub(crate) const HANG_UP: u32 = 0x0010;
}

/// An object that can be behind a descriptor.
pub(crate) trait ObjectFile: Send + Sync + Sized + 'static {
    /// Whether values can be read from it.
    const READS: bool = false;
    /// Whether lines of text can be.
    const READS_LINES: bool = false;

    /// What `/proc/PID/fd` shows.
    fn name(&self) -> &'static CStr;

    /// Prints into `/proc/PID/fdinfo/FD`.
    fn show(&self, m: &SeqFile);

    /// The queue of pollers, for files that can have events. It must live in `self`.
    fn pollers(&self) -> Option<&WaitQueue> {
        None
    }

    /// Events that are true now; see [`events`].
    fn events(&self) -> u32 {
        0
    }

    /// What a poll reports, by one who has joined the pollers before.
    ///
    /// Context: may sleep, no locks held.
    fn poll(this: ArcBorrow<'_, Self>) -> u32 {
        this.events()
    }

    /// The next value; `None` if there is none and never will be. EAGAIN if there is none now and
    /// the caller may not wait for it, ERESTARTSYS if a signal ended the wait.
    ///
    /// Context: a system call, or a worker of io_uring.
    fn read(_this: ArcBorrow<'_, Self>, _may_wait: bool) -> Result<Option<u64>> {
        Err(EINVAL)
    }

    /// Takes the next line of text; `None` if there is none now. EINVAL if it has more bytes than
    /// `room`.
    ///
    /// Context: may sleep, no locks held.
    fn take_line(&self, _room: usize) -> Result<Option<CString>> {
        Err(EINVAL)
    }

    /// What was read did not reach the reader.
    fn unread(&self) {}

    /// Serves an ioctl on the descriptor; -ENOTTY if this kind of file does not have it.
    ///
    /// Context: a system call of any process that has the descriptor.
    fn ioctl(&self, _cmd: u32, _arg: u64) -> isize {
        // CAST: an errno is a small number.
        code::ENOTTY.to_errno() as isize
    }

    /// The last reference to the file is gone. Other references to the object may exist.
    fn release(&self) {}
}

/// Why a descriptor does not give an object.
pub(crate) enum NotOurs {
    /// Not open.
    Closed,
    /// Open, but of another kind.
    Mismatch,
}

/// A table without operations.
pub(in crate::sys) const EMPTY: bindings::file_operations =
    // SAFETY: All members are integers, nullable pointers and optional functions.
    unsafe { core::mem::MaybeUninit::zeroed().assume_init() };

/// A table in static memory.
pub(in crate::sys) struct Operations(pub(in crate::sys) bindings::file_operations);

// SAFETY: Nobody writes the table; its owner pointer is only handed to the kernel.
unsafe impl Sync for Operations {}

/// Makes an anonymous file with these operations, whose private data is `object`.
///
/// # Safety
///
/// The table's `release` takes back the reference in the private data, and its other functions take
/// the private data for a `P`.
pub(in crate::sys) unsafe fn anonymous_file<P: ForeignOwnable>(
    name: &'static CStr,
    operations: *const bindings::file_operations,
    object: P,
) -> Result<ARef<File>> {
    let private = object.into_foreign();
    // SAFETY: The table and the name live as long as the module, which the file pins; the file
    // takes over the reference in `private`, unless making it fails.
    let file = from_err_ptr(unsafe {
        ffi::dxg_anon_file(
            name.as_char_ptr(),
            operations,
            private,
            (O_RDONLY | O_CLOEXEC) as c_int,
        )
    });

    match file.map(core::ptr::NonNull::new) {
        // SAFETY: We own the only reference to a new file that nobody can seek.
        Ok(Some(file)) => Ok(unsafe { ARef::from_raw(file.cast()) }),
        failed => {
            // SAFETY: No file took the reference over.
            drop(unsafe { P::from_foreign(private) });
            failed?;
            Err(ENOMEM)
        }
    }
}

/// The operations of files of kind `T`.
struct Table<T>(PhantomData<T>);

impl<T: ObjectFile> Table<T> {
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        owner: compat::module(),
        read_iter: if T::READS {
            Some(Self::read_iter)
        } else if T::READS_LINES {
            Some(Self::read_lines)
        } else {
            None
        },
        poll: Some(Self::poll),
        unlocked_ioctl: Some(Self::ioctl),
        compat_ioctl: Some(Self::ioctl),
        release: Some(Self::release),
        show_fdinfo: Some(Self::show_fdinfo),
        ..EMPTY
    };

    /// The one address of the table.
    #[inline(never)]
    fn address() -> *const bindings::file_operations {
        &Self::OPERATIONS
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::poll`.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: The file is open and holds an `Arc<T>` as private data; nobody uses its
        // position.
        let (object, file) = unsafe {
            (
                Arc::<T>::borrow((*file).private_data),
                File::from_raw_file(file),
            )
        };

        if let Some(pollers) = object.pollers() {
            // SAFETY: `table` is NULL or valid during the call, and the queue lives in the object
            // that the file holds.
            unsafe { pollers.register(file, table) };
        }
        T::poll(object)
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::read_iter`.
    unsafe extern "C" fn read_iter(
        iocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: Both are valid for the call. The file is open and holds an `Arc<T>`.
        let (object, to, may_wait) = unsafe {
            (
                Arc::<T>::borrow((*(*iocb).ki_filp).private_data),
                IovIterDest::from_raw(iter),
                ffi::dxg_read_may_wait(iocb),
            )
        };

        if to.len() < size_of::<u64>() {
            // CAST: an errno is a small number.
            return EINVAL.to_errno() as isize;
        }
        match T::read(object, may_wait) {
            Ok(None) => 0,
            Ok(Some(value)) => {
                let bytes = value.to_ne_bytes();

                if to.copy_to_iter(&bytes) == bytes.len() {
                    // CAST: eight.
                    return bytes.len() as isize;
                }
                object.unread();
                // CAST: an errno is a small number.
                EFAULT.to_errno() as isize
            }
            // CAST: an errno is a small number.
            Err(error) => error.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::read_iter`.
    unsafe extern "C" fn read_lines(
        iocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: Both are valid for the call. The file is open and holds an `Arc<T>`.
        let (object, to) = unsafe {
            (
                Arc::<T>::borrow((*(*iocb).ki_filp).private_data),
                IovIterDest::from_raw(iter),
            )
        };
        let mut done = 0;
        let failed = loop {
            match object.take_line(to.len()) {
                Ok(None) => break None,
                Err(error) => break Some(error),
                Ok(Some(line)) => {
                    let bytes = line.to_bytes();

                    if to.copy_to_iter(bytes) != bytes.len() {
                        object.unread();
                        break Some(EFAULT);
                    }
                    done += bytes.len();
                }
            }
        };

        match failed {
            // CAST: an errno is a small number.
            Some(error) if done == 0 => error.to_errno() as isize,
            // CAST: a read has at most `isize::MAX` bytes.
            _ => done as isize,
        }
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::unlocked_ioctl` or `compat_ioctl`: our structs
    /// have the same layout for all callers.
    unsafe extern "C" fn ioctl(
        file: *mut bindings::file,
        cmd: c_uint,
        arg: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_long {
        // SAFETY: The file is open and holds an `Arc<T>` as private data.
        let object = unsafe { Arc::<T>::borrow((*file).private_data) };

        // CAST: an unsigned long has at most 64 bits.
        object.ioctl(cmd, arg as u64)
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::release`.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: The last call for this file; the pointer came from `into_foreign`.
        let object = unsafe { Arc::<T>::from_foreign((*file).private_data) };

        object.release();
        0
    }

    /// # Safety
    ///
    /// Called by the kernel as `file_operations::show_fdinfo`.
    unsafe extern "C" fn show_fdinfo(m: *mut bindings::seq_file, file: *mut bindings::file) {
        // SAFETY: Both are valid for the call, and the file holds an `Arc<T>`.
        let (object, m) = unsafe { (Arc::<T>::borrow((*file).private_data), SeqFile::from_raw(m)) };

        object.show(m);
    }
}

/// No number is free for a descriptor, or there is no memory for it: EMFILE, ENFILE or ENOMEM.
pub(crate) struct NoDescriptor;

/// A file and the number it will get. Dropped without a trace unless installed.
pub(crate) struct PendingFd {
    reservation: FileDescriptorReservation,
    file: ARef<File>,
}

impl PendingFd {
    /// Makes a file for `object` and reserves a number for it that is neither 0 nor above `limit`.
    ///
    /// On failure the object is released like a closed file. Context: a system call.
    pub(crate) fn new<T: ObjectFile>(
        object: Arc<T>,
        limit: u32,
        cloexec: bool,
    ) -> Result<Self, NoDescriptor> {
        let reservation = Self::reserve(limit, cloexec).inspect_err(|_| object.release())?;
        // SAFETY: `Table<T>` takes the private data for an `Arc<T>` and takes it back.
        let file = unsafe { anonymous_file(object.name(), Table::<T>::address(), object.clone()) }
            .map_err(|_| NoDescriptor)
            .inspect_err(|_| object.release())?;

        Ok(Self { reservation, file })
    }

    /// Reserves a number for a file that exists already.
    ///
    /// Context: a system call.
    pub(crate) fn of_file(
        file: ARef<File>,
        limit: u32,
        cloexec: bool,
    ) -> Result<Self, NoDescriptor> {
        let reservation = Self::reserve(limit, cloexec)?;

        Ok(Self { reservation, file })
    }

    fn reserve(limit: u32, cloexec: bool) -> Result<FileDescriptorReservation, NoDescriptor> {
        let flags = if cloexec { O_CLOEXEC } else { 0 };
        let free =
            || FileDescriptorReservation::get_unused_fd_flags(flags).map_err(|_| NoDescriptor);
        let mut reservation = free()?;

        if reservation.reserved_fd() == 0 {
            // 0 means "none" in a handle slot: take the next number, then release 0 (RES-13).
            reservation = free()?;
        }
        if reservation.reserved_fd() > limit {
            return Err(NoDescriptor);
        }
        Ok(reservation)
    }

    /// The number.
    pub(crate) fn fd(&self) -> u32 {
        self.reservation.reserved_fd()
    }

    /// Makes the descriptor usable. Nothing can fail after this.
    pub(crate) fn commit(self) {
        self.reservation.fd_install(self.file)
    }
}

/// Whether a descriptor of the caller is open, of whatever kind. Context: a system call.
pub(crate) fn is_open(fd: u32) -> bool {
    LocalFile::fget(fd).is_ok()
}

/// The object behind a descriptor of the caller. Context: a system call.
pub(crate) fn get<T: ObjectFile>(fd: u32) -> core::result::Result<Arc<T>, NotOurs> {
    let file = LocalFile::fget(fd).map_err(|_| NotOurs::Closed)?;

    // SAFETY: `f_op` does not change while the file is open.
    if unsafe { (*file.as_ptr()).f_op } != Table::<T>::address() {
        return Err(NotOurs::Mismatch);
    }

    // SAFETY: Files with this table hold an `Arc<T>` as private data until they are released.
    Ok(unsafe { Arc::<T>::borrow((*file.as_ptr()).private_data) }.into())
}
