// SPDX-License-Identifier: GPL-2.0

//! The file behind a stream of records about memory (MEM-38).
//!
//! It is readable while there is something that was not told. A read returns one record, 8 bytes.
//! When the process has no device on the adapter any more, or the adapter is gone, the file hangs
//! up and a read returns 0 bytes.

use crate::{
    dxgk::vidmm::notice::{
        NextNotice,
        Notice, //
    },
    sys::{
        file::object_file::{
            events,
            ObjectFile, //
        },
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::ArcBorrow, //
};

impl ObjectFile for Notice {
    const READS: bool = true;

    fn name(&self) -> &'static CStr {
        c"[DxgkMemoryNotice]"
    }

    fn show(&self, m: &SeqFile) {
        seq_print!(m, "dxg-type:\tDxgkMemoryNotice\n");
    }

    fn pollers(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn events(&self) -> u32 {
        match self.peek() {
            NextNotice::Record(_) => events::IN,
            NextNotice::Nothing => 0,
            NextNotice::Ended => events::HANG_UP,
        }
    }

    fn read(this: ArcBorrow<'_, Self>, may_wait: bool) -> Result<Option<u64>> {
        loop {
            let told = this.told();

            match this.take() {
                NextNotice::Record(record) => return Ok(Some(record)),
                NextNotice::Ended => return Ok(None),
                NextNotice::Nothing if !may_wait => return Err(EAGAIN),
                NextNotice::Nothing if this.sleep(told) => {}
                NextNotice::Nothing => return Err(ERESTARTSYS),
            }
        }
    }

    fn unread(&self) {
        self.untake();
    }

    fn release(&self) {
        self.end();
    }
}
