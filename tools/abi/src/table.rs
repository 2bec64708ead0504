// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables in `Documentation/abi/`: tab-separated, `#` starts a comment line.

use std::path::Path;

/// What a row of the layout table says about a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A member of so many bytes; 0 for an array that starts where the struct ends.
    Bytes(u64),
    /// A bit field, counted from the least significant bit of its storage unit.
    Bits {
        /// The lowest bit.
        first: u32,
        /// The number of bits.
        width: u32,
    },
}

/// One row of `abi-layout.tsv`.
#[derive(Clone, Debug)]
pub struct Row {
    /// The line in the file.
    pub line: usize,
    /// The struct, without the suffix that marks its 16-bit text form.
    pub owner: String,
    /// Whether the row describes the form with 16-bit text.
    pub wchar16: bool,
    /// The size of the struct.
    pub size: u64,
    /// The member, with dots between levels.
    pub path: String,
    /// The byte offset of the member, or of the storage unit of the bit field.
    pub offset: u64,
    /// How much the member takes there.
    pub extent: Extent,
}

/// One row of `ioctls.tsv`.
#[derive(Clone, Debug)]
pub struct Ioctl {
    /// The line in the file.
    pub line: usize,
    /// The number of the call.
    pub nr: u64,
    /// The argument struct, absent for a call without argument.
    pub argument: Option<String>,
    /// The size of the argument.
    pub size: u64,
    /// The complete code.
    pub code: u64,
}

impl Ioctl {
    /// The name of the call in the constants `DXG_NR_…` and `DXG_IOCTL_…`.
    pub fn name(&self) -> String {
        let Some(argument) = &self.argument else {
            return "NOP".into();
        };
        ["D3DKMT_", "D3DDDI_", "d3dkmt_", "opendxg_"]
            .iter()
            .find_map(|prefix| argument.strip_prefix(prefix))
            .unwrap_or(argument)
            .to_uppercase()
    }
}

/// One row of `constants.tsv`.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The line in the file.
    pub line: usize,
    /// The name.
    pub name: String,
    /// The value, signed where the constant is.
    pub value: i64,
}

/// One row of `outside.tsv`: a struct that is not part of the headers.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The struct.
    pub owner: String,
    /// Why it is not there.
    pub reason: String,
}

/// The lines of a table that are not comments, with their numbers, split into fields.
fn fields<const N: usize>(path: &Path) -> Vec<(usize, [String; N])> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            let fields: Vec<String> = line.split('\t').map(String::from).collect();
            let fields = fields.try_into().unwrap_or_else(|fields: Vec<_>| {
                let file = path.display();
                panic!("{file}:{}: {} fields, not {N}", index + 1, fields.len())
            });
            (index + 1, fields)
        })
        .collect()
}

/// A number in decimal or, after `0x`, in hexadecimal digits.
fn number(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map(|value| value as i64),
        None => digits.parse(),
    };
    let value = value.unwrap_or_else(|error| panic!("number {text:?}: {error}"));
    if negative {
        -value
    } else {
        value
    }
}

/// A number that cannot be negative.
fn unsigned(text: &str) -> u64 {
    number(text)
        .try_into()
        .unwrap_or_else(|_| panic!("number {text:?} is negative"))
}

/// Reads `abi-layout.tsv`.
pub fn layout(directory: &Path) -> Vec<Row> {
    fields(&directory.join("abi-layout.tsv"))
        .into_iter()
        .map(|(line, [owner, size, path, offset, extent])| {
            let (owner, wchar16) = match owner.strip_suffix("@wchar16") {
                Some(owner) => (owner.to_string(), true),
                None => (owner, false),
            };
            let extent = match extent.split_once(':') {
                Some((first, width)) => Extent::Bits {
                    first: unsigned(first) as u32,
                    width: unsigned(width) as u32,
                },
                None => Extent::Bytes(unsigned(&extent)),
            };
            Row {
                line,
                owner,
                wchar16,
                size: unsigned(&size),
                path,
                offset: unsigned(&offset),
                extent,
            }
        })
        .collect()
}

/// Reads `ioctls.tsv`.
pub fn ioctls(directory: &Path) -> Vec<Ioctl> {
    fields(&directory.join("ioctls.tsv"))
        .into_iter()
        .map(|(line, [nr, argument, size, code])| Ioctl {
            line,
            nr: unsigned(&nr),
            argument: (argument != "-").then_some(argument),
            size: unsigned(&size),
            code: unsigned(&code),
        })
        .collect()
}

/// Reads `constants.tsv`.
pub fn constants(directory: &Path) -> Vec<Constant> {
    fields(&directory.join("constants.tsv"))
        .into_iter()
        .map(|(line, [name, value])| Constant {
            line,
            name,
            value: number(&value),
        })
        .collect()
}

/// Reads `outside.tsv`.
pub fn outside(directory: &Path) -> Vec<Outside> {
    fields(&directory.join("outside.tsv"))
        .into_iter()
        .map(|(_, [owner, reason])| Outside { owner, reason })
        .collect()
}
