// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description is complete.

use std::collections::BTreeSet;

use opendxg::raw::CALLS;
use opendxg::uapi::{DXG_NR_SIGNAL_NT, DXG_NR_VALUE_NT, DXG_NR_WAIT_NT, DXG_NR_WATCH_STATE};
use opendxg::{Dxg, NO_OP};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_negative::layout;
use crate::t_negative::table::{forms, Form};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("NEG-complete every implemented call is described", numbers)
        .test(
            "NEG-complete every byte of every struct is described once",
            bytes,
        )
        .test("NEG-complete every documented member is described", members)
        .test(
            "NEG-complete names and sizes are those of the headers",
            headers,
        )
}

fn numbers() -> TestResult {
    let implemented: BTreeSet<u32> = Dxg::open()?.version()?.numbers().collect();
    let mut described: BTreeSet<u32> = forms().iter().map(|form| form.nr).collect();
    // Has no argument.
    described.insert(NO_OP);
    // Not calls of the device.
    for other in [
        DXG_NR_WATCH_STATE,
        DXG_NR_SIGNAL_NT,
        DXG_NR_WAIT_NT,
        DXG_NR_VALUE_NT,
    ] {
        ensure!(described.remove(&other), "{other:#x} is described");
    }
    ensure_eq!(described, implemented, "described, implemented");
    Ok(())
}

fn bytes() -> TestResult {
    for form in forms() {
        let mut next = 0;
        for field in &form.fields {
            ensure_eq!(field.at, next, "{}: {} begins", form.title(), field.name);
            next += field.size;
        }
        ensure_eq!(
            next,
            form.size as usize,
            "{}: described bytes",
            form.title()
        );
    }
    Ok(())
}

/// Whether fields of a form begin and end where a member does.
fn fits(form: &Form, start: usize, end: usize) -> bool {
    form.fields.iter().any(|field| field.at == start)
        && form.fields.iter().any(|field| field.at + field.size == end)
}

fn members() -> TestResult {
    let mut checked = 0;
    for name in forms().iter().map(|form| form.name) {
        let of_struct: Vec<&Form> = forms().iter().filter(|form| form.name == name).collect();
        for (member, start, size) in layout::members(name) {
            let end = start + size;
            let is_described = of_struct.iter().any(|form| fits(form, start, end));
            ensure!(
                is_described,
                "{name}.{member} ({start}..{end}) is not described"
            );
            checked += 1;
        }
    }
    ensure!(checked > 80, "only {checked} members were found");
    Ok(())
}

fn headers() -> TestResult {
    for form in forms() {
        let call = CALLS.iter().find(|(nr, ..)| *nr == form.nr);
        ensure_eq!(call, Some(&(form.nr, form.size, form.name)));
    }
    Ok(())
}
