// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of the exec extension (abi.md section 3.2).

use opendxg::raw::{code, Argument, Raw, CALLS, EXEC};
use opendxg::uapi::*;
use opendxg::{Adapter, Dxg, Status, NO_OP};
use rustix::io::Errno;
use selftests::fixture;
use selftests::leak::Watch;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::{ensure_eq, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "NEG-exec nr: unknown numbers and numbers beyond a byte are ENOTTY",
            numbers,
        )
        .test("NEG-exec nr: exec itself is EINVAL", itself)
        .test("NEG-exec size: any other size is ENOTTY", sizes)
        .test(
            "NEG-exec arg: an inaccessible argument is a status, not an errno",
            arguments,
        )
        .test("NEG-exec ntstatus: an output only", status)
        .test("NEG-exec reserved: each bit is EINVAL", reserved)
        .test(
            "NEG-exec an exec struct that cannot be read is EFAULT",
            unreadable,
        )
        .test(
            "NEG-exec an exec struct that cannot be written lets nothing happen",
            unwritable,
        )
        .test("NEG-exec the no-op has size 0 and no argument", no_op)
}

/// A request that creates a device.
fn request(arg: &mut D3DKMT_CREATEDEVICE) -> opendxg_exec {
    opendxg_exec {
        nr: D3DKMT_CREATEDEVICE::NR,
        size: D3DKMT_CREATEDEVICE::SIZE,
        arg: (&raw mut *arg) as u64,
        ntstatus: 0x5a5a_5a5a,
        reserved: 0,
    }
}

/// What is needed to try requests.
struct Probe {
    raw: Raw,
    adapter: Adapter,
    watch: Watch,
}

impl Probe {
    fn new() -> TestResult<Self> {
        Ok(Self {
            raw: fixture::raw()?,
            adapter: fixture::adapter()?,
            watch: Watch::start()?,
        })
    }

    /// The changed request gives this errno and writes nothing.
    fn refused(&self, change: impl Fn(&mut opendxg_exec), errno: Errno) -> TestResult {
        let mut arg = D3DKMT_CREATEDEVICE::zeroed();
        arg.__bindgen_anon_1.hAdapter = self.adapter.handle().0;
        arg.hDevice = 0x5a5a_5a5a;
        let mut request = request(&mut arg);
        change(&mut request);
        let (nr, size) = (request.nr, request.size);
        let what = format!(
            "nr {nr:#x}, size {size:#x}, reserved {:#x}",
            request.reserved
        );
        ensure_eq!(self.raw.exec_request(&mut request), Err(errno), "{what}");
        ensure_eq!(request.ntstatus, 0x5a5a_5a5a, "{what}: status");
        ensure_eq!(arg.hDevice, 0x5a5a_5a5a, "{what}: output");
        Ok(())
    }

    /// Nothing was made in all this.
    fn ends(self) -> TestResult {
        self.watch.unchanged()
    }
}

fn numbers() -> TestResult {
    let probe = Probe::new()?;
    let version = Dxg::open()?.version()?;
    for nr in (0..256).filter(|nr| !version.implements(*nr)) {
        probe.refused(|request| request.nr = nr, Errno::NOTTY)?;
    }
    for high in [1 << 8, 1 << 16, 1 << 31, 0xffff_ff00] {
        probe.refused(|request| request.nr |= high, Errno::NOTTY)?;
        probe.refused(|request| request.nr = high, Errno::NOTTY)?;
    }
    // Not the whole code, either.
    let code = code(D3DKMT_CREATEDEVICE::NR, D3DKMT_CREATEDEVICE::SIZE);
    probe.refused(|request| request.nr = code, Errno::NOTTY)?;
    probe.ends()
}

fn itself() -> TestResult {
    let probe = Probe::new()?;
    for size in [0, 24, 64] {
        probe.refused(
            |request| {
                request.nr = EXEC;
                request.size = size;
            },
            Errno::INVAL,
        )?;
    }
    probe.ends()
}

fn sizes() -> TestResult {
    let probe = Probe::new()?;
    let version = Dxg::open()?.version()?;
    let calls = CALLS.iter().filter(|(nr, ..)| version.implements(*nr));
    for (nr, size, _) in calls {
        for other in [
            0,
            size - 1,
            size + 1,
            size + 8,
            size | (1 << 16),
            size | (1 << 31),
            u32::MAX,
        ] {
            probe.refused(
                |request| {
                    request.nr = *nr;
                    request.size = other;
                },
                Errno::NOTTY,
            )?;
        }
    }
    probe.ends()
}

fn arguments() -> TestResult {
    let raw = fixture::raw()?;
    let page = Page::new()?;
    let mut arg = D3DKMT_CREATEDEVICE::zeroed();
    for address in [0, 1, UNMAPPED, KERNEL_HALF, u64::MAX, page.end() - 63] {
        let mut request = request(&mut arg);
        request.arg = address;
        ensure_eq!(
            raw.exec_request(&mut request),
            Ok(()),
            "argument at {address:#x}"
        );
        ensure_eq!(Status(request.ntstatus), Status::ACCESS_VIOLATION);
    }
    Ok(())
}

fn status() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    for before in [0, 1, -1, i32::MIN] {
        let mut arg = D3DKMT_CREATEDEVICE::zeroed();
        arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
        let mut request = request(&mut arg);
        request.ntstatus = before;
        raw.exec_request(&mut request)?;
        ensure_eq!(Status(request.ntstatus), Status::SUCCESS);
        let mut destroy = D3DKMT_DESTROYDEVICE {
            hDevice: arg.hDevice,
        };
        ensure_eq!(raw.exec(&mut destroy), Ok(Status::SUCCESS));
    }
    Ok(())
}

fn reserved() -> TestResult {
    let probe = Probe::new()?;
    for bit in 0..32 {
        probe.refused(|request| request.reserved = 1 << bit, Errno::INVAL)?;
    }
    probe.ends()
}

fn unreadable() -> TestResult {
    let raw = fixture::raw()?;
    let code = code(EXEC, 24);
    let page = Page::new()?;
    for address in [
        0,
        1,
        UNMAPPED,
        KERNEL_HALF,
        u64::MAX,
        page.end() - 1,
        page.end() - 23,
    ] {
        ensure_eq!(
            raw.ioctl(code, address),
            Err(Errno::FAULT),
            "exec struct at {address:#x}"
        );
    }
    Ok(())
}

fn unwritable() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    let watch = Watch::start()?;
    let mut arg = D3DKMT_CREATEDEVICE::zeroed();
    arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
    let request = request(&mut arg);
    let mut bytes = Vec::new();
    for word in [request.nr, request.size] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(request.arg.to_ne_bytes());
    bytes.extend([0; 8]);
    let page = Page::beginning_with(&bytes)?.read_only()?;
    ensure_eq!(raw.ioctl(code(EXEC, 24), page.address()), Err(Errno::FAULT));
    ensure_eq!(arg.hDevice, 0, "a device was made");
    watch.unchanged()
}

fn no_op() -> TestResult {
    let raw = fixture::raw()?;
    for arg in [0, UNMAPPED, u64::MAX] {
        ensure_eq!(raw.ioctl(code(NO_OP, 0), arg), Ok(0));
        let mut request = opendxg_exec {
            nr: NO_OP,
            size: 0,
            arg,
            ntstatus: -1,
            reserved: 0,
        };
        ensure_eq!(raw.exec_request(&mut request), Ok(()));
        ensure_eq!(Status(request.ntstatus), Status::SUCCESS);
    }
    Ok(())
}
