// SPDX-License-Identifier: GPL-2.0

//! The files of debugfs that show what engines and queues do, one of each for an adapter that runs.

use super::show;
use crate::dxgk::{
    adapter::Adapter,
    debugfs::{
        file_name,
        Debugfs, //
    }, //
};
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A file about an adapter that runs. It keeps the adapter.
type GpuFile = Pin<KBox<File<Arc<Adapter>>>>;

/// Shows the engines and the queues of an adapter.
struct Shown {
    adapter: u64,
    _engines: GpuFile,
    _queues: GpuFile,
}

/// The files of all adapters. Dropping it removes them, and waits for those who read.
///
/// LOCK: `shown` is a leaf. Files are made and removed without it.
#[pin_data]
pub(crate) struct GpuFiles {
    engines: Dir,
    queues: Dir,
    /// The adapters that run.
    #[pin]
    shown: Mutex<KVec<Shown>>,
}

impl GpuFiles {
    /// Without adapters.
    pub(in crate::dxgk) fn new(debugfs: &Debugfs) -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                engines: debugfs.subdir(c"engines"),
                queues: debugfs.subdir(c"queues"),
                shown <- new_mutex!(KVec::new(), "GpuFiles::shown"),
            }),
            GFP_KERNEL,
        )
    }

    /// Shows the engines and the queues of an adapter, until [`GpuFiles::hide`].
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
}

/// What the engines of an adapter do.
fn show_engines(adapter: &Arc<Adapter>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show::engines(adapter, f)
}

/// The queues of an adapter.
fn show_queues(adapter: &Arc<Adapter>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show::queues(adapter, f)
}
