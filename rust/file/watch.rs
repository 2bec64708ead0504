// SPDX-License-Identifier: GPL-2.0

//! The file behind a watch.

use crate::{
    dxgk::{
        info::watch::Watch,
        object::Object, //
    },
    ioctl,
    sys::{
        file::object_file::ObjectFile,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile, //
};

impl ObjectFile for Watch<Object> {
    fn name(&self) -> &'static CStr {
        c"[DxgkWatch]"
    }

    fn show(&self, m: &SeqFile) {
        Watch::show(self, m);
    }

    fn pollers(&self) -> Option<&WaitQueue> {
        Some(Watch::pollers(self))
    }

    fn events(&self) -> u32 {
        Watch::events(self)
    }

    fn ioctl(&self, cmd: u32, arg: u64) -> isize {
        ioctl::run_on_watch(self, cmd, arg)
    }

    fn release(&self) {
        self.end();
    }
}
