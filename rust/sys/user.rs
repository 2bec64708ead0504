// SPDX-License-Identifier: GPL-2.0

//! Copies between the kernel and the caller's memory.
//!
//! Every address comes from an argument struct as a `u64`; 0 is not special here. A struct or an
//! array is copied once, and then only the copy is used (RES-5).

use super::{
    array_vec::ArrayVec,
    ffi, //
};
use core::mem::MaybeUninit;
use kernel::{
    alloc::Allocator,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// Copies of at most this many bytes are made word by word: every argument struct of the calls
/// that have to be quick.
const WORD_BY_WORD: usize = 128;

/// User memory could not be read or written.
#[derive(Debug)]
pub(crate) struct Fault;

/// Plain bytes: every bit pattern is a value, and no byte is padding.
///
/// # Safety
///
/// The type must have no padding and no invalid values, nor interior mutability or pointers that
/// the kernel would follow.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: An integer.
unsafe impl Plain for u16 {}
// SAFETY: An integer.
unsafe impl Plain for u32 {}
// SAFETY: An integer.
unsafe impl Plain for u64 {}
// SAFETY: An integer.
unsafe impl Plain for i32 {}
// SAFETY: An integer.
unsafe impl Plain for i64 {}
// SAFETY: An integer.
unsafe impl Plain for u8 {}
// SAFETY: No bytes at all.
unsafe impl Plain for () {}

fn slice(addr: u64, size: usize) -> core::result::Result<UserSlice, Fault> {
    let addr = usize::try_from(addr).map_err(|_| Fault)?;

    Ok(UserSlice::new(UserPtr::from_addr(addr), size))
}

/// The address in a union of bare pointers, of which a 32-bit caller may have written only the low
/// half (abi.md section 2.3).
///
/// Context: a system call.
pub(crate) fn bare_pointer(addr: u64) -> u64 {
    // SAFETY: may be called by any task.
    if unsafe { ffi::dxg_is_compat_call() } {
        addr & u64::from(u32::MAX)
    } else {
        addr
    }
}

/// The bytes of a plain value, for writing into them.
fn bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: `Plain` values have no padding, and any bytes are a valid value.
    unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The bytes of a plain value.
fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` values have no padding, so every byte is initialised.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A plain value with all bytes 0.
pub(crate) fn zeroed<T: Plain>() -> T {
    // SAFETY: Every bit pattern is a value of a `Plain` type.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Copies one value from user memory.
#[inline(always)]
pub(crate) fn read<T: Plain>(addr: u64) -> core::result::Result<T, Fault> {
    if size_of::<T>() == 0 {
        // Nothing to read: the address is not an address.
        return Ok(zeroed());
    }
    if !in_words(size_of::<T>()) {
        let mut value = zeroed::<T>();

        read_slice(addr, core::slice::from_mut(&mut value))?;
        return Ok(value);
    }

    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr().cast();

    // SAFETY: `to` is valid for writing this many bytes, whatever `addr` is.
    done(unsafe {
        match size_of::<T>() {
            16 if align_of::<T>() == 8 => ffi::dxg_read_2_words(to, addr),
            24 if align_of::<T>() == 8 => ffi::dxg_read_3_words(to, addr),
            32 if align_of::<T>() == 8 => ffi::dxg_read_4_words(to, addr),
            size => ffi::dxg_read_words(to, addr, size),
        }
    })?;
    // SAFETY: All of it was written, and every bit pattern is a value of a `Plain` type.
    Ok(unsafe { value.assume_init() })
}

/// Fills `values` from an array in user memory.
pub(crate) fn read_slice<T: Plain>(addr: u64, values: &mut [T]) -> core::result::Result<(), Fault> {
    let bytes = bytes_mut(values);

    if in_words(bytes.len()) {
        let to = bytes.as_mut_ptr().cast();

        // SAFETY: `to` is valid for writing this many bytes, whatever `addr` is.
        return done(unsafe { ffi::dxg_read_words(to, addr, bytes.len()) });
    }
    slice(addr, bytes.len())?
        .reader()
        .read_slice(bytes)
        .map_err(|_| Fault)
}

/// So many elements of an array in user memory, at most `N`. Takes no memory.
#[inline(always)]
pub(crate) fn read_few<T: Plain, const N: usize>(
    addr: u64,
    count: usize,
) -> core::result::Result<ArrayVec<T, N>, Fault> {
    let mut few = ArrayVec::<T, N>::new();

    read_places(addr, few.places().get_mut(..count).ok_or(Fault)?)?;
    // SAFETY: So many were written, and every bit pattern is a value of a `Plain` type.
    unsafe { few.set_len(count) };
    Ok(few)
}

/// Fills places from an array in user memory; if that succeeds, all bytes of them are written.
#[inline(always)]
fn read_places<T: Plain>(
    addr: u64,
    places: &mut [MaybeUninit<T>],
) -> core::result::Result<(), Fault> {
    let size = size_of_val(places);
    let to = places.as_mut_ptr();

    if in_words(size) {
        // SAFETY: `to` is valid for writing this many bytes, whatever `addr` is.
        return done(unsafe { ffi::dxg_read_words(to.cast(), addr, size) });
    }

    // SAFETY: These are the bytes of the places.
    let bytes = unsafe { core::slice::from_raw_parts_mut(to.cast(), size) };

    slice(addr, size)?
        .reader()
        .read_raw(bytes)
        .map_err(|_| Fault)
}

/// A call about one object, as it was copied: its argument struct, and what its arrays have.
pub(crate) type One = ffi::dxg_one;

/// Copies the argument struct of a signal and the only elements of its arrays. `None` if there are
/// more or fewer, if an array is not there, and on a fault.
#[inline(always)]
pub(crate) fn read_one_signal(addr: u64) -> Option<One> {
    // SAFETY: The place is valid for writing, whatever the address is.
    read_one(|one| unsafe { ffi::dxg_read_one_signal(one, addr) })
}

/// The same of a wait.
#[inline(always)]
pub(crate) fn read_one_wait(addr: u64) -> Option<One> {
    // SAFETY: As above.
    read_one(|one| unsafe { ffi::dxg_read_one_wait(one, addr) })
}

#[inline(always)]
fn read_one(read: impl FnOnce(*mut One) -> bool) -> Option<One> {
    let mut one = MaybeUninit::<One>::uninit();

    // SAFETY: Both readers write all of it if they succeed.
    read(one.as_mut_ptr()).then(|| unsafe { one.assume_init() })
}

/// Why bytes could not be read.
pub(crate) enum ReadError {
    /// The memory is not readable.
    Fault,
    /// There is no memory for a copy.
    NoMemory,
}

/// A copy of `size` bytes, which the caller has bounded. With size 0 the address is not used.
pub(crate) fn read_bytes(addr: u64, size: usize) -> core::result::Result<KVVec<u8>, ReadError> {
    read_vec(addr, size)
}

/// A copy of an array of `count` elements, which the caller has bounded. With none of them the
/// address is not used.
pub(crate) fn read_vec<T: Plain, A: Allocator>(
    addr: u64,
    count: usize,
) -> core::result::Result<Vec<T, A>, ReadError> {
    let mut values =
        Vec::with_capacity(count, GFP_KERNEL_ACCOUNT).map_err(|_| ReadError::NoMemory)?;

    // Not filled before, which would take a step for every element.
    if let Some(places) = values.spare_capacity_mut().get_mut(..count) {
        if count != 0 {
            read_places(addr, places).map_err(|_| ReadError::Fault)?;
        }
        // SAFETY: There is room for them, and they have been written; every bit pattern is a value
        // of a `Plain` type.
        unsafe { values.inc_len(count) };
    }
    Ok(values)
}

/// Copies one value to user memory.
pub(crate) fn write<T: Plain>(addr: u64, value: &T) -> core::result::Result<(), Fault> {
    write_slice(addr, core::slice::from_ref(value))
}

/// Copies an array to user memory.
pub(crate) fn write_slice<T: Plain>(addr: u64, values: &[T]) -> core::result::Result<(), Fault> {
    let bytes = bytes(values);

    if in_words(bytes.len()) {
        let from = bytes.as_ptr().cast();

        // SAFETY: `from` is valid for reading this many bytes, whatever `addr` is.
        return done(unsafe { ffi::dxg_write_words(addr, from, bytes.len()) });
    }
    slice(addr, bytes.len())?
        .writer()
        .write_slice(bytes)
        .map_err(|_| Fault)
}

/// Whether a copy is short enough to be made word by word.
#[inline(always)]
fn in_words(size: usize) -> bool {
    size <= WORD_BY_WORD && size % size_of::<u32>() == 0
}

#[inline(always)]
fn done(copied: bool) -> core::result::Result<(), Fault> {
    if copied {
        Ok(())
    } else {
        Err(Fault)
    }
}
