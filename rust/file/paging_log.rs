// SPDX-License-Identifier: GPL-2.0

//! The file behind the operation log as a process reads it (MEM-104): lines of text. A read takes
//! as many whole lines as fit, and 0 bytes if there is none now.

use crate::{
    dxgk::vidmm::own_paging_log::OwnPagingLog,
    sys::file::object_file::ObjectFile, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    str::CString, //
};

impl ObjectFile for OwnPagingLog {
    const READS_LINES: bool = true;

    fn name(&self) -> &'static CStr {
        c"[DxgkPagingLog]"
    }

    fn show(&self, m: &SeqFile) {
        seq_print!(m, "dxg-type:\tDxgkPagingLog\n");
    }

    fn take_line(&self, room: usize) -> Result<Option<CString>> {
        self.take(room)
    }

    fn unread(&self) {
        self.untake();
    }
}
