// SPDX-License-Identifier: GPL-2.0

//! Where the values of private native fences of a process live: pages of their own for each
//! distance that a GPU wants between two fences (FEN-61). Almost all want the same.
//!
//! LOCK: `others` is a leaf. Pools are made and dropped without it.

use super::{
    fence_mappings::FenceMappings,
    fence_storage::{
        FenceStorage,
        FenceStoragePool,
        STRIDE, //
    }, //
};
use crate::{
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
const LEAST: u32 = 8_u32.trailing_zeros();

/// The pools of other distances than the usual one.
struct Others {
    pools: [Option<Arc<FenceStoragePool>>; STRIDES],
    /// Whether the process has closed the device.
    is_closed: bool,
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
        let usual = FenceStoragePool::new(mappings.clone(), STRIDE, true)?;

        Ok(pin_arc(
            pin_init!(Self {
                mappings,
                usual,
                others <- new_spinlock!(
                    Others {
                        pools: [const { None }; STRIDES],
                        is_closed: false,
                    },
                    "NativeStorage::others"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// A slot that shows `value`, of a fence that is `stride` bytes from the next one: a power of
    /// two from 8 to 4096.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn slot(&self, value: u64, stride: u32) -> DxgResult<FenceStorage> {
        // CAST: 32 bits fit a usize.
        match stride as usize {
            STRIDE => self.usual.slot(value),
            _ => self.other(stride)?.slot(value),
        }
    }

    /// The pool of another distance.
    fn other(&self, stride: u32) -> DxgResult<Arc<FenceStoragePool>> {
        // CAST: at most 31.
        let index = stride.trailing_zeros().wrapping_sub(LEAST) as usize;
        let known = self.others.lock().pools.get(index).cloned().flatten();

        if let Some(known) = known {
            return Ok(known);
        }

        // CAST: as above.
        let stride = stride as usize;
        let new = FenceStoragePool::new(self.mappings.clone(), stride, true);
        // Only memory can be missing.
        let mut new = Some(new.map_err(|_| Status::NO_MEMORY)?);
        let (pool, is_closed) = {
            let mut others = self.others.lock();
            let is_closed = others.is_closed;
            let place = others.pools.get_mut(index);
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
        for index in 0..STRIDES {
            let pool = {
                let mut others = self.others.lock();

                others.is_closed = true;
                others.pools.get(index).cloned().flatten()
            };

            if let Some(pool) = pool {
                pool.close();
            }
        }
    }
}
