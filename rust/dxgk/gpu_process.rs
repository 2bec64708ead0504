// SPDX-License-Identifier: GPL-2.0

//! A process on one adapter: what its devices there have in common (GPU-3).
//!
//! The first device of a process on an adapter makes it, which is CreateProcess. It ends with the
//! last device, which is DestroyProcess. So it is found in a list of the process, and each device
//! has a [`GpuProcessUse`]. What engines have done for it stays known for longer.
//!
//! LOCK: `GpuProcesses::list` is held while the KMD makes the process on the adapter, so that there
//! is one for each adapter. Nothing is dropped under it.

use super::{
    adapter::Adapter,
    engine_use::{
        EngineUse,
        NamedUse,
        NodeName,
        PastUse, //
    },
    quota::holder::Holder,
    sched::queued_work::QueuedWork,
    stats::next_id,
    sync::{
        fence_mappings::FenceMappings,
        gpu_fences::GpuFences,
        native_interrupts::NativeInterrupts,
        native_storage::NativeStorage, //
    },
    vidmm::{
        address_space::{
            AddressSpace,
            Who, //
        },
        idle::IdleList,
        notice::Notices,
        reserved::Reservations, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object,
        types::ProcessId, //
    },
    error::{
        DxgResult,
        Status, //
    },
    sys::alloc::pin_arc, //
};
use core::ops::Deref;
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A process on one adapter.
pub(crate) struct GpuProcess {
    /// What the OS part calls it.
    pub(in crate::dxgk) id: u64,
    /// The process as the KMD has it.
    pub(in crate::dxgk) kmd: Arc<object::Process>,
    /// Its GPU addresses; `None` if the adapter has none.
    pub(in crate::dxgk) space: Option<Arc<AddressSpace>>,
    /// The fences that they show.
    pub(in crate::dxgk) fences: Arc<GpuFences>,
    /// Common pages of its native fences that are not all in system memory.
    pub(in crate::dxgk) native_storage: Arc<NativeStorage>,
    /// What waits for the work that its queues have.
    pub(in crate::dxgk) work: Arc<QueuedWork>,
    /// What engines have done for it.
    pub(in crate::dxgk) engines: Arc<EngineUse>,
    /// What the adapter counts of native fences, if it has any.
    native: Option<Arc<NativeInterrupts>>,
    /// Who is told when it ends.
    notices: Arc<Notices>,
}

impl GpuProcess {
    fn new(
        adapter: &Adapter,
        holder: &Arc<Holder>,
        engines: &Arc<EngineUse>,
        offered: &Arc<IdleList>,
        mappings: &Arc<FenceMappings>,
    ) -> DxgResult<Arc<Self>> {
        // No other process on any adapter has this number.
        let id = ProcessId(next_id());
        let class = Passive::here();
        let (kmd, space) = AddressSpace::with_process(
            &adapter.to_space(),
            Who::Client(id.0),
            holder.clone(),
            offered,
            |addresses| match &adapter.border {
                Some(border) => border.create_process(&adapter.port, &class, id, addresses),
                None => object::Process::create(&adapter.port, &class, id, addresses),
            },
        )?;
        let fences = GpuFences::new(adapter.id)?;
        let native_storage = NativeStorage::new(mappings.clone()).map_err(|_| Status::NO_MEMORY)?;
        let work = QueuedWork::new()?;

        Ok(Arc::new(
            Self {
                id: id.0,
                kmd,
                space,
                fences,
                native_storage,
                work,
                engines: engines.clone(),
                native: adapter
                    .has_native_fences()
                    .then(|| adapter.native_interrupts.clone()),
                notices: adapter.memory.notices.clone(),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}

/// One adapter that a process uses, or has used.
struct Used {
    /// The id of the adapter.
    adapter: u64,
    engines: Arc<EngineUse>,
    /// As long as it has devices.
    process: Option<Arc<GpuProcess>>,
    /// How many devices use it.
    devices: usize,
}

impl Used {
    /// What its engines of a name have done. Those of an adapter that is not used any more do not
    /// count as engines.
    fn named(&self, name: &NodeName) -> NamedUse {
        let all = self.engines.named(name);

        match self.devices {
            0 => NamedUse { engines: 0, ..all },
            _ => all,
        }
    }
}

/// The adapters that a process uses or has used.
struct List {
    adapters: KVec<Used>,
    /// Those that are forgotten.
    past: PastUse,
}

impl List {
    /// The name of a node, at a place among all that the process has met.
    fn name(&self, place: usize) -> Option<NodeName> {
        let mut place = place;

        for used in &self.adapters {
            match place.checked_sub(used.engines.nodes()) {
                Some(rest) => place = rest,
                None => return used.engines.name(place),
            }
        }
        self.past.name(place)
    }

    /// Whether no place before this one has the name.
    fn is_first(&self, name: &NodeName, place: usize) -> bool {
        (0..place).all(|before| self.name(before).as_ref() != Some(name))
    }

    /// What the engines of a name have done on all adapters.
    fn named(&self, name: &NodeName) -> NamedUse {
        let used = self.adapters.iter().map(|used| used.named(name));

        used.fold(self.past.named(name), NamedUse::and)
    }
}

/// How many adapters that a process does not use any more are remembered.
const PAST: usize = 16;

/// A process on all adapters that it uses.
#[pin_data]
pub(crate) struct GpuProcesses {
    /// What its address spaces take is charged to it.
    holder: Arc<Holder>,
    /// What it has reserved of their memory, with devices there or without.
    #[pin]
    pub(in crate::dxgk) reservations: Reservations,
    /// What it has offered and could go without (MEM-33).
    pub(crate) offered: Arc<IdleList>,
    #[pin]
    list: Mutex<List>,
}

impl GpuProcesses {
    /// It uses none.
    pub(crate) fn new(holder: Arc<Holder>) -> Result<Arc<Self>, AllocError> {
        let offered = IdleList::new(None)?;

        pin_arc(
            pin_init!(Self {
                holder,
                offered,
                reservations <- Reservations::new(),
                list <- new_mutex!(
                    List {
                        adapters: KVec::new(),
                        past: PastUse::new(),
                    },
                    "GpuProcesses::list"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// The process on this adapter, for one more device. It sees fences by `mappings`.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enter(
        self: &Arc<Self>,
        adapter: &Adapter,
        mappings: &Arc<FenceMappings>,
    ) -> DxgResult<GpuProcessUse> {
        let mut list = self.list.lock();
        let used = Self::remember(&mut list, adapter)?;
        let process = match &used.process {
            Some(process) => process.clone(),
            None => GpuProcess::new(
                adapter,
                &self.holder,
                &used.engines,
                &self.offered,
                mappings,
            )?,
        };

        used.process = Some(process.clone());
        // OVERFLOW: each is a device in memory.
        used.devices += 1;
        Ok(GpuProcessUse {
            list: self.clone(),
            process,
        })
    }

    /// The entry of an adapter in the list.
    fn remember<'a>(list: &'a mut List, adapter: &Adapter) -> DxgResult<&'a mut Used> {
        let List {
            adapters: list,
            past,
        } = list;
        let place = match list.iter().position(|used| used.adapter == adapter.id) {
            Some(place) => place,
            None => {
                let engines = EngineUse::new(adapter)?;
                let is_past = |used: &Used| used.devices == 0;

                list.reserve(1, GFP_KERNEL_ACCOUNT)?;
                // Adapters come and go. The oldest one is forgotten.
                if list.iter().filter(|used| is_past(used)).count() > PAST {
                    if let Some(oldest) = list.iter().position(is_past) {
                        if let Some(used) = list.get(oldest) {
                            past.reserve(used.engines.nodes())?;
                            past.add(&used.engines);
                        }
                        drop(list.remove(oldest));
                    }
                }
                // There is room.
                let _room = list.push_within_capacity(Used {
                    adapter: adapter.id,
                    engines,
                    process: None,
                    devices: 0,
                });
                list.len().saturating_sub(1)
            }
        };

        list.get_mut(place).ok_or(Status::NO_MEMORY.into())
    }

    /// What the engines of an adapter have done for it; `None` if it never had a device there.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn engines_on(&self, adapter: &Adapter) -> Option<Arc<EngineUse>> {
        let list = self.list.lock();
        let mut adapters = list.adapters.iter();
        let used = adapters.find(|used| used.adapter == adapter.id)?;

        Some(used.engines.clone())
    }

    /// The GPU addresses on this adapter; INVALID_PARAMETER if the process has no device there,
    /// which makes them.
    pub(crate) fn space_on(&self, adapter: &Adapter) -> DxgResult<Arc<AddressSpace>> {
        let list = self.list.lock();

        list.adapters
            .iter()
            .find(|used| used.adapter == adapter.id)
            .and_then(|used| used.process.as_ref())
            .ok_or(Status::INVALID_PARAMETER)?
            .space
            .clone()
            .ok_or(Status::NOT_SUPPORTED.into())
    }

    /// Prints into fdinfo what it has on each adapter.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn show(&self, m: &SeqFile) {
        let mut resident = None;

        for place in 0.. {
            let used = {
                let list = self.list.lock();

                list.adapters
                    .get(place)
                    .map(|used| (used.adapter, used.process.clone()))
            };
            let Some((adapter, process)) = used else {
                break;
            };

            let native = process.as_ref().and_then(|process| process.native.clone());

            if let Some(native) = native {
                seq_print!(m, "dxg-native-fences:\t{adapter}");
                for (name, count) in native.each() {
                    seq_print!(m, " {name}={count}");
                }
                seq_print!(m, "\n");
            }
            if let Some(space) = process.and_then(|process| process.space.clone()) {
                let (stretches, tables) = space.extent();
                let [local, system] = [0, 1].map(|group| space.usage(group));
                let (all_local, all_system) = resident.unwrap_or((0_u64, 0_u64));

                resident = Some((
                    all_local.saturating_add(local),
                    all_system.saturating_add(system),
                ));
                seq_print!(
                    m,
                    "dxg-gpu-memory:\t{adapter} ranges={stretches} page-tables={tables}"
                );
                seq_print!(m, " resident-local={local} resident-system={system}\n");
            }
        }
        // What engines reach. Without GPU addresses nothing is known.
        if let Some((local, system)) = resident {
            seq_print!(m, "drm-resident-local:\t{} KiB\n", local >> 10);
            seq_print!(m, "drm-resident-system:\t{} KiB\n", system >> 10);
        }
        self.show_engines(m);
    }

    /// Prints how long engines have worked for it, by their names.
    fn show_engines(&self, m: &SeqFile) {
        for place in 0.. {
            let (name, sum) = {
                let list = self.list.lock();
                let Some(name) = list.name(place) else {
                    return;
                };
                let is_first = list.is_first(&name, place);

                (name, is_first.then(|| list.named(&name)))
            };

            if let Some(sum) = sum {
                sum.show(&name, m);
            }
        }
    }

    /// The process has ended: others need not make room for it (MEM-18).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn end_turns(&self) {
        let list = self.list.lock();
        let processes = list
            .adapters
            .iter()
            .filter_map(|used| used.process.as_ref());

        for space in processes.filter_map(|process| process.space.as_ref()) {
            space.seated.end();
        }
    }

    /// Whether the process has a device.
    pub(in crate::dxgk) fn are_in_use(&self) -> bool {
        let list = self.list.lock();

        list.adapters.iter().any(|used| used.devices != 0)
    }

    /// One device less.
    fn leave(&self, process: &Arc<GpuProcess>) {
        let mut list = self.list.lock();
        let is_it =
            |used: &&mut Used| matches!(&used.process, Some(own) if Arc::ptr_eq(own, process));
        let Some(used) = list.adapters.iter_mut().find(is_it) else {
            return;
        };

        used.devices = used.devices.saturating_sub(1);

        let ended = match used.devices {
            0 => used.process.take(),
            _ => None,
        };

        drop(list);
        if let Some(ended) = ended {
            ended.native_storage.close();
            ended.notices.changed();
        }
    }
}

/// A device's use of its process on its adapter.
pub(crate) struct GpuProcessUse {
    list: Arc<GpuProcesses>,
    process: Arc<GpuProcess>,
}

impl Deref for GpuProcessUse {
    type Target = Arc<GpuProcess>;

    fn deref(&self) -> &Arc<GpuProcess> {
        &self.process
    }
}

impl Drop for GpuProcessUse {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.list.leave(&self.process);
    }
}
