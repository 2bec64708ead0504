// SPDX-License-Identifier: GPL-2.0

//! Where the values of private native fences of a process live: pages of their own for each
//! distance that a GPU wants between two fences (FEN-61). Almost all want the same. Fences that
//! only packets use have other pages, which the process does not see (FEN-130).
//!
//! A process has one of these for all adapters, with pages of system memory, and one on each
//! adapter where its fences may be in memory of the GPU (FEN-63).
//!
//! LOCK: `others` is a leaf. Pools are made and dropped without it.

use super::{
    fence_mappings::FenceMappings,
    fence_storage::{
        FenceStorage,
        FenceStoragePool,
        PoolKind,
        STRIDE, //
    }, //
};
use crate::{
    ddi::native_fence::NativeFenceType,
    dxgk::vidmm::fence_memory::FenceMemory,
    error::{
        DxgResult,
        Status, //
    },
    sys::alloc::pin_arc, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// How many distances there are: powers of two from 8 to 4096.
const STRIDES: usize = 10;
/// The types of fences.
const TYPES: [NativeFenceType; 2] = [NativeFenceType::Default, NativeFenceType::IntraGpu];
/// The first of the distances, as a power of two.
const LEAST: u32 = 8_u32.trailing_zeros();

/// The pools of one kind of fences, by distance.
type Pools = [Option<Arc<FenceStoragePool>>; STRIDES];

/// The pools of other distances than the usual one, and of fences that only packets use.
struct Others {
    default: Pools,
    intra_gpu: Pools,
    /// Whether the process has closed the device.
    is_closed: bool,
}

impl Others {
    fn of(&mut self, ty: NativeFenceType) -> &mut Pools {
        match ty {
            NativeFenceType::Default => &mut self.default,
            NativeFenceType::IntraGpu => &mut self.intra_gpu,
        }
    }
}

/// The common pages of native fences of one process.
#[pin_data]
pub(crate) struct NativeStorage {
    mappings: Arc<FenceMappings>,
    usual: Arc<FenceStoragePool>,
    #[pin]
    others: SpinLock<Others>,
}

impl NativeStorage {
    /// No page, of the process behind `mappings`.
    pub(crate) fn new(mappings: Arc<FenceMappings>) -> Result<Arc<Self>> {
        let usual = FenceStoragePool::new(mappings.clone(), STRIDE, PoolKind::Native)?;

        Ok(pin_arc(
            pin_init!(Self {
                mappings,
                usual,
                others <- new_spinlock!(
                    Others {
                        default: [const { None }; STRIDES],
                        intra_gpu: [const { None }; STRIDES],
                        is_closed: false,
                    },
                    "NativeStorage::others"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// A slot that shows `value`, of a fence of this type that is `stride` bytes from the next one:
    /// a power of two from 8 to 4096. New pages are of `memory`, or else of the system.
    ///
    /// Context: a system call of the process, no locks held.
    pub(in crate::dxgk) fn slot(
        &self,
        value: u64,
        stride: u32,
        ty: NativeFenceType,
        memory: Option<&FenceMemory<'_>>,
    ) -> DxgResult<FenceStorage> {
        // CAST: 32 bits fit a usize.
        match (stride as usize, ty) {
            (STRIDE, NativeFenceType::Default) => self.usual.slot(value, memory),
            _ => self.other(stride, ty)?.slot(value, memory),
        }
    }

    /// The pool of another distance or type.
    fn other(&self, stride: u32, ty: NativeFenceType) -> DxgResult<Arc<FenceStoragePool>> {
        // CAST: at most 31.
        let index = stride.trailing_zeros().wrapping_sub(LEAST) as usize;
        let known = self.others.lock().of(ty).get(index).cloned().flatten();

        if let Some(known) = known {
            return Ok(known);
        }

        // CAST: as above.
        let stride = stride as usize;
        let kind = match ty {
            NativeFenceType::Default => PoolKind::Native,
            NativeFenceType::IntraGpu => PoolKind::IntraGpu,
        };
        let new = FenceStoragePool::new(self.mappings.clone(), stride, kind);
        // Only memory can be missing.
        let mut new = Some(new.map_err(|_| Status::NO_MEMORY)?);
        let (pool, is_closed) = {
            let mut others = self.others.lock();
            let is_closed = others.is_closed;
            let place = others.of(ty).get_mut(index);
            // Another thread may have been faster: what is not used is dropped after the lock.
            let pool = place.and_then(|place| {
                if place.is_none() {
                    *place = new.take();
                }
                place.clone()
            });

            (pool, is_closed)
        };
        let pool = pool.ok_or(Status::INVALID_PARAMETER)?;

        if is_closed {
            pool.close();
        }
        Ok(pool)
    }

    /// As [`FenceStoragePool::close`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        self.usual.close();
        for (index, ty) in (0..STRIDES).flat_map(|index| TYPES.map(|ty| (index, ty))) {
            let pool = {
                let mut others = self.others.lock();

                others.is_closed = true;
                others.of(ty).get(index).cloned().flatten()
            };

            if let Some(pool) = pool {
                pool.close();
            }
        }
    }
}
