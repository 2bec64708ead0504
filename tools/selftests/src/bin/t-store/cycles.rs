// SPDX-License-Identifier: MIT OR Apache-2.0
//! No object keeps itself alive through its store, whatever is in between (RES-63).
//!
//! Each test builds what would be a circle. Either the file that closes it is refused, or the
//! object goes with its last handle.

use std::os::fd::{AsFd, OwnedFd};

use opendxg::{EventFd, Guid, InfoItem, Object, Status, WatchEvents};
use rustix::event::epoll;
use selftests::dma_buf::Vgem;
use selftests::drm::Drm;
use selftests::fds::{send, socket_pair};
use selftests::gpu::{one, Gpu};
use selftests::leak::Watch;
use selftests::sharing::{Client, How, Shape, Target};
use selftests::sync_file::Foreign;
use selftests::uring::Ring;
use selftests::{fails_with, fixture, Suite, TestResult};

use crate::t_store::attachable::{attach, own_buffer};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-63 an object's own NT handle cannot form a cycle",
            nt_handle,
        )
        .test("RES-63 no cycle through a socket", socket)
        .test("RES-63 no cycle through an io_uring", ring)
        .test("RES-63 no cycle through an epoll set", epoll_set)
        .test("RES-63 no cycle through a DRM file", drm_file)
        .test("RES-63 no cycle through the events of an object", events)
        .test(
            "RES-63 no cycle through an eventfd in an io_uring",
            ring_event,
        )
        .test("RES-63 no cycle through a drm_syncobj", syncobj)
}

/// Demands that nothing is left of what `body` made.
fn leaves_nothing(body: impl FnOnce() -> TestResult) -> TestResult {
    let watch = Watch::start()?;
    body()?;
    watch.ends_clean()
}

/// Demands that a file cannot be attached to an object of any kind, to which it leads by the NT
/// handle that `make` is given.
fn is_refused(make: impl Fn(&OwnedFd) -> TestResult<Vec<OwnedFd>>) -> TestResult {
    leaves_nothing(|| {
        let client = Client::new()?;
        for shape in Shape::NT {
            let (object, nt) = client.shared(shape)?;
            for file in make(&nt)? {
                let refused = attach(&client, object.target(), &file);
                fails_with(refused, Status::OBJECT_TYPE_MISMATCH)?;
            }
        }
        Ok(())
    })
}

fn nt_handle() -> TestResult {
    let client = Client::new()?;
    leaves_nothing(|| {
        for shape in Shape::NT {
            let (object, fd) = client.shared(shape)?;
            for target in [
                object.target(),
                Target::Nt(fd.as_fd()),
                Target::This(fd.as_fd()),
            ] {
                let result = attach(&client, target, &fd);
                fails_with(result, Status::OBJECT_TYPE_MISMATCH)?;
            }
        }
        Ok(())
    })
}

fn socket() -> TestResult {
    is_refused(|nt| {
        let (left, right) = socket_pair()?;
        send(&left, nt)?;
        Ok(vec![left, right])
    })
}

fn ring() -> TestResult {
    is_refused(|nt| {
        let ring = Ring::new()?;
        ring.keep_file(nt.as_fd())?;
        Ok(vec![ring.as_fd().try_clone_to_owned()?])
    })
}

fn epoll_set() -> TestResult {
    leaves_nothing(|| {
        let device = fixture::device()?;
        let fence = device.create_shareable_fence(0)?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let point = fence.point(1)?;
        let data = epoll::EventData::new_u64(1);
        epoll::add(&set, &point, data, epoll::EventFlags::IN)?;
        let item = InfoItem::new(KEY, 0, &[]).with_file(&set);
        fails_with(fence.set_info(&[item]), Status::OBJECT_TYPE_MISMATCH)
    })
}

fn drm_file() -> TestResult {
    leaves_nothing(|| {
        let client = Client::new()?;
        let resource = client.create(Shape::Resource, How::Private)?;
        let buffer = own_buffer(&client, resource.allocations()[0])?;
        let vgem = Vgem::open()?;
        let handle = vgem.import(&buffer)?;
        drop(buffer);
        // The file that holds the import, and the buffer that comes out of it.
        let exported = vgem.export(handle)?;
        for file in [vgem.as_fd(), exported.as_fd()] {
            let refused = attach(&client, resource.target(), file);
            fails_with(refused, Status::OBJECT_TYPE_MISMATCH)?;
        }
        Ok(())
    })
}

/// Everything that leads from an object to an eventfd or back, with the eventfd in the object's
/// store.
fn events() -> TestResult {
    leaves_nothing(|| {
        let device = fixture::device()?;
        let fence = device.create_shareable_fence(0)?;
        let event = EventFd::new()?;
        let item = InfoItem::new(KEY, 0, &[]).with_file(&event);
        fence.set_info(&[item])?;
        fence.wait_async(1, &event)?;
        fence.signal_on_event(2, &event, false)?;
        let watch = fence.watch(WatchEvents::CHANGE | WatchEvents::DESTROY, 0, &event)?;
        drop((event, watch));
        // The object may still be used: it keeps the eventfd, which the registrations are about.
        let event = fence.get_info_with_file(KEY, 0)?.file.ok_or("no file")?;
        EventFd::from(event).signal()?;
        fence.wait(2)?;
        // And once more, with a signal that never comes.
        let event = EventFd::new()?;
        let item = InfoItem::new(KEY, 1, &[]).with_file(&event);
        fence.set_info(&[item])?;
        Ok(fence.signal_on_event(3, &event, false)?)
    })
}

fn ring_event() -> TestResult {
    leaves_nothing(|| {
        let client = Client::new()?;
        for shape in Shape::NT {
            let (object, nt) = client.shared(shape)?;
            let (ring, event) = (Ring::new()?, EventFd::new()?);
            ring.keep_file(nt.as_fd())?;
            ring.keep_event(event.as_fd())?;
            attach(&client, object.target(), &event)?;
        }
        Ok(())
    })
}

/// A point of the timeline in the fence's store stands for a signal of that fence.
fn syncobj() -> TestResult {
    let drm = Drm::find()?;
    leaves_nothing(|| {
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_fence(0)?;
        let foreign = Foreign::new()?;
        gpu.context().wait_sync_file(foreign.file()?)?;
        gpu.context().signal(&one(&fence, 1))?;
        let timeline = drm.timeline()?;
        timeline.import(gpu.device().create_sync_file(&fence, 1)?, 1)?;
        let item = InfoItem::new(KEY, 0, &[]);
        let file = timeline.file()?;
        fence.set_info(&[item.with_file(&file)])?;
        Ok(())
    })
}

const KEY: Guid = Guid::new(0x5f, 1, 2, 3);
