// SPDX-License-Identifier: GPL-2.0

//! The file behind a stream of the values of a fence (FEN-176).
//!
//! It is readable while CurrentValue is another than the value that was read last. A read returns
//! CurrentValue, 8 bytes, however often it has changed. When the fence retires the file hangs up
//! and a read returns 0 bytes; a value that was not read yet comes before. It is not a sync_file:
//! user space decides when, and whether, there is something to read.

use crate::{
    dxgk::sync::fence_stream::{
        FenceStream,
        Next, //
    },
    sys::{
        file::object_file::{
            events,
            ObjectFile, //
        },
        task::credentials::Credentials,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

impl ObjectFile for FenceStream {
    const READS: bool = true;

    fn name(&self) -> &'static CStr {
        c"[DxgkFenceStream]"
    }

    fn show(&self, m: &SeqFile) {
        seq_print!(m, "dxg-type:\tDxgkFenceStream\n");
        // As for NT handles (RES-15).
        if Credentials::of_caller().may_inspect(&self.creator) {
            seq_print!(m, "dxg-object:\t{}\n", self.object);
        }
        if let Some(last) = self.last() {
            seq_print!(m, "dxg-last-read:\t{last}\n");
        }
    }

    fn pollers(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn poll(this: ArcBorrow<'_, Self>) -> u32 {
        match Arc::from(this).peek() {
            Ok(Next::Value(_)) => events::IN,
            Ok(Next::Nothing) => 0,
            Ok(Next::Ended) => events::HANG_UP,
            // Nobody would wake the caller.
            Err(_) => events::ERROR,
        }
    }

    fn read(this: ArcBorrow<'_, Self>, may_wait: bool) -> Result<Option<u64>> {
        let this = Arc::from(this);

        loop {
            let told = this.told();

            match this.take()? {
                Next::Value(value) => return Ok(Some(value)),
                Next::Ended => return Ok(None),
                Next::Nothing if !may_wait => return Err(EAGAIN),
                Next::Nothing if this.sleep(told) => {}
                Next::Nothing => return Err(ERESTARTSYS),
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
