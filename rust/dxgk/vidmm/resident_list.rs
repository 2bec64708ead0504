// SPDX-License-Identifier: GPL-2.0

//! MakeResident and Evict: lists of allocations, all or none of them (MEM-19 to MEM-23).

use super::{
    device_queues::{
        Operation,
        QueueOwner, //
    },
    opened::Opened,
    paging_queue::PagingQueue,
    residency::{
        AllocationMemory, //
    },
    resident_in::ResidentIn,
    rotation::Made,
    shortage::{
        Room,
        Shortage, //
    }, //
};
use crate::{
    dxgk::device::Device,
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::PAGE,
        paging_log::{
            Action,
            Kind,
            Operation as Logged, //
        },
        paging_rules::{
            evict::{
                NOT_WRITTEN_TO,
                ONLY_IF_NECESSARY, //
            },
            make_resident::{
                CANT_TRIM_FURTHER,
                MUST_SUCCEED, //
            },
            over_budget,
            AT_ONCE_PAGES,
            GROUPS, //
        }, //
    },
    sys::task::sleep, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// How often who lacks room looks whether there is some when others have theirs. That is at most
/// some seconds: they may wait for the worker, or never get it.
const PATIENCE: u32 = 2_000;
/// What of it costs to wait for room that has no user any more.
const HURRY: u32 = 20;

/// Allocations that a device wants to be resident, once for each mention. Dropping it takes that
/// back.
pub(crate) struct MadeResident {
    queue: Arc<PagingQueue>,
    list: KVVec<Arc<Opened>>,
    /// How many of them count.
    counted: usize,
    /// What the caller waits for.
    pub(crate) value: u64,
}

/// Why a MakeResident has no effect.
pub(crate) enum NotResident {
    /// There is no memory before so many bytes are given up.
    OverBudget(u64),
    /// Something else is the matter.
    Failed(DxgError),
}

impl<T: Into<DxgError>> From<T> for NotResident {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

/// Does what may lack room in a segment or the aperture, for a device. What is there and wanted by
/// nobody gives way (MEM-23), then what others want (MEM-18).
///
/// Context: may sleep, no locks held.
pub(super) fn with_room<T>(
    device: &Device,
    mut attempt: impl FnMut() -> Result<T, Shortage>,
) -> Result<T, NotResident> {
    let mut patience = PATIENCE;

    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(Shortage::Failed(error)) => return Err(NotResident::Failed(error)),
            Err(Shortage::Room(bytes, room)) => {
                if sleep::is_killed() {
                    return Err(DxgError::Interrupted.into());
                }
                device.adapter.notify_memory_pressure();
                if room.make() {
                    continue;
                }
                patience = match device.has_others_leave(&room) {
                    Made::Room => PATIENCE,
                    Made::Perhaps => patience.saturating_sub(1),
                    Made::None if room.comes_back() => patience.saturating_sub(HURRY),
                    Made::None => 0,
                };
                if patience == 0 {
                    return Err(NotResident::OverBudget(bytes));
                }
            }
        }
    }
}

impl Device {
    /// Has allocations of other processes leave a segment.
    ///
    /// Context: may sleep, no locks held.
    fn has_others_leave(&self, room: &Room) -> Made {
        let rotation = &self.adapter.memory.rotation;

        match (&self.process.space, &room.segment) {
            (Some(space), Some((segment, _))) if !room.stays => {
                rotation.make_room(*segment, space.seat())
            }
            _ => Made::None,
        }
    }
}

/// What is paid for ahead, until this is dropped.
struct Paid<'a>(&'a [Arc<Opened>]);

impl Drop for Paid<'_> {
    fn drop(&mut self) {
        for opened in self.0 {
            opened.memory.pay_back();
        }
    }
}

impl MadeResident {
    /// MakeResident of these, which are opens of the device of `queue`. With MustSucceed the device
    /// is in error if there is no memory (MEM-21).
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn new(
        queue: &Arc<PagingQueue>,
        list: KVVec<Arc<Opened>>,
        flags: u32,
    ) -> Result<Self, NotResident> {
        let count = list.len();
        let made = Self::try_new(queue, list, flags);

        if matches!(made, Err(NotResident::OverBudget(_))) {
            queue.log_made_resident(count, Status::NO_MEMORY, 0);
            if flags & MUST_SUCCEED != 0 {
                queue.device.clone().out_of_memory();
            }
        }
        made
    }

    fn try_new(
        queue: &Arc<PagingQueue>,
        list: KVVec<Arc<Opened>>,
        flags: u32,
    ) -> Result<Self, NotResident> {
        let mut made = Self {
            queue: queue.clone(),
            list,
            counted: 0,
            value: 0,
        };
        let more = made.count_all()?;
        let over = made.over_budget(queue, more, flags & CANT_TRIM_FURTHER != 0);

        if over != 0 {
            return Err(NotResident::OverBudget(over));
        }

        if let Some(space) = &queue.device.process.space {
            space.begin();
        }

        let pages = made.prepare()?;

        if pages > AT_ONCE_PAGES || pages != 0 && !queue.is_idle() {
            made.value = queue.submit(Operation::Finish(made.memories()?))?;
        } else {
            for opened in &made.list {
                opened.memory.finish()?;
            }
            made.value = queue.done()?;
        }
        Ok(made)
    }

    /// Takes what all of them need; returns how many pages have to be made usable.
    ///
    /// What users have limits of is paid for before anything is taken: pages stay with the
    /// allocations once they are there, and who is refused has none more than before.
    fn prepare(&self) -> Result<u64, NotResident> {
        let _paid = Paid(&self.list);
        let mut pages = 0u64;

        for opened in &self.list {
            opened.memory.pay_ahead()?;
        }
        for opened in &self.list {
            if opened.memory.placement().is_none() {
                with_room(&self.queue.device, || opened.memory.prepare())?;
                pages = pages.saturating_add(opened.memory.size() / PAGE);
            }
        }
        Ok(pages)
    }

    /// Counts all mentions; returns how many more bytes the device wants, by group.
    fn count_all(&mut self) -> Result<[u64; GROUPS], NotResident> {
        let mut more = [0u64; GROUPS];

        for opened in &self.list {
            let bytes = opened.memory.more_wanted(opened.id);

            if !opened.memory.want(opened.id) {
                return Err(Status::INVALID_PARAMETER.into());
            }
            self.counted += 1;
            if let Some(sum) = more.get_mut(opened.memory.group()) {
                *sum = sum.saturating_add(bytes);
            }
        }
        Ok(more)
    }

    /// How many bytes are too many, which are counted already.
    fn over_budget(&self, queue: &PagingQueue, more: [u64; GROUPS], cant_trim: bool) -> u64 {
        let device = &queue.device;
        let Some(space) = &device.process.space else {
            return u64::MAX;
        };
        let reservations = &device.owner.gpu_processes().reservations;

        (0..)
            .zip(more)
            .filter(|(_, more)| *more != 0)
            .map(|(group, more)| {
                let used = space.usage(group).saturating_sub(more);

                over_budget(
                    used,
                    more,
                    device.adapter.budget(reservations, group).0,
                    device.adapter.memory.group_size(group),
                    cant_trim,
                )
            })
            .max()
            .unwrap_or(0)
    }

    fn memories(&self) -> DxgResult<KVVec<Arc<AllocationMemory>>> {
        let mut memories = KVVec::with_capacity(self.list.len(), GFP_KERNEL_ACCOUNT)?;

        for opened in &self.list {
            memories.push(opened.memory.clone(), GFP_KERNEL_ACCOUNT)?;
        }
        Ok(memories)
    }

    /// The caller knows of it.
    pub(crate) fn commit(mut self) {
        let status = match self.value {
            0 => Status::SUCCESS,
            _ => Status::PENDING,
        };

        self.counted = 0;
        self.queue
            .log_made_resident(self.list.len(), status, self.value);
    }
}

impl Drop for MadeResident {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        for opened in self.list.iter().take(self.counted) {
            // The end of the handle may have taken it back already. Processors may have written to
            // the bytes, wherever they were.
            let _counted = opened.memory.unwant(opened.id, opened.device, false);
        }
        // What was there before stays until its room is wanted.
        for opened in self.list.iter().take(self.counted) {
            opened.memory.trim(true);
        }
    }
}

/// Mentions of allocations that a device does not want to be resident any more. Dropping it takes
/// that back.
pub(crate) struct Evicted {
    device: Arc<Device>,
    list: KVVec<Arc<Opened>>,
    /// How many of them do not count any more.
    counted: usize,
    /// They stay where they are until their room is wanted.
    if_necessary: bool,
}

impl Evicted {
    /// Evict of these, which are opens of `device`: all mentions, or none (MEM-23).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        device: Arc<Device>,
        list: KVVec<Arc<Opened>>,
        flags: u32,
    ) -> DxgResult<Self> {
        let not_written = flags & NOT_WRITTEN_TO != 0;
        let mut evicted = Self {
            device,
            list,
            counted: 0,
            if_necessary: flags & ONLY_IF_NECESSARY != 0,
        };

        for opened in &evicted.list {
            if !opened.memory.unwant(opened.id, opened.device, not_written) {
                return Err(Status::INVALID_PARAMETER.into());
            }
            evicted.counted += 1;
        }
        Ok(evicted)
    }

    /// The caller knows of it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn commit(mut self) {
        self.counted = 0;
        for opened in &self.list {
            opened.memory.trim(self.if_necessary);
        }
        self.device.adapter.memory.log.write(|| Action {
            kind: Kind::Return,
            operation: Logged::Evict,
            device: self.device.id(),
            process: self.device.process.id,
            // CAST: a usize fits 64 bits.
            count: self.list.len() as u64,
            ..Action::default()
        });
    }
}

impl Drop for Evicted {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        restore(
            &self.device,
            self.list.get(..self.counted).unwrap_or_default(),
        );
    }
}

/// Takes the beginning of an Evict back.
fn restore(device: &Device, list: &[Arc<Opened>]) {
    for opened in list {
        // Another call may have taken the placement away meanwhile.
        if opened.memory.want(opened.id) && with_room(device, || opened.memory.prepare()).is_ok() {
            let _ready = opened.memory.finish();
        }
    }
}
