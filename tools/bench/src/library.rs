// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls through the C library, as C programs make them.

use core::ffi::{c_void, CStr};

use opendxg::uapi::{
    D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU, D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU,
};
use opendxg::{Device, MonitoredFence};

type Function = unsafe extern "C" fn(*const c_void) -> i32;

/// The functions that are measured.
#[derive(Clone, Copy)]
pub struct Library {
    signal: Function,
    wait: Function,
}

impl Library {
    /// Loads the library, if it is installed.
    pub fn load() -> Option<Self> {
        // SAFETY: the library may be loaded by any program, and stays.
        let library = unsafe { libc::dlopen(c"libd3dkmt.so.1".as_ptr(), libc::RTLD_NOW) };
        let function = |name: &CStr| {
            // SAFETY: the name is terminated, and `library` is a loaded library.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!address.is_null()).then(|| {
                // SAFETY: what is asked for below takes a pointer and returns an NTSTATUS.
                unsafe { core::mem::transmute::<*mut c_void, Function>(address) }
            })
        };
        if library.is_null() {
            return None;
        }
        Some(Self {
            signal: function(c"D3DKMTSignalSynchronizationObjectFromCpu")?,
            wait: function(c"D3DKMTWaitForSynchronizationObjectFromCpu")?,
        })
    }

    /// Signals a fence, whose handle the library's open of the device has, too.
    pub fn signal(self, device: &Device, fence: &MonitoredFence, value: u64) {
        let object = fence.handle().0;
        let arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
            hDevice: device.handle().0,
            ObjectCount: 1,
            ObjectHandleArray: (&raw const object) as u64,
            FenceValueArray: (&raw const value) as u64,
            ..Default::default()
        };
        // SAFETY: both addresses hold `ObjectCount` live entries.
        let status = unsafe { (self.signal)((&raw const arg).cast()) };
        assert_eq!(status, 0, "signal a fence");
    }

    /// Waits for a fence.
    pub fn wait(self, device: &Device, fence: &MonitoredFence, value: u64) {
        let object = fence.handle().0;
        let arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
            hDevice: device.handle().0,
            ObjectCount: 1,
            ObjectHandleArray: (&raw const object) as u64,
            FenceValueArray: (&raw const value) as u64,
            ..Default::default()
        };
        // SAFETY: as above.
        let status = unsafe { (self.wait)((&raw const arg).cast()) };
        assert_eq!(status, 0, "wait for a fence");
    }
}
