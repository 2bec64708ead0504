// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was refused to a process.

use super::objects::chosen;
use super::text::known;
use crate::refusals::Refusal;
use crate::table::Table;
use crate::world::World;

/// The last one comes first.
pub(super) fn refusals(world: &World, pid: u32) -> Result<&[Refusal], String> {
    let process = chosen(world, Some(pid))?;
    Ok(process.first().map_or(&[], |process| &process.refusals))
}

pub(super) fn why(world: &World, pid: u32) -> Result<String, String> {
    let refusals = refusals(world, pid)?;
    if refusals.is_empty() {
        return Ok(format!("no call of process {pid} was refused\n"));
    }
    let mut table = Table::new(&["SECONDS AGO", "CALL", "NAME", "ANSWER", "TIMES", "RULES"]);
    for refusal in refusals {
        table.row([
            seconds(refusal.ago_ns),
            format!("{:#04x}", refusal.call),
            refusal.name.clone().unwrap_or("-".into()),
            refusal.answer(),
            known(refusal.times),
            refusal.rules().unwrap_or("-").into(),
        ]);
    }
    Ok(table.to_string())
}

fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}
