// SPDX-License-Identifier: GPL-2.0

//! How a call ends: an NTSTATUS, and how that travels.
//!
//! Handlers produce one NTSTATUS. An exact ioctl returns it unchanged; a plain one maps it to an
//! errno that existing clients map back (abi.md section 3).

use crate::{
    ddi::types::KmdError,
    logic::Invalid,
    sys::{
        file::{
            attach::NotAttachable,
            eventfd::BadEvent,
            object_file::{
                NoDescriptor,
                NotOurs, //
            }, //
        },
        user::{
            Fault,
            ReadError, //
        }, //
    },
    uapi, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    error::code,
    prelude::*, //
};

/// An NTSTATUS value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(i32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:ident;)*) => {
        impl Status {
            $($(#[$doc])* pub(crate) const $name: Self = Self(uapi::$value);)*
        }

        // C libraries take such results of a system call for an errno. CAST: 4095.
        $(const _: () = assert!(
            uapi::$value >= 0 || uapi::$value < -(bindings::MAX_ERRNO as i32)
        );)*
    };
}

statuses! {
    /// It is done.
    SUCCESS = STATUS_SUCCESS;
    /// It is under way, and a fence says when it is done. Success class.
    PENDING = STATUS_PENDING;
    /// The owner of a keyed mutex went without releasing it. Success class.
    ABANDONED = STATUS_ABANDONED;
    /// The time-out of a wait has passed. Success class.
    TIMEOUT = STATUS_TIMEOUT;
    /// A value, flag, count, handle or combination that the call does not accept.
    INVALID_PARAMETER = STATUS_INVALID_PARAMETER;
    /// An NT handle or event that is not open, or a wait that can no longer end.
    INVALID_HANDLE = STATUS_INVALID_HANDLE;
    /// An NT handle or event of another kind.
    OBJECT_TYPE_MISMATCH = STATUS_OBJECT_TYPE_MISMATCH;
    /// The handle lacks the right.
    ACCESS_DENIED = STATUS_ACCESS_DENIED;
    /// User memory could not be read or written.
    ACCESS_VIOLATION = STATUS_ACCESS_VIOLATION;
    /// Out of memory, or over a limit.
    NO_MEMORY = STATUS_NO_MEMORY;
    /// The buffer or array is too small.
    BUFFER_TOO_SMALL = STATUS_BUFFER_TOO_SMALL;
    /// The adapter was stopped.
    DEVICE_REMOVED = STATUS_DEVICE_REMOVED;
    /// Commands name memory by physical address that is not accessed so. Clients of the plain
    /// ioctls get an errno that they map to INVALID_PARAMETER.
    GRAPHICS_INVALID_ALLOCATION_USAGE = STATUS_GRAPHICS_INVALID_ALLOCATION_USAGE;
    /// Not offered by this adapter.
    NOT_SUPPORTED = STATUS_NOT_SUPPORTED;
    /// The name led to an object that existed already.
    OBJECT_NAME_EXISTS = STATUS_OBJECT_NAME_EXISTS;
    /// An address is not a multiple of what it has to be one of.
    DATATYPE_MISALIGNMENT = STATUS_DATATYPE_MISALIGNMENT;
    /// The name is malformed.
    OBJECT_NAME_INVALID = STATUS_OBJECT_NAME_INVALID;
    /// Nothing has this name.
    OBJECT_NAME_NOT_FOUND = STATUS_OBJECT_NAME_NOT_FOUND;
    /// Something has this name, or this key and schema, already.
    OBJECT_NAME_COLLISION = STATUS_OBJECT_NAME_COLLISION;
    /// A directory of the path does not exist.
    OBJECT_PATH_NOT_FOUND = STATUS_OBJECT_PATH_NOT_FOUND;
    /// The path does not start at the root.
    OBJECT_PATH_SYNTAX_BAD = STATUS_OBJECT_PATH_SYNTAX_BAD;
    /// Over a limit of the user or the object, in calls that D3DKMT does not have.
    QUOTA_EXCEEDED = STATUS_QUOTA_EXCEEDED;
    /// A security descriptor of another revision.
    UNKNOWN_REVISION = STATUS_UNKNOWN_REVISION;
    /// Permanent objects do not exist.
    PRIVILEGE_NOT_HELD = STATUS_PRIVILEGE_NOT_HELD;
    /// The name has too many units.
    NAME_TOO_LONG = STATUS_NAME_TOO_LONG;
    /// Another generation or schema than expected.
    REVISION_MISMATCH = STATUS_REVISION_MISMATCH;
    /// No such entry, or a dead object.
    NOT_FOUND = STATUS_NOT_FOUND;
    /// The kernel refused for a reason that no call is known to give.
    UNSUCCESSFUL = STATUS_UNSUCCESSFUL;
}

impl Status {
    /// The 32 bits.
    pub(crate) fn number(self) -> u32 {
        // CAST: the same bits.
        self.0 as u32
    }

    /// The 32 bits, if the call has failed. The success class also says that something is under way
    /// or that time has passed.
    pub(crate) fn failure(self) -> Option<i32> {
        (self.0 < 0).then_some(self.0)
    }

    /// What an exact ioctl returns: the 32 bits, and zeros above.
    pub(crate) fn exact_result(self) -> isize {
        // CAST: the same bits. Where an isize has 32 of them, the caller gets no more either.
        self.0 as u32 as isize
    }

    /// What a plain ioctl returns: success class as it is, otherwise a negative errno.
    pub(crate) fn ioctl_result(self) -> isize {
        if self.0 >= 0 {
            // CAST: a non-negative 32-bit value.
            return self.0 as isize;
        }

        let error = match self {
            Self::INVALID_HANDLE => code::EBADF,
            Self::OBJECT_TYPE_MISMATCH => Error::from_errno(-EPROTOTYPE),
            Self::ACCESS_DENIED => code::EACCES,
            Self::ACCESS_VIOLATION => code::EFAULT,
            Self::NO_MEMORY => code::ENOMEM,
            Self::BUFFER_TOO_SMALL => code::EOVERFLOW,
            Self::NOT_SUPPORTED => code::EPERM,
            Self::OBJECT_NAME_COLLISION => code::EEXIST,
            Self::DEVICE_REMOVED => code::ENODEV,
            Self::OBJECT_NAME_INVALID | Self::OBJECT_NAME_NOT_FOUND => code::ENOENT,
            _ => code::EINVAL,
        };

        // CAST: an errno is a small number.
        error.to_errno() as isize
    }
}

/// Protocol wrong type for socket: the errno that carries OBJECT_TYPE_MISMATCH.
const EPROTOTYPE: i32 = 91;

/// Why a handler stopped.
#[derive(Clone, Copy)]
pub(crate) enum DxgError {
    /// Refused or failed, with this status.
    Status(Status),
    /// A signal interrupted a wait; nothing was consumed and the system call may start over.
    Interrupted,
}

impl DxgError {
    /// The status of a failure, see [`Status::failure`].
    pub(crate) fn failure(self) -> Option<i32> {
        match self {
            Self::Status(status) => status.failure(),
            Self::Interrupted => None,
        }
    }

    /// Whether it is this status.
    pub(crate) fn is(self, status: Status) -> bool {
        matches!(self, Self::Status(own) if own == status)
    }

    /// What an errno of a kernel function means to the caller, where the place does not know
    /// better.
    ///
    /// These are the errnos that can occur. A new call of a kernel function must check which ones
    /// it adds. Any other is UNSUCCESSFUL, so that it is noticed instead of being taken for
    /// something else.
    ///
    /// | errno | who says so |
    /// |---|---|
    /// | ENOMEM | any of them |
    /// | EAGAIN | a mapping over RLIMIT_MEMLOCK after mlockall(MCL_FUTURE) |
    /// | EMFILE, ENFILE | a file without a descriptor yet |
    /// | ENOSPC | a page of a memory file whose file system is full |
    /// | EDQUOT | a page over a limit of the user |
    /// | EINTR, ERESTARTSYS | a wait for a lock of the address space, for a page or for devices |
    /// | EFAULT | a copy from or to the caller |
    /// | EACCES, EPERM | a security module, and seals |
    /// | EINVAL | a file that is shorter by now than it was |
    /// | ESRCH | what needs a thread or memory of the caller, in a task that is on its way out |
    /// | ENODEV | a device that is gone |
    /// | EOPNOTSUPP | memory without a `struct page`, where the kernel needs one |
    ///
    /// A descriptor that cannot be had is an error of its own, [`NoDescriptor`]: EMFILE, ENFILE and
    /// ENOMEM, all of them NO_MEMORY.
    pub(crate) fn from_errno(error: Error) -> Self {
        // CAST: errnos are small numbers.
        Self::Status(match error.to_errno().unsigned_abs() {
            bindings::EINTR | bindings::ERESTARTSYS => return Self::Interrupted,
            bindings::ENOMEM
            | bindings::EAGAIN
            | bindings::EMFILE
            | bindings::ENFILE
            | bindings::ENOSPC
            | bindings::EDQUOT => Status::NO_MEMORY,
            bindings::EFAULT => Status::ACCESS_VIOLATION,
            bindings::EACCES | bindings::EPERM => Status::ACCESS_DENIED,
            bindings::EINVAL | bindings::ESRCH => Status::INVALID_PARAMETER,
            bindings::ENODEV => Status::DEVICE_REMOVED,
            bindings::EOPNOTSUPP => Status::NOT_SUPPORTED,
            _ => Status::UNSUCCESSFUL,
        })
    }
}

impl From<Status> for DxgError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<AllocError> for DxgError {
    fn from(_: AllocError) -> Self {
        Self::Status(Status::NO_MEMORY)
    }
}

impl From<NoDescriptor> for DxgError {
    fn from(_: NoDescriptor) -> Self {
        Self::Status(Status::NO_MEMORY)
    }
}

/// Each error of a KMD is one status.
impl From<KmdError> for DxgError {
    fn from(error: KmdError) -> Self {
        Self::Status(match error {
            KmdError::NoMemory => Status::NO_MEMORY,
            KmdError::InvalidParameter => Status::INVALID_PARAMETER,
            KmdError::NotSupported => Status::NOT_SUPPORTED,
            KmdError::DeviceRemoved => Status::DEVICE_REMOVED,
            KmdError::AccessDenied => Status::ACCESS_DENIED,
            KmdError::InvalidHandle => Status::INVALID_HANDLE,
        })
    }
}

/// The same errors where an adapter starts, which is not a D3DKMT call.
impl From<KmdError> for Error {
    fn from(error: KmdError) -> Self {
        match error {
            KmdError::NoMemory => ENOMEM,
            KmdError::InvalidParameter => EINVAL,
            // CAST: errnos are small numbers.
            KmdError::NotSupported => Self::from_errno(-(bindings::EOPNOTSUPP as i32)),
            KmdError::DeviceRemoved => ENODEV,
            KmdError::AccessDenied => EPERM,
            KmdError::InvalidHandle => ENOENT,
        }
    }
}

impl From<NotOurs> for DxgError {
    fn from(reason: NotOurs) -> Self {
        Self::Status(match reason {
            NotOurs::Closed => Status::INVALID_HANDLE,
            NotOurs::Mismatch => Status::OBJECT_TYPE_MISMATCH,
        })
    }
}

impl From<BadEvent> for DxgError {
    fn from(reason: BadEvent) -> Self {
        Self::Status(match reason {
            BadEvent::Closed => Status::INVALID_HANDLE,
            BadEvent::NotAnEvent => Status::OBJECT_TYPE_MISMATCH,
        })
    }
}

impl From<NotAttachable> for DxgError {
    fn from(reason: NotAttachable) -> Self {
        Self::Status(match reason {
            NotAttachable::Closed => Status::INVALID_HANDLE,
            NotAttachable::Kind => Status::OBJECT_TYPE_MISMATCH,
            NotAttachable::NoMemory => Status::NO_MEMORY,
        })
    }
}

/// A rule of `logic` that says no more than that.
impl From<Invalid> for DxgError {
    fn from(_: Invalid) -> Self {
        Self::Status(Status::INVALID_PARAMETER)
    }
}

impl From<Fault> for DxgError {
    fn from(_: Fault) -> Self {
        Self::Status(Status::ACCESS_VIOLATION)
    }
}

impl From<ReadError> for DxgError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Fault => Status::ACCESS_VIOLATION.into(),
            ReadError::NoMemory => Status::NO_MEMORY.into(),
        }
    }
}

/// A limit of the user is a shortage to the D3DKMT calls (RES-105).
pub(crate) fn shortage<T>(outcome: DxgResult<T>) -> DxgResult<T> {
    outcome.map_err(|stop| match stop {
        DxgError::Status(Status::QUOTA_EXCEEDED) => Status::NO_MEMORY.into(),
        other => other,
    })
}

/// The result of a handler or of a step of one.
pub(crate) type DxgResult<T = ()> = core::result::Result<T, DxgError>;

/// The table of errnos. Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_error)]
mod tests {
    use super::*;

    fn is(errno: u32, status: Status) -> bool {
        // CAST: errnos are small numbers.
        DxgError::from_errno(Error::from_errno(-(errno as i32))).is(status)
    }

    #[test]
    fn an_errno_keeps_its_meaning() {
        assert!(is(bindings::ENOMEM, Status::NO_MEMORY));
        assert!(is(bindings::EMFILE, Status::NO_MEMORY));
        assert!(is(bindings::EFAULT, Status::ACCESS_VIOLATION));
        assert!(is(bindings::EPERM, Status::ACCESS_DENIED));
        assert!(is(bindings::ESRCH, Status::INVALID_PARAMETER));
        assert!(is(bindings::ENODEV, Status::DEVICE_REMOVED));
        assert!(is(bindings::EOPNOTSUPP, Status::NOT_SUPPORTED));
        assert!(is(bindings::EIO, Status::UNSUCCESSFUL));
    }

    #[test]
    fn a_signal_is_no_failure() {
        for error in [EINTR, ERESTARTSYS] {
            let stop = DxgError::from_errno(error);

            assert!(matches!(stop, DxgError::Interrupted));
        }
    }
}
