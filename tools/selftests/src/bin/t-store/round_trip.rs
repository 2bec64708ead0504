// SPDX-License-Identifier: MIT OR Apache-2.0
//! What drivers hand out goes from one process to another by the store of an object, and is of use
//! there (RES-62, RES-63).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use opendxg::{EventFd, SyncFile};
use selftests::child::{Child, Gate};
use selftests::dma_buf::udmabuf;
use selftests::drm::Drm;
use selftests::fds::memfd;
use selftests::sharing::{key, Client, Shape, Target};
use selftests::sync_file::{ends_with, status, Foreign, PENDING, SIGNALLED};
use selftests::time::soon;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_store::attachable::attach;
use crate::t_store::files::with_page;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-62 RES-63 a memory file in another process", memory)
        .test("RES-62 RES-63 a dma-buf in another process", buffer)
        .test("RES-62 RES-63 a sync_file in another process", sync_file)
        .test("RES-62 RES-63 an eventfd in another process", event)
        .test("RES-62 RES-63 a drm_syncobj in another process", syncobj)
}

/// Attaches the file that `make` makes to an object of each kind. Another process, which has
/// nothing but an NT handle, runs `there` with what it gets. When that opens the gate, `here` runs
/// with what else `make` made.
fn trip<T>(
    make: impl Fn() -> TestResult<(OwnedFd, T)>,
    there: impl Fn(OwnedFd, &Gate) -> TestResult,
    here: impl Fn(T) -> TestResult,
) -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, nt) = client.shared(shape)?;
        let (stored, turn) = (Gate::new()?, Gate::new()?);
        // Before there is a file that it could inherit.
        let reader = Child::spawn(|| {
            stored.wait_for_parent()?;
            let entry = client.get_file(Target::This(nt.as_fd()), key(1), 0)?;
            there(entry.file.ok_or("no file")?, &turn)
        })?;
        let (file, rest) = make()?;
        attach(&client, object.target(), file)?;
        stored.open()?;
        turn.wait_for_child(&reader)?;
        here(rest)?;
        reader.join()?;
    }
    Ok(())
}

/// Finds 42 in the first byte, and leaves 43.
fn answer(file: &OwnedFd) -> TestResult {
    ensure_eq!(with_page(file, |byte| byte.swap(43, SeqCst))?, 42);
    Ok(())
}

fn memory() -> TestResult {
    trip(
        || {
            let file = memfd()?;
            rustix::fs::ftruncate(&file, 4096)?;
            with_page(&file, |byte| byte.store(42, SeqCst))?;
            Ok((file.try_clone()?, file))
        },
        |file, turn| {
            answer(&file)?;
            turn.open()
        },
        |file| {
            ensure_eq!(with_page(&file, |byte| byte.load(SeqCst))?, 43);
            Ok(())
        },
    )
}

fn buffer() -> TestResult {
    trip(
        || {
            let (buffer, memory) = udmabuf(4096)?;
            with_page(&memory, |byte| byte.store(42, SeqCst))?;
            Ok((buffer, memory))
        },
        |buffer, turn| {
            answer(&buffer)?;
            turn.open()
        },
        |memory| {
            ensure_eq!(with_page(&memory, |byte| byte.load(SeqCst))?, 43);
            Ok(())
        },
    )
}

fn sync_file() -> TestResult {
    trip(
        || {
            let foreign = Foreign::new()?;
            Ok((foreign.file()?.into(), foreign))
        },
        |file, turn| {
            let file = SyncFile::from(file);
            ensure_eq!(status(&file)?, PENDING);
            turn.open()?;
            ends_with(&file, SIGNALLED)
        },
        |foreign| foreign.signal(),
    )
}

fn event() -> TestResult {
    trip(
        || {
            let event = EventFd::new()?;
            event.signal()?;
            Ok((event.as_fd().try_clone_to_owned()?, event))
        },
        |file, turn| {
            let event = EventFd::from(file);
            ensure_eq!(event.take()?, 1);
            event.signal()?;
            event.signal()?;
            turn.open()
        },
        |event| {
            ensure_eq!(event.take()?, 2);
            Ok(())
        },
    )
}

fn syncobj() -> TestResult {
    let drm = Drm::find()?;
    trip(
        || {
            let timeline = drm.timeline()?;
            Ok((timeline.file()?, timeline))
        },
        |file, turn| {
            // A DRM file of its own: it shares nothing else with the other process.
            let drm = Drm::find()?;
            let timeline = drm.open(&file)?;
            ensure!(!timeline.wait(1, Duration::ZERO)?);
            turn.open()?;
            ensure!(timeline.wait(1, soon())?, "a signal from there");
            timeline.signal(2)
        },
        |timeline| {
            timeline.signal(1)?;
            ensure!(timeline.wait(2, soon())?, "a signal from the other process");
            Ok(())
        },
    )
}
