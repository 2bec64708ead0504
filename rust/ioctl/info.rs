// SPDX-License-Identifier: GPL-2.0

//! The information store of an object (shared-resources.md section 8). Each call works on the
//! device and on an NT handle.

use super::{
    call::Answer,
    commit::Commit,
    target::Receiver, //
};
use crate::{
    dxgk::{
        info::{
            attachments::{
                until_applied,
                Value, //
            },
            store::{
                self,
                Attachment,
                Change,
                Failed,
                StoreEntry, //
            }, //
        },
        object::Header, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        check_address,
        info_rules::{
            self,
            GivenItem,
            Id,
            InfoItem,
            NotRead,
            Refused, //
        }, //
    },
    sys::{
        file::attach,
        user, //
    },
    uapi::*, //
};
use kernel::prelude::*;

/// An item as the rules see it.
fn given(item: &opendxg_info_item) -> GivenItem {
    GivenItem {
        id: Id {
            key: item.key,
            schema: item.schema,
        },
        flags: item.flags,
        fd: item.fd,
        data: item.data,
        size: item.size,
    }
}

/// Copies in what an item wants to store: its bytes, then the file that it attaches (RES-63).
fn read_change(header: &Header, item: &opendxg_info_item) -> DxgResult<Change> {
    let accounts = header.accounts();
    // CAST: 32 bits fit a usize.
    let size = item.size as usize;

    store::limits().check_entry(size).map_err(Failed::from)?;
    Ok(Change {
        item: InfoItem {
            id: given(item).id,
            flags: item.flags,
            expected: item.expected_generation,
            size,
        },
        value: Value::new(accounts, header, user::read_bytes(item.data, size)?)?,
        file: match item.flags & OPENDXG_INFO_ATTACH_FD {
            0 => None,
            _ => Some(Attachment::new(accounts, attach::get(item.fd)?)?),
        },
    })
}

/// Copies in the items of a call, and what each of them wants to store.
fn read_changes(header: &Header, array: u64, count: usize) -> DxgResult<KVec<Change>> {
    let mut items = [user::zeroed::<opendxg_info_item>(); info_rules::MAX_ITEMS];
    let items = items.get_mut(..count).unwrap_or_default();
    let mut changes = KVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(array, items)?;
    info_rules::check_items(items, given)?;
    for item in &*items {
        changes.push(read_change(header, item)?, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(changes)
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
    let count = info_rules::check_array(args.item_count, args.items)?;
    let target = from.writable_target(args.handle, args.handle_type)?;
    let changes = read_changes(target.header(), args.items, count)?;

    until_applied(|| {
        let change = target.header().attachments().prepare_set(&changes);
        let change = report(change, &mut args.generation)?;

        answer.write(&opendxg_set_info {
            generation: change.generation(),
            ..*args
        })?;
        Ok(change.commit()?)
    })
}

/// DXG_IOCTL_DELETE_INFO (0xa7): removes an entry.
pub(super) fn delete(
    from: impl Receiver,
    args: &mut opendxg_delete_info,
    answer: Answer<opendxg_delete_info>,
) -> DxgResult {
    let target = from.writable_target(args.handle, args.handle_type)?;
    let id = Id {
        key: args.key,
        schema: args.schema,
    };

    until_applied(|| {
        let attachments = target.header().attachments();
        let change = attachments.prepare_delete(id, args.expected_generation);
        let change = report(change, &mut args.generation)?;

        answer.write(&opendxg_delete_info {
            generation: change.generation(),
            ..*args
        })?;
        Ok(change.commit()?)
    })
}

/// In bytes, as the ioctls report it.
fn reported_size(size: usize) -> u32 {
    // CAST: sizes come from 32 bits.
    size as u32
}

/// What the caller gets to know of an entry that it cannot have.
fn report_not_read(reason: NotRead, args: &mut opendxg_get_info) -> DxgError {
    match reason {
        NotRead::Absent => {}
        NotRead::TooNew(lowest) => args.schema = lowest,
        NotRead::TooLarge(size) => args.size = reported_size(size),
    }
    reason.into()
}

/// DXG_IOCTL_GET_INFO (0xa5): reads an entry. All outputs come from one change (RES-59).
pub(super) fn get(from: impl Receiver, args: &mut opendxg_get_info) -> DxgResult<impl Commit> {
    info_rules::check_get(args.flags, args.data, args.size)?;

    let target = from.target(args.handle, args.handle_type)?;
    let store = target.header().attachments().store();
    let entry = store
        // CAST: 32 bits fit a usize.
        .read(args.key, args.max_schema, args.size as usize)
        .map_err(|reason| report_not_read(reason, args))?;
    let fd = match args.flags & OPENDXG_GET_FD {
        0 => None,
        _ => entry.new_descriptor()?,
    };

    write_entry(args, entry)?;
    // CAST: below 2^30.
    args.fd = fd.as_ref().map_or(-1, |fd| fd.fd() as i32);
    Ok(fd)
}

/// Copies out the bytes of an entry for which there is room, and fills in what is known of it.
fn write_entry(args: &mut opendxg_get_info, entry: &StoreEntry) -> DxgResult {
    let rule = entry.rule();

    if rule.size != 0 {
        user::write_slice(args.data, entry.value.bytes())?;
    }
    args.size = reported_size(rule.size);
    args.schema = rule.id.schema;
    args.writer_uid = entry.writer.uid_for_caller();
    args.generation = rule.generation;
    args.entry_flags = rule.flags();
    Ok(())
}

/// One line of the list of entries.
fn line(entry: &StoreEntry) -> opendxg_info_entry {
    let rule = entry.rule();

    opendxg_info_entry {
        key: rule.id.key,
        schema: rule.id.schema,
        size: reported_size(rule.size),
        generation: rule.generation,
        flags: rule.flags(),
        writer_uid: entry.writer.uid_for_caller(),
    }
}

/// DXG_IOCTL_ENUM_INFO (0xa6): lists the entries, as they are at one moment.
pub(super) fn enumerate(from: impl Receiver, args: &mut opendxg_enum_info) -> DxgResult {
    check_address(args.entries, args.count)?;

    let target = from.target(args.handle, args.handle_type)?;
    let store = target.header().attachments().store();
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
