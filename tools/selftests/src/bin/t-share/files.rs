// SPDX-License-Identifier: MIT OR Apache-2.0
//! NT handles as files (RES-2, RES-13 to RES-16, FEN-168, FEN-170).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use opendxg::{Access, Device, FdInfo, NtHandle, Status, SyncFlags, SyncKind};
use rustix::event::PollFlags;
use rustix::io::{Errno, FdFlags};
use selftests::child::in_child;
use selftests::fds::{poll_events, receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::stress::Figure;
use selftests::{ensure, ensure_eq, fails_with, fixture, Outcome, Suite};

const NT: SyncFlags = SyncFlags::SHARED.union(SyncFlags::NT_SECURITY_SHARING);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-13 an NT handle is never descriptor 0", never_zero)
        .test(
            "RES-13 without a free descriptor NO_MEMORY, and nothing is left",
            no_descriptor,
        )
        .test(
            "RES-13 copies keep close-on-exec, the value is small",
            close_on_exec,
        )
        .test(
            "FEN-170 RES-15 fdinfo tells type, object, access, kind, value, openings",
            fd_info,
        )
        .stress(
            "RES-2 object ids only grow",
            Duration::from_secs(30),
            Figure::new(200, 1_000_000),
            ids_grow,
        )
        .test("FEN-168 poll on an NT handle gives no event", no_events)
        .test("RES-16 read, write, seek and mmap fail", no_io)
        .test(
            "RES-14 the last copy of the descriptor ends the share",
            last_copy,
        )
        .test(
            "RES-14 a handle queued in a socket keeps the object",
            in_flight,
        )
        .test("RES-14 a handle sent to another process works there", sent)
        .test(
            "RES-14 closing the node leaves NT handles alone",
            node_closed,
        )
}

fn shared(device: &Device) -> Outcome<NtHandle> {
    Ok(device.create_shareable_fence(0)?.share(Access::ALL)?)
}

fn never_zero() -> Outcome {
    in_child(|| {
        let device = fixture::device()?;
        let fence = device.create_shareable_fence(3)?;
        // SAFETY: nobody in this process uses standard input.
        unsafe { libc::close(0) };
        let shared = fence.share(Access::ALL)?;
        ensure!(shared.as_raw_fd() != 0, "an NT handle with value 0");
        let lowest = rustix::io::fcntl_getfd(std::io::stdin());
        ensure_eq!(
            lowest.err(),
            Some(Errno::BADF),
            "descriptor 0 is still free"
        );
        let opened = device.open_fence(&shared, SyncFlags::empty())?;
        ensure_eq!(opened.value(), 3);
        Ok(())
    })
}

fn no_descriptor() -> Outcome {
    in_child(|| {
        let fence = fixture::device()?.create_shareable_fence(0)?;
        let watch = Watch::start()?;
        // As many as are open, in a row: none is free.
        let highest = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?.as_raw_fd() as u64;
        let limit = libc::rlimit {
            rlim_cur: highest,
            rlim_max: highest,
        };
        // SAFETY: `limit` is a live struct; the limit ends with this process.
        ensure_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        fails_with(fence.share(Access::ALL), Status::NO_MEMORY)?;
        fails_with(fence.point(1), Status::NO_MEMORY)?;
        let more = libc::rlimit {
            rlim_cur: highest + 8,
            rlim_max: highest + 8,
        };
        // SAFETY: as above.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &more) } == 0 {
            watch.unchanged()?;
        }
        Ok(())
    })
}

fn close_on_exec() -> Outcome {
    let device = fixture::device()?;
    let shared = shared(&device)?;
    ensure!(shared.as_raw_fd() > 0 && shared.as_raw_fd() < 0x4000_0000);
    ensure!(
        rustix::io::fcntl_getfd(&shared)?.contains(FdFlags::CLOEXEC),
        "the handle"
    );
    let point = device.create_fence(0)?.point(1)?;
    ensure!(
        rustix::io::fcntl_getfd(&point)?.contains(FdFlags::CLOEXEC),
        "a fence point"
    );
    Ok(())
}

/// One line of the fdinfo of a descriptor.
fn info(fd: impl AsFd, key: &str) -> Outcome<String> {
    let info = FdInfo::read(fd.as_fd())?;
    let value = info.get(key).map(str::to_owned);
    value.ok_or_else(|| format!("no {key} in {info:?}").into())
}

fn fd_info() -> Outcome {
    let device = fixture::device()?;
    for (kind, name) in [
        (
            SyncKind::Mutex {
                initially_owned: false,
            },
            "mutex",
        ),
        (
            SyncKind::Semaphore {
                max_count: 1,
                initial_count: 1,
            },
            "semaphore",
        ),
        (SyncKind::Fence { initial_value: 1 }, "fence"),
        (
            SyncKind::MonitoredFence { initial_value: 1 },
            "monitored-fence",
        ),
    ] {
        let object = device.create_sync_object(kind, NT)?;
        let shared = object.share(Access::ALL)?;
        ensure_eq!(info(&shared, "dxg-type")?, "DxgkSharedSyncObject");
        ensure_eq!(info(&shared, "dxg-kind")?, name);
        ensure_eq!(info(&shared, "dxg-access")?, "0x1f0003");
        let id: u64 = info(&shared, "dxg-object")?
            .parse()
            .map_err(|_| "id is no number")?;
        ensure!(id > 0 && id < 1 << 48, "id {id:#x} looks like an address");
    }
    let fence = device.create_shareable_fence(5)?;
    let shared = fence.share(Access::WAIT)?;
    ensure_eq!(info(&shared, "dxg-value")?, "5");
    ensure_eq!(info(&shared, "dxg-openings")?, "1");
    fence.signal(u64::MAX)?;
    let other = device.open_fence(&shared, SyncFlags::empty())?;
    ensure_eq!(info(&shared, "dxg-value")?, u64::MAX.to_string());
    ensure_eq!(info(&shared, "dxg-openings")?, "2");
    // Two handles of one object have one id.
    let second = other.share(Access::WAIT)?;
    ensure_eq!(info(&second, "dxg-object")?, info(&shared, "dxg-object")?);
    drop((fence, other));
    ensure_eq!(info(&shared, "dxg-openings")?, "0");
    Ok(())
}

fn ids_grow(figure: Figure) -> Outcome {
    let device = fixture::device()?;
    let mut last = 0u64;
    for _ in 0..figure.rounds() {
        let id = info(&shared(&device)?, "dxg-object")?;
        let id = id.parse().map_err(|_| "id is no number")?;
        ensure!(id > last, "{last} -> {id}");
        last = id;
    }
    Ok(())
}

fn no_events() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(Access::ALL)?;
    fence.signal(1)?;
    ensure_eq!(
        poll_events(shared.as_fd(), Duration::ZERO)?,
        PollFlags::empty()
    );
    fence.destroy()?;
    ensure_eq!(
        poll_events(shared.as_fd(), Duration::from_millis(20))?,
        PollFlags::empty()
    );
    Ok(())
}

fn no_io() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let (shared, point) = (fence.share(Access::ALL)?, fence.point(1)?);
    let fds: [BorrowedFd<'_>; 2] = [shared.as_fd(), point.as_fd()];
    for fd in fds {
        ensure!(rustix::io::read(fd, &mut [0u8; 8]).is_err(), "read");
        ensure!(rustix::io::write(fd, &[0; 8]).is_err(), "write");
        ensure!(
            rustix::fs::seek(fd, rustix::fs::SeekFrom::Start(8)).is_err(),
            "lseek"
        );
        for rights in [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_NONE] {
            for sharing in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
                let number = fd.as_raw_fd();
                // SAFETY: a new mapping anywhere; it is refused.
                let address =
                    unsafe { libc::mmap(core::ptr::null_mut(), 4096, rights, sharing, number, 0) };
                ensure_eq!(address, libc::MAP_FAILED, "mmap");
            }
        }
        // SAFETY: such a file has no such ioctl; the argument is no address.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), 0xc010_4714, 0) };
        ensure_eq!(result, -1, "ioctl");
    }
    Ok(())
}

fn last_copy() -> Outcome {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    let shared = shared(&device)?;
    let copies = [shared.try_clone()?, shared.try_clone()?];
    let shares = || -> Outcome<u64> { Ok(watch.now()?.total_shares) };
    let before = watch.at_start().total_shares;
    ensure_eq!(shares()?, before + 1, "copies are one share");
    drop(shared);
    let [first, second] = copies;
    drop(first);
    ensure_eq!(shares()?, before + 1);
    device.open_fence(&second, SyncFlags::empty())?;
    drop(second);
    ensure_eq!(shares()?, before);
    Ok(())
}

fn in_flight() -> Outcome {
    let device = fixture::device()?;
    let (left, right) = socket_pair()?;
    let fence = device.create_shareable_fence(6)?;
    send(&left, fence.share(Access::ALL)?)?;
    fence.destroy()?;
    drop(left);
    let arrived = receive(&right)?;
    ensure_eq!(device.open_fence(&arrived, SyncFlags::empty())?.value(), 6);
    // Not received at all: it ends with the socket.
    let watch = Watch::start()?;
    let (left, right) = socket_pair()?;
    send(&left, shared(&device)?)?;
    ensure_eq!(watch.now()?.total_shares, watch.at_start().total_shares + 1);
    drop((left, right));
    watch.ends_clean()
}

fn sent() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(6)?;
    let (left, right) = socket_pair()?;
    let other = selftests::child::Child::spawn(|| {
        let arrived = receive(&right)?;
        let device = fixture::device()?;
        let opened = device.open_fence(&arrived, SyncFlags::empty())?;
        ensure_eq!(opened.value(), 6);
        opened.signal(7)?;
        opened.wait(8)?;
        opened.signal(9)?;
        Ok(())
    })?;
    send(&left, fence.share(Access::ALL)?)?;
    fence.wait(7)?;
    fence.signal(8)?;
    fence.wait(9)?;
    other.join()
}

fn node_closed() -> Outcome {
    in_child(|| {
        let shared = {
            let device = fixture::device()?;
            shared(&device)?
            // The last node of this process is closed here: its process object ends.
        };
        ensure_eq!(info(&shared, "dxg-openings")?, "0");
        let device = fixture::device()?;
        device.open_fence(&shared, SyncFlags::empty())?.signal(1)?;
        ensure_eq!(info(&shared, "dxg-value")?, "1");
        Ok(())
    })
}
