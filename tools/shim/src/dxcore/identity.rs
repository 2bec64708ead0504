// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a developer makes the software adapter look like: `OPENDXG_DXCORE_IDENTITY`.
//!
//! ```text
//! OPENDXG_DXCORE_IDENTITY='vendor=0x8086,device=0x56a0,is-hardware=1,description=Arc A770'
//! ```
//!
//! Items are separated by commas. `description` comes last, because it takes the rest, commas
//! included. A value that is not understood changes nothing, and the library says so once on
//! standard error: the one who set the variable reads it there. Programs that run with more
//! rights than their caller do not read it.

use core::ffi::{c_char, CStr};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of the variable.
const VARIABLE: &CStr = c"OPENDXG_DXCORE_IDENTITY";

/// Bytes of a description.
const MAX_DESCRIPTION: usize = 255;

extern "C" {
    /// `getenv` for programs that do not run with more rights than their caller.
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// What differs from the adapter's own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity<'a> {
    pub(super) vendor: Option<u32>,
    pub(super) device: Option<u32>,
    pub(super) is_hardware: Option<bool>,
    pub(super) description: Option<&'a str>,
}

/// Runs `with` with what the environment asks for.
pub(super) fn from_environment<T>(with: impl FnOnce(Identity<'_>) -> T) -> T {
    // SAFETY: a terminated name. As with every use of the environment, the program does not change
    // the variable meanwhile.
    let value = unsafe { secure_getenv(VARIABLE.as_ptr()) };
    if value.is_null() {
        return with(Identity::default());
    }
    // SAFETY: a variable's value is a terminated text.
    let value = unsafe { CStr::from_ptr(value) };
    let parsed = value.to_str().ok().and_then(parse);
    if parsed.is_none() {
        complain();
    }
    with(parsed.unwrap_or_default())
}

fn complain() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let text = "libdxcore: OPENDXG_DXCORE_IDENTITY is not understood and ignored; \
                    it looks like vendor=N,device=N,is-hardware=0|1,description=TEXT\n";
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

fn parse(mut text: &str) -> Option<Identity<'_>> {
    let mut identity = Identity::default();
    while !text.is_empty() {
        if let Some(description) = text.strip_prefix("description=") {
            identity.description = Some(description);
            return is_description(description).then_some(identity);
        }
        let (item, rest) = text.split_once(',').unwrap_or((text, ""));
        let (name, value) = item.split_once('=')?;
        match name {
            "vendor" => identity.vendor = Some(number(value)?),
            "device" => identity.device = Some(number(value)?),
            "is-hardware" => identity.is_hardware = Some(truth(value)?),
            _ => return None,
        }
        text = rest;
    }
    Some(identity)
}

fn is_description(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_DESCRIPTION && !text.chars().any(char::is_control)
}

/// A decimal number, or a hexadecimal one with `0x` in front.
fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
    u32::from_str_radix(digits, radix).ok()
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_in_any_order_and_a_description_with_commas() {
        let text = "is-hardware=1,device=7,vendor=0x8086,description=one, two=2";
        let expected = Identity {
            vendor: Some(0x8086),
            device: Some(7),
            is_hardware: Some(true),
            description: Some("one, two=2"),
        };
        assert_eq!(parse(text), Some(expected));
        let one = Identity {
            is_hardware: Some(false),
            ..Identity::default()
        };
        assert_eq!(parse("is-hardware=0"), Some(one));
        assert_eq!(parse(""), Some(Identity::default()));
    }

    #[test]
    fn one_mistake_refuses_all() {
        let long = format!("description={}", "x".repeat(MAX_DESCRIPTION + 1));
        for text in [
            "vendor",
            "vendor=",
            "vendor=+1",
            "vendor=0x+1",
            "vendor=0x1ffffffff",
            "vendor=-1",
            "vendor=0x8086 ",
            "is-hardware=true",
            "luid=3",
            "device=1,description=",
            "device=1,description=bad\ttext",
            "description=bad\u{1b}[2J",
            ",vendor=1",
            &long,
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
