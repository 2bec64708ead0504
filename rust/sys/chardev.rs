// SPDX-License-Identifier: GPL-2.0

//! The device node and its file operations.
//!
//! The kernel crate's misc device leaves `owner` empty in 7.2, so that the module could go while a
//! file is open, and it has neither `flush` nor a file mode. Hence our own table, whose callbacks
//! do nothing but turn C arguments into safe ones.

use super::object_file::{
    Operations,
    EMPTY, //
};
use crate::compat;
use kernel::{
    bindings,
    error::{
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
    types::{
        ForeignOwnable,
        Opaque, //
    }, //
};

/// Everybody may open the node; what they may do is decided per object (abi.md section 1).
const MODE: u16 = 0o666;

/// The one kind of file behind the node; the rest of the module implements it.
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

/// The implementation that [`operations`] serves.
type Implementation = crate::open_file::OpenFile;

/// A registered node. Dropping it removes the node; open files keep the module.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    shared: Arc<<Implementation as OpenDevice>::Shared>,
}

// SAFETY: The misc device is only touched by the misc core, under its lock.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Makes `/dev/<name>`.
    pub(crate) fn new(
        name: &'static CStr,
        shared: Arc<<Implementation as OpenDevice>::Shared>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // Before the node can be opened.
            shared,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                let misc = bindings::miscdevice {
                    minor: bindings::MISC_DYNAMIC_MINOR as c_int,
                    name: name.as_char_ptr(),
                    mode: MODE,
                    fops: &raw const OPERATIONS.0,
                    ..Default::default()
                };

                // SAFETY: `slot` is valid for writes; the registration is pinned and unregisters
                // itself when dropped, so that the structure stays while it is in use.
                unsafe { slot.write(misc) };
                // SAFETY: As above.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
        })
    }
}

#[pinned_drop]
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered in `new`.
        unsafe { bindings::misc_deregister(self.misc.get()) }
    }
}

/// The operations of our device. It is not mapped: values have a file of their own (`mapping`).
static OPERATIONS: Operations = Operations(bindings::file_operations {
    owner: compat::module(),
    open: Some(open),
    flush: Some(flush),
    release: Some(release),
    unlocked_ioctl: Some(ioctl),
    compat_ioctl: Some(compat_ioctl),
    show_fdinfo: Some(show_fdinfo),
    poll: Some(poll),
    llseek: Some(bindings::noop_llseek),
    ..EMPTY
});
/// # Safety
///
/// `file` is a file of our device whose `open` has succeeded, and not released yet.
unsafe fn private<'a>(file: *mut bindings::file) -> ArcBorrow<'a, Implementation> {
    // SAFETY: `open` stored an `Arc` there, and `release` takes it back last.
    unsafe { Arc::<Implementation>::borrow((*file).private_data) }
}

/// # Safety
///
/// Called by the kernel as `file_operations::open`.
unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    from_result(|| {
        // SAFETY: Both are valid for the call.
        to_result(unsafe { bindings::generic_file_open(inode, file) })?;

        // SAFETY: The misc core stored a pointer to our `miscdevice` and holds its lock, so that
        // the registration around it stays.
        let shared = unsafe {
            let misc = (*file).private_data.cast::<bindings::miscdevice>();
            let registration = misc.byte_sub(core::mem::offset_of!(Registration, misc));

            (*registration.cast::<Registration>())
                .shared
                .as_arc_borrow()
        };
        let opened = Implementation::open(shared)?;

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
    unsafe { private(file) }.flush();
    0
}

/// # Safety
///
/// Called by the kernel as `file_operations::release`.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: This is the last call for this file; the pointer came from `open`.
    let opened = unsafe { Arc::<Implementation>::from_foreign((*file).private_data) };

    opened.release();
    0
}

/// # Safety
///
/// Called by the kernel as `file_operations::unlocked_ioctl`.
unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
    // SAFETY: The file is open for the duration of the call.
    let opened = unsafe { private(file) };

    // CAST: an unsigned long has at most 64 bits.
    opened.ioctl(cmd, arg as u64)
}

/// # Safety
///
/// Called by the kernel as `file_operations::compat_ioctl`.
unsafe extern "C" fn compat_ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
    // 32-bit callers send the same bytes (abi.md section 2.3); only their pointer is narrow.
    // CAST: a pointer of a 32-bit caller has 32 bits.
    let arg = arg as u32;

    // SAFETY: The same promises as for `ioctl`. CAST: u32 fits an unsigned long.
    unsafe { ioctl(file, cmd, arg as c_ulong) }
}

/// # Safety
///
/// Called by the kernel as `file_operations::show_fdinfo`.
unsafe extern "C" fn show_fdinfo(m: *mut bindings::seq_file, file: *mut bindings::file) {
    // SAFETY: Both are valid for the call.
    let (opened, m) = unsafe { (private(file), SeqFile::from_raw(m)) };

    opened.show(m);
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
