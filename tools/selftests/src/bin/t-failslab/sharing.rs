// SPDX-License-Identifier: MIT OR Apache-2.0
//! More calls about sharing that are made to fail: sets of three, keyed mutexes that are free or
//! waited for, long lists.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::Status;
use rustix::io::Errno;
use selftests::fds::memfd;
use selftests::sharing::{access, key, Attributes, Client, How, Item, Local, Shape, What};
use selftests::{ensure_eq, TestResult};

use crate::t_failslab::plain::{Maker, Sweep};
use crate::t_failslab::Call;

const LOCAL: u32 = OPENDXG_HANDLE_LOCAL;
const NAME: &str = r"\BaseNamedObjects\failslab";

/// A call with an argument that is filled in anew each time, and what undoes it.
struct Repeated<'a, T> {
    raw: Raw,
    fresh: T,
    arg: T,
    handles: u32,
    undo: Box<dyn FnMut(&T) -> TestResult + 'a>,
}

impl<T: Argument + Copy> Call for Repeated<'_, T> {
    fn run(&mut self) -> rustix::io::Result<Status> {
        self.arg = self.fresh;
        self.raw.exec(&mut self.arg)
    }

    fn undo(&mut self) -> TestResult {
        (self.undo)(&self.arg)
    }

    fn handles(&self) -> u32 {
        self.handles
    }
}

/// Sweeps over a call with this argument.
fn repeat<'a, T: Argument + Copy>(
    sweep: Sweep<'_>,
    client: &Client,
    fresh: T,
    handles: u32,
    undo: impl FnMut(&T) -> TestResult + 'a,
) -> TestResult {
    sweep(&mut Repeated {
        raw: client.raw().clone(),
        fresh,
        arg: fresh,
        handles,
        undo: Box::new(undo),
    })
}

fn close(fd: u64) -> TestResult {
    let fd = i32::try_from(fd).map_err(|_| "not a descriptor")?;
    // SAFETY: made by the call for us.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("OpenSyncObjectNtHandleFromName", |sweep| {
        let client = Client::new()?;
        let object = client.create(Shape::Fence, How::Nt)?;
        let _kept = client.share_named(&object, NAME)?;
        let mut name = Attributes::named(NAME);
        let mut arg = D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME::zeroed();
        (arg.dwDesiredAccess, arg.pObjAttrib) = (1, name.address());
        repeat(sweep, &client, arg, 0, |arg| close(arg.hNtHandle))
    }),
    ("OpenResourceFromNtHandle of three objects", open_triple),
    ("AcquireKeyedMutex2 that waits and gives up", |sweep| {
        let client = Client::new()?;
        let object = client.create_keyed_mutex(How::Global, 0, b"data")?;
        let (limit, mut data) = (-1i64, [0u8; 8]);
        let mut arg = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
        (arg.hKeyedMutex, arg.Key, arg.pTimeout) = (object.handle(), 9, (&raw const limit) as u64);
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (data.as_mut_ptr() as u64, 8);
        repeat(sweep, &client, arg, 0, |_| Ok(()))
    }),
    (
        "RES-102 acquiring a free keyed mutex allocates nothing",
        |sweep| {
            let client = Client::new()?;
            let object = client.create(Shape::KeyedMutex, How::Global)?;
            sweep(&mut Uncontended { client, object })
        },
    ),
    ("ReleaseKeyedMutex2 with new data", |sweep| {
        let client = Client::new()?;
        let object = client.create(Shape::KeyedMutex, How::Global)?;
        client.try_acquire(object.handle(), 0)?;
        let data = [4u8; 5000];
        let mut arg = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
        arg.hKeyedMutex = object.handle();
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (data.as_ptr() as u64, 5000);
        // A release that was refused has not released.
        repeat(sweep, &client, arg, 0, |_| {
            ensure_eq!(
                client.try_acquire(object.handle(), 0)?.status,
                Status::SUCCESS
            );
            Ok(())
        })
    }),
    ("SET_INFO with eight items and a file", set_info),
    ("DELETE_INFO", |sweep| {
        let client = Client::new()?;
        let object = client.create(Shape::Resource, How::Private)?;
        let (target, bytes) = (object.target(), [7u8; 300]);
        let mut arg = opendxg_delete_info::zeroed();
        (arg.handle, arg.handle_type, arg.key) = (object.handle().into(), LOCAL, key(1));
        client.set_info(target, &[Item::new(key(1), 0, &bytes)])?;
        // A call that failed has removed nothing.
        repeat(sweep, &client, arg, 0, |_| {
            ensure_eq!(client.entries(target)?.len(), 0);
            client.set_info(target, &[Item::new(key(1), 0, &bytes)])?;
            Ok(())
        })
    }),
];

fn open_triple(sweep: Sweep<'_>) -> TestResult {
    let client = Client::new()?;
    let members = client.triple()?;
    let handles = members.each_ref().map(Local::handle);
    let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    let mut query = D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE::zeroed();
    (query.hDevice, query.hNtHandle) = (client.device_handle(), fd.as_raw_fd() as u64);
    client.call(&mut query)?;
    let total = query.TotalPrivateDriverDataSize;
    let mut buffer = vec![0u8; total as usize + 1];
    // SAFETY: integers only.
    let mut infos: [D3DDDI_OPENALLOCATIONINFO2; 1] = unsafe { core::mem::zeroed() };
    let mut arg = D3DKMT_OPENRESOURCEFROMNTHANDLE::zeroed();
    (arg.hDevice, arg.hNtHandle) = (client.device_handle(), fd.as_raw_fd() as u64);
    (arg.NumAllocations, arg.pOpenAllocationInfo2) = (1, infos.as_mut_ptr() as u64);
    arg.pPrivateRuntimeData = buffer.as_mut_ptr() as u64;
    arg.ResourcePrivateDriverDataSize = query.ResourcePrivateDriverDataSize;
    arg.pResourcePrivateDriverData = buffer.as_mut_ptr() as u64;
    arg.pTotalPrivateDriverDataBuffer = buffer.as_mut_ptr() as u64;
    arg.TotalPrivateDriverDataBufferSize = total;
    let undo = |arg: &D3DKMT_OPENRESOURCEFROMNTHANDLE| -> TestResult {
        client.destroy(What::Resource, arg.hResource)?;
        client.destroy(What::KeyedMutex, arg.hKeyedMutex)?;
        Ok(client.destroy(What::Sync, arg.hSyncObject)?)
    };
    repeat(sweep, &client, arg, 4, undo)
}

fn set_info(sweep: Sweep<'_>) -> TestResult {
    let client = Client::new()?;
    let (object, file) = (client.create(Shape::Resource, How::Private)?, memfd()?);
    let bytes = [6u8; 5000];
    let items: Vec<_> = (0..8)
        .map(|number| Item::new(key(number), 0, &bytes).file(file.as_fd()).raw())
        .collect();
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type) = (object.handle().into(), LOCAL);
    (arg.item_count, arg.items) = (8, items.as_ptr() as u64);
    let target = object.target();
    repeat(sweep, &client, arg, 0, |_| {
        // All of them were set, and before nothing was there.
        for number in 0..8 {
            client.delete_info(target, key(number), 0, 0).0?;
        }
        ensure_eq!(client.entries(target)?.len(), 0);
        Ok(())
    })
}

/// Acquire and release without anybody in the way: only copies may fail.
struct Uncontended {
    client: Client,
    object: Local,
}

impl Call for Uncontended {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let now = 0i64;
        let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
        (arg.hKeyedMutex, arg.pTimeout) = (self.object.handle(), (&raw const now) as u64);
        match self.client.raw().exec(&mut arg) {
            Ok(Status::NO_MEMORY) => Err(Errno::NOMEM),
            answer => answer,
        }
    }

    fn undo(&mut self) -> TestResult {
        Ok(self.client.release(self.object.handle(), 0, 0)?)
    }
}
