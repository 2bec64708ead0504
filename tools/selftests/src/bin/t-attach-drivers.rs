// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module loaded so that character devices of some drivers may be attached (RES-63).

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use opendxg::{Dxg, Guid, InfoItem, MonitoredFence, Object, Status};
use selftests::dma_buf::Card;
use selftests::fds::{is_same_file, pipe};
use selftests::test_device::TestDevice;
use selftests::{ensure, fails_with, fixture, module, skip, Suite, TestResult};

const KEY: Guid = Guid::new(0x5f, 2, 2, 3);

/// Those that have a reason to be refused all the same are named too.
const DRIVERS: &str = "attach_drivers=opendxg,vgem,virtio_gpu,dxg-test-dmabuf";

fn needs_parameter() -> TestResult {
    if module::parameter("attach_drivers")?.is_empty() {
        skip!("no driver is named");
    }
    Ok(())
}

fn attach(fence: &MonitoredFence, file: BorrowedFd<'_>) -> opendxg::Result<u64> {
    fence.set_info(&[InfoItem::new(KEY, 0, &[]).with_file(&file)])
}

fn is_refused(file: impl AsFd) -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    fails_with(attach(&fence, file.as_fd()), Status::OBJECT_TYPE_MISMATCH)
}

fn named() -> TestResult {
    needs_parameter()?;
    let device = TestDevice::open()?;
    let fence = fixture::device()?.create_fence(0)?;
    attach(&fence, device.as_fd())?;
    let file = fence.get_info_with_file(KEY, 0)?.file.ok_or("no file")?;
    ensure!(is_same_file(&file, &device)?);
    Ok(())
}

fn not_named() -> TestResult {
    needs_parameter()?;
    // One of the kernel image, which has no name, and what is no character device of a driver.
    is_refused(File::open("/dev/null")?)?;
    is_refused(pipe()?.0)?;
    is_refused(File::open("/")?)
}

fn own() -> TestResult {
    needs_parameter()?;
    is_refused(Dxg::open()?)
}

fn drm() -> TestResult {
    needs_parameter()?;
    let mut found = false;
    for driver in ["vgem", "virtio_gpu"] {
        if let Some(card) = Card::of_driver(driver)? {
            is_refused(card)?;
            found = true;
        }
    }
    if !found {
        skip!("no DRM device");
    }
    Ok(())
}

pub(crate) fn main() {
    module::with_parameters(DRIVERS, || {
        Suite::new("attach-drivers")
            .test("RES-63 a device of a driver that is named", named)
            .test("RES-63 devices of others", not_named)
            .test("RES-63 never the module's own", own)
            .test("RES-63 never one of DRM, whoever is named", drm)
            .run()
    });
}
