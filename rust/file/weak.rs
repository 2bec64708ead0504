// SPDX-License-Identifier: GPL-2.0

//! The file behind a weak reference (RES-72, RES-73).

use crate::{
    dxgk::{
        info::{
            store::charge,
            weak::WeakTarget, //
        },
        object::Object,
        quota::account::{
            Charge,
            Limit, //
        },
        stats::{
            Counted,
            NOTICES, //
        }, //
    },
    error::DxgResult,
    sys::{
        file::object_file::ObjectFile,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::Arc, //
};

/// A weak reference, behind a descriptor.
pub(crate) struct WeakFile {
    weak_target: Counted<Arc<WeakTarget<Object>>, NOTICES>,
    access: u32,
    _charge: Charge,
}

impl WeakFile {
    /// A weak reference to an object, whose handles get this access. Charged to the calling user.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(object: &Object, access: u32) -> DxgResult<Arc<Self>> {
        let weak_target = object.weak_target()?;
        let charge = charge(object.header().accounts(), Limit::Watches, 1)?;

        Ok(Arc::new(
            Self {
                weak_target: Counted::new(weak_target),
                access,
                _charge: charge,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The weak target of the object.
    pub(crate) fn weak_target(&self) -> &Arc<WeakTarget<Object>> {
        &self.weak_target
    }

    /// The access of the handle that this was made from.
    pub(crate) fn access(&self) -> u32 {
        self.access
    }
}

impl ObjectFile for WeakFile {
    fn name(&self) -> &'static CStr {
        c"[DxgkWeakReference]"
    }

    fn show(&self, m: &SeqFile) {
        seq_print!(m, "dxg-type:\tDxgkWeakReference\n");
        self.weak_target.show_id(m);
        seq_print!(m, "dxg-access:\t{:#x}\n", self.access);
        seq_print!(
            m,
            "dxg-alive:\t{}\n",
            u32::from(self.weak_target.events() == 0)
        );
    }

    fn pollers(&self) -> Option<&WaitQueue> {
        Some(self.weak_target.pollers())
    }

    fn events(&self) -> u32 {
        self.weak_target.events()
    }
}
