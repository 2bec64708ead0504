// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions the library answers by itself.

use core::sync::atomic::{AtomicBool, Ordering};

use opendxg::uapi::*;
use opendxg::Status;

/// An argument that is not looked at.
type Opaque = [u8; 0];

/// There are no device contexts of GDI to open an adapter from.
pub(crate) unsafe fn open_adapter_from_hdc(_: &mut Opaque) -> Status {
    Status::INVALID_PARAMETER
}

/// Software clocks are always stable.
pub(crate) unsafe fn set_stable_power_state(_: &mut Opaque) -> Status {
    Status::SUCCESS
}

/// No process is told that a device was removed.
pub(crate) unsafe fn get_process_device_removal_support(
    arg: &mut D3DKMT_GETPROCESSDEVICEREMOVALSUPPORT,
) -> Status {
    arg.Support = 0;
    Status::SUCCESS
}

/// Can be said once in the life of a process.
pub(crate) unsafe fn set_process_device_removal_support(_: &mut Opaque) -> Status {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        Status::ALREADY_INITIALIZED
    } else {
        Status::SUCCESS
    }
}

/// No window is ever hidden, because none is ever shown.
pub(crate) unsafe fn check_occlusion(arg: &mut D3DKMT_CHECKOCCLUSION) -> Status {
    if arg.hWindow == 0 {
        Status::INVALID_PARAMETER
    } else {
        Status::SUCCESS
    }
}

/// WDDM 2 has neither swizzling ranges nor renamed allocations: D3DKMTLock2 is the way.
pub(crate) unsafe fn lock(arg: &mut D3DKMT_LOCK) -> Status {
    let swizzled = D3DDDICB_LOCKFLAGS_AcquireAperture | D3DDDICB_LOCKFLAGS_UseAlternateVA;
    if arg.Flags & swizzled != 0 {
        Status::GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED
    } else {
        Status::NOT_SUPPORTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mem_91_the_older_lock_is_refused_by_its_flags() {
        let aperture = Status::GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
        for bit in 0..32 {
            let mut arg = D3DKMT_LOCK {
                Flags: 1 << bit,
                // SAFETY: all its fields are numbers.
                ..unsafe { core::mem::zeroed() }
            };
            let expected = match bit {
                6 | 9 => aperture,
                _ => Status::NOT_SUPPORTED,
            };
            // SAFETY: only the flags are looked at.
            assert_eq!(unsafe { lock(&mut arg) }, expected, "bit {bit}");
            arg.Flags |= D3DDDICB_LOCKFLAGS_AcquireAperture;
            // SAFETY: as above.
            assert_eq!(unsafe { lock(&mut arg) }, aperture, "bit {bit}");
        }
        // SAFETY: all its fields are numbers, of which only the flags are looked at.
        let answer = unsafe { lock(&mut core::mem::zeroed()) };
        assert_eq!(answer, Status::NOT_SUPPORTED);
    }

    #[test]
    fn removal_support_is_set_once() {
        // SAFETY: the argument is not looked at.
        let first = unsafe { set_process_device_removal_support(&mut []) };
        // SAFETY: as above.
        let second = unsafe { set_process_device_removal_support(&mut []) };
        assert_eq!(
            (first, second),
            (Status::SUCCESS, Status::ALREADY_INITIALIZED)
        );
    }

    #[test]
    fn a_window_is_required() {
        for (window, status) in [(0, Status::INVALID_PARAMETER), (1, Status::SUCCESS)] {
            let mut arg = D3DKMT_CHECKOCCLUSION {
                hWindow: window,
                _pad0: 0,
            };
            // SAFETY: a live struct without addresses.
            let answer = unsafe { check_occlusion(&mut arg) };
            assert_eq!(answer, status);
        }
    }
}
