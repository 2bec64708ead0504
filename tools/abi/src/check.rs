// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the rows of the tables demand, independent of a language.

use std::collections::{BTreeMap, HashSet};

use crate::table::{Constant, Extent, Ioctl, Outside, Row};

/// One demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The type has this size.
    Size {
        /// The type.
        owner: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The member lies at this offset and has this size.
    Member {
        /// The type.
        owner: String,
        /// The member, with dots between levels.
        path: String,
        /// Its offset in bytes.
        offset: u64,
        /// Its size in bytes, where the table knows it.
        bytes: Option<u64>,
    },
    /// The constant has this value.
    Value {
        /// The constant.
        name: String,
        /// Its value; the bits of the value for an unsigned one above `i64::MAX`.
        value: i64,
    },
}

/// A demand and the row that makes it.
#[derive(Clone, Debug)]
pub struct Check {
    /// `table:line` and the subject, for messages.
    pub origin: String,
    /// The line of the row.
    pub line: usize,
    /// What must hold.
    pub demand: Demand,
}

/// Storage units of bit fields which the table does not name, as the headers name them.
const UNITS: [(&str, u64, &str); 2] = [
    ("D3DKMDT_DISPLAYMODE_FLAGS", 0, "Validation"),
    ("D3DKMDT_DISPLAYMODE_FLAGS", 4, "Properties"),
];

/// How the rows of the layout table divide.
#[derive(Debug, Default)]
pub struct Layout {
    /// What the headers must fulfil.
    pub checks: Vec<Check>,
    /// The rows that made at least one check.
    pub checked: HashSet<usize>,
    /// The rows of the form with 4-byte text, which only a program sees.
    pub program: HashSet<usize>,
    /// The rows of structs outside the headers.
    pub outside: HashSet<usize>,
}

impl Layout {
    /// Divides `rows`, leaving out the structs in `outside`.
    pub fn new(rows: &[Row], outside: &[Outside]) -> Self {
        let outside: HashSet<&str> = outside.iter().map(|row| row.owner.as_str()).collect();
        let wide: HashSet<&str> = rows
            .iter()
            .filter(|row| row.wchar16)
            .map(|row| row.owner.as_str())
            .collect();
        let mut owners: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        let mut layout = Self::default();
        for row in rows {
            if outside.contains(row.owner.as_str()) {
                layout.outside.insert(row.line);
            } else if wide.contains(row.owner.as_str()) && !row.wchar16 {
                layout.program.insert(row.line);
            } else {
                owners.entry(&row.owner).or_default().push(row);
            }
        }
        for rows in owners.values() {
            let form = Form { rows };
            for row in rows {
                let demands = form.demands(row);
                assert!(!demands.is_empty(), "row {} demands nothing", row.line);
                layout.checked.insert(row.line);
                layout
                    .checks
                    .extend(demands.into_iter().map(|demand| Check {
                        origin: format!("abi-layout.tsv:{} {}.{}", row.line, row.owner, row.path),
                        line: row.line,
                        demand,
                    }));
            }
        }
        layout
    }
}

/// The rows of one struct.
struct Form<'a> {
    rows: &'a [&'a Row],
}

impl Form<'_> {
    /// Whether the header writes the struct as a plain integer: nothing but bit fields, and
    /// perhaps the member that holds them all.
    fn is_integer(&self) -> bool {
        let bits = |row: &&Row| matches!(row.extent, Extent::Bits { .. });
        let owner = &self.rows[0].owner;
        self.rows.iter().all(|row| bits(row) || row.path == "Value")
            && self.rows.iter().any(bits)
            && !UNITS.iter().any(|(unit, ..)| unit == owner)
    }

    /// The member in which the bit fields below `parent` live, and its size where known.
    fn unit(&self, parent: &str, offset: u64) -> (String, Option<u64>) {
        let owner = &self.rows[0].owner;
        let size = |row: &Row| match row.extent {
            Extent::Bytes(bytes) => Some(bytes),
            Extent::Bits { .. } => None,
        };
        if !parent.is_empty() {
            let row = self.rows.iter().find(|row| row.path == parent);
            return (parent.to_string(), row.and_then(|row| size(row)));
        }
        if let Some((.., member)) = UNITS
            .iter()
            .find(|(unit, at, _)| unit == owner && *at == offset)
        {
            return ((*member).to_string(), Some(4));
        }
        let row = self
            .rows
            .iter()
            .find(|row| row.offset == offset && !row.path.contains('.') && size(row).is_some())
            .unwrap_or_else(|| panic!("{owner}: no member holds the bits at {offset}"));
        (row.path.clone(), size(row))
    }

    /// Everything one row demands.
    fn demands(&self, row: &Row) -> Vec<Demand> {
        let owner = row.owner.clone();
        let whole = Demand::Size {
            owner: owner.clone(),
            bytes: row.size,
        };
        let (parent, leaf) = row.path.rsplit_once('.').unwrap_or(("", &row.path));
        let member = |path: String, bytes| Demand::Member {
            owner: owner.clone(),
            path,
            offset: row.offset,
            bytes,
        };
        match row.extent {
            // An array behind the struct: it starts where the struct ends.
            Extent::Bytes(0) => {
                assert_eq!(row.offset, row.size, "{owner}.{}", row.path);
                vec![whole]
            }
            Extent::Bytes(_) if self.is_integer() => {
                assert_eq!(row.offset, 0, "{owner}.{}", row.path);
                vec![whole]
            }
            Extent::Bytes(bytes) => {
                // `Flags.Value` is the integer `Flags` itself.
                let holds_bits = self.rows.iter().any(|other| {
                    matches!(other.extent, Extent::Bits { .. })
                        && other.path.rsplit_once('.').map_or("", |(head, _)| head) == parent
                });
                let path = if leaf == "Value" && !parent.is_empty() && holds_bits {
                    parent.to_string()
                } else {
                    row.path.clone()
                };
                vec![whole, member(path, Some(bytes))]
            }
            Extent::Bits { first, width } => {
                let mask = (u64::MAX >> (64 - width)) << first;
                let mut demands = vec![
                    whole,
                    Demand::Value {
                        name: format!("{owner}_{}", row.path.replace('.', "_")),
                        value: mask as i64,
                    },
                ];
                let bytes = if self.is_integer() {
                    assert_eq!(row.offset, 0, "{owner}.{}", row.path);
                    Some(row.size)
                } else {
                    let (path, bytes) = self.unit(parent, row.offset);
                    demands.push(member(path, bytes));
                    bytes
                };
                let bits = 8 * bytes.expect("the size of a storage unit is known");
                assert!(u64::from(first + width) <= bits, "{owner}.{}", row.path);
                demands
            }
        }
    }
}

/// The demands of the ioctl table.
pub fn ioctls(rows: &[Ioctl]) -> Vec<Check> {
    rows.iter()
        .flat_map(|row| {
            let name = row.name();
            let value = |prefix: &str, value: u64| Demand::Value {
                name: format!("{prefix}_{name}"),
                value: value as i64,
            };
            let size = row.argument.as_ref().map(|owner| Demand::Size {
                owner: owner.clone(),
                bytes: row.size,
            });
            let origin = format!("ioctls.tsv:{} {name}", row.line);
            [value("DXG_NR", row.nr), value("DXG_IOCTL", row.code)]
                .into_iter()
                .chain(size)
                .map(move |demand| Check {
                    origin: origin.clone(),
                    line: row.line,
                    demand,
                })
        })
        .collect()
}

/// The demands of the table of constants.
pub fn constants(rows: &[Constant]) -> Vec<Check> {
    rows.iter()
        .map(|row| Check {
            origin: format!("constants.tsv:{} {}", row.line, row.name),
            line: row.line,
            demand: Demand::Value {
                name: row.name.clone(),
                value: row.value,
            },
        })
        .collect()
}

/// The same demand with a wrong number, which every compiler must refuse.
pub fn spoil(check: &Check) -> Check {
    let mut wrong = check.clone();
    match &mut wrong.demand {
        Demand::Size { bytes, .. } => *bytes += 1,
        Demand::Member { offset, .. } => *offset += 1,
        Demand::Value { value, .. } => *value ^= 1,
    }
    wrong
}
