// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects as C++ programs see them: an address that holds the address of a table of functions.
//!
//! The tables have the order of the declarations in the header, as the Itanium C++ ABI lays out a
//! class without virtual bases: no destructor, and in front of the functions the offset to the top
//! and the type information, of which there is none.

use core::ffi::c_void;
use core::ops::Deref;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{fence, AtomicU32, Ordering};
use std::alloc::{alloc, dealloc, Layout};

/// `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(pub u32, pub u16, pub u16, pub [u8; 8]);

/// `HRESULT`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HResult(pub u32);

#[allow(missing_docs)]
impl HResult {
    pub const S_OK: Self = Self(0);
    pub const E_FAIL: Self = Self(0x8000_4005);
    pub const E_INVALIDARG: Self = Self(0x8007_0057);
    pub const E_NOINTERFACE: Self = Self(0x8000_4002);
    pub const E_OUTOFMEMORY: Self = Self(0x8007_000e);
    pub const E_POINTER: Self = Self(0x8000_4003);
    pub const DXGI_ERROR_INVALID_CALL: Self = Self(0x887a_0001);
    pub const DXGI_ERROR_UNSUPPORTED: Self = Self(0x887a_0004);
    pub const DXGI_ERROR_DEVICE_REMOVED: Self = Self(0x887a_0005);
}

pub(super) const IID_UNKNOWN: Guid = Guid(0, 0, 0, [0xc0, 0, 0, 0, 0, 0, 0, 0x46]);

/// The functions of a class and what the C++ ABI has in front of them.
#[repr(C)]
pub(super) struct Table<F> {
    offset_to_top: isize,
    type_information: usize,
    pub(super) functions: F,
}

impl<F> Table<F> {
    pub(super) const fn new(functions: F) -> Self {
        Self {
            offset_to_top: 0,
            type_information: 0,
            functions,
        }
    }
}

/// `IUnknown`.
#[repr(C)]
pub(super) struct Unknown {
    query_interface: unsafe extern "C" fn(*mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    add_ref: unsafe extern "C" fn(*mut c_void) -> u32,
    release: unsafe extern "C" fn(*mut c_void) -> u32,
}

impl Unknown {
    /// The three functions of a class.
    pub(super) const fn of<C: Class>() -> Self {
        Self {
            query_interface: query_interface::<C>,
            add_ref: add_ref::<C>,
            release: release::<C>,
        }
    }
}

/// What an object holds, and which interfaces it has.
pub(super) trait Class: Send + Sync + Sized + 'static {
    /// The functions of its widest interface.
    type Functions: Sync + 'static;

    /// Its interfaces besides IUnknown. Each one's functions are the first of the widest one.
    const INTERFACES: &'static [Guid];

    /// The functions; always the same address.
    fn table() -> &'static Table<Self::Functions>;

    /// Runs when nobody has a reference any more.
    ///
    /// # Safety
    ///
    /// `object` has no reference, and this is the only call for it.
    unsafe fn finish(object: NonNull<Object<Self>>) {
        // SAFETY: the caller's promise; all objects but the one of a class that overrides this are
        // made by `Reference::new`.
        unsafe { free(object) }
    }
}

/// An object.
#[repr(C)]
pub(super) struct Object<C: Class> {
    functions: *const C::Functions,
    references: AtomicU32,
    value: C,
}

// SAFETY: the address is that of a static; `C` can be used by several threads.
unsafe impl<C: Class> Sync for Object<C> {}
// SAFETY: as above.
unsafe impl<C: Class> Send for Object<C> {}

impl<C: Class> Object<C> {
    /// An object that nobody refers to yet.
    pub(super) const fn unreferenced(functions: &'static Table<C::Functions>, value: C) -> Self {
        Self {
            functions: &functions.functions,
            references: AtomicU32::new(0),
            value,
        }
    }

    /// The object behind the first argument of one of its functions.
    ///
    /// # Safety
    ///
    /// `this` is the address of such an object, which lives as long as the result.
    pub(super) unsafe fn of<'a>(this: *mut c_void) -> &'a Self {
        // SAFETY: the caller's promise.
        unsafe { &*this.cast() }
    }

    /// The object if `unknown` is one of this class.
    ///
    /// # Safety
    ///
    /// `unknown` is the address of an object of whatever class, which lives as long as the result.
    pub(super) unsafe fn recognise<'a>(unknown: *mut c_void) -> Option<&'a Self> {
        // SAFETY: every object starts with the address of its functions.
        let functions = unsafe { unknown.cast::<*const C::Functions>().read() };
        // SAFETY: the functions are those of this class alone.
        core::ptr::eq(functions, &C::table().functions).then(|| unsafe { Self::of(unknown) })
    }

    pub(super) fn address(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    /// A new reference.
    pub(super) fn reference(&self) -> Reference<C> {
        self.references.fetch_add(1, Ordering::Relaxed);
        Reference(NonNull::from(self))
    }

    /// A new reference, unless the last one is gone.
    pub(super) fn try_reference(&self) -> Option<Reference<C>> {
        let more = |count| (count != 0).then_some(count + 1);
        self.references
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(Reference(NonNull::from(self)))
    }
}

impl<C: Class> Deref for Object<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.value
    }
}

/// A counted reference.
pub(super) struct Reference<C: Class>(NonNull<Object<C>>);

// SAFETY: counts are atomic, and `C` can be used by several threads.
unsafe impl<C: Class> Send for Reference<C> {}
// SAFETY: as above.
unsafe impl<C: Class> Sync for Reference<C> {}

impl<C: Class> Reference<C> {
    /// A new object with its first reference.
    pub(super) fn new(value: C) -> Result<Self, HResult> {
        let layout = Layout::new::<Object<C>>();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(layout) }.cast::<Object<C>>();
        let memory = NonNull::new(memory).ok_or(HResult::E_OUTOFMEMORY)?;
        let object = Object::unreferenced(C::table(), value);
        // SAFETY: fresh memory of the right layout.
        unsafe { memory.write(object) };
        // SAFETY: just written.
        Ok(unsafe { memory.as_ref() }.reference())
    }

    /// Hands an interface of the object to the program.
    ///
    /// # Safety
    ///
    /// As for `QueryInterface`.
    pub(super) unsafe fn give(&self, iid: *const Guid, out: *mut *mut c_void) -> HResult {
        // SAFETY: a live object; the rest is the caller's promise.
        unsafe { query_interface::<C>(self.address(), iid, out) }
    }
}

impl<C: Class> Clone for Reference<C> {
    fn clone(&self) -> Self {
        self.reference()
    }
}

impl<C: Class> Drop for Reference<C> {
    fn drop(&mut self) {
        // SAFETY: this reference is counted.
        unsafe { release::<C>(self.address()) };
    }
}

impl<C: Class> Deref for Reference<C> {
    type Target = Object<C>;

    fn deref(&self) -> &Object<C> {
        // SAFETY: a counted reference keeps the object.
        unsafe { self.0.as_ref() }
    }
}

/// Gives the memory of an object back.
///
/// # Safety
///
/// The object was made by [`Reference::new`], and nobody uses it any more.
pub(super) unsafe fn free<C: Class>(object: NonNull<Object<C>>) {
    // SAFETY: the caller's promise.
    unsafe {
        object.drop_in_place();
        dealloc(object.as_ptr().cast(), Layout::new::<Object<C>>());
    }
}

/// Whether a class has an interface: what functions check that make an object only to hand it out.
///
/// # Safety
///
/// `iid` is NULL or a GUID.
pub(super) unsafe fn has_interface<C: Class>(iid: *const Guid) -> bool {
    if iid.is_null() {
        return false;
    }
    // SAFETY: the caller's promise; programs do not always align what they took from a byte
    // buffer.
    let iid = unsafe { iid.read_unaligned() };
    iid == IID_UNKNOWN || C::INTERFACES.contains(&iid)
}

/// Checks the address of a pointer that will be returned, and clears the pointer.
///
/// # Safety
///
/// `out` is NULL or can be written.
pub(super) unsafe fn clear(out: *mut *mut c_void) -> Result<(), HResult> {
    if out.is_null() {
        return Err(HResult::E_POINTER);
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(null_mut()) };
    Ok(())
}

unsafe extern "C" fn query_interface<C: Class>(
    this: *mut c_void,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's promise.
    if let Err(refused) = unsafe { clear(out) } {
        return refused;
    }
    // SAFETY: the caller's promise.
    if !unsafe { has_interface::<C>(iid) } {
        return HResult::E_NOINTERFACE;
    }
    // SAFETY: the caller's object.
    unsafe { add_ref::<C>(this) };
    // SAFETY: checked above.
    unsafe { out.write(this) };
    HResult::S_OK
}

unsafe extern "C" fn add_ref<C: Class>(this: *mut c_void) -> u32 {
    // SAFETY: the caller's object.
    let object = unsafe { Object::<C>::of(this) };
    object.references.fetch_add(1, Ordering::Relaxed) + 1
}

unsafe extern "C" fn release<C: Class>(this: *mut c_void) -> u32 {
    // SAFETY: the caller's object.
    let object = unsafe { Object::<C>::of(this) };
    let fewer = |count: u32| count.checked_sub(1);
    let before = object
        .references
        .fetch_update(Ordering::Release, Ordering::Relaxed, fewer);
    if before == Ok(1) {
        fence(Ordering::Acquire);
        // SAFETY: that was the last reference.
        unsafe { C::finish(NonNull::from(object)) };
    }
    before.map_or(0, |before| before - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    static FINISHED: AtomicBool = AtomicBool::new(false);
    static TABLE: Table<Unknown> = Table::new(Unknown::of::<Thing>());
    const IID_THING: Guid = Guid(1, 2, 3, [4; 8]);

    struct Thing;

    impl Class for Thing {
        type Functions = Unknown;
        const INTERFACES: &'static [Guid] = &[IID_THING];

        fn table() -> &'static Table<Unknown> {
            &TABLE
        }
    }

    impl Drop for Thing {
        fn drop(&mut self) {
            FINISHED.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn interfaces_count_and_the_last_release_frees() {
        let thing = Reference::new(Thing).unwrap();
        let mut out = null_mut();
        for iid in [IID_THING, IID_UNKNOWN] {
            // SAFETY: live variables.
            assert_eq!(unsafe { thing.give(&iid, &mut out) }, HResult::S_OK);
            assert_eq!(out, thing.address());
        }
        let other = Guid(9, 2, 3, [4; 8]);
        for iid in [&raw const other, core::ptr::null()] {
            // SAFETY: as above.
            let refused = unsafe { thing.give(iid, &mut out) };
            assert_eq!((refused, out.is_null()), (HResult::E_NOINTERFACE, true));
        }
        // SAFETY: NULL is refused.
        let refused = unsafe { thing.give(&IID_THING, null_mut()) };
        assert_eq!(refused, HResult::E_POINTER);
        // SAFETY: two references were handed out above.
        unsafe {
            assert_eq!(release::<Thing>(thing.address()), 2);
            assert_eq!(release::<Thing>(thing.address()), 1);
        }
        assert!(!FINISHED.load(Ordering::Relaxed));
        drop(thing);
        assert!(FINISHED.load(Ordering::Relaxed));
    }

    #[test]
    fn nobody_gets_a_reference_to_an_object_without_one() {
        // Not dropped, because the other test watches that.
        let object = core::mem::ManuallyDrop::new(Object::unreferenced(&TABLE, Thing));
        assert!(object.try_reference().is_none());
    }
}
