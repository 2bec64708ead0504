// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes whose ioctl returns the status itself (abi.md section 3.2).

use opendxg::raw::{code, exact_code, Argument, CALLS};
use opendxg::uapi::*;
use opendxg::{Status, NO_OP};
use rustix::io::Errno;
use selftests::fixture;
use selftests::leak::Watch;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::{ensure_eq, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("ABI-3.2 a status is the result, and no errno", status)
        .test(
            "ABI-3.2 an inaccessible argument is a status, not an errno",
            arguments,
        )
        .test(
            "ABI-3.2 an argument that cannot be written lets nothing happen",
            unwritable,
        )
        .test("ABI-3.2 the no-op has size 0 and no argument", no_op)
        .test("ABI-3.2 no status is an errno", named)
        .test("ABI-3.2 number 0x80 is not used", free_number)
}

const CREATE: u32 = exact_code(D3DKMT_CREATEDEVICE::NR, D3DKMT_CREATEDEVICE::SIZE);
const DESTROY: u32 = exact_code(D3DKMT_DESTROYDEVICE::NR, D3DKMT_DESTROYDEVICE::SIZE);

fn status() -> TestResult {
    let (raw, adapter) = (fixture::raw()?, fixture::adapter()?);
    let mut create = D3DKMT_CREATEDEVICE::zeroed();
    create.__bindgen_anon_1.hAdapter = adapter.handle().0;
    ensure_eq!(raw.ioctl(CREATE, (&raw mut create) as u64), Ok(0));
    let destroy = [create.hDevice];
    let address = destroy.as_ptr() as u64;
    ensure_eq!(raw.ioctl(DESTROY, address), Ok(0));
    let refused = Ok(Status::INVALID_PARAMETER.0);
    ensure_eq!(raw.ioctl(DESTROY, address), refused);
    let plain = code(D3DKMT_DESTROYDEVICE::NR, D3DKMT_DESTROYDEVICE::SIZE);
    ensure_eq!(raw.ioctl(plain, address), Err(Errno::INVAL));
    Ok(())
}

fn arguments() -> TestResult {
    let raw = fixture::raw()?;
    let page = Page::new()?;
    for address in [0, 1, UNMAPPED, KERNEL_HALF, u64::MAX, page.end() - 3] {
        let answer = raw.ioctl(DESTROY, address);
        let expected = Ok(Status::ACCESS_VIOLATION.0);
        ensure_eq!(answer, expected, "argument at {address:#x}");
    }
    Ok(())
}

fn unwritable() -> TestResult {
    let (raw, adapter) = (fixture::raw()?, fixture::adapter()?);
    let watch = Watch::start()?;
    let mut bytes = adapter.handle().0.to_ne_bytes().to_vec();
    bytes.resize(D3DKMT_CREATEDEVICE::SIZE as usize, 0);
    let page = Page::beginning_with(&bytes)?.read_only()?;
    let answer = raw.ioctl(CREATE, page.address());
    ensure_eq!(answer, Ok(Status::ACCESS_VIOLATION.0));
    ensure_eq!(page.bytes()[..bytes.len()], bytes, "the argument");
    watch.unchanged()
}

fn no_op() -> TestResult {
    let raw = fixture::raw()?;
    for arg in [0, UNMAPPED, u64::MAX] {
        for code in [code(NO_OP, 0), exact_code(NO_OP, 0)] {
            ensure_eq!(raw.ioctl(code, arg), Ok(0), "{code:#x} with {arg:#x}");
        }
    }
    Ok(())
}

fn named() -> TestResult {
    for (status, name) in Status::NAMED {
        let is_errno = (-4095..0).contains(&status.0);
        ensure_eq!(is_errno, false, "{name}");
    }
    Ok(())
}

/// An earlier form of these codes was a call with this number.
fn free_number() -> TestResult {
    let raw = fixture::raw()?;
    ensure_eq!(CALLS.iter().any(|(nr, ..)| *nr == 0x80), false);
    for size in [0, 8, 16, 24, 32] {
        for code in [code(0x80, size), exact_code(0x80, size)] {
            ensure_eq!(raw.ioctl(code, 0), Err(Errno::NOTTY), "{code:#x}");
        }
    }
    Ok(())
}
