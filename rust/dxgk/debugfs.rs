// SPDX-License-Identifier: GPL-2.0

//! Module-wide counters, and those of each adapter, in debugfs: `/sys/kernel/debug/opendxg`.
//!
//! What one process has is in the fdinfo of its own descriptors. What all processes have together
//! is for root, who is the only one that may look at each of them (RES-107).
//!
//! A kernel without debugfs, or one that is locked down, has no such directory, and nothing else
//! changes.

use super::{
    adapter::Adapter,
    sched::show,
    stats::{
        Stats,
        TOTALS, //
    }, //
};
use crate::ddi::caps::Luid;
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// Shows the counters of an adapter until it is dropped. The drop waits for those who read.
pub(crate) type AdapterFile = Pin<KBox<File<Arc<Stats>>>>;

/// A file about an adapter that runs. It keeps the adapter.
type GpuFile = Pin<KBox<File<Arc<Adapter>>>>;

/// Shows the engines and the queues of an adapter.
struct Shown {
    adapter: u64,
    _engines: GpuFile,
    _queues: GpuFile,
}

/// The directory. Dropping it removes it, when the files of adapters are gone too, and waits for
/// those who read.
///
/// LOCK: `shown` is a leaf. Files are made and removed without it.
#[pin_data]
pub(crate) struct Debugfs {
    adapters: Dir,
    engines: Dir,
    queues: Dir,
    _totals: Pin<KBox<File<()>>>,
    /// The adapters that run.
    #[pin]
    shown: Mutex<KVec<Shown>>,
}

impl Debugfs {
    /// Makes the directory.
    pub(crate) fn new() -> Result<Pin<KBox<Self>>> {
        let dir = Dir::new(c"opendxg");
        let totals = dir.read_callback_file(c"totals", (), &show_totals);
        let totals = KBox::pin_init(totals, GFP_KERNEL)?;

        KBox::pin_init(
            pin_init!(Self {
                adapters: dir.subdir(c"adapters"),
                engines: dir.subdir(c"engines"),
                queues: dir.subdir(c"queues"),
                _totals: totals,
                shown <- new_mutex!(KVec::new(), "Debugfs::shown"),
            }),
            GFP_KERNEL,
        )
    }

    /// Shows the engines and the queues of an adapter, until [`Debugfs::hide`].
    ///
    /// Context: may sleep, no locks held but those that make adapters come one after the other.
    pub(in crate::dxgk) fn show(&self, adapter: &Arc<Adapter>) -> Result {
        let name = file_name(adapter.luid)?;
        let engines = self
            .engines
            .read_callback_file(&name, adapter.clone(), &show_engines);
        let queues = self
            .queues
            .read_callback_file(&name, adapter.clone(), &show_queues);
        let shown = Shown {
            adapter: adapter.id,
            _engines: KBox::pin_init(engines, GFP_KERNEL)?,
            _queues: KBox::pin_init(queues, GFP_KERNEL)?,
        };

        Ok(self.shown.lock().push(shown, GFP_KERNEL)?)
    }

    /// Shows them no more. Waits for those who read.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn hide(&self, adapter: &Adapter) {
        let hidden = {
            let mut shown = self.shown.lock();
            let place = shown.iter().position(|one| one.adapter == adapter.id);

            place.and_then(|place| shown.remove(place).ok())
        };

        drop(hidden);
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
}

/// As configfs and the tool write it.
fn file_name(luid: Luid) -> Result<CString> {
    CString::try_from_fmt(fmt!("{:08x}:{:08x}", luid.high, luid.low))
}

/// What the engines of an adapter do.
fn show_engines(adapter: &Arc<Adapter>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show::engines(adapter, f)
}

/// The queues of an adapter.
fn show_queues(adapter: &Arc<Adapter>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show::queues(adapter, f)
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
