// SPDX-License-Identifier: GPL-2.0

//! The information store of an object (shared-resources.md section 8). Each call works on the
//! device and on an NT handle.

use super::{
    call::{
        invalid_if,
        Answer, //
    },
    commit::Commit,
    target::Receiver, //
};
use crate::{
    dxgk::{
        info::{
            attachments::Value,
            store::{
                self,
                Attachment,
                Change,
                Entry,
                Failed, //
            }, //
        },
        object::Header, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        handle,
        info_rules::{
            self,
            Choice,
            Id,
            InfoItem,
            Refused, //
        }, //
    },
    sys::{
        file::{
            attach,
            object_file::PendingFd, //
        },
        user, //
    },
    uapi::*, //
};
use kernel::{
    fs::File,
    prelude::*,
    sync::aref::ARef, //
};

/// The name of an item's entry.
fn id_of(item: &opendxg_info_item) -> Id {
    Id {
        key: item.key,
        schema: item.schema,
    }
}

/// The file behind a descriptor of the caller, if it may be attached (RES-63).
fn attachable(fd: i32) -> DxgResult<ARef<File>> {
    Ok(attach::get(fd)?)
}

/// Copies in what an item wants to store.
fn change(header: &Header, item: &opendxg_info_item) -> DxgResult<Change> {
    let accounts = header.accounts();
    // CAST: 32 bits fit a usize.
    let size = item.size as usize;

    // The rules would refuse it as well, but then it would be copied in before.
    if size > store::limits().entry_bytes {
        return Err(Status::QUOTA_EXCEEDED.into());
    }
    Ok(Change {
        item: InfoItem {
            id: id_of(item),
            flags: item.flags,
            expected: item.expected_generation,
            size,
        },
        value: Value::new(accounts, header, user::read_bytes(item.data, size)?)?,
        file: match item.flags & OPENDXG_INFO_ATTACH_FD {
            0 => None,
            _ => Some(Attachment::new(accounts, attachable(item.fd)?)?),
        },
    })
}

/// With REVISION_MISMATCH the caller gets the generation of the entry.
fn report<T>(
    change: core::result::Result<T, Failed>,
    generation: &mut u64,
) -> core::result::Result<T, Failed> {
    if let Err(Failed::Refused(Refused::Generation(present))) = &change {
        *generation = *present;
    }
    change
}

/// DXG_IOCTL_SET_INFO (0xa4): stores entries, all or none.
pub(super) fn set(
    from: impl Receiver,
    args: &mut opendxg_set_info,
    answer: Answer<opendxg_set_info>,
) -> DxgResult {
    // CAST: 32 bits fit a usize.
    let count = args.item_count as usize;

    invalid_if(count == 0 || count > info_rules::MAX_ITEMS || args.items == 0)?;

    let target = from.target(args.handle, args.handle_type)?;

    target.check_writable()?;

    let mut items = [user::zeroed::<opendxg_info_item>(); info_rules::MAX_ITEMS];
    let items = items.get_mut(..count).unwrap_or_default();
    let mut changes = KVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.items, items)?;
    for item in &*items {
        invalid_if(
            !info_rules::are_flags_valid(item.flags, item.fd) || item.size != 0 && item.data == 0,
        )?;
    }
    invalid_if(!info_rules::are_distinct(items, id_of))?;
    for item in &*items {
        changes.push(change(target.header(), item)?, GFP_KERNEL_ACCOUNT)?;
    }

    let attachments = &target.header().attachments;

    loop {
        let change = report(attachments.prepare_set(&changes), &mut args.generation)?;

        answer.write(&opendxg_set_info {
            generation: change.generation(),
            ..*args
        })?;
        if change.commit()? {
            return Ok(());
        }
    }
}

/// DXG_IOCTL_DELETE_INFO (0xa7): removes an entry.
pub(super) fn delete(
    from: impl Receiver,
    args: &mut opendxg_delete_info,
    answer: Answer<opendxg_delete_info>,
) -> DxgResult {
    let target = from.target(args.handle, args.handle_type)?;

    target.check_writable()?;

    let id = Id {
        key: args.key,
        schema: args.schema,
    };
    let attachments = &target.header().attachments;

    loop {
        let change = attachments.prepare_delete(id, args.expected_generation);
        let change = report(change, &mut args.generation)?;

        answer.write(&opendxg_delete_info {
            generation: change.generation(),
            ..*args
        })?;
        if change.commit()? {
            return Ok(());
        }
    }
}

/// The flags of an entry that users see.
fn entry_flags(rule: &info_rules::Entry) -> u32 {
    let sealed = if rule.sealed { OPENDXG_INFO_SEALED } else { 0 };
    let file = if rule.has_file {
        OPENDXG_INFO_HAS_FD
    } else {
        0
    };

    sealed | file
}

/// In bytes, as the ioctls report it.
fn size_of_entry(rule: &info_rules::Entry) -> u32 {
    // CAST: sizes come from 32 bits.
    rule.size as u32
}

/// DXG_IOCTL_GET_INFO (0xa5): reads an entry. All outputs come from one change (RES-59).
pub(super) fn get(from: impl Receiver, args: &mut opendxg_get_info) -> DxgResult<impl Commit> {
    invalid_if(args.flags & !OPENDXG_GET_FD != 0 || args.size != 0 && args.data == 0)?;

    let target = from.target(args.handle, args.handle_type)?;
    let store = target.header().attachments.store();
    let entry = match store.choose(args.key, args.max_schema) {
        Ok(entry) => entry,
        Err(Choice::TooNew(lowest)) => {
            args.schema = lowest;
            return Err(Status::REVISION_MISMATCH.into());
        }
        Err(_) => return Err(Status::NOT_FOUND.into()),
    };
    let rule = entry.rule();
    let size = size_of_entry(&rule);

    if size > args.size {
        args.size = size;
        return Err(Status::BUFFER_TOO_SMALL.into());
    }

    let fd = match &entry.file {
        Some(file) if args.flags & OPENDXG_GET_FD != 0 => Some(PendingFd::of_file(
            file.file().clone(),
            handle::LAST_FD,
            true,
        )?),
        _ => None,
    };

    if size != 0 {
        user::write_slice(args.data, entry.value.bytes())?;
    }
    args.size = size;
    args.schema = rule.id.schema;
    args.writer_uid = entry.writer.uid_for_caller();
    args.generation = rule.generation;
    // CAST: below 2^30.
    args.fd = fd.as_ref().map_or(-1, |fd| fd.fd() as i32);
    args.entry_flags = entry_flags(&rule);
    Ok(fd)
}

/// One line of the list of entries.
fn line(entry: &Entry) -> opendxg_info_entry {
    let rule = entry.rule();

    opendxg_info_entry {
        key: rule.id.key,
        schema: rule.id.schema,
        size: size_of_entry(&rule),
        generation: rule.generation,
        flags: entry_flags(&rule),
        writer_uid: entry.writer.uid_for_caller(),
    }
}

/// DXG_IOCTL_ENUM_INFO (0xa6): lists the entries, as they are at one moment.
pub(super) fn enumerate(from: impl Receiver, args: &mut opendxg_enum_info) -> DxgResult {
    invalid_if(args.count != 0 && args.entries == 0)?;

    let target = from.target(args.handle, args.handle_type)?;
    let store = target.header().attachments.store();
    let entries = store.entries();
    // CAST: as many as the module parameter allows, which has 32 bits.
    let count = entries.len() as u32;

    if count > args.count {
        args.count = count;
        return Err(Status::BUFFER_TOO_SMALL.into());
    }

    let mut lines = KVVec::with_capacity(entries.len(), GFP_KERNEL_ACCOUNT)?;

    for entry in entries {
        lines.push(line(entry), GFP_KERNEL_ACCOUNT)?;
    }
    if !lines.is_empty() {
        user::write_slice(args.entries, &lines)?;
    }
    args.count = count;
    args.generation = store.generation();
    Ok(())
}
