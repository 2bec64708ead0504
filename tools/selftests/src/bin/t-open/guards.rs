// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening a resource with a keyed mutex and a synchronisation object: the data that the mutex may
//! get (RES-51).

use std::os::fd::{AsFd, OwnedFd};

use opendxg::raw::{code, Argument};
use opendxg::uapi::*;
use opendxg::Status;
use rustix::io::Errno;
use selftests::leak::Watch;
use selftests::memory::{Page, UNMAPPED};
use selftests::poison::bytes;
use selftests::resource::{OpenNt, ALL_ACCESS, READ_ACCESS};
use selftests::sharing::{Client, Local, What};
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-3 RES-51 an answer that cannot be written gives the mutex no data",
            unwritable_struct,
        )
        .test(
            "RES-3 RES-51 nor does a buffer that cannot be written",
            unwritable_buffer,
        )
        .test(
            "RES-4 RES-51 data that are refused: nothing is written anywhere",
            refused_data,
        )
        .test(
            "RES-51 data are not looked at where the mutex has some",
            unused_data,
        )
        .test(
            "RES-35 RES-51 who may not write gives the mutex no data",
            without_write,
        )
        .test(
            "RES-64 RES-101 nor by a release, which releases nothing then",
            release_without_write,
        )
}

/// A set of three.
struct Set {
    client: Client,
    members: [Local; 3],
}

impl Set {
    fn new() -> TestResult<Self> {
        let client = Client::new()?;
        let members = client.triple()?;
        Ok(Self { client, members })
    }

    fn share(&self, access: u32) -> TestResult<OwnedFd> {
        let handles = self.members.each_ref().map(Local::handle);
        Ok(self.client.share_with(&handles, None, access)?.0)
    }

    fn mutex(&self) -> &Local {
        &self.members[1]
    }

    /// An opening with these data for the mutex.
    fn opening(&self, fd: impl AsFd, data: &[u8]) -> TestResult<OpenNt> {
        let mut open = OpenNt::new(self.client.device(), fd)?;
        open.arg.pKeyedMutexPrivateRuntimeData = data.as_ptr() as u64;
        open.arg.KeyedMutexPrivateRuntimeDataSize = data.len() as u32;
        Ok(open)
    }

    /// Demands that the mutex has no data.
    #[track_caller]
    fn is_bare(&self) -> TestResult {
        let found = self.client.get(self.mutex().target(), [0; 16], 0);
        fails_with(found, Status::NOT_FOUND)
    }

    /// Demands that the mutex has these data.
    fn holds(&self, data: &[u8]) -> TestResult {
        let found = self.client.get(self.mutex().target(), [0; 16], 0)?;
        ensure_eq!(found.bytes, data);
        Ok(())
    }

    /// Opens, and destroys what was opened.
    fn open(&self, mut open: OpenNt) -> TestResult {
        let opened = open.run()?;
        self.client
            .destroy(What::KeyedMutex, open.arg.hKeyedMutex)?;
        self.client.destroy(What::Sync, open.arg.hSyncObject)?;
        opened.destroy()
    }
}

const DATA: [u8; 20] = [0x66; 20];

fn unwritable_struct() -> TestResult {
    const CODE: u32 = code(
        D3DKMT_OPENRESOURCEFROMNTHANDLE::NR,
        D3DKMT_OPENRESOURCEFROMNTHANDLE::SIZE,
    );
    let set = Set::new()?;
    let nt = set.share(ALL_ACCESS)?;
    let open = set.opening(&nt, &DATA)?;
    let watch = Watch::start()?;
    let before = fixture::next_handle()?;
    let page = Page::beginning_with(bytes(&open.arg))?.read_only()?;
    let answer = set.client.raw().ioctl(CODE, page.address());
    ensure_eq!(answer, Err(Errno::FAULT));
    ensure_eq!(fixture::next_handle()?, before + 0x40);
    watch.unchanged()?;
    set.is_bare()?;
    set.open(open)?;
    set.holds(&DATA)
}

fn unwritable_buffer() -> TestResult {
    let set = Set::new()?;
    let nt = set.share(ALL_ACCESS)?;
    let page = Page::new()?.read_only()?;
    let mut open = set.opening(&nt, &DATA)?;
    open.arg.pTotalPrivateDriverDataBuffer = page.address();
    open.is_refused(Status::ACCESS_VIOLATION)?;
    let mut open = set.opening(&nt, &DATA)?;
    open.arg.pOpenAllocationInfo2 = page.address();
    // The buffer before it may have been written.
    selftests::call::refused(set.client.raw(), &mut open.arg, Status::ACCESS_VIOLATION)?;
    set.is_bare()
}

fn refused_data() -> TestResult {
    let set = Set::new()?;
    let nt = set.share(ALL_ACCESS)?;
    let long = vec![1; 65537];
    let watch = Watch::start()?;
    for (address, size, status) in [
        (0, 20, Status::INVALID_PARAMETER),
        (0, u32::MAX, Status::INVALID_PARAMETER),
        (long.as_ptr() as u64, 65537, Status::INVALID_PARAMETER),
        (long.as_ptr() as u64, u32::MAX, Status::INVALID_PARAMETER),
        (UNMAPPED, 20, Status::ACCESS_VIOLATION),
    ] {
        let mut open = set.opening(&nt, &DATA)?;
        open.arg.pKeyedMutexPrivateRuntimeData = address;
        open.arg.KeyedMutexPrivateRuntimeDataSize = size;
        open.is_refused(status)
            .map_err(|error| format!("{size:#x} bytes at {address:#x}: {error}"))?;
    }
    watch.unchanged()?;
    set.is_bare()
}

fn unused_data() -> TestResult {
    let set = Set::new()?;
    let nt = set.share(ALL_ACCESS)?;
    set.open(set.opening(&nt, &DATA)?)?;
    let mut open = set.opening(&nt, &DATA)?;
    open.arg.pKeyedMutexPrivateRuntimeData = UNMAPPED;
    set.open(open)?;
    set.open(set.opening(&nt, b"other")?)?;
    set.holds(&DATA)
}

fn without_write() -> TestResult {
    let set = Set::new()?;
    let nt = set.share(READ_ACCESS)?;
    set.opening(&nt, &DATA)?.is_refused(Status::ACCESS_DENIED)?;
    set.is_bare()?;
    set.open(set.opening(&nt, b"")?)?;
    // What would not be used needs no right.
    set.client
        .set(set.mutex().target(), [0; 16], 0, b"of the maker")?;
    set.open(set.opening(&nt, &DATA)?)?;
    set.holds(b"of the maker")
}

fn release_without_write() -> TestResult {
    let set = Set::new()?;
    let nt = set.share(READ_ACCESS)?;
    let mut open = set.opening(&nt, b"")?;
    let opened = open.run()?;
    let mutex = open.arg.hKeyedMutex;
    let mut release = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
    release.hKeyedMutex = mutex;
    release.Key = 7;
    release.pPrivateRuntimeData = DATA.as_ptr() as u64;
    release.PrivateRuntimeDataSize = DATA.len() as u32;
    let acquired = set.client.try_acquire(mutex, 0)?;
    ensure_eq!(acquired.status, Status::SUCCESS);
    fails_with(set.client.call(&mut release), Status::ACCESS_DENIED)?;
    set.is_bare()?;
    // Still its own, and of the same key.
    set.client.release(mutex, 0, 0)?;
    set.client.destroy(What::KeyedMutex, mutex)?;
    set.client.destroy(What::Sync, open.arg.hSyncObject)?;
    opened.destroy()
}
