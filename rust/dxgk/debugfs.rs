// SPDX-License-Identifier: GPL-2.0

//! Module-wide counters, and those of each adapter, in debugfs: `/sys/kernel/debug/opendxg`.
//!
//! What one process has is in the fdinfo of its own descriptors. What all processes have together
//! is for root, who is the only one that may look at each of them (RES-107).
//!
//! A kernel without debugfs, or one that is locked down, has no such directory, and nothing else
//! changes.

use super::{
    border::BorderCounts,
    report::Reports,
    stats::{
        Stats,
        TOTALS, //
    },
    sync::native_interrupts::NativeInterrupts,
    vidmm::{
        address_space::AddressSpace,
        paging_control::{
            paging_file,
            PagingFile, //
        },
        segment::AdapterMemory, //
    }, //
};
use crate::ddi::caps::Luid;
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    prelude::*,
    str::CString,
    sync::Arc, //
};

/// Shows the counters of an adapter until it is dropped. The drop waits for those who read.
pub(crate) type AdapterFile = Pin<KBox<File<Arc<Stats>>>>;

/// Shows what went wrong on an adapter, in the same way.
pub(in crate::dxgk) type ReportsFile = Pin<KBox<File<Arc<Reports>>>>;

/// Shows how often engines interrupted for native fences, in the same way.
pub(in crate::dxgk) type NativeFencesFile = Pin<KBox<File<Arc<NativeInterrupts>>>>;

/// Shows what there was of the border of an adapter, in the same way.
pub(in crate::dxgk) type CpuEventsFile = Pin<KBox<File<BorderCounts>>>;

/// Shows the page tables of the paging process of an adapter, in the same way.
pub(in crate::dxgk) type PageTablesFile = Pin<KBox<File<Arc<AddressSpace>>>>;

/// The directory. Dropping it removes it, when the files of adapters are gone too, and waits for
/// those who read.
pub(crate) struct Debugfs {
    dir: Dir,
    adapters: Dir,
    reports: Dir,
    native_fences: Dir,
    cpu_events: Dir,
    paging: Dir,
    page_tables: Dir,
    _totals: Pin<KBox<File<()>>>,
}

impl Debugfs {
    /// Makes the directory.
    pub(crate) fn new() -> Result<Self> {
        let dir = Dir::new(c"opendxg");
        let totals = dir.read_callback_file(c"totals", (), &show_totals);
        let totals = KBox::pin_init(totals, GFP_KERNEL)?;

        Ok(Self {
            adapters: dir.subdir(c"adapters"),
            reports: dir.subdir(c"reports"),
            native_fences: dir.subdir(c"native-fences"),
            cpu_events: dir.subdir(c"cpu-events"),
            paging: dir.subdir(c"paging"),
            page_tables: dir.subdir(c"page-tables"),
            dir,
            _totals: totals,
        })
    }

    /// A directory in it.
    pub(in crate::dxgk) fn subdir(&self, name: &CStr) -> Dir {
        self.dir.subdir(name)
    }

    /// The file of the adapter with this LUID, which has these counters.
    pub(in crate::dxgk) fn adapter_file(
        &self,
        luid: Luid,
        stats: &Arc<Stats>,
    ) -> Result<AdapterFile> {
        let name = file_name(luid)?;
        let file = self
            .adapters
            .read_callback_file(&name, stats.clone(), &show_adapter);

        KBox::pin_init(file, GFP_KERNEL)
    }

    /// The same for what went wrong there.
    pub(in crate::dxgk) fn reports_file(
        &self,
        luid: Luid,
        reports: &Arc<Reports>,
    ) -> Result<ReportsFile> {
        let name = file_name(luid)?;
        let file = self
            .reports
            .read_callback_file(&name, reports.clone(), &show_reports);

        KBox::pin_init(file, GFP_KERNEL)
    }

    /// The same for its native fences.
    pub(in crate::dxgk) fn native_fences_file(
        &self,
        luid: Luid,
        interrupts: &Arc<NativeInterrupts>,
    ) -> Result<NativeFencesFile> {
        let name = file_name(luid)?;
        let file =
            self.native_fences
                .read_callback_file(&name, interrupts.clone(), &show_native_fences);

        KBox::pin_init(file, GFP_KERNEL)
    }

    /// The same for what its memory manager does, see `vidmm/paging_control.rs`.
    pub(in crate::dxgk) fn paging_file(
        &self,
        luid: Luid,
        memory: &AdapterMemory,
    ) -> Result<PagingFile> {
        paging_file(&self.paging, &file_name(luid)?, memory)
    }

    /// The same for the page tables of its paging process, if it has one.
    pub(in crate::dxgk) fn page_tables_file(
        &self,
        luid: Luid,
        space: &Arc<AddressSpace>,
    ) -> Result<PageTablesFile> {
        let name = file_name(luid)?;
        let file = self
            .page_tables
            .read_callback_file(&name, space.clone(), &show_page_tables);

        KBox::pin_init(file, GFP_KERNEL)
    }

    /// The same for its CPU events, if they go across a border.
    pub(in crate::dxgk) fn cpu_events_file(
        &self,
        luid: Luid,
        border: BorderCounts,
    ) -> Result<CpuEventsFile> {
        let name = file_name(luid)?;
        let file = self
            .cpu_events
            .read_callback_file(&name, border, &show_cpu_events);

        KBox::pin_init(file, GFP_KERNEL)
    }
}

fn show_page_tables(space: &Arc<AddressSpace>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    space.show_tables(f)
}

/// What there was of the border of an adapter.
fn show_cpu_events(border: &BorderCounts, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    counts(border.each(), f)
}

/// What there was of native fences on an adapter.
fn show_native_fences(
    interrupts: &Arc<NativeInterrupts>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    interrupts.look_at_logs();
    counts(interrupts.each(), f)
}

/// What went wrong on an adapter.
fn show_reports(reports: &Arc<Reports>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    reports.show(f)
}

/// The name of an adapter's files: as configfs and the tool write it.
pub(in crate::dxgk) fn file_name(luid: Luid) -> Result<CString> {
    CString::try_from_fmt(fmt!("{:08x}:{:08x}", luid.high, luid.low))
}

/// How many of everything there are.
fn show_totals(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    counts(TOTALS.each(), f)
}

/// How many of everything belong to an adapter.
fn show_adapter(stats: &Arc<Stats>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    counts(stats.each_of_adapter(), f)
}

fn counts(
    numbers: impl Iterator<Item = (&'static str, u64)>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (name, number) in numbers {
        writeln!(f, "{name}:\t{number}")?;
    }
    Ok(())
}
