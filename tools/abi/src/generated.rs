// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names in `rust/uapi/generated.rs`, as far as the checks need them.
//!
//! bindgen gives an unnamed union a member `__bindgen_anon_N`, which the tables do not know. The
//! members are read from the text to find the way through them.

use std::collections::{BTreeSet, HashMap};

/// The members of every struct and union: name and type, in order.
#[derive(Debug, Default)]
pub struct Generated {
    owners: HashMap<String, Vec<(String, String)>>,
    aliases: HashMap<String, String>,
    constants: BTreeSet<String>,
}

impl Generated {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Self {
        let mut generated = Self::default();
        let mut current: Option<String> = None;
        for line in text.lines() {
            let item = line.strip_prefix("pub ");
            if let Some(rest) =
                item.and_then(|item| item.strip_prefix("struct ").or(item.strip_prefix("union ")))
            {
                let name = rest.trim_end_matches([' ', '{']).to_string();
                generated.owners.insert(name.clone(), Vec::new());
                current = Some(name);
            } else if let Some((name, target)) = item
                .and_then(|item| item.strip_prefix("type "))
                .and_then(|rest| rest.trim_end_matches(';').split_once(" = "))
            {
                generated.aliases.insert(name.into(), target.into());
            } else if let Some((name, _)) = item
                .and_then(|item| item.strip_prefix("const "))
                .and_then(|rest| rest.split_once(':'))
            {
                generated.constants.insert(name.into());
            } else if line == "}" {
                current = None;
            } else if let (Some(owner), Some((name, kind))) = (
                &current,
                line.trim_start()
                    .strip_prefix("pub ")
                    .and_then(|member| member.trim_end_matches(',').split_once(": ")),
            ) {
                let members = generated.owners.get_mut(owner).expect("inserted above");
                members.push((name.into(), kind.into()));
            }
        }
        generated
    }

    /// The constants.
    pub fn constants(&self) -> &BTreeSet<String> {
        &self.constants
    }

    /// The number of structs and unions.
    pub fn owners(&self) -> usize {
        self.owners.len()
    }

    /// Whether the file has a type of this name.
    pub fn has_type(&self, name: &str) -> bool {
        self.owners.contains_key(name) || self.aliases.contains_key(name)
    }

    fn members<'a>(&'a self, mut owner: &'a str) -> Option<&'a [(String, String)]> {
        while let Some(target) = self.aliases.get(owner) {
            owner = target;
        }
        self.owners.get(owner).map(Vec::as_slice)
    }

    /// The way from `owner` to its member `name`, through unnamed unions, and the member's type.
    fn step<'a>(&'a self, owner: &'a str, name: &str) -> Option<(String, &'a str)> {
        let members = self.members(owner)?;
        if let Some((_, kind)) = members.iter().find(|(member, _)| member == name) {
            return Some((name.into(), kind));
        }
        members
            .iter()
            .filter(|(member, _)| member.starts_with("__bindgen_anon_"))
            .find_map(|(member, kind)| {
                let (way, found) = self.step(kind, name)?;
                Some((format!("{member}.{way}"), found))
            })
    }

    /// The Rust path of `path` in `owner`.
    pub fn resolve(&self, owner: &str, path: &str) -> Option<String> {
        let mut owner = owner;
        let mut ways = Vec::new();
        for name in path.split('.') {
            let (way, kind) = self.step(owner, name)?;
            ways.push(way);
            owner = kind;
        }
        Some(ways.join("."))
    }
}
