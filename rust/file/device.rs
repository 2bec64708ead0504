// SPDX-License-Identifier: GPL-2.0

//! One open file of the device: the way from a descriptor to the process object it belongs to.

use crate::{
    dxgk::{
        driver::Driver,
        process::Process, //
    },
    ioctl,
    sys::{
        file::chardev::OpenDevice,
        task::{
            caller,
            credentials::Credentials, //
        }, //
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

/// One open file description of the device node.
pub(crate) struct OpenFile {
    /// The module's one driver object.
    pub(crate) driver: Arc<Driver>,
    /// The process that opened the file, even if another one uses it now.
    pub(crate) process: Arc<Process>,
    /// Who opened it.
    opener: Credentials,
}

impl OpenDevice for OpenFile {
    type Shared = Driver;

    fn open(shared: ArcBorrow<'_, Driver>) -> Result<Arc<Self>> {
        let process = shared.open_process()?;
        let opened = Arc::new(
            Self {
                driver: shared.into(),
                process: process.clone(),
                opener: Credentials::of_caller(),
            },
            GFP_KERNEL_ACCOUNT,
        );

        Ok(opened.inspect_err(|_| shared.release_process(&process))?)
    }

    fn flush(&self) {
        // A dying process releases everything, although others may still have this file open. It
        // has done so when its memory went, unless it shared that with another process.
        if caller::group_is_dead() && self.process.mappings.identity.is_caller_group() {
            self.process.close();
        }
    }

    fn release(&self) {
        self.driver.release_process(&self.process);
    }

    fn ioctl(&self, cmd: u32, arg: u64) -> isize {
        ioctl::run(&self.driver, &self.process, cmd, arg)
    }

    fn show(&self, m: &SeqFile) {
        let process = &self.process;

        // The keys that DRM drivers have, for the tools that read those.
        seq_print!(m, "drm-driver:\topendxg\ndrm-client-id:\t{}\n", process.id);
        seq_print!(m, "dxg-process:\t{}\n", process.id);
        seq_print!(m, "dxg-process-handles:\t{}\n", process.handles.count());
        seq_print!(m, "dxg-process-waiters:\t{}\n", process.waits.count());
        seq_print!(
            m,
            "dxg-process-refused-rewinds:\t{}\n",
            process.waits.refused_rewinds()
        );
        process.holder.show(m);
        process.gpu_processes.show(m);
        // Adapters, handles, ids and keys are for readers that may inspect the opener (RES-15).
        if Credentials::of_caller().may_inspect(&self.opener) {
            seq_print!(m, "dxg-user:\t{}\n", self.opener.uid_for_caller());
            process.account.show(m);
            ioctl::show_refusals(process, m);
            process.handles.show(m);
        }
    }
}
