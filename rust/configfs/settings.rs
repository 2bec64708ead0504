// SPDX-License-Identifier: GPL-2.0

//! The files of a directory that hold one property of the configuration each. They can be read at
//! any time, and written while the adapter is not there.

use super::{
    number,
    show,
    written,
    SoftAdapter, //
};
use crate::kmd::soft::{
    AdapterProfile,
    FenceAddresses,
    FenceMemory,
    MonitoredValues,
    NativeInterruptMode,
    SaveAreas,
    TableMemory,
    TableUpdates, //
};
use kernel::{
    configfs::AttributeOperations,
    page::PAGE_SIZE,
    prelude::*,
    str::kstrtobool_bytes, //
};

#[allow(unused_imports)] // The macro names it, in some releases of the kernel.
use crate::compat::*;

/// A property, as a file has it.
trait Setting: Sized {
    /// Writes its line, and says how long it is.
    fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize>;

    /// What somebody has written; EINVAL if it means nothing.
    fn read(page: &[u8]) -> Result<Self>;
}

impl Setting for bool {
    fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        show(page, fmt!("{}\n", u8::from(*self)))
    }

    fn read(page: &[u8]) -> Result<Self> {
        kstrtobool_bytes(page)
    }
}

impl Setting for u32 {
    fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        show(page, fmt!("{self}\n"))
    }

    fn read(page: &[u8]) -> Result<Self> {
        Self::try_from(number(page)?).map_err(|_| EINVAL)
    }
}

impl Setting for u64 {
    fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        show(page, fmt!("{self}\n"))
    }

    fn read(page: &[u8]) -> Result<Self> {
        number(page)
    }
}

/// Properties that are one of several, by its name.
macro_rules! by_name {
    ($($setting:ty),+ $(,)?) => {
        $(
            impl Setting for $setting {
                fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
                    show(page, fmt!("{}\n", self.name()))
                }

                fn read(page: &[u8]) -> Result<Self> {
                    written(page, Self::named)
                }
            }
        )+
    };
}

by_name!(
    AdapterProfile,
    FenceMemory,
    MonitoredValues,
    NativeInterruptMode,
    TableMemory,
    TableUpdates,
);

impl Setting for FenceAddresses {
    fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        show(page, fmt!("{}-{}\n", self.minimum, self.maximum))
    }

    fn read(page: &[u8]) -> Result<Self> {
        written(page, Self::read)
    }
}

impl Setting for SaveAreas {
    fn show(&self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let [kind, of, place, end] = self.words();

        show(page, fmt!("{kind}{of}{place}{end}\n"))
    }

    fn read(page: &[u8]) -> Result<Self> {
        written(page, Self::named)
    }
}

/// The files with these numbers, which [`configfs_attrs`](kernel::configfs_attrs) gives names.
macro_rules! files {
    ($($(#[$doc:meta])+ $number:literal => $($field:ident).+,)+) => {
        $(
            $(#[$doc])+
            #[vtable]
            impl AttributeOperations<$number> for SoftAdapter {
                type Data = Self;

                fn show(this: &Self, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
                    this.state.lock().config.$($field).+.show(page)
                }

                fn store(this: &Self, page: &[u8]) -> Result {
                    let setting = Setting::read(page)?;

                    this.configure(|config| config.$($field).+ = setting)
                }
            }
        )+
    };
}

files! {
    /// `local_memory`: bytes of dedicated video memory.
    2 => local_memory,
    /// `system_memory`: bytes of system memory that it may use.
    3 => system_memory,
    /// `nodes`: how many nodes it has.
    4 => nodes,
    /// `compute_only`: whether it computes only, instead of rendering too.
    5 => compute_only,
    /// `wddm_version`: the version of WDDM that it reports.
    6 => wddm_version,
    /// `profile`: what it does with memory, by the name of the specification.
    7 => profile,
    /// `idle_updates`: whether nothing of an address space may run while its page tables change.
    8 => idle_updates,
    /// `use_64kb_pages`: whether its own memory has pages of 64 KiB.
    9 => use_64kb_pages,
    /// `doorbells`: how many physical doorbells it has.
    10 => doorbells.count,
    /// `global_doorbells`: whether all queues have the same physical doorbell.
    11 => doorbells.global,
    /// `notify_doorbells`: whether processes have to call NotifyWorkSubmission after each ring.
    12 => doorbells.notify,
    /// `idle_f1`: whether an engine with nothing to do goes to F1.
    15 => doorbells.f1,
    /// `native_fences`: whether it has native fences, and what needs them (FEN-114).
    16 => native_fences,
    /// `native_interrupts`: how it tells that native fences are signalled (fences.md section 3.6).
    17 => native_interrupts,
    /// `monitored_values`: where its engines find MonitoredValue (GPU-57).
    18 => monitored_values,
    /// `fence_addresses`: where it wants its native fences (FEN-65).
    21 => fence_addresses,
    /// `fence_stride`: bytes between two of its native fences in a page (FEN-61).
    22 => fence_stride,
    /// `intra_gpu_fences`: whether it has native fences that packets alone use (FEN-130).
    23 => intra_gpu_fences,
    /// `lazy_logs`: whether its engines keep entries of logs back until they are asked for
    /// (GPU-78).
    24 => lazy_logs,
    /// `map_to_gpu_system_process`: whether its CMP reaches native fences in the paging process
    /// (FEN-119).
    25 => map_to_gpu_system_process,
    /// `fence_doorbells`: whether native fences have doorbells, which other adapters ring
    /// (FEN-159).
    26 => fence_doorbells,
    /// `fence_memory`: where words of its native fences are (FEN-63).
    27 => fence_memory,
    /// `save_areas`: which memory of its own a context has (MEM-82).
    28 => save_areas,
    /// `page_table_updates`: who updates page tables (MEM-51).
    29 => table_updates,
    /// `page_table_memory`: where page tables are (MEM-53).
    31 => tables,
}
