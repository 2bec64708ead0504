// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks as a Rust source file.

use std::fmt::Write;
use std::path::Path;

use crate::check::{Check, Demand};
use crate::generated::Generated;

/// What every source file starts with. `size_of_member` takes the address of a member of an
/// imagined value, which is never read.
const PRELUDE: &str = "\
#![no_std]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
#![allow(dead_code, unused_imports)]
use core::mem::{offset_of, size_of};
const fn size_of_member<T, M>(_: fn(*const T) -> *const M) -> usize {
    size_of::<M>()
}
";

/// The name that bindgen gives a member whose name is a keyword of Rust.
fn unkeyword(path: String) -> String {
    match path.as_str() {
        "type" => "type_".to_string(),
        _ => path,
    }
}

/// The conditions that `demand` puts on the generated types.
fn conditions(generated: &Generated, demand: &Demand) -> Vec<String> {
    match demand {
        Demand::Size { owner, bytes } => vec![format!("size_of::<{owner}>() == {bytes}")],
        Demand::Member {
            owner,
            path,
            offset,
            bytes,
        } => {
            // A member that is not there goes into the file as it is, for rustc to name it.
            let path = generated
                .resolve(owner, path)
                .unwrap_or_else(|| path.clone());
            let path = unkeyword(path);
            let size = bytes.map(|bytes| {
                let address = format!("unsafe {{ &raw const (*p).{path} }}");
                format!("size_of_member(|p: *const {owner}| {address}) == {bytes}")
            });
            [format!("offset_of!({owner}, {path}) == {offset}")]
                .into_iter()
                .chain(size)
                .collect()
        }
        Demand::Value { name, value } => vec![format!("{name} as i64 == {value}")],
    }
}

/// A source file that compiles exactly when all `checks` hold for the types in `file`.
pub fn source(generated: &Generated, file: &Path, checks: &[Check]) -> String {
    let mut text = format!("{PRELUDE}include!({:?});\n", file);
    for check in checks {
        for condition in conditions(generated, &check.demand) {
            writeln!(
                text,
                "const _: () = assert!({condition}, \"{}\");",
                check.origin
            )
            .expect("writing to a string");
        }
    }
    text
}
