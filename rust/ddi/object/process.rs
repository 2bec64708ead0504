// SPDX-License-Identifier: GPL-2.0

//! A process on one adapter, and its GPU address space there.

use crate::{
    ddi::{
        class::Passive,
        paging::{
            Entries,
            PageSize,
            PagingBuffer,
            PagingOperation,
            TableAddress,
            UpdatePageTable, //
        },
        port::Port,
        process::{
            self,
            CreateProcessArgs, //
        },
        reserve::ReserveAddresses,
        types::{
            KmdError,
            KmdResult,
            ProcessCookie,
            ProcessId, //
        }, //
    },
    platform::{
        self,
        Shared, //
    }, //
};

/// What CreateProcess has made.
pub struct Process {
    pub(super) cookie: ProcessCookie,
    pub(super) port: Shared<Port>,
    /// It is the paging process.
    pub(super) is_system: bool,
}

/// Entries for one page table of a process.
#[derive(Clone, Copy)]
pub struct TableUpdate<'a> {
    /// Level of the table; 0 has the pages.
    pub level: u32,
    /// As in [`UpdatePageTable`].
    pub table: TableAddress<'a>,
    /// As in [`UpdatePageTable`].
    pub page_size: PageSize,
    /// Index of the first entry; all that are to be written are in the table.
    pub start: u32,
    /// What to write.
    pub entries: Entries<'a>,
    /// As in [`UpdatePageTable`].
    pub initial_update: bool,
    /// As in [`UpdatePageTable`].
    pub notify_eviction: bool,
    /// As in [`UpdatePageTable`].
    pub driver_protection: u64,
    /// GPU virtual address that the first entry is for.
    pub address: u64,
}

impl Process {
    /// CreateProcess, which may reserve some of these addresses.
    pub fn create(
        port: &Shared<Port>,
        class: &Passive,
        id: ProcessId,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<Shared<Self>> {
        Self::create_local(port, class, id, false, addresses)
    }

    /// The same for the paging process.
    pub fn create_system(
        port: &Shared<Port>,
        class: &Passive,
        id: ProcessId,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<Shared<Self>> {
        Self::create_local(port, class, id, true, addresses)
    }

    fn create_local(
        port: &Shared<Port>,
        class: &Passive,
        id: ProcessId,
        is_system: bool,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<Shared<Self>> {
        let callbacks = process::local_process().ok_or(KmdError::NoMemory)?;
        let args = CreateProcessArgs {
            id,
            is_of_virtual_machine: false,
            is_system,
            callbacks: &callbacks,
        };

        Self::create_with(port, class, &args, addresses)
    }

    /// The same, with what a border of a virtual machine has for it.
    pub fn create_with(
        port: &Shared<Port>,
        class: &Passive,
        args: &CreateProcessArgs<'_>,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<Shared<Self>> {
        let process = Self {
            cookie: port.enter()?.create_process(class, args, addresses)?,
            port: port.clone(),
            is_system: args.is_system,
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(process).ok_or(KmdError::NoMemory)
    }

    /// GetRootPageTableSize: how many entries a root has that is to have so many at least, and its
    /// bytes.
    pub fn root_page_table_size(&self, class: &Passive, least: u32) -> KmdResult<(u32, u32)> {
        let mut entries = least;
        let bytes = self
            .port
            .enter()?
            .get_root_page_table_size(class, &mut entries);

        Ok((entries, bytes))
    }

    /// What the KMD gets.
    pub(super) fn table_operation<'a>(
        &self,
        update: &TableUpdate<'a>,
        buffer: Option<&'a mut PagingBuffer>,
    ) -> PagingOperation<'a> {
        let update = UpdatePageTable {
            process: self.cookie,
            level: update.level,
            table: update.table,
            page_size: update.page_size,
            start: update.start,
            entries: update.entries,
            initial_update: update.initial_update,
            notify_eviction: update.notify_eviction,
            driver_protection: update.driver_protection,
            address: update.address,
        };

        PagingOperation::UpdatePageTable(update, buffer)
    }

    /// The same for a flush.
    pub(super) fn flush_operation<'a>(
        &self,
        first: u64,
        last: u64,
        buffer: Option<&'a mut PagingBuffer>,
    ) -> PagingOperation<'a> {
        PagingOperation::FlushTlb {
            process: self.cookie,
            first,
            last,
            buffer,
        }
    }

    /// UpdatePageTable by the processor. While the adapter is being stopped this waits; a stopped
    /// one looks at no table any more.
    pub fn update_page_table(&self, class: &Passive, update: &TableUpdate<'_>) {
        if let Some(kmd) = self.port.enter_to_page(class) {
            // It is done on return.
            let _done =
                kmd.build_paging_buffer(&class.building(), self.table_operation(update, None));
        }
    }

    /// FlushTlb of the addresses from `first` to before `last`; of all if both are 0. While the
    /// adapter is being stopped this waits; a stopped one has no translations any more. So on
    /// return nobody uses an old one, whatever has become of the adapter.
    pub fn flush_tlb(&self, class: &Passive, first: u64, last: u64) {
        let flush = self.flush_operation(first, last, None);

        if let Some(kmd) = self.port.enter_to_page(class) {
            // It is done on return.
            let _done = kmd.build_paging_buffer(&class.building(), flush);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let class = Passive::here();

        self.port
            .enter_to_destroy(&class)
            .process(&class, self.cookie);
    }
}
