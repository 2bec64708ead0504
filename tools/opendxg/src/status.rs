// SPDX-License-Identifier: MIT OR Apache-2.0
//! NTSTATUS values: what the driver answers.

use core::fmt;

use rustix::io::Errno;

/// An exact 32-bit NTSTATUS.
///
/// Shown by name where the name is known: `STATUS_INVALID_PARAMETER (0xC000000D)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`STATUS_", stringify!($name), "` (", stringify!($value), ")")]
                pub const $name: Self = Self($value as u32 as i32);
            )*

            /// Every status with a name, in ascending order of its unsigned value.
            pub const NAMED: &'static [(Self, &'static str)] = &[
                $((Self::$name, concat!("STATUS_", stringify!($name))),)*
            ];
        }
    };
}

statuses! {
    SUCCESS = 0x0000_0000;
    ABANDONED = 0x0000_0080;
    TIMEOUT = 0x0000_0102;
    PENDING = 0x0000_0103;
    OBJECT_NAME_EXISTS = 0x4000_0000;
    GRAPHICS_SKIP_ALLOCATION_PREPARATION = 0x401E_0201;
    DATATYPE_MISALIGNMENT = 0x8000_0002;
    UNSUCCESSFUL = 0xC000_0001;
    NOT_IMPLEMENTED = 0xC000_0002;
    ACCESS_VIOLATION = 0xC000_0005;
    INVALID_HANDLE = 0xC000_0008;
    INVALID_PARAMETER = 0xC000_000D;
    NO_MEMORY = 0xC000_0017;
    ILLEGAL_INSTRUCTION = 0xC000_001D;
    ACCESS_DENIED = 0xC000_0022;
    BUFFER_TOO_SMALL = 0xC000_0023;
    OBJECT_TYPE_MISMATCH = 0xC000_0024;
    OBJECT_NAME_INVALID = 0xC000_0033;
    OBJECT_NAME_NOT_FOUND = 0xC000_0034;
    OBJECT_NAME_COLLISION = 0xC000_0035;
    OBJECT_PATH_NOT_FOUND = 0xC000_003A;
    OBJECT_PATH_SYNTAX_BAD = 0xC000_003B;
    QUOTA_EXCEEDED = 0xC000_0044;
    UNKNOWN_REVISION = 0xC000_0058;
    REVISION_MISMATCH = 0xC000_0059;
    PRIVILEGE_NOT_HELD = 0xC000_0061;
    PROCEDURE_NOT_FOUND = 0xC000_007A;
    INSUFFICIENT_RESOURCES = 0xC000_009A;
    NOT_SUPPORTED = 0xC000_00BB;
    INTERNAL_ERROR = 0xC000_00E5;
    NAME_TOO_LONG = 0xC000_0106;
    CANCELLED = 0xC000_0120;
    NOT_FOUND = 0xC000_0225;
    DEVICE_REMOVED = 0xC000_02B6;
    ALREADY_INITIALIZED = 0xC000_0510;
    GRAPHICS_NOT_EXCLUSIVE_MODE_OWNER = 0xC01E_0000;
    GRAPHICS_PRESENT_OCCLUDED = 0xC01E_0006;
    GRAPHICS_PRESENT_UNOCCLUDED = 0xC01E_000C;
    GRAPHICS_NO_VIDEO_MEMORY = 0xC01E_0100;
    GRAPHICS_CANT_LOCK_MEMORY = 0xC01E_0101;
    GRAPHICS_ALLOCATION_BUSY = 0xC01E_0102;
    GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED = 0xC01E_0108;
    GRAPHICS_INVALID_ALLOCATION_USAGE = 0xC01E_0110;
    GRAPHICS_ALLOCATION_CLOSED = 0xC01E_0112;
    GRAPHICS_INVALID_ALLOCATION_INSTANCE = 0xC01E_0113;
    GRAPHICS_INVALID_ALLOCATION_HANDLE = 0xC01E_0114;
    GRAPHICS_WRONG_ALLOCATION_DEVICE = 0xC01E_0115;
    GRAPHICS_ALLOCATION_CONTENT_LOST = 0xC01E_0116;
    GRAPHICS_GPU_EXCEPTION_ON_DEVICE = 0xC01E_0200;
    GRAPHICS_VIDPN_SOURCE_IN_USE = 0xC01E_0342;
}

impl Status {
    /// True for the success class: every value that is not negative (`NT_SUCCESS`).
    pub const fn is_success(self) -> bool {
        self.0 >= 0
    }

    /// The status as the unsigned number in which it is usually written.
    pub const fn code(self) -> u32 {
        self.0 as u32
    }

    /// The name with its `STATUS_` prefix, when the value has one.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED
            .iter()
            .find(|(status, _)| *status == self)
            .map(|&(_, name)| name)
    }

    /// What an errno of a plain (legacy) ioctl means.
    ///
    /// `None` for errnos that come from the transport and not from a handler: EFAULT, ENOTTY,
    /// EINTR and everything the interface does not use.
    pub fn from_errno(errno: crate::Errno) -> Option<Self> {
        Self::of_errno(Errno::from_raw_os_error(errno.raw_os_error()))
    }

    pub(crate) fn of_errno(errno: Errno) -> Option<Self> {
        Some(match errno {
            Errno::EXIST => Self::OBJECT_NAME_COLLISION,
            Errno::NOMEM => Self::NO_MEMORY,
            Errno::INVAL => Self::INVALID_PARAMETER,
            Errno::NOENT => Self::OBJECT_NAME_INVALID,
            Errno::AGAIN => Self::TIMEOUT,
            Errno::OVERFLOW => Self::BUFFER_TOO_SMALL,
            Errno::NODEV => Self::DEVICE_REMOVED,
            Errno::ACCESS => Self::ACCESS_DENIED,
            Errno::PERM | Errno::NOSYS => Self::NOT_SUPPORTED,
            Errno::OPNOTSUPP => Self::ILLEGAL_INSTRUCTION,
            Errno::BADF => Self::INVALID_HANDLE,
            Errno::INPROGRESS => Self::GRAPHICS_ALLOCATION_BUSY,
            Errno::PROTOTYPE => Self::OBJECT_TYPE_MISMATCH,
            Errno::IO => Self::UNSUCCESSFUL,
            _ => return None,
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (0x{:08X})", self.code()),
            None => write!(f, "NTSTATUS 0x{:08X}", self.code()),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(
            Status::INVALID_PARAMETER.to_string(),
            "STATUS_INVALID_PARAMETER (0xC000000D)"
        );
        assert_eq!(
            format!("{:?}", Status::SUCCESS),
            "STATUS_SUCCESS (0x00000000)"
        );
        assert_eq!(Status(0x1234).to_string(), "NTSTATUS 0x00001234");
        assert_eq!(Status(-1).to_string(), "NTSTATUS 0xFFFFFFFF");
    }

    #[test]
    fn table_is_strictly_ascending() {
        assert!(Status::NAMED
            .windows(2)
            .all(|pair| pair[0].0.code() < pair[1].0.code()));
    }

    #[test]
    fn same_statuses_as_the_header() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../uapi/dxg/status.h");
        let header = std::fs::read_to_string(path).unwrap();
        let constants = header
            .lines()
            .filter_map(|line| line.trim().strip_suffix(','));
        let mut constants: Vec<_> = constants
            .map(|constant| {
                let (name, value) = constant.split_once(" = ").unwrap();
                let value = value.trim_start_matches("(__s32)").trim_start_matches("0x");
                (Status(u32::from_str_radix(value, 16).unwrap() as i32), name)
            })
            .collect();
        constants.sort_by_key(|(status, _)| status.code());
        assert_eq!(constants, Status::NAMED);
    }

    #[test]
    fn success_class_is_the_non_negative_half() {
        for status in [
            Status::SUCCESS,
            Status::PENDING,
            Status::TIMEOUT,
            Status(i32::MAX),
        ] {
            assert!(status.is_success(), "{status}");
        }
        for status in [
            Status::UNSUCCESSFUL,
            Status::DATATYPE_MISALIGNMENT,
            Status(i32::MIN),
        ] {
            assert!(!status.is_success(), "{status}");
        }
    }

    #[test]
    fn errno_map() {
        let map = [
            (Errno::EXIST, Status::OBJECT_NAME_COLLISION),
            (Errno::NOMEM, Status::NO_MEMORY),
            (Errno::INVAL, Status::INVALID_PARAMETER),
            (Errno::NOENT, Status::OBJECT_NAME_INVALID),
            (Errno::AGAIN, Status::TIMEOUT),
            (Errno::OVERFLOW, Status::BUFFER_TOO_SMALL),
            (Errno::NODEV, Status::DEVICE_REMOVED),
            (Errno::ACCESS, Status::ACCESS_DENIED),
            (Errno::PERM, Status::NOT_SUPPORTED),
            (Errno::NOSYS, Status::NOT_SUPPORTED),
            (Errno::OPNOTSUPP, Status::ILLEGAL_INSTRUCTION),
            (Errno::BADF, Status::INVALID_HANDLE),
            (Errno::INPROGRESS, Status::GRAPHICS_ALLOCATION_BUSY),
            (Errno::PROTOTYPE, Status::OBJECT_TYPE_MISMATCH),
            (Errno::IO, Status::UNSUCCESSFUL),
        ];
        for (errno, status) in map {
            assert_eq!(
                Status::from_errno(crate::Errno::from_raw_os_error(errno.raw_os_error())),
                Some(status),
                "{errno:?}"
            );
        }
        for errno in [Errno::FAULT, Errno::NOTTY, Errno::INTR, Errno::RANGE] {
            assert_eq!(
                Status::from_errno(crate::Errno::from_raw_os_error(errno.raw_os_error())),
                None,
                "{errno:?}"
            );
        }
    }
}
