// SPDX-License-Identifier: MIT OR Apache-2.0
//! Global and NT handles between users (RES-103, RES-104, RES-108).

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Dxg, Status};
use selftests::child::in_child;
use selftests::poison::{bytes, poisoned};
use selftests::sharing::{access, key, Client, How, Shape, Target};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure, ensure_eq, fails_with, module, skip, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-103 refused like a dead handle, every kind, byte for byte",
            indistinguishable,
        )
        .test(
            "RES-103 the capability in a user namespace of one's own is none",
            own_namespace,
        )
        .test(
            "RES-104 whoever has an NT handle may open it, with its rights",
            possession,
        )
        .test(
            "RES-108 the device is opened read-only and works",
            read_only_node,
        )
        .test(
            "RES-108 a read-only dma-buf stays read-only",
            read_only_buffer,
        )
        .test("RES-109 entries tell who wrote them", writers)
}

fn needs_users() -> TestResult {
    needs_root()?;
    if module::number("global_access")? != 0 {
        skip!("global handles are open to any user, or to none");
    }
    Ok(())
}

/// What every call that takes a global handle answers, with all bytes of its argument.
fn attempts(client: &Client, global: u32) -> TestResult<Vec<(Status, Vec<u8>)>> {
    let mut answers = Vec::new();
    macro_rules! attempt {
        ($name:ident, $member:ident $(, $more:ident = $value:expr)*) => {{
            let mut arg: $name = poisoned();
            $(arg.$more = $value;)*
            arg.$member = global as _;
            let status = client.raw().exec(&mut arg)?;
            arg.$member = 0;
            answers.push((status, bytes(&arg).to_vec()));
        }};
    }
    let device = client.device_handle();
    attempt!(D3DKMT_OPENSYNCHRONIZATIONOBJECT, hSharedHandle);
    attempt!(D3DKMT_OPENKEYEDMUTEX, hSharedHandle);
    attempt!(
        D3DKMT_OPENKEYEDMUTEX2,
        hSharedHandle,
        pPrivateRuntimeData = 0,
        PrivateRuntimeDataSize = 0
    );
    attempt!(D3DKMT_QUERYRESOURCEINFO, hGlobalShare, hDevice = device);
    attempt!(
        D3DKMT_OPENRESOURCE,
        hGlobalShare,
        hDevice = device,
        NumAllocations = 1
    );
    attempt!(
        D3DKMT_GETSHAREDRESOURCEADAPTERLUID,
        hGlobalShare,
        hNtHandle = 0
    );
    attempt!(
        opendxg_query_object,
        handle,
        handle_type = OPENDXG_HANDLE_GLOBAL,
        flags = 0,
        name = 0,
        name_size = 0,
        reserved = 0
    );
    Ok(answers)
}

fn indistinguishable() -> TestResult {
    needs_users()?;
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let dead = client.create(shape, How::Global)?.global();
        let global = object.global();
        in_child(|| {
            become_user(USER)?;
            let client = Client::new()?;
            let refused = attempts(&client, global)?;
            ensure!(
                refused.iter().all(|(status, _)| *status == REFUSE),
                "{shape:?}"
            );
            ensure_eq!(refused, attempts(&client, dead)?, "{shape:?}");
            Ok(())
        })?;
        client.open_global(shape, global)?;
    }
    Ok(())
}

fn own_namespace() -> TestResult {
    needs_users()?;
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Global)?;
    let global = object.global();
    in_child(|| {
        become_user(OTHER)?;
        selftests::user::unshare(libc::CLONE_NEWUSER)?;
        fails_with(Client::new()?.open_global(Shape::Resource, global), REFUSE)
    })
}

fn possession() -> TestResult {
    needs_root()?;
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let all = client.share(&object, shape.all_access())?;
        let little = client.share(&object, access::READ_CONTROL)?;
        in_child(|| {
            become_user(OTHER)?;
            let client = Client::new()?;
            let opened = client.open(shape, &all)?;
            client.set(opened.target(), key(1), 0, b"written")?;
            let opened = client.open(shape, &little)?;
            let refused = client.set(opened.target(), key(1), 0, b"no");
            fails_with(refused, Status::ACCESS_DENIED)?;
            let more = client.dup_nt(Target::Nt(little.as_fd()), shape.all_access(), 0);
            fails_with(more.map(|_| ()), Status::ACCESS_DENIED)
        })?;
        ensure_eq!(client.get(object.target(), key(1), 0)?.bytes, b"written");
    }
    Ok(())
}

fn read_only_node() -> TestResult {
    let node = std::fs::File::open(opendxg::node::DEFAULT_DEVICE)?;
    let flags = rustix::fs::fcntl_getfl(&node)?;
    ensure_eq!(
        flags & rustix::fs::OFlags::RWMODE,
        rustix::fs::OFlags::RDONLY
    );
    // The client crate opens it like that, too.
    let flags = rustix::fs::fcntl_getfl(Dxg::open()?.as_fd())?;
    ensure_eq!(
        flags & rustix::fs::OFlags::RWMODE,
        rustix::fs::OFlags::RDONLY
    );
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Private)?;
    client.poke(resource.allocations()[0], 8)?;
    ensure_eq!(client.peek(resource.allocations()[0])?, 8);
    Ok(())
}

fn read_only_buffer() -> TestResult {
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Nt)?;
    let fd = client.share(&resource, access::READ_CONTROL)?;
    let opened = client.open_resource(&fd)?.resource;
    let cases = [
        (resource.allocations()[0], OPENDXG_EXPORT_READ_ONLY),
        (opened.allocations()[0], OPENDXG_EXPORT_READ_ONLY),
        (opened.allocations()[0], 0),
    ];
    for (allocation, flags) in cases {
        let mut arg = opendxg_export_dmabuf::zeroed();
        (arg.allocation, arg.flags) = (allocation, flags);
        client.call(&mut arg)?;
        // SAFETY: the call made the descriptor for us.
        let buffer = unsafe { OwnedFd::from_raw_fd(arg.fd) };
        use std::os::fd::AsRawFd;
        let (read, write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: new mappings that are never used.
        unsafe {
            let raw = buffer.as_raw_fd();
            let map = |rights| {
                libc::mmap(
                    core::ptr::null_mut(),
                    4096,
                    rights,
                    libc::MAP_SHARED,
                    raw,
                    0,
                )
            };
            ensure_eq!(map(write), libc::MAP_FAILED);
            let start = map(read);
            ensure!(start != libc::MAP_FAILED);
            ensure_eq!(libc::mprotect(start, 4096, write), -1);
            libc::munmap(start, 4096);
        }
    }
    Ok(())
}

fn writers() -> TestResult {
    needs_root()?;
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        in_child(|| {
            become_user(USER)?;
            client.set(Target::This(fd.as_fd()), key(1), 0, b"mine")?;
            Ok(())
        })?;
        ensure_eq!(client.get(object.target(), key(1), 0)?.writer, USER);
        client.set(object.target(), key(1), 0, b"now ours")?;
        ensure_eq!(client.get(object.target(), key(1), 0)?.writer, 0);
    }
    Ok(())
}
