// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks as a C or C++ source file.

use std::fmt::Write;

use crate::check::{Check, Demand};

/// The keyword of a compile-time assertion.
#[derive(Clone, Copy, Debug)]
pub enum Dialect {
    /// `_Static_assert`.
    C,
    /// `static_assert`.
    Cpp,
}

/// A type as C spells it: the structs in lower case have no typedef.
fn spelled(owner: &str) -> String {
    if owner.starts_with(char::is_lowercase) {
        format!("struct {owner}")
    } else {
        owner.to_string()
    }
}

/// The conditions that `demand` puts on the headers.
fn conditions(demand: &Demand) -> Vec<String> {
    match demand {
        Demand::Size { owner, bytes } => vec![format!("sizeof({}) == {bytes}", spelled(owner))],
        Demand::Member {
            owner,
            path,
            offset,
            bytes,
        } => {
            let owner = spelled(owner);
            let size = bytes.map(|bytes| format!("sizeof((({owner} *)0)->{path}) == {bytes}"));
            [format!("__builtin_offsetof({owner}, {path}) == {offset}")]
                .into_iter()
                .chain(size)
                .collect()
        }
        // As signed 64-bit numbers a negative constant keeps its sign and an unsigned one its
        // bits.
        Demand::Value { name, value } => {
            vec![format!(
                "(long long)({name}) == (long long){:#x}ULL",
                *value as u64
            )]
        }
    }
}

/// A source file that compiles exactly when all `checks` hold for `header`.
pub fn source(dialect: Dialect, header: &str, checks: &[Check]) -> String {
    let keyword = match dialect {
        Dialect::C => "_Static_assert",
        Dialect::Cpp => "static_assert",
    };
    let mut text = format!("#include \"{header}\"\n");
    for check in checks {
        for condition in conditions(&check.demand) {
            writeln!(text, "{keyword}({condition}, \"{}\");", check.origin)
                .expect("writing to a string");
        }
    }
    text
}
