// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes that are no call: wrong size, direction, type or number.

use opendxg::raw::{code, exact_code, Raw, CALLS};
use opendxg::{Dxg, NO_OP};
use rustix::io::Errno;
use selftests::leak::Watch;
use selftests::memory::{Page, UNMAPPED};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("ABI-1 a code with another size is ENOTTY", sizes)
        .test(
            "ABI-1 a code with another direction or type is ENOTTY",
            directions,
        )
        .test("ABI-1 numbers that are not implemented are ENOTTY", numbers)
        .test(
            "ABI-1 the code is checked before the argument",
            before_argument,
        )
}

/// Every implemented number with the size of its argument.
fn implemented() -> TestResult<Vec<(u32, u32)>> {
    let numbers = Dxg::open()?.version()?;
    let calls = CALLS.iter().map(|(nr, size, _)| (*nr, *size));
    Ok(calls
        .chain([(NO_OP, 0)])
        .filter(|(nr, _)| numbers.implements(*nr))
        .collect())
}

/// What is needed to try codes.
struct Probe {
    raw: Raw,
    page: Page,
}

impl Probe {
    fn new() -> TestResult<Self> {
        let (raw, page) = (fixture::raw()?, Page::new()?);
        Ok(Self { raw, page })
    }

    /// The code is refused, and nothing is written to the argument.
    fn not_a_call(&self, code: u32) -> TestResult {
        let result = self.raw.ioctl(code, self.page.address());
        ensure_eq!(result, Err(Errno::NOTTY), "code {code:#x}");
        let written = self.page.bytes().iter().any(|byte| *byte != 0);
        ensure!(!written, "code {code:#x}: wrote");
        Ok(())
    }
}

fn sizes() -> TestResult {
    let probe = Probe::new()?;
    let watch = Watch::start()?;
    for (nr, size) in implemented()? {
        for other in [
            0,
            1,
            size.wrapping_sub(1),
            size + 1,
            size + 4,
            size + 8,
            2 * size,
            0x3fff,
        ] {
            if other != size && other <= 0x3fff {
                probe.not_a_call(code(nr, other))?;
                probe.not_a_call(exact_code(nr, other))?;
            }
        }
    }
    watch.unchanged()
}

fn directions() -> TestResult {
    let probe = Probe::new()?;
    let watch = Watch::start()?;
    for (nr, size) in implemented()? {
        let right = code(nr, size);
        for direction in 0..3 {
            for right in [right, exact_code(nr, size)] {
                probe.not_a_call((right & 0x3fff_ffff) | (direction << 30))?;
            }
        }
        // Also those that differ from 'G' or 'g' in one bit.
        let near = (0..8).flat_map(|bit| [b'G' ^ (1 << bit), b'g' ^ (1 << bit)]);
        for kind in near.chain([0, 1]).filter(|kind| !b"Gg".contains(kind)) {
            probe.not_a_call((right & 0xffff_00ff) | (u32::from(kind) << 8))?;
        }
    }
    watch.unchanged()
}

fn numbers() -> TestResult {
    let version = Dxg::open()?.version()?;
    let probe = Probe::new()?;
    let watch = Watch::start()?;
    for nr in (0..256).filter(|nr| !version.implements(*nr)) {
        let known = CALLS.iter().find(|(known, ..)| *known == nr);
        let sizes = [0, 4, 8, 16, 24, 40, 96];
        for size in sizes.into_iter().chain(known.map(|(_, size, _)| *size)) {
            probe.not_a_call(code(nr, size))?;
            probe.not_a_call(exact_code(nr, size))?;
        }
    }
    watch.unchanged()
}

fn before_argument() -> TestResult {
    let raw = fixture::raw()?;
    for (nr, size) in implemented()? {
        for address in [0, UNMAPPED, u64::MAX] {
            for code in [code(nr, size + 8), exact_code(nr, size + 8)] {
                let result = raw.ioctl(code, address);
                ensure_eq!(result, Err(Errno::NOTTY), "code {code:#x}");
            }
        }
    }
    Ok(())
}
