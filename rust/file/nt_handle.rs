// SPDX-License-Identifier: GPL-2.0

//! The file behind an NT handle.

use crate::{
    dxgk::share::NtHandle,
    ioctl,
    sys::file::object_file::ObjectFile, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile, //
};

impl ObjectFile for NtHandle {
    fn name(&self) -> &'static CStr {
        self.file_name()
    }

    fn show(&self, m: &SeqFile) {
        NtHandle::show(self, m);
    }

    fn ioctl(&self, cmd: u32, arg: u64) -> isize {
        ioctl::run_on_nt_handle(self, cmd, arg)
    }

    fn release(&self) {
        self.close();
    }
}
