// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the calls and looks at everything they may have changed.

use std::os::fd::{FromRawFd, OwnedFd};

use opendxg::uapi::opendxg_exec;
use opendxg::Status;
use rustix::io::Errno;
use selftests::call::errno_of;
use selftests::leak::open_descriptors;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::{ensure, ensure_eq, Outcome};

use crate::image::Image;
use crate::mutate::{cases, Case};
use crate::table::{Form, Kind, Made};
use crate::world::{Object, State, World};

/// All cases of one form.
pub(crate) fn form(form: &'static Form, state: State) -> Outcome {
    let world = World::new(state)?;
    let before = open_descriptors()?;
    accepted(&world, form, &good(&world, form)?, form.status)
        .map_err(|failure| format!("good arguments: {failure}"))?;
    for field in form.fields {
        let cases = cases(&world, field)?;
        ensure!(!cases.is_empty(), "{}: no case", field.name);
        for case in cases {
            one(&world, form, &case)
                .map_err(|failure| format!("{}: {}: {failure}", field.name, case.what))?;
        }
        unchanged(&world, before).map_err(|failure| format!("{}: {failure}", field.name))?;
    }
    pointers(&world, form)?;
    unchanged(&world, before)
}

/// All refused calls have changed nothing, and what the others made is gone.
fn unchanged(world: &World, descriptors: usize) -> Outcome {
    world.is_untouched()?;
    world.watch.unchanged()?;
    ensure_eq!(open_descriptors()?, descriptors, "descriptors");
    Ok(())
}

/// Good arguments of a form.
fn good(world: &World, form: &Form) -> Outcome<Image> {
    let mut image = Image::zeroed(form.size);
    // What the kernel only writes holds a pattern.
    for field in form
        .fields
        .iter()
        .filter(|field| matches!(field.kind, Kind::Output(_)))
    {
        image.bytes[field.at..field.at + field.size].fill(0x5a);
    }
    (form.good)(world, &mut image)?;
    Ok(image)
}

fn one(world: &World, form: &Form, case: &Case<'_>) -> Outcome {
    let mut image = good(world, form)?;
    (case.change)(&mut image)?;
    match case.status {
        None => accepted(world, form, &image, form.status),
        Some(Status::SUCCESS) => accepted(world, form, &image, Status::SUCCESS),
        Some(status) => refused(world, form, &image, status),
    }
}

/// Calls through exec.
fn through_exec(world: &World, form: &Form, address: u64) -> rustix::io::Result<Status> {
    let mut request = opendxg_exec {
        nr: form.nr,
        size: form.size,
        arg: address,
        ntstatus: 0,
        reserved: 0,
    };
    world.raw.exec_request(&mut request)?;
    Ok(Status(request.ntstatus))
}

/// Calls as a plain ioctl.
fn plainly(world: &World, form: &Form, address: u64) -> rustix::io::Result<i32> {
    world
        .raw
        .ioctl(opendxg::raw::code(form.nr, form.size), address)
}

/// Both ways of calling are refused.
fn refused_at(world: &World, form: &Form, address: u64, status: Status) -> Outcome {
    ensure_eq!(
        through_exec(world, form, address),
        Ok(status),
        "through exec"
    );
    ensure_eq!(
        plainly(world, form, address),
        Err(errno_of(status)),
        "plain ioctl"
    );
    Ok(())
}

/// The same, and the argument stays as it was.
fn refused(world: &World, form: &Form, image: &Image, status: Status) -> Outcome {
    // Behind the argument nothing is mapped.
    let page = Page::ending_with(&image.bytes)?;
    let address = page.end() - image.bytes.len() as u64;
    // What was made for this argument alone would hide that the call destroyed it.
    let before = image.has_objects().then(|| world.watch.now()).transpose()?;
    refused_at(world, form, address, status)?;
    if let Some(before) = before {
        ensure_eq!(world.watch.now()?, before, "counters");
    }
    let after = &page.bytes()[page.bytes().len() - image.bytes.len()..];
    ensure_eq!(after, &image.bytes[..], "argument");
    Ok(())
}

/// The call answers as with good arguments; what it makes is destroyed again.
fn accepted(world: &World, form: &Form, image: &Image, status: Status) -> Outcome {
    if status != Status::SUCCESS {
        return refused(world, form, image, status);
    }
    let page = Page::ending_with(&image.bytes)?;
    let address = page.end() - image.bytes.len() as u64;
    ensure_eq!(
        through_exec(world, form, address),
        Ok(Status::SUCCESS),
        "through exec"
    );
    let mut after = Image::zeroed(form.size);
    after
        .bytes
        .copy_from_slice(&page.bytes()[page.bytes().len() - image.bytes.len()..]);
    for field in form.fields {
        if !matches!(field.kind, Kind::Output(_) | Kind::Capacity) {
            let range = field.at..field.at + field.size;
            ensure_eq!(
                after.bytes[range.clone()],
                image.bytes[range],
                "{}: is no output",
                field.name
            );
        }
    }
    undo(world, form, image, &after)
}

/// Destroys what a call made.
fn undo(world: &World, form: &Form, image: &Image, after: &Image) -> Outcome {
    for field in form.fields {
        match field.kind {
            Kind::Output(Made::Handle(kind)) => {
                destroy(world, kind, after.get(field.at, 4) as u32)?
            }
            Kind::Output(Made::Descriptor) => close(after.get(field.at, 4))?,
            Kind::Slot => {
                let slot = image.pointed(field.at, 8);
                close(u64::from_ne_bytes(slot.try_into().map_err(|_| "no slot")?))?;
            }
            Kind::AdapterArray { count_at } if image.get(field.at, 8) != 0 => {
                let count = after.get(count_at, 4) as usize;
                for entry in image.pointed(field.at, 20 * count).chunks_exact(20) {
                    let handle = entry
                        .first_chunk()
                        .map_or(0, |bytes| u32::from_ne_bytes(*bytes));
                    destroy(world, Object::Adapter, handle)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn destroy(world: &World, kind: Object, handle: u32) -> Outcome {
    let nr = match kind {
        Object::Adapter => 0x15,
        Object::Device => 0x19,
        Object::Context => 0x05,
        Object::HwContext => 0x1a,
        Object::Sync | Object::Fence => 0x1d,
    };
    let handle = [handle];
    let code = opendxg::raw::code(nr, 4);
    ensure_eq!(
        world.raw.ioctl(code, handle.as_ptr() as u64),
        Ok(0),
        "destroying {kind:?}"
    );
    Ok(())
}

fn close(number: u64) -> Outcome {
    ensure!((1..0x4000_0000).contains(&number), "descriptor {number:#x}");
    // SAFETY: the call under test made the descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(number as i32) };
    rustix::io::fcntl_getfd(&fd)?;
    Ok(())
}

/// The argument struct itself is at a bad place.
fn pointers(world: &World, form: &Form) -> Outcome {
    let page = Page::new()?;
    let cut_off = page.end() + 1 - u64::from(form.size);
    for address in [
        0,
        1,
        UNMAPPED,
        KERNEL_HALF,
        u64::MAX - 3,
        page.end() - 1,
        cut_off,
    ] {
        refused_at(world, form, address, Status::ACCESS_VIOLATION)
            .map_err(|failure| format!("struct at {address:#x}: {failure}"))?;
    }
    let image = good(world, form)?;
    let page = Page::beginning_with(&image.bytes)?.read_only()?;
    let has_outputs = form
        .fields
        .iter()
        .any(|field| matches!(field.kind, Kind::Output(_) | Kind::Capacity));
    if form.status == Status::SUCCESS && has_outputs {
        refused_at(world, form, page.address(), Status::ACCESS_VIOLATION)
            .map_err(|failure| format!("read-only struct: {failure}"))?;
    } else if form.status == Status::SUCCESS {
        // Nothing is written to it, so nothing is wrong.
        let result: Result<i32, Errno> = plainly(world, form, page.address());
        ensure_eq!(result, Ok(0), "read-only struct without outputs");
        undo(world, form, &image, &image)?;
    }
    Ok(())
}
