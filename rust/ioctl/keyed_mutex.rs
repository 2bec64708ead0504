// SPDX-License-Identifier: GPL-2.0

//! Keyed mutexes. The first generation of calls is the second one without private data.

use super::{
    call::{
        invalid_if,
        Answer,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        handle::{
            HandleTarget,
            Reserved, //
        },
        info::attachments::{
            until_applied,
            Value, //
        },
        keyed_mutex::{
            creation::{
                CreateKeyedMutexRequest,
                FirstData, //
            },
            Acquired,
            KeyedMutex, //
        },
        object::Object,
        share::global_table::ReservedGlobal,
        stats::Module, //
    },
    error::{
        shortage,
        DxgResult,
        Status, //
    },
    logic::{
        handle,
        keyed_mutex_rules::{
            self,
            PrivateData, //
        },
        sync_flags::Sharing,
        timeout, //
    },
    sys::{
        file::object_file,
        time,
        user, //
    },
    uapi::*, //
};
use kernel::sync::Arc;

/// Copies data in, charged to the caller; `None` if there is none.
fn read_data(call: Call<'_>, data: PrivateData) -> DxgResult<Option<Arc<Value>>> {
    let Some((address, size)) = data.input()? else {
        return Ok(None);
    };
    let bytes = user::read_bytes(address, size)?;
    let value = shortage(Value::new(&call.driver.tables.accounts, &Module, bytes))?;

    Ok(Some(value))
}

/// Copies the data in that `mutex` gets from an open, if it has none.
pub(super) fn read_first_data(
    call: Call<'_>,
    data: PrivateData,
    mutex: &Arc<KeyedMutex>,
) -> DxgResult<FirstData> {
    if mutex.data_size().is_some() {
        return Ok(FirstData::NONE);
    }
    Ok(match read_data(call, data)? {
        Some(value) => FirstData::new(mutex.clone(), value),
        None => FirstData::NONE,
    })
}

/// Copies the data of `mutex` out, if the caller asks for it.
fn write_data(data: PrivateData, mutex: &KeyedMutex) -> DxgResult {
    if data.is_empty() {
        // Without a look at the store of the mutex.
        return Ok(());
    }

    let Some(value) = mutex.header.attachments().blob() else {
        return Ok(());
    };

    if let Some(address) = data.output(value.bytes().len())? {
        user::write_slice(address, value.bytes())?;
    }
    Ok(())
}

/// D3DKMTCreateKeyedMutex (0x90): a mutex with a global handle (RES-91).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEKEYEDMUTEX,
) -> DxgResult<impl Commit + 'a> {
    let request = CreateKeyedMutexRequest {
        key: args.InitialValue,
        sharing: Sharing::Global,
        data: None,
    };
    let (local, global) = call
        .process
        .create_keyed_mutex(&call.driver.tables, request)?;

    args.hSharedHandle = global.as_ref().map_or(0, ReservedGlobal::handle);
    args.hKeyedMutex = local.handle();
    Ok((local, global))
}

/// D3DKMTCreateKeyedMutex2 (0x91): a mutex with private data, shared by global or by NT handle
/// (RES-91).
pub(super) fn create2<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEKEYEDMUTEX2,
) -> DxgResult<impl Commit + 'a> {
    let sharing = keyed_mutex_rules::sharing(args.Flags)?;
    let data = PrivateData::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
    let request = CreateKeyedMutexRequest {
        key: args.InitialValue,
        sharing,
        data: read_data(call, data)?,
    };
    let (local, global) = call
        .process
        .create_keyed_mutex(&call.driver.tables, request)?;

    args.hSharedHandle = global.as_ref().map_or(0, ReservedGlobal::handle);
    args.hKeyedMutex = local.handle();
    Ok((local, global))
}

/// Opens by global handle. A mutex without data gets `data` (RES-92).
fn open_by_global<'a>(
    call: Call<'a>,
    global: u32,
    data: PrivateData,
) -> DxgResult<(Reserved<'a>, FirstData)> {
    let strong = call.open_global(global)?;
    let Object::KeyedMutex(mutex) = strong.object() else {
        return Err(Status::INVALID_PARAMETER.into());
    };

    data.check_open(mutex.data_size())?;

    let first = read_first_data(call, data, mutex)?;

    Ok((call.process.open_keyed_mutex(strong)?, first))
}

/// D3DKMTOpenKeyedMutex (0x92): opens a mutex by its global handle (RES-92).
pub(super) fn open<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENKEYEDMUTEX,
) -> DxgResult<impl Commit + 'a> {
    let (reserved, _) = open_by_global(call, args.hSharedHandle, PrivateData::NONE)?;

    args.hKeyedMutex = reserved.handle();
    Ok(reserved)
}

/// D3DKMTOpenKeyedMutex2 (0x93): opens a mutex by its global handle, and gives it private data if
/// it has none (RES-92).
pub(super) fn open2<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENKEYEDMUTEX2,
    answer: Answer<D3DKMT_OPENKEYEDMUTEX2>,
) -> DxgResult<impl Commit + 'a> {
    let data = PrivateData::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
    let (reserved, first) = open_by_global(call, args.hSharedHandle, data)?;
    let opened = D3DKMT_OPENKEYEDMUTEX2 {
        hKeyedMutex: reserved.handle(),
        ..*args
    };

    until_applied(|| {
        let change = first.prepare()?;

        answer.write(&opened)?;
        change.commit()
    })?;
    Ok(reserved)
}

/// D3DKMTOpenKeyedMutexFromNtHandle (0x94): always refused, because a keyed mutex is shared only
/// with its resource (RES-93).
pub(super) fn open_nt(_call: Call<'_>, args: &D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE) -> DxgResult {
    let is_open = handle::nt_fd(args.hNtHandle).is_some_and(object_file::is_open);

    Err(if is_open {
        Status::OBJECT_TYPE_MISMATCH.into()
    } else {
        Status::INVALID_HANDLE.into()
    })
}

/// D3DKMTDestroyKeyedMutex (0x95): destroys a handle of a mutex (RES-94).
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYKEYEDMUTEX) -> DxgResult {
    call.process.handles.destroy(args.hKeyedMutex, |item| {
        matches!(item, HandleTarget::KeyedMutex(_))
    })
}

/// Acquires (RES-95, RES-96) and copies the private data out.
fn take(
    call: Call<'_>,
    local: u32,
    key: u64,
    timeout: u64,
    data: PrivateData,
) -> DxgResult<Acquired> {
    let (mutex, open) = call.process.handles.keyed_mutex(local)?;
    let timeout = match timeout {
        0 => None,
        addr => Some(user::read::<i64>(addr)?),
    };
    let deadline = timeout::deadline(timeout, time::now_ns);
    let acquired = mutex.acquire(open, key, deadline)?;

    // A failure passes the mutex on.
    write_data(data, &mutex)?;
    Ok(acquired)
}

/// What the acquiring calls report: the fence value, or 0 if the wait ended without the mutex.
fn report(acquired: DxgResult<Acquired>, fence: &mut u64) -> DxgResult<Acquired> {
    match acquired {
        Ok(acquired) => {
            *fence = acquired.fence();
            Ok(acquired)
        }
        Err(stop) => {
            if stop.is(Status::TIMEOUT) || stop.is(Status::ABANDONED) {
                *fence = 0;
            }
            Err(stop)
        }
    }
}

/// D3DKMTAcquireKeyedMutex (0x96): waits until the mutex is released with the key.
pub(super) fn acquire(
    call: Call<'_>,
    args: &mut D3DKMT_ACQUIREKEYEDMUTEX,
) -> DxgResult<impl Commit> {
    let acquired = take(
        call,
        args.hKeyedMutex,
        args.Key,
        args.pTimeout,
        PrivateData::NONE,
    );

    report(acquired, &mut args.FenceValue)
}

/// D3DKMTAcquireKeyedMutex2 (0x97): waits for the mutex and reads its private data (RES-101).
pub(super) fn acquire2(
    call: Call<'_>,
    args: &mut D3DKMT_ACQUIREKEYEDMUTEX2,
) -> DxgResult<impl Commit> {
    let data = PrivateData::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
    let acquired = take(call, args.hKeyedMutex, args.Key, args.pTimeout, data);

    report(acquired, &mut args.FenceValue)
}

/// D3DKMTReleaseKeyedMutex (0x98): hands the mutex over with a key (RES-97).
pub(super) fn release(call: Call<'_>, args: &D3DKMT_RELEASEKEYEDMUTEX) -> DxgResult {
    let (mutex, open) = call.process.handles.keyed_mutex(args.hKeyedMutex)?;

    mutex.release(&open, args.Key, args.FenceValue)
}

/// D3DKMTReleaseKeyedMutex2 (0x99): hands the mutex over with a key, and replaces its private data
/// (RES-101).
pub(super) fn release2(call: Call<'_>, args: &D3DKMT_RELEASEKEYEDMUTEX2) -> DxgResult {
    let data = PrivateData::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
    let (mutex, open) = call.process.handles.keyed_mutex(args.hKeyedMutex)?;

    invalid_if(!mutex.is_owned_by_caller(&open))?;
    match read_data(call, data)? {
        None => mutex.release(&open, args.Key, args.FenceValue),
        Some(data) => shortage(mutex.release_with_data(&open, args.Key, args.FenceValue, &data)),
    }
}
