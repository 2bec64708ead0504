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
            PreparedChange,
            Value, //
        },
        keyed_mutex::{
            creation::{
                CreateRequest,
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
        allocation_rules::MAX_PRIVATE_DATA,
        handle,
        open_rules,
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

/// Private runtime data in the caller's memory.
#[derive(Clone, Copy)]
pub(super) struct Data {
    addr: u64,
    size: u32,
}

impl Data {
    const NONE: Self = Self { addr: 0, size: 0 };

    /// INVALID_PARAMETER for a size without an address (RES-91, RES-92, RES-101).
    pub(super) fn new(addr: u64, size: u32) -> DxgResult<Self> {
        invalid_if(addr == 0 && size != 0)?;
        Ok(Self { addr, size })
    }

    /// Copies the data in, charged to the caller; `None` if there is none.
    pub(super) fn read(self, call: Call<'_>) -> DxgResult<Option<Arc<Value>>> {
        if self.size == 0 {
            return Ok(None);
        }
        invalid_if(self.size > MAX_PRIVATE_DATA)?;

        // CAST: bounded above.
        let bytes = user::read_bytes(self.addr, self.size as usize)?;

        Ok(Some(shortage(Value::new(
            &call.driver.tables.accounts,
            &Module,
            bytes,
        ))?))
    }

    /// Copies the data in that `mutex` gets from an open; `None` if it has data, or there is none.
    pub(super) fn read_first(
        self,
        call: Call<'_>,
        mutex: &Arc<KeyedMutex>,
    ) -> DxgResult<Option<FirstData>> {
        if mutex.data_size().is_some() {
            return Ok(None);
        }
        Ok(self
            .read(call)?
            .map(|value| FirstData::new(mutex.clone(), value)))
    }

    /// Copies the data of `mutex` out, if the caller asks for it and has room for all of it.
    fn write(self, mutex: &KeyedMutex) -> DxgResult {
        if self.size == 0 {
            return Ok(());
        }
        let Some(value) = mutex.header.attachments.blob() else {
            return Ok(());
        };

        // CAST: 32 bits fit a usize.
        invalid_if((self.size as usize) < value.bytes().len())?;
        Ok(user::write_slice(self.addr, value.bytes())?)
    }
}

/// Prepares to give a mutex its first data: `None` if there is nothing to do.
pub(super) fn prepare(first: &Option<FirstData>) -> DxgResult<Option<PreparedChange<'_, Object>>> {
    match first {
        Some(first) => first.prepare(),
        None => Ok(None),
    }
}

/// D3DKMTCreateKeyedMutex (0x90): a mutex with a global handle (RES-91).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEKEYEDMUTEX,
) -> DxgResult<impl Commit + 'a> {
    let request = CreateRequest {
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
    invalid_if(args.Flags & D3DKMT_CREATEKEYEDMUTEX2_FLAGS_Reserved != 0)?;

    let sharing = match args.Flags & D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing {
        0 => Sharing::Global,
        _ => Sharing::Nt,
    };
    let request = CreateRequest {
        key: args.InitialValue,
        sharing,
        data: Data::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?.read(call)?,
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
    data: Data,
) -> DxgResult<(Reserved<'a>, Option<FirstData>)> {
    let strong = call.open_global(global)?;
    let Object::KeyedMutex(mutex) = strong.object() else {
        return Err(Status::INVALID_PARAMETER.into());
    };

    open_rules::check_mutex_data(mutex.data_size(), data.size)?;

    let first = data.read_first(call, mutex)?;

    Ok((call.process.open_keyed_mutex(strong)?, first))
}

/// D3DKMTOpenKeyedMutex (0x92): opens a mutex by its global handle (RES-92).
pub(super) fn open<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENKEYEDMUTEX,
) -> DxgResult<impl Commit + 'a> {
    let (reserved, _) = open_by_global(call, args.hSharedHandle, Data::NONE)?;

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
    let data = Data::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
    let (reserved, first) = open_by_global(call, args.hSharedHandle, data)?;

    loop {
        let change = prepare(&first)?;

        answer.write(&D3DKMT_OPENKEYEDMUTEX2 {
            hKeyedMutex: reserved.handle(),
            ..*args
        })?;
        if change.map_or(Ok(true), PreparedChange::commit)? {
            return Ok(reserved);
        }
    }
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
fn take(call: Call<'_>, local: u32, key: u64, timeout: u64, data: Data) -> DxgResult<Acquired> {
    let (mutex, open) = call.process.handles.keyed_mutex(local)?;
    let timeout = match timeout {
        0 => None,
        addr => Some(user::read::<i64>(addr)?),
    };
    let deadline = timeout::deadline(timeout, time::now_ns);
    let acquired = mutex.acquire(&open, key, deadline)?;

    // A failure passes the mutex on.
    data.write(&mutex)?;
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
    let acquired = take(call, args.hKeyedMutex, args.Key, args.pTimeout, Data::NONE);

    report(acquired, &mut args.FenceValue)
}

/// D3DKMTAcquireKeyedMutex2 (0x97): waits for the mutex and reads its private data (RES-101).
pub(super) fn acquire2(
    call: Call<'_>,
    args: &mut D3DKMT_ACQUIREKEYEDMUTEX2,
) -> DxgResult<impl Commit> {
    let data = Data::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
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
    let data = Data::new(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?;
    let (mutex, open) = call.process.handles.keyed_mutex(args.hKeyedMutex)?;

    invalid_if(!mutex.is_owned_by_caller(&open))?;
    match data.read(call)? {
        None => mutex.release(&open, args.Key, args.FenceValue),
        Some(_) if !open.may_write => Err(Status::ACCESS_DENIED.into()),
        Some(data) => shortage(mutex.release_with_data(&open, args.Key, args.FenceValue, &data)),
    }
}
