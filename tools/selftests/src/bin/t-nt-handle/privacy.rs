// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fdinfo and queries tell other users (RES-15, RES-107).

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};

use opendxg::uapi::OPENDXG_WATCH_CHANGE;
use opendxg::{Counters, Status};
use selftests::child::{in_child, Child, Gate};
use selftests::sharing::{key, Client, How, Shape, Target};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const NAME: &str = r"\BaseNamedObjects\Private Name";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-15 RES-107 fdinfo hides names and ids from other users",
            fd_info,
        )
        .test(
            "RES-15 RES-107 whoever has a descriptor is told no more by fdinfo",
            possession,
        )
        .test(
            "RES-15 RES-103 a query by global handle under the access rule",
            global,
        )
        .test(
            "RES-107 totals of all users are for root, in debugfs only",
            totals,
        )
        .test(
            "RES-107 ids of creators are told as the caller sees them",
            creator,
        )
}

/// Lines of the fdinfo of a new node that begin with this.
fn lines(key: &str) -> TestResult<usize> {
    let dxg = std::fs::File::open("/dev/dxg")?;
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", dxg.as_raw_fd()))?;
    Ok(text.lines().filter(|line| line.starts_with(key)).count())
}

fn totals() -> TestResult {
    needs_root()?;
    ensure!(std::fs::read_to_string(Counters::TOTALS)?.contains("objects:\t"));
    ensure_eq!(lines("dxg-total")?, 0);
    in_child(|| {
        become_user(USER)?;
        let refused = std::fs::read_to_string(Counters::TOTALS).map_err(|error| error.kind());
        ensure_eq!(refused, Err(ErrorKind::PermissionDenied));
        ensure_eq!(lines("dxg-total")?, 0);
        ensure_eq!(lines("dxg-process-handles:")?, 1);
        Ok(())
    })
}

/// What a process of `USER` shares: the fdinfo of its handle as another process reads it.
fn with_handle(shape: Shape, check: impl FnOnce(&str, u64) -> TestResult) -> TestResult {
    needs_root()?;
    let (ready, done) = (Gate::new()?, Gate::new()?);
    let (reader, writer) = selftests::fds::pipe()?;
    let owner = Child::spawn(|| {
        become_user(USER)?;
        let client = Client::new()?;
        let object = client.create(shape, How::Nt)?;
        let fd = client.share_named(&object, NAME)?;
        let id = client.id(object.target())?;
        let line = format!("{} {id} {}", fd.as_raw_fd(), std::process::id());
        rustix::io::write(&writer, line.as_bytes())?;
        ready.open()?;
        done.wait()
    })?;
    ready.wait()?;
    let mut line = [0u8; 64];
    let length = rustix::io::read(&reader, &mut line)?;
    let line = String::from_utf8_lossy(&line[..length]).into_owned();
    let mut words = line.split(' ');
    let (fd, id) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let pid = words.next().unwrap_or("");
    let id = id.parse().map_err(|_| "no id")?;
    let outcome = check(&format!("/proc/{pid}/fdinfo/{fd}"), id);
    done.open()?;
    owner.join()?;
    outcome
}

fn fd_info() -> TestResult {
    for shape in [Shape::MonitoredFence, Shape::Resource] {
        with_handle(shape, |path, id| {
            // Root has CAP_SYS_PTRACE.
            let text = std::fs::read_to_string(path)?;
            ensure!(
                text.contains(NAME) && text.contains(&id.to_string()),
                "{text}"
            );
            in_child(|| {
                become_user(OTHER)?;
                // The kernel may refuse to show it at all.
                let text = std::fs::read_to_string(path).unwrap_or_default();
                ensure!(!text.contains("Private Name"), "{text}");
                ensure!(!text.contains(&format!("\t{id}\n")), "{text}");
                Ok(())
            })
        })?;
    }
    Ok(())
}

/// What the fdinfo of its own descriptor tells another user.
fn told_to_another_user(fd: impl AsFd, hidden: &[&str]) -> TestResult {
    let path = format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd());
    in_child(|| {
        become_user(OTHER)?;
        // SAFETY: plain system call. A process that has changed its user does not own its files in
        // /proc otherwise.
        ensure_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) }, 0);
        let text = std::fs::read_to_string(&path)?;
        ensure!(text.contains("dxg-"), "no fdinfo of ours: {text}");
        for hidden in hidden {
            ensure!(!text.contains(hidden), "{hidden:?} is told: {text}");
        }
        Ok(())
    })
}

/// Possession does not tell names and ids either.
fn possession() -> TestResult {
    needs_root()?;
    let client = Client::new()?;
    for shape in [Shape::MonitoredFence, Shape::Resource] {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share_named(&object, NAME)?;
        let event = opendxg::EventFd::new()?;
        client.set(object.target(), key(1), 0, b"described")?;
        let hidden = [
            "Private Name".to_owned(),
            format!("\t{}\n", client.id(object.target())?),
            format!("{:#010x}", object.handle()),
            "dxg-info:".to_owned(),
            "dxg-adapter:".to_owned(),
        ];
        let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
        told_to_another_user(&fd, &hidden)?;
        let weak = client.open_weak(object.target())?;
        told_to_another_user(&weak, &hidden)?;
        let watch = client.watch(object.target(), OPENDXG_WATCH_CHANGE, 1, &event)?;
        told_to_another_user(&watch, &hidden)?;
        told_to_another_user(opendxg::Dxg::open()?.as_fd(), &hidden)?;
    }
    let fence = client.device().create_shareable_fence(0)?;
    let id = client.id(Target::Local(fence.handle().0))?;
    told_to_another_user(&fence.point(1)?, &[&format!("\t{id}\n")])
}

fn global() -> TestResult {
    needs_root()?;
    if selftests::module::number("global_access")? != 0 {
        selftests::skip!("global handles are open to any user, or to none");
    }
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let global = object.global();
        let dead = client.create(shape, How::Global)?.global();
        in_child(|| {
            become_user(OTHER)?;
            let client = Client::new()?;
            for number in [global, dead] {
                let query = client.query(Target::Global(number)).map(|_| ());
                fails_with(query, Status::INVALID_PARAMETER)?;
            }
            Ok(())
        })?;
        ensure_eq!(
            client.id(Target::Global(global))?,
            client.id(object.target())?
        );
    }
    Ok(())
}

fn creator() -> TestResult {
    needs_root()?;
    let client = Client::new()?;
    let (_object, fd) = client.shared(Shape::Resource)?;
    in_child(|| {
        become_user(OTHER)?;
        selftests::user::unshare(libc::CLONE_NEWUSER)?;
        // Here nobody has a number: the kernel says so for all.
        let client = Client::new()?;
        let seen = client.query(Target::Nt(fd.as_fd()))?.object.creator_uid;
        ensure_eq!(seen, 65534);
        Ok(())
    })
}
