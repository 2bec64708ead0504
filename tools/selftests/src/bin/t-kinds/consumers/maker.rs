// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first process: it makes the picture.

use std::os::fd::OwnedFd;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, Device, MonitoredFence};
use selftests::call::succeeds;
use selftests::fds::{receive, send};
use selftests::resource::{export, flags, Create, OpenResource, ALL_ACCESS};
use selftests::sharing::share_raw;
use selftests::{fixture, TestResult};

use super::handle::{set, Name};
use super::{acquire, description, release, Form, Line, Told, Turn, BACK, SIZE, THERE};

/// What the first process keeps until the second one is done.
struct Made {
    picture: OpenResource,
    mutex: u32,
    fence: Option<MonitoredFence>,
}

fn make(line: Line, device: &Device, raw: &Raw) -> TestResult<Made> {
    let bits = if line.form == Form::Global {
        flags::GLOBAL
    } else {
        flags::NT
    };
    let blob = line.runtime();
    let picture = Create::sized(device, bits, &[SIZE])
        .with_runtime(&blob)
        .run()?;
    for key in line.keys {
        let text = description(key);
        set(
            raw,
            u64::from(picture.resource),
            OPENDXG_HANDLE_LOCAL,
            *key,
            &text,
        )?;
    }
    let fence = match (line.form, line.turn) {
        (Form::Triple, _) | (_, Turn::Fence) => Some(device.create_shareable_fence(0)?),
        _ => None,
    };
    Ok(Made {
        picture,
        mutex: 0,
        fence,
    })
}

/// Makes the picture, hands it over, and waits for the answer.
pub(super) fn run(line: Line, socket: &OwnedFd, told: &Told) -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let mut made = make(line, &device, &raw)?;
    if line.turn == Turn::KeyedMutex {
        let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
        if line.form == Form::Triple {
            arg.Flags = D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
        }
        succeeds(&raw, &mut arg)?;
        made.mutex = arg.hKeyedMutex;
        told.0.set_word(Told::MUTEX, arg.hSharedHandle);
    }
    let resource = made.picture.resource;
    told.0.set_word(Told::RESOURCE, made.picture.global);
    if made.mutex != 0 {
        acquire(&raw, made.mutex, 0)?;
    }
    made.picture.lock()?.fill(1);

    // The NT handle carries the descriptions also where the memory goes another way.
    let name = Name::new("a-picture");
    let nt = match line.form {
        Form::Global => None,
        Form::Triple => {
            let fence = made.fence.as_ref().ok_or("no fence")?.handle().0;
            Some(share_raw(
                &raw,
                &[resource, made.mutex, fence],
                ALL_ACCESS,
                0,
            )?)
        }
        Form::Name => Some(share_raw(&raw, &[resource], ALL_ACCESS, name.address())?),
        Form::Nt | Form::DmaBuf => Some(made.picture.share()?),
    };
    match &nt {
        Some(nt) if line.form != Form::Name => send(socket, nt)?,
        // Something to wait for: the numbers and the name are there now.
        _ => send(socket, selftests::fds::memfd()?)?,
    }
    if line.form == Form::DmaBuf {
        send(socket, export(&raw, made.picture.first(), 0)?)?;
    }
    if let (Some(fence), Turn::Fence) = (&made.fence, line.turn) {
        send(socket, fence.share(Access::ALL)?)?;
        fence.signal(THERE)?;
        fence.wait(BACK)?;
    } else if line.turn == Turn::KeyedMutex {
        release(&raw, made.mutex, THERE)?;
        acquire(&raw, made.mutex, BACK)?;
    } else {
        // Explicitly: the other side says so.
        drop(receive(socket)?);
    }
    made.picture.lock()?.holds(2)?;
    if made.mutex != 0 {
        release(&raw, made.mutex, 0)?;
        succeeds(
            &raw,
            &mut D3DKMT_DESTROYKEYEDMUTEX {
                hKeyedMutex: made.mutex,
            },
        )?;
    }
    Ok(())
}
