// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that take OBJECT_ATTRIBUTES: the kernel takes the form of 64-bit programs, and a mode
//! instead of a security descriptor.

use core::mem::size_of;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library::call;
use crate::security;

/// OBJECT_ATTRIBUTES of 32-bit programs.
#[repr(C)]
#[derive(Clone, Copy)]
struct ShortAttributes {
    length: u32,
    root_directory: u32,
    object_name: u32,
    attributes: u32,
    security_descriptor: u32,
    security_quality_of_service: u32,
}

/// UNICODE_STRING of 32-bit programs.
#[repr(C)]
#[derive(Clone, Copy)]
struct ShortString {
    length: u16,
    maximum_length: u16,
    buffer: u32,
}

// As 32-bit programs have them.
const _: () = assert!(size_of::<ShortAttributes>() == 24 && size_of::<ShortString>() == 8);

const SHORT: u32 = size_of::<ShortAttributes>() as u32;
const LONG: u32 = size_of::<OBJECT_ATTRIBUTES>() as u32;

/// Runs `run` with the address of attributes in the long form, and with the mode that their
/// security descriptor asks for, if they have one.
///
/// What is not recognised is passed on, for the kernel to refuse.
///
/// # Safety
///
/// `address` is 0, unaligned, or that of attributes with readable addresses.
unsafe fn with_attributes<T>(address: u64, run: impl FnOnce(u64, Option<u32>) -> T) -> T {
    let start = address as usize as *const u32;
    if start.is_null() || !start.is_aligned() {
        return run(address, None);
    }
    // SAFETY: not null, aligned, readable as promised.
    let length = unsafe { start.read() };
    if length == LONG && start.cast::<OBJECT_ATTRIBUTES>().is_aligned() {
        // SAFETY: as above, with the length that says so.
        let descriptor = unsafe { start.cast::<OBJECT_ATTRIBUTES>().read() }.SecurityDescriptor;
        // SAFETY: the caller promises that addresses in the attributes are readable.
        return run(address, unsafe { security::mode(descriptor, true) });
    }
    if length != SHORT {
        return run(address, None);
    }
    // SAFETY: as above.
    let short = unsafe { start.cast::<ShortAttributes>().read() };
    let mut name = UNICODE_STRING::default();
    let mut long = OBJECT_ATTRIBUTES {
        Length: LONG,
        RootDirectory: short.root_directory.into(),
        ObjectName: short.object_name.into(),
        Attributes: short.attributes,
        SecurityDescriptor: short.security_descriptor.into(),
        SecurityQualityOfService: short.security_quality_of_service.into(),
        ..OBJECT_ATTRIBUTES::default()
    };
    let string = short.object_name as usize as *const ShortString;
    // Otherwise the kernel refuses the address as it is.
    if !string.is_null() && string.is_aligned() {
        // SAFETY: aligned, not null, readable as promised.
        let string = unsafe { string.read() };
        name.Length = string.length;
        name.MaximumLength = string.maximum_length;
        name.Buffer = string.buffer.into();
        long.ObjectName = (&raw const name) as u64;
    }
    // SAFETY: the caller promises that addresses in the attributes are readable.
    let mode = unsafe { security::mode(long.SecurityDescriptor, false) };
    run((&raw const long) as u64, mode)
}

/// D3DKMTShareObjects, with a mode where the attributes have a security descriptor.
///
/// # Safety
///
/// The addresses are those of the exported function.
pub(crate) unsafe fn share(arg: D3DKMT_SHAREOBJECTS) -> Status {
    let run = |address, mode| {
        let mut arg = D3DKMT_SHAREOBJECTS {
            pObjectAttributes: address,
            ..arg
        };
        if let Some(mode) = mode {
            let mut with_mode = opendxg_share_objects {
                share: arg,
                mode,
                ..opendxg_share_objects::zeroed()
            };
            // SAFETY: the caller's addresses, and that of live attributes.
            let status = unsafe { call(&mut with_mode) };
            if status != Status::NOT_SUPPORTED {
                return status;
            }
            // A kernel without modes gives the name to its maker alone.
        }
        // SAFETY: as above.
        unsafe { call(&mut arg) }
    };
    // SAFETY: the caller's promise.
    unsafe { with_attributes(arg.pObjectAttributes, run) }
}

/// D3DKMTOpenNtHandleFromName.
pub(crate) unsafe fn open_resource(arg: &mut D3DKMT_OPENNTHANDLEFROMNAME) -> Status {
    let given = arg.pObjAttrib;
    let run = |address, _| {
        arg.pObjAttrib = address;
        // SAFETY: the caller's address, or that of live attributes.
        unsafe { call(arg) }
    };
    // SAFETY: the caller's promise.
    let status = unsafe { with_attributes(given, run) };
    arg.pObjAttrib = given;
    status
}

/// D3DKMTOpenSyncObjectNtHandleFromName.
pub(crate) unsafe fn open_sync_object(arg: &mut D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME) -> Status {
    let given = arg.pObjAttrib;
    let run = |address, _| {
        arg.pObjAttrib = address;
        // SAFETY: the caller's address, or that of live attributes.
        unsafe { call(arg) }
    };
    // SAFETY: the caller's promise.
    let status = unsafe { with_attributes(given, run) };
    arg.pObjAttrib = given;
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!((SHORT, LONG), (24, 48));
        assert_eq!(size_of::<ShortString>(), 8);
    }

    #[test]
    fn what_is_not_recognised_is_passed_on() {
        // SAFETY: address 0.
        let seen = unsafe { with_attributes(0, |address, mode| (address, mode)) };
        assert_eq!(seen, (0, None));
        let words = [25u32, 0, 0, 0, 0, 0];
        let start = words.as_ptr() as u64;
        for address in [start, start + 1] {
            // SAFETY: unaligned, or readable.
            let seen = unsafe { with_attributes(address, |address, mode| (address, mode)) };
            assert_eq!(seen, (address, None));
        }
    }

    #[test]
    fn the_long_form_stays_where_it_is() {
        let long = OBJECT_ATTRIBUTES {
            Length: LONG,
            ..OBJECT_ATTRIBUTES::default()
        };
        let address = (&raw const long) as u64;
        // SAFETY: live attributes.
        let seen = unsafe { with_attributes(address, |address, mode| (address, mode)) };
        assert_eq!(seen, (address, None));
    }

    #[test]
    fn the_short_form_becomes_the_long_one() {
        let short = [24u32, 1, 0, 0x42, 0, 9];
        let read = |address: u64, mode: Option<u32>| {
            // SAFETY: the code under test passes live attributes.
            let long = unsafe { *(address as usize as *const OBJECT_ATTRIBUTES) };
            (long, mode)
        };
        // SAFETY: live attributes without addresses.
        let (long, mode) = unsafe { with_attributes(short.as_ptr() as u64, read) };
        assert_eq!(
            (long.Length, long.RootDirectory, long.Attributes),
            (48, 1, 0x42)
        );
        assert_eq!((long.ObjectName, long.SecurityQualityOfService), (0, 9));
        assert_eq!(mode, None);
    }
}
