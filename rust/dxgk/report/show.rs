// SPDX-License-Identifier: GPL-2.0

//! The reports as debugfs shows them, the oldest first: a line with a number and words `NAME=VALUE`
//! for each, and lines for what belongs to it. The tool `opendxg` reads them.

use super::{
    Done,
    Found,
    Kind,
    Report,
    Reports, //
};
use crate::{
    ddi::paging::{
        PageSize,
        PageTableEntry, //
    },
    dxgk::{
        sched::snapshot,
        vidmm::walk::Walk, //
    },
    sys::time::now_ns, //
};
use kernel::fmt;

impl Reports {
    /// Prints those that are kept.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = 0;

        // Who writes one waits for the print of one other at most.
        loop {
            let kept = self.kept.lock();
            let later = kept.reports.iter().filter(|one| one.number > seen);
            let Some(report) = later.min_by_key(|one| one.number) else {
                return Ok(());
            };

            seen = report.number;
            report.show(now_ns(), f)?;
        }
    }
}

impl Report {
    fn show(&self, now_ns: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at_ns, .. } = *self;
        let ago_ns = now_ns.saturating_sub(at_ns);

        write!(
            f,
            "report:\t{number} kind={} done={} time_ns={at_ns} ago_ns={ago_ns}",
            self.kind.name(),
            self.done.name()
        )?;
        if let Some(node) = self.node {
            write!(f, " node={node}")?;
        }
        if let Some(guilty) = self.guilty {
            write!(f, " queue={guilty}")?;
        }
        // That which is the reason is the first one.
        if let Some(first) = self
            .queues
            .first()
            .filter(|one| Some(one.id) == self.guilty)
        {
            write!(f, " pid={}", first.pid)?;
        }
        if let Some(fault) = &self.fault {
            snapshot::fault(fault, f)?;
        } else if self.info.queue.is_some() {
            let stale = u32::from(self.info.is_stale);

            write!(f, " packet={:#x} stale={stale}", self.info.packet)?;
        }
        writeln!(f)?;
        self.show_dwords(f)?;
        match &self.found {
            Found::NotAsked => {}
            Found::Busy => writeln!(f, "walk:\tbusy")?,
            Found::Walk(walk) => show_walk(walk, f)?,
        }
        for queue in &self.queues {
            snapshot::line(queue, &[self.guilty], f)?;
        }
        if self.more != 0 {
            writeln!(f, "queues-more:\t{}", self.more)?;
        }
        Ok(())
    }

    fn show_dwords(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dwords = self.info.dwords.iter().take(self.info.count);

        if self.info.count == 0 {
            return Ok(());
        }
        write!(f, "dwords:\t")?;
        for (place, dword) in dwords.enumerate() {
            let space = if place == 0 { "" } else { " " };

            write!(f, "{space}{dword:08x}")?;
        }
        writeln!(f)
    }
}

/// Prints the way of an engine, from the root down, up to where it ends.
fn show_walk(walk: &Walk, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "walk:\tdone")?;
    for step in walk.steps() {
        write!(f, "level:\t{} index={}", step.level, step.index)?;
        match step.entry {
            None => writeln!(f, " entry=busy")?,
            Some(PageTableEntry::Invalid) => writeln!(f, " entry=invalid")?,
            Some(PageTableEntry::Zero) => writeln!(f, " entry=zero")?,
            Some(PageTableEntry::Page(page)) => {
                let kind = match step.level {
                    0 => "page",
                    _ => "table",
                };
                let kib = match page.page_size {
                    PageSize::Kib4 => 4,
                    PageSize::Kib64 => 64,
                };

                writeln!(
                    f,
                    " entry={kind} segment={} address={:#x} kib={kib} write={}",
                    page.segment,
                    page.address,
                    u32::from(!page.read_only)
                )?;
            }
        }
    }
    Ok(())
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::QueueHang => "queue-hang",
            Self::EngineHang => "engine-hang",
            Self::Requested => "requested",
            Self::Paging => "paging",
            Self::Fault => "fault",
        }
    }
}

impl Done {
    fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in-progress",
            Self::EngineReset => "engine-reset",
            Self::AdapterReset => "adapter-reset",
            Self::Stopped => "adapter-stopped",
            Self::Nothing => "none",
        }
    }
}
