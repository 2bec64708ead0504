// SPDX-License-Identifier: MIT OR Apache-2.0
//! NT handles as files, for every kind (RES-13, RES-14, RES-16).

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use opendxg::{Status, SyncFlags};
use rustix::event::PollFlags;
use rustix::io::FdFlags;
use selftests::child::{in_child, Child, Gate};
use selftests::fds::{self, poll_events, receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::rounds::{rounds, together, Dice};
use selftests::sharing::{Attributes, Client, How, Shape, Target};
use selftests::stress::Figure;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-13 never 0, close-on-exec, OBJ_INHERIT", numbers)
        .test(
            "RES-13 no descriptor free: NO_MEMORY and nothing made",
            no_descriptor,
        )
        .test("RES-14 dup, fork and sockets copy one description", copies)
        .test("RES-14 pidfd_getfd copies it", pidfd)
        .test(
            "RES-14 RES-110 in a socket when everything else is closed",
            in_flight,
        )
        .test(
            "RES-14 RES-110 sent to itself: the socket collector frees it",
            collected,
        )
        .test(
            "RES-16 read, write, seek, mmap and unknown ioctls fail",
            no_io,
        )
        .test("RES-16 FEN-168 poll gives no event", no_poll)
        .test(
            "RES-14 closing the node leaves NT handles alone",
            node_closed,
        )
        .stress(
            "RES-2 object ids only grow",
            Duration::from_secs(30),
            Figure::new(200, 1_000_000),
            ids_grow,
        )
        .test("RES-110 close against calls on the handle", close_race)
        .test("RES-110 kill -9 of a creator at any point", killed)
}

fn numbers() -> TestResult {
    let client = Client::new()?;
    in_child(|| {
        let client = Client::new()?;
        // SAFETY: standard input of this child, which nobody uses.
        unsafe { libc::close(0) };
        for shape in Shape::NT {
            let (_object, fd) = client.shared(shape)?;
            ensure!(fd.as_raw_fd() > 0, "{shape:?}: {}", fd.as_raw_fd());
            let same = opendxg::uapi::OPENDXG_DUP_SAME_ACCESS;
            let other = client.dup_nt(Target::Nt(fd.as_fd()), 0, same)?;
            ensure!(other.as_raw_fd() > 0);
        }
        Ok(())
    })?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        for (bits, cloexec) in [(0, true), (2, false), (0x40, true), (0x42, false)] {
            let mut attributes = Attributes::unnamed().bits(bits);
            let handles = [object.handle()];
            let (fd, _) = client.share_with(&handles, Some(&mut attributes), 1)?;
            let flags = rustix::io::fcntl_getfd(&fd)?;
            ensure_eq!(flags.contains(FdFlags::CLOEXEC), cloexec, "{shape:?}");
            ensure!((1..0x4000_0000).contains(&fd.as_raw_fd()));
        }
    }
    Ok(())
}

fn no_descriptor() -> TestResult {
    in_child(|| {
        let client = Client::new()?;
        let objects = Shape::NT.map(|shape| client.create(shape, How::Nt));
        let objects = objects.into_iter().collect::<Result<Vec<_>, _>>()?;
        let watch = Watch::start()?;
        let mut full = Vec::new();
        let limit = libc::rlimit {
            rlim_cur: 64,
            rlim_max: 64,
        };
        // SAFETY: a live struct.
        ensure_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        while let Ok(fd) = rustix::io::dup(std::io::stdout()) {
            full.push(fd);
        }
        for object in &objects {
            let named = client.share_named(object, r"\BaseNamedObjects\nowhere");
            let plain = client.share(object, 1);
            let references = client.references(object.target());
            full.pop();
            fails_with(named, Status::NO_MEMORY)?;
            fails_with(plain, Status::NO_MEMORY)?;
            ensure_eq!(references?, 1);
            let found = client.open_name(object.what(), r"\BaseNamedObjects\nowhere", 1);
            fails_with(found, Status::OBJECT_NAME_NOT_FOUND)?;
            full.push(rustix::io::dup(std::io::stdout())?);
        }
        drop(full);
        ensure_eq!(watch.now()?.total_shares, watch.at_start().total_shares);
        Ok(())
    })
}

fn copies() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let id = client.id(object.target())?;
        object.destroy()?;
        let weak = client.open_weak(Target::Nt(fd.as_fd()))?;
        let references = || client.references(Target::Weak(weak.as_fd()));
        ensure_eq!(references()?, 1);
        let duplicate = fd.try_clone()?;
        let (left, right) = socket_pair()?;
        send(&left, &duplicate)?;
        ensure_eq!(references()?, 1, "{shape:?}: copies are one reference");
        drop((fd, duplicate));
        in_child(|| {
            // Here the copy in the socket came by fork.
            let client = Client::new()?;
            ensure_eq!(client.references(Target::Weak(weak.as_fd()))?, 1);
            Ok(())
        })?;
        let arrived = receive(&right)?;
        drop((left, right));
        let opened = client.open(shape, &arrived)?;
        ensure_eq!(client.id(opened.target())?, id);
        drop(arrived);
        ensure_eq!(references()?, 1, "only the opened handle");
        opened.destroy()?;
        ensure_eq!(references()?, 0);
    }
    Ok(())
}

fn pidfd() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (ready, done) = (Gate::new()?, Gate::new()?);
        let (reader, writer) = selftests::fds::pipe()?;
        let other = Child::spawn(|| {
            let client = Client::new()?;
            let (object, fd) = client.shared(shape)?;
            object.destroy()?;
            rustix::io::write(&writer, &fd.as_raw_fd().to_ne_bytes())?;
            ready.open()?;
            done.wait()
        })?;
        ready.wait()?;
        let mut number = [0; 4];
        rustix::io::read(&reader, &mut number)?;
        // SAFETY: plain system calls with numbers.
        let copy = unsafe {
            let pidfd = libc::syscall(libc::SYS_pidfd_open, other.pid(), 0) as i32;
            ensure!(pidfd >= 0, "{}", std::io::Error::last_os_error());
            let pidfd = OwnedFd::from_raw_fd(pidfd);
            let number = i32::from_ne_bytes(number);
            let copy = libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0) as i32;
            ensure!(copy >= 0, "{}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(copy)
        };
        done.open()?;
        other.join()?;
        // Its process is gone; the description lives on here.
        let opened = client.open(shape, &copy)?;
        ensure_eq!(client.references(opened.target())?, 2, "{shape:?}");
        let access = client.query(Target::Nt(copy.as_fd()))?.object.access;
        ensure_eq!(access, shape.all_access());
    }
    Ok(())
}

fn in_flight() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (left, right) = socket_pair()?;
        let weak = {
            let (object, fd) = client.shared(shape)?;
            send(&left, &fd)?;
            client.open_weak(object.target())?
        };
        ensure_eq!(
            client.query(Target::Weak(weak.as_fd()))?.object.references,
            1
        );
        let arrived = receive(&right)?;
        client.open(shape, &arrived)?;
        send(&left, arrived)?;
        drop((left, right));
        let dead = || client.references(Target::Weak(weak.as_fd())) == Ok(0);
        selftests::time::eventually("it ends with the socket", dead)?;
    }
    Ok(())
}

fn collected() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let weak = client.open_weak(object.target())?;
        // Each socket lies in the other one's queue, with our handle: only the collector finds
        // them.
        let (left, right) = socket_pair()?;
        send(&left, &fd)?;
        send(&left, &left)?;
        send(&left, &right)?;
        send(&right, &left)?;
        drop((left, right, fd, object));
        let dead = || {
            // The collector runs when a socket is closed.
            drop(socket_pair());
            client.references(Target::Weak(weak.as_fd())) == Ok(0)
        };
        selftests::time::eventually("the collector frees the object", dead)?;
    }
    Ok(())
}

fn no_io() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (_object, fd) = client.shared(shape)?;
        fds::refuses_io(fd.as_fd()).map_err(|error| format!("{shape:?}: {error}"))?;
    }
    Ok(())
}

fn no_poll() -> TestResult {
    let client = Client::new()?;
    let silent = |fd: &OwnedFd, what: &str| -> TestResult {
        let events = poll_events(fd.as_fd(), Duration::from_millis(20))?;
        ensure_eq!(events, PollFlags::empty(), "{what}");
        Ok(())
    };
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        silent(&fd, "alive")?;
        object.destroy()?;
        silent(&fd, "without a local handle")?;
    }
    let (_fence, fd) = client.shared(Shape::MonitoredFence)?;
    let opened = client.device().open_fence(&fd, SyncFlags::empty())?;
    opened.signal(1)?;
    silent(&fd, "signalled")
}

fn node_closed() -> TestResult {
    in_child(|| {
        // The last node of this process is closed here: its process object ends.
        let shared: Vec<OwnedFd> = {
            let client = Client::new()?;
            let shared = Shape::NT.into_iter().map(|shape| client.shared(shape));
            let shared = shared.map(|made| made.map(|(_, fd)| fd));
            shared.collect::<Result<_, _>>()?
        };
        let client = Client::new()?;
        for (shape, fd) in Shape::NT.into_iter().zip(shared) {
            ensure_eq!(client.references(Target::Nt(fd.as_fd()))?, 1, "{shape:?}");
            let opened = client.open(shape, &fd)?;
            ensure_eq!(client.references(opened.target())?, 2, "{shape:?}");
        }
        Ok(())
    })
}

fn ids_grow(figure: Figure) -> TestResult {
    let client = Client::new()?;
    let mut last = 0;
    for _ in 0..figure.rounds() {
        let (_object, fd) = client.shared(Shape::MonitoredFence)?;
        let id = client.id(Target::Nt(fd.as_fd()))?;
        ensure!(id > last, "{last} -> {id}");
        last = id;
    }
    Ok(())
}

fn close_race() -> TestResult {
    use opendxg::Error;
    use selftests::sharing::key;
    let client = Client::new()?;
    for shape in [Shape::MonitoredFence, Shape::Resource] {
        let object = client.create(shape, How::Nt)?;
        for round in 0..rounds(300) {
            let fd = client.share(&object, shape.all_access())?;
            let number = std::os::fd::IntoRawFd::into_raw_fd(fd);
            together(vec![
                Box::new(move || {
                    Dice::new(round.into()).dawdle();
                    // SAFETY: the descriptor was given to this closure.
                    drop(unsafe { OwnedFd::from_raw_fd(number) });
                    Ok(())
                }),
                Box::new(|| {
                    Dice::new((round + 5).into()).dawdle();
                    // SAFETY: a number that is only passed on; whether it is open is the race.
                    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
                    for target in [Target::Nt(fd), Target::This(fd)] {
                        match client.set(target, key(1), 0, b"x") {
                            Ok(_) | Err(Error::Status(Status::INVALID_HANDLE)) => {}
                            Err(Error::Os(opendxg::Errno::BADF)) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    match client.open(shape, fd) {
                        Ok(_) | Err(Error::Status(Status::INVALID_HANDLE)) => Ok(()),
                        Err(error) => Err(error.into()),
                    }
                }),
            ])?;
        }
        ensure_eq!(client.references(object.target())?, 1);
    }
    Ok(())
}

fn killed() -> TestResult {
    use selftests::sharing::key;
    for round in 0..rounds(100) {
        let victim = Child::spawn(|| {
            let client = Client::new()?;
            loop {
                for shape in Shape::NT {
                    let object = client.create(shape, How::Nt)?;
                    client.set(object.target(), key(1), 0, &[1; 3000])?;
                    let fd = client.share_named(&object, r"\BaseNamedObjects\killed")?;
                    let opened = client.open(shape, &fd)?;
                    client.dup_local(shape.what(), opened.handle())?.into_raw();
                }
            }
        })?;
        std::thread::sleep(Duration::from_micros(u64::from(round) * 211 % 20_000));
        victim.kill()?;
        let client = Client::new()?;
        for shape in [Shape::Fence, Shape::Resource] {
            let gone = || {
                let open = client.open_name(shape.what(), r"\BaseNamedObjects\killed", 1);
                open.err().map(|error| error.status()) == Some(Status::OBJECT_NAME_NOT_FOUND)
            };
            selftests::time::eventually("the name goes with its process", gone)?;
        }
    }
    Ok(())
}
