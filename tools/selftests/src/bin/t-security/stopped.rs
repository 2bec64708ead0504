// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adapter that is stopped while shared objects exist (RES-110).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::sharing::{access, key, Client, How, Shape, Target, What};
use selftests::user::needs_root;
use selftests::{ensure_eq, fails_with, skip, Outcome, Suite};

const PARAMETER: &str = "/sys/module/opendxg/parameters/stopped_adapters";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite.test(
        "RES-110 a stopped adapter: no opening, but close and destroy",
        stopped,
    )
}

/// All adapters are stopped until this is dropped.
struct Stopped;

impl Stopped {
    fn now() -> Outcome<Self> {
        if std::fs::write(PARAMETER, "65535").is_err() {
            skip!("adapters cannot be stopped here");
        }
        Ok(Self)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = std::fs::write(PARAMETER, "0");
    }
}

/// The argument of the call that opens a synchronisation object for no device.
fn without_device(fd: &impl AsRawFd) -> D3DKMT_OPENSYNCOBJECTFROMNTHANDLE {
    D3DKMT_OPENSYNCOBJECTFROMNTHANDLE {
        hNtHandle: fd.as_raw_fd() as u64,
        ..D3DKMT_OPENSYNCOBJECTFROMNTHANDLE::zeroed()
    }
}

/// The argument of the call that resolves a weak reference for no device.
fn resolution(weak: &impl AsRawFd) -> opendxg_resolve_weak {
    opendxg_resolve_weak {
        fd: weak.as_raw_fd(),
        ..opendxg_resolve_weak::zeroed()
    }
}

fn stopped() -> Outcome {
    needs_root()?;
    let client = Client::new()?;
    let name = r"\BaseNamedObjects\stopped";
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        client.set(object.target(), key(1), 0, b"before")?;
        let fd = client.share_named(&object, name)?;
        let global = client.create(
            if shape == Shape::MonitoredFence {
                Shape::Fence
            } else {
                shape
            },
            How::Global,
        )?;
        let weak = client.open_weak(object.target())?;
        let guard = Stopped::now()?;
        let removed = Status::DEVICE_REMOVED;
        fails_with(client.open(shape, &fd), removed)?;
        fails_with(client.open_global(shape, global.global()), removed)?;
        // Also where no device is named.
        fails_with(client.call(&mut resolution(&weak)), removed)?;
        if shape.what() == What::Sync {
            fails_with(client.call(&mut without_device(&fd)), removed)?;
        }
        // What needs no adapter still answers.
        ensure_eq!(
            client.get(Target::This(fd.as_fd()), key(1), 0)?.bytes,
            b"before"
        );
        let second = client.open_name(shape.what(), name, access::READ_CONTROL);
        drop(second);
        drop(fd);
        object.destroy()?;
        global.destroy()?;
        drop(guard);
        fails_with(client.call(&mut resolution(&weak)), Status::NOT_FOUND)?;
        let again = client.create(shape, How::Nt)?;
        let fd = client.share_named(&again, name)?;
        client.open(shape, &fd)?;
    }
    Ok(())
}
