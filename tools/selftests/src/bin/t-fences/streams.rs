// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fence streams: descriptors from which the values of a fence are read (FEN-176).

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc;
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::opendxg_fence_stream;
use opendxg::{Access, Error, FdInfo, FenceStream, Status, SyncFlags};
use rustix::event::{epoll, PollFlags, Timespec};
use rustix::io::{Errno, ReadWriteFlags};
use selftests::call::refused;
use selftests::child::{Child, Gate};
use selftests::fds::{self, poll_events, receive, send, socket_pair};
use selftests::leak::{open_descriptors, Watch};
use selftests::memory::Page;
use selftests::poison::{bytes, POISON};
use selftests::rounds::rounds;
use selftests::task::{is_in, me};
use selftests::time::{eventually, soon};
use selftests::uring::Ring;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-176 a read returns the present value", values)
        .test(
            "FEN-176 readable while the value is another than the last one",
            readable,
        )
        .test("FEN-176 a read that waits", blocking)
        .test("FEN-176 a signal ends a read that waits", interrupted)
        .test("FEN-176 epoll, level and edge triggered", with_epoll)
        .test("FEN-176 io_uring POLL_ADD and READ", with_uring)
        .test("FEN-176 the last of many signals is read", last_signal)
        .test("FEN-176 many streams and waits of one fence", many)
        .test("FEN-176 FEN-28 the last value, then the end", ended)
        .test(
            "FEN-176 a stream outlives its process and works in another one",
            sent,
        )
        .test("FEN-176 fdinfo tells the fence and the last value", fd_info)
        .test(
            "RES-13 FEN-176 closed by exec, and reads that get nothing",
            reads,
        )
        .test("FEN-176 refusals", refusals)
        .test(
            "RES-3 FEN-176 no stream if its number cannot be written",
            unwritable,
        )
        .test("FEN-176 closing a stream in every state", closing)
}

/// What `poll` says now.
fn events(stream: &FenceStream) -> TestResult<PollFlags> {
    poll_events(stream.as_fd(), Duration::ZERO)
}

fn values() -> TestResult {
    let fence = fixture::device()?.create_fence(5)?;
    let stream = fence.stream(5)?;
    ensure_eq!(stream.try_read()?, None, "nothing yet");
    for value in [6, 7, 100, u64::MAX] {
        fence.signal(value)?;
        ensure_eq!(stream.try_read()?, Some(value));
        ensure_eq!(stream.try_read()?, None, "read already");
    }
    // Many changes are one.
    for value in [3, 2, 9, 8] {
        fence.signal_rewind(value)?;
    }
    ensure_eq!(stream.read()?, 8);
    ensure_eq!(stream.try_read()?, None);
    // The first value, for one who does not know it.
    ensure_eq!(fence.stream(0)?.try_read()?, Some(8));
    ensure_eq!(fence.stream(u64::MAX)?.read()?, 8);
    Ok(())
}

fn readable() -> TestResult {
    let fence = fixture::device()?.create_fence(5)?;
    let stream = fence.stream(5)?;
    // (signalled, readable)
    for (value, is_readable) in [
        (5, false),
        (6, true),
        (6, true),
        // Back at the value that was read last: unchanged.
        (5, false),
        (4, true),
        (0, true),
        (5, false),
        (u64::MAX, true),
        (5, false),
        (5, false),
    ] {
        fence.signal_rewind(value)?;
        let expected = match is_readable {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        };
        ensure_eq!(events(&stream)?, expected, "at {value}");
    }
    ensure_eq!(stream.try_read()?, None);
    // A poll that found nothing is told of the next change, also of a rewind.
    for value in [4, 7] {
        fence.signal_rewind(value)?;
        ensure_eq!(stream.wait(Some(soon()))?, Some(value));
    }
    Ok(())
}

/// Runs `act` while a thread sleeps in a read of `stream`; what it has read.
fn while_reading(
    stream: &FenceStream,
    act: impl FnOnce(i32) -> TestResult,
) -> TestResult<opendxg::Result<u64>> {
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let reader = scope.spawn(move || {
            let _ = tell.send(me());
            stream.read()
        });
        let thread = told.recv().map_err(|_| "no thread")?;
        eventually("the thread sleeps in the read", || {
            is_in(thread, libc::SYS_read)
        })?;
        act(thread)?;
        reader.join().map_err(|_| "panic in a thread".into())
    })
}

fn blocking() -> TestResult {
    let fence = fixture::device()?.create_fence(5)?;
    let stream = fence.stream(5)?;
    for value in [6, 4, u64::MAX, 0] {
        let read = while_reading(&stream, |thread| {
            // Nothing has changed: it goes on sleeping, or sleeps again.
            fence.signal_rewind(fence.value())?;
            ensure!(is_in(thread, libc::SYS_read), "woken by an equal value");
            Ok(fence.signal_rewind(value)?)
        })?;
        ensure_eq!(read?, value);
    }
    Ok(())
}

extern "C" fn nothing(_: i32) {}

fn interrupted() -> TestResult {
    let fence = fixture::device()?.create_fence(5)?;
    let stream = fence.stream(5)?;
    let handle = |flags| {
        // SAFETY: a handler that does nothing, for a signal that nobody else uses.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            action.sa_flags = flags;
            libc::sigaction(libc::SIGUSR2, &action, core::ptr::null_mut());
        }
    };
    let pid = std::process::id() as i32;
    let interrupt = |thread: i32| {
        // SAFETY: plain system call; the thread is ours.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, thread, libc::SIGUSR2) }
    };
    handle(0);
    let read = while_reading(&stream, |thread| {
        interrupt(thread);
        Ok(())
    })?;
    ensure!(
        matches!(&read, Err(Error::Os(errno)) if *errno == opendxg::Errno::INTR),
        "{read:?}"
    );
    handle(libc::SA_RESTART);
    let read = while_reading(&stream, |thread| {
        interrupt(thread);
        Ok(fence.signal(6)?)
    })?;
    ensure_eq!(read?, 6);
    Ok(())
}

fn with_epoll() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    for trigger in [epoll::EventFlags::empty(), epoll::EventFlags::ET] {
        let stream = fence.stream(fence.value())?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(1);
        epoll::add(&set, &stream, data, epoll::EventFlags::IN | trigger)?;
        let ready = |timeout: Duration| -> TestResult<usize> {
            let timeout = Timespec::try_from(timeout).map_err(|_| "timeout")?;
            let mut space = [epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }; 8];
            Ok(epoll::wait(&set, &mut space[..], Some(&timeout))?)
        };
        let is_level = trigger.is_empty();
        for _ in 0..3 {
            ensure_eq!(ready(Duration::ZERO)?, 0);
            fence.signal(fence.value())?;
            ensure_eq!(ready(Duration::ZERO)?, 0, "the same value");
            fence.signal(fence.value() + 1)?;
            ensure_eq!(ready(soon())?, 1);
            // Further changes wake nobody who has not read.
            fence.signal(fence.value() + 1)?;
            ensure_eq!(ready(Duration::ZERO)?, usize::from(is_level));
            ensure_eq!(stream.try_read()?, Some(fence.value()));
        }
        // A change that is taken back before anybody looks is none.
        fence.signal(fence.value() + 1)?;
        fence.signal_rewind(fence.value() - 1)?;
        ensure_eq!(ready(Duration::ZERO)?, 0);
        fence.signal(fence.value() + 1)?;
        ensure_eq!(ready(soon())?, 1, "it is still told");
    }
    Ok(())
}

fn with_uring() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let stream = fence.stream(0)?;
    let mut ring = Ring::new()?;
    ring.poll_add(stream.as_fd(), 7)?;
    fence.signal(0)?;
    ensure_eq!(ring.completed()?, None);
    fence.signal(2)?;
    let (data, result) = ring.wait()?;
    ensure_eq!((data, result & 1), (7, 1), "POLLIN");
    for (number, value) in (10..).zip([2, 3, 1, 9]) {
        let mut bytes = [0u8; 8];
        // SAFETY: the bytes live until the answer has come.
        unsafe { ring.read(stream.as_fd(), &mut bytes, number)? };
        if fence.value() != value {
            ensure_eq!(ring.completed()?, None, "unchanged");
            fence.signal_rewind(value)?;
        }
        ensure_eq!(ring.wait()?, (number, 8));
        ensure_eq!(u64::from_ne_bytes(bytes), value);
    }
    Ok(())
}

/// One signals without a pause, and then no more: the reader comes to the last value.
fn last_signal() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let last = u64::from(rounds(20_000));
    for polls in [false, true] {
        fence.signal_rewind(0)?;
        let stream = fence.stream(0)?;
        std::thread::scope(|scope| -> TestResult {
            let reader = scope.spawn(|| -> TestResult {
                let mut value = 0;
                while value != last {
                    let next = match polls {
                        true => stream.wait(Some(soon()))?.ok_or("not woken")?,
                        false => stream.read()?,
                    };
                    ensure!(next > value, "{next} after {value}");
                    value = next;
                }
                Ok(())
            });
            for value in 1..=last {
                fence.signal(value)?;
                if value % 64 == 0 {
                    std::thread::yield_now();
                }
            }
            reader.join().map_err(|_| "panic in a thread")?
        })?;
    }
    Ok(())
}

fn many() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let streams: Vec<FenceStream> = (0..200)
        .map(|_| fence.stream(0))
        .collect::<Result<_, _>>()?;
    let points = [fence.point(1)?, fence.point(2)?, fence.point(100)?];
    for stream in &streams {
        ensure_eq!(events(stream)?, PollFlags::empty());
    }
    fence.signal(1)?;
    for stream in &streams {
        ensure_eq!(stream.wait(Some(soon()))?, Some(1));
    }
    fence.signal_rewind(0)?;
    for stream in &streams {
        ensure_eq!(stream.wait(Some(soon()))?, Some(0));
    }
    ensure!(points[0].is_signalled()? && !points[1].is_signalled()?);
    fence.signal(2)?;
    ensure!(points[1].is_signalled()? && !points[2].is_signalled()?);
    for stream in &streams {
        ensure_eq!(stream.try_read()?, Some(2));
    }
    Ok(())
}

fn ended() -> TestResult {
    let device = fixture::device()?;
    let hung_up = |stream: &FenceStream| -> TestResult {
        ensure_eq!(events(stream)?, PollFlags::HUP);
        fails_with(stream.read(), Status::INVALID_HANDLE)?;
        fails_with(stream.try_read(), Status::INVALID_HANDLE)
    };
    let fence = device.create_fence(5)?;
    let (idle, polled, unread) = (fence.stream(5)?, fence.stream(5)?, fence.stream(4)?);
    let changed = fence.stream(5)?;
    ensure_eq!(events(&polled)?, PollFlags::empty());
    ensure_eq!(events(&changed)?, PollFlags::empty());
    fence.signal(6)?;
    for stream in [&idle, &polled] {
        ensure_eq!(stream.read()?, 6);
    }
    let read = while_reading(&polled, |_| Ok(fence.destroy()?))?;
    fails_with(read, Status::INVALID_HANDLE)?;
    hung_up(&polled)?;
    hung_up(&idle)?;
    for stream in [&unread, &changed] {
        ensure_eq!(events(stream)?, PollFlags::IN);
        ensure_eq!(stream.read()?, 6, "what was not read yet");
        hung_up(stream)?;
    }
    Ok(())
}

fn sent() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(Access::ALL)?;
    let (left, right) = socket_pair()?;
    let made = Gate::new()?;
    let maker = Child::spawn(|| {
        let device = fixture::device()?;
        let opened = device.open_fence(&shared, SyncFlags::empty())?;
        let stream = opened.stream(0)?;
        ensure_eq!(events(&stream)?, PollFlags::empty());
        send(&left, OwnedFd::from(stream))?;
        made.open()
    })?;
    made.wait()?;
    maker.join()?;
    let stream = FenceStream::from(receive(&right)?);
    ensure_eq!(stream.try_read()?, None);
    fence.signal(1)?;
    ensure_eq!(stream.wait(Some(soon()))?, Some(1));
    // One stream, whoever reads from it.
    let same = FenceStream::from(stream.as_fd().try_clone_to_owned()?);
    fence.signal(2)?;
    ensure_eq!(same.read()?, 2);
    ensure_eq!(stream.try_read()?, None);
    Ok(())
}

fn fd_info() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(4)?;
    let stream = fence.stream(3)?;
    let field = |key: &str| -> TestResult<String> {
        let info = FdInfo::read(stream.as_fd())?;
        let value = info.get(key).map(str::to_owned);
        value.ok_or_else(|| format!("no {key} in {info:?}").into())
    };
    ensure_eq!(field("dxg-type")?, "DxgkFenceStream");
    ensure_eq!(field("dxg-last-read")?, "3");
    stream.read()?;
    ensure_eq!(field("dxg-last-read")?, "4");
    let shared = fence.share(Access::ALL)?;
    let same = FdInfo::read(shared.as_fd())?
        .get("dxg-object")
        .map(str::to_owned);
    ensure_eq!(Some(field("dxg-object")?), same);
    Ok(())
}

fn reads() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let stream = fence.stream(0)?;
    let flags = rustix::io::fcntl_getfd(&stream)?;
    ensure!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    fence.signal(1)?;
    // Nothing but reads, and none that has no room for a value. None takes it.
    ensure_eq!(rustix::io::write(&stream, &[0; 8]), Err(Errno::BADF));
    for room in 0..8 {
        let answer = rustix::io::read(&stream, &mut [0u8; 8][..room]);
        match room {
            0 => ensure!(answer == Ok(0) || answer == Err(Errno::INVAL)),
            _ => ensure_eq!(answer, Err(Errno::INVAL), "{room} bytes"),
        }
    }
    let page = Page::beginning_with(&[0; 8])?.read_only()?;
    // SAFETY: the kernel checks the address.
    let answer = unsafe { libc::read(stream.as_raw_fd(), page.address() as *mut _, 8) };
    ensure_eq!(answer, -1, "memory for reading only");
    ensure_eq!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::EFAULT)
    );
    ensure_eq!(events(&stream)?, PollFlags::IN);
    let mut room = [0xff; 20];
    ensure_eq!(rustix::io::read(&stream, &mut room), Ok(8));
    ensure_eq!(room[..8], 1u64.to_ne_bytes());
    ensure_eq!(room[8..], [0xff; 12]);
    // Without waiting: by the flag of the descriptor, and by that of the call.
    let mut bytes = [0; 8];
    let answer = rustix::io::preadv2(
        &stream,
        &mut [IoSliceMut::new(&mut bytes)],
        u64::MAX,
        ReadWriteFlags::NOWAIT,
    );
    ensure_eq!(answer, Err(Errno::AGAIN));
    rustix::fs::fcntl_setfl(&stream, rustix::fs::OFlags::NONBLOCK)?;
    ensure_eq!(rustix::io::read(&stream, &mut bytes), Err(Errno::AGAIN));
    // A value in two pieces of memory.
    fence.signal(2)?;
    let (low, high) = bytes.split_at_mut(3);
    let mut pieces = [IoSliceMut::new(low), IoSliceMut::new(high)];
    ensure_eq!(rustix::io::readv(&stream, &mut pieces), Ok(8));
    ensure_eq!(u64::from_ne_bytes(bytes), 2);
    fds::refuses_all_but_reads(stream.as_fd())
}

/// A call with a poisoned output.
fn call(object: u32, value: u64) -> opendxg_fence_stream {
    let mut arg = opendxg_fence_stream::zeroed();
    (arg.sync_object, arg.value, arg.fd) = (object, value, POISON as i32);
    arg
}

fn refusals() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let refuse = Status::INVALID_PARAMETER;
    for bit in 0..32 {
        let mut arg = call(fence.handle().0, 0);
        arg.flags = 1 << bit;
        refused(&raw, &mut arg, refuse)?;
        let mut arg = call(fence.handle().0, 0);
        arg.reserved = 1 << bit;
        refused(&raw, &mut arg, refuse)?;
    }
    let dead = device.create_fence(0)?.handle().0;
    for handle in [
        0,
        u32::MAX,
        POISON,
        dead,
        device.handle().0,
        fence.handle().0 | 2,
    ] {
        refused(&raw, &mut call(handle, 0), refuse)?;
    }
    let denied = device.create_fence_with(0, SyncFlags::NO_WAIT)?;
    let error = denied.stream(0).err();
    ensure!(
        matches!(error, Some(Error::Status(Status::ACCESS_DENIED))),
        "{error:?}"
    );
    Ok(())
}

fn unwritable() -> TestResult {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_fence(0)?;
    let watch = Watch::start()?;
    let descriptors = open_descriptors()?;
    for value in [0, 1] {
        let arg = call(fence.handle().0, value);
        let page = Page::beginning_with(bytes(&arg))?.read_only()?;
        let code = opendxg::raw::code(opendxg_fence_stream::NR, opendxg_fence_stream::SIZE);
        ensure_eq!(raw.ioctl(code, page.address()), Err(Errno::FAULT));
        ensure_eq!(open_descriptors()?, descriptors, "descriptors");
    }
    watch.unchanged()
}

fn closing() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    for _ in 0..100 {
        let fence = device.create_fence(0)?;
        let [untouched, polled, changed, read, late] = [(); 5].map(|()| fence.stream(0));
        let (polled, changed, read, late) = (polled?, changed?, read?, late?);
        drop(untouched?);
        for stream in [&polled, &changed, &read, &late] {
            ensure_eq!(events(stream)?, PollFlags::empty());
        }
        drop(polled);
        fence.signal(1)?;
        drop(changed);
        ensure_eq!(read.read()?, 1);
        drop(read);
        fence.destroy()?;
        drop(late);
    }
    watch.ends_clean()
}
