// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adapter that is removed while shared objects exist (RES-110).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::sharing::{access, key, Client, How, Shape, Target, What};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite.test(
        "RES-110 a removed adapter: no opening, but close and destroy",
        removed,
    )
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

fn removed() -> TestResult {
    let name = r"\BaseNamedObjects\removed";
    for shape in Shape::NT {
        let soft = SoftAdapter::enabled("security")?;
        let client = Client::on(soft.device()?)?;
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
        soft.disable()?;
        let gone = Status::DEVICE_REMOVED;
        fails_with(client.open(shape, &fd), gone)?;
        fails_with(client.open_global(shape, global.global()), gone)?;
        // Also where no device is named.
        fails_with(client.call(&mut resolution(&weak)), gone)?;
        if shape.what() == What::Sync {
            fails_with(client.call(&mut without_device(&fd)), gone)?;
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
        fails_with(client.call(&mut resolution(&weak)), Status::NOT_FOUND)?;
        let other = Client::new()?;
        let again = other.create(shape, How::Nt)?;
        let fd = other.share_named(&again, name)?;
        other.open(shape, &fd)?;
    }
    Ok(())
}
