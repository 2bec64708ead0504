// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second process: it gets the picture in one of the forms, and answers.

use std::os::fd::OwnedFd;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::SyncFlags;
use selftests::call::succeeds;
use selftests::dma_buf::{accessed, export_sync_file, is_signalled, READ, WRITE};
use selftests::fds::{receive, send};
use selftests::region::Region;
use selftests::resource::{destruction, Locked, OpenGlobal, OpenNt};
use selftests::{ensure, ensure_eq, fixture, TestResult};

use super::handle::{get, slot, Name};
use super::{acquire, description, release, Form, Line, Told, Turn, BACK, SIZE, THERE};

/// The descriptions, through a handle of any type.
fn described(line: Line, raw: &Raw, handle: u64, handle_type: u32) -> TestResult {
    for key in line.keys {
        let text = description(key);
        ensure_eq!(get(raw, handle, handle_type, *key)?, Ok(text));
    }
    Ok(())
}

/// The picture in the second process.
enum Picture {
    Mapped(Locked),
    DmaBuf(OwnedFd, Region),
}

impl Picture {
    /// The first process's bytes are there; ours take their place.
    fn answer(&self) -> TestResult {
        match self {
            Self::Mapped(memory) => {
                memory.holds(1)?;
                memory.fill(2);
            }
            Self::DmaBuf(file, memory) => accessed(file, READ | WRITE, || {
                memory.holds(1)?;
                memory.fill(2);
                Ok(())
            })?,
        }
        Ok(())
    }
}

/// Gets the picture, looks at it, and answers.
pub(super) fn run(line: Line, socket: &OwnedFd, told: &Told) -> TestResult {
    let first = receive(socket)?;
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let (mut mutex, mut fence) = (0, 0);
    let mut opened = None;
    let blob = line.runtime();
    match line.form {
        Form::Global => {
            let mut open = OpenGlobal::new(&device, told.0.word(Told::RESOURCE))?;
            let resource = open.run()?;
            ensure_eq!(open.buffers.runtime, blob);
            described(
                line,
                &raw,
                u64::from(resource.resource),
                OPENDXG_HANDLE_LOCAL,
            )?;
            let mut arg = D3DKMT_OPENKEYEDMUTEX::zeroed();
            arg.hSharedHandle = told.0.word(Told::MUTEX);
            succeeds(&raw, &mut arg)?;
            (mutex, opened) = (arg.hKeyedMutex, Some(resource));
        }
        Form::Nt | Form::Triple | Form::Name => {
            let nt = match line.form {
                Form::Name => Name::new("A-PICTURE").open(&raw)?,
                _ => first,
            };
            described(line, &raw, slot(&nt), OPENDXG_HANDLE_NT)?;
            let mut open = OpenNt::new(&device, &nt)?;
            opened = Some(open.run()?);
            ensure_eq!(open.buffers.runtime, blob);
            (mutex, fence) = (open.arg.hKeyedMutex, open.arg.hSyncObject);
            ensure_eq!(mutex != 0 && fence != 0, line.form == Form::Triple);
        }
        Form::DmaBuf => described(line, &raw, slot(&first), OPENDXG_HANDLE_NT)?,
    }
    let picture = match &opened {
        Some(resource) => Picture::Mapped(resource.lock()?),
        None => {
            let file = receive(socket)?;
            let memory = Region::of_file(&file, SIZE as usize)?;
            Picture::DmaBuf(file, memory)
        }
    };
    match line.turn {
        Turn::KeyedMutex => {
            acquire(&raw, mutex, THERE)?;
            picture.answer()?;
            release(&raw, mutex, BACK)?;
        }
        Turn::Fence => {
            let fence = device.open_fence(receive(socket)?, SyncFlags::empty())?;
            fence.wait(THERE)?;
            picture.answer()?;
            fence.signal(BACK)?;
        }
        Turn::SyncFile => {
            let Picture::DmaBuf(file, _) = &picture else {
                return Err("not a dma-buf".into());
            };
            ensure!(is_signalled(export_sync_file(file, READ | WRITE)?)?);
            picture.answer()?;
            send(socket, selftests::fds::memfd()?)?;
        }
    }
    if mutex != 0 {
        succeeds(&raw, &mut D3DKMT_DESTROYKEYEDMUTEX { hKeyedMutex: mutex })?;
    }
    if fence != 0 {
        succeeds(
            &raw,
            &mut D3DKMT_DESTROYSYNCHRONIZATIONOBJECT { hSyncObject: fence },
        )?;
    }
    drop(picture);
    if let Some(resource) = opened {
        let (resource, _) = resource.leak();
        succeeds(&raw, &mut destruction(device.handle().0, resource, &[], 0))?;
    }
    Ok(())
}
