// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the calls and looks at everything they may have changed.

use std::os::fd::{FromRawFd, OwnedFd};

use opendxg::raw::{code, exact_code};
use opendxg::uapi::{D3DKMT_DESTROYALLOCATION2, D3DKMT_DESTROY_DOORBELL};
use opendxg::Status;
use selftests::call::errno_of;
use selftests::leak::{open_descriptors, Watch};
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::{ensure, ensure_eq, TestResult};

use crate::t_negative::cases::{Case, Cases};
use crate::t_negative::image::Image;
use crate::t_negative::mutate::cases;
use crate::t_negative::table::{forms, Field, Form, Kind, Made, Written};
use crate::t_negative::world::{Object, State, World};

/// The answer to memory that is not there.
const FAULT: Status = Status::ACCESS_VIOLATION;

/// All cases of one form.
pub(crate) fn form(form: &'static Form, state: State) -> TestResult {
    let world = World::new(state)?;
    let before = open_descriptors()?;
    accepted(&world, form, &good(&world, form)?, form.status)
        .map_err(|failure| format!("good arguments: {failure}"))?;
    for field in &form.fields {
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

/// Every call refuses these, which are no allocations, wherever it takes allocations or resources.
/// Returns how many calls that are, each in one way.
pub(crate) fn allocations(world: &World, handles: &[(&'static str, u32)]) -> TestResult<usize> {
    let watch = Watch::start()?;
    let mut count = 0;
    for form in forms() {
        for field in form.fields.iter().filter(|field| takes_allocations(field)) {
            let mut cases = Cases::of(field);
            cases.handles(handles);
            for case in cases.into_list() {
                one(world, form, &case).map_err(|failure| {
                    format!("{}, {}: {}: {failure}", form.title(), field.name, case.what)
                })?;
                count += 1;
            }
        }
    }
    world.is_untouched()?;
    watch.unchanged()?;
    Ok(count)
}

fn takes_allocations(field: &Field) -> bool {
    let (Kind::Handle(kind)
    | Kind::OptionalHandle { kind, .. }
    | Kind::WideHandle(kind)
    | Kind::HandleArray { kind, .. }) = field.kind
    else {
        return false;
    };
    matches!(
        kind,
        Object::Allocation | Object::Resource | Object::Ring | Object::Shareable | Object::Shared
    )
}

/// All refused calls have changed nothing, and what the others made is gone.
fn unchanged(world: &World, descriptors: usize) -> TestResult {
    world.is_untouched()?;
    world.watch.unchanged()?;
    ensure_eq!(open_descriptors()?, descriptors, "descriptors");
    Ok(())
}

/// Good arguments of a form.
fn good(world: &World, form: &Form) -> TestResult<Image> {
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

fn one(world: &World, form: &Form, case: &Case<'_>) -> TestResult {
    let mut image = good(world, form)?;
    (case.change)(&mut image)?;
    match case.status {
        None => accepted(world, form, &image, form.status),
        Some(Status::SUCCESS) => accepted(world, form, &image, Status::SUCCESS),
        Some(status) => refused(world, form, &image, status),
    }
}

/// A way of calling.
#[derive(Clone, Copy)]
enum Way {
    Exact,
    Plain,
}

/// Makes the call on what the argument says.
fn call(world: &World, form: &Form, image: &Image, address: u64, way: Way) -> TestResult<Answer> {
    let fd = match image.descriptor() {
        Some(fd) => fd,
        None => world.raw.fd()?,
    };
    Ok(match way {
        Way::Plain => {
            let code = code(form.nr, form.size);
            Answer::Plain(world.raw.ioctl_on(fd, code, address))
        }
        Way::Exact => {
            let code = exact_code(form.nr, form.size);
            Answer::Exact(world.raw.ioctl_on(fd, code, address).map(Status))
        }
    })
}

/// How a call was answered.
#[derive(Debug, PartialEq)]
enum Answer {
    Exact(rustix::io::Result<Status>),
    Plain(rustix::io::Result<i32>),
}

impl Answer {
    /// What a status looks like.
    fn of(way: Way, status: Status) -> Self {
        match way {
            Way::Exact => Self::Exact(Ok(status)),
            Way::Plain if status == Status::SUCCESS => Self::Plain(Ok(0)),
            Way::Plain => Self::Plain(Err(errno_of(status))),
        }
    }
}

/// Both ways of calling are refused.
fn refused_at(
    world: &World,
    form: &Form,
    image: &Image,
    address: u64,
    status: Status,
) -> TestResult {
    for way in [Way::Exact, Way::Plain] {
        let answer = call(world, form, image, address, way)?;
        ensure_eq!(answer, Answer::of(way, status));
    }
    Ok(())
}

/// The same, and the argument stays as it was.
fn refused(world: &World, form: &Form, image: &Image, status: Status) -> TestResult {
    // What was made for this argument alone would hide that the call destroyed it.
    let before = image
        .has_objects()
        .then(|| world.watch.totals())
        .transpose()?;
    for way in [Way::Exact, Way::Plain] {
        // Behind the argument nothing is mapped.
        let page = Page::ending_with(&image.bytes)?;
        let address = page.end() - image.bytes.len() as u64;
        let answer = call(world, form, image, address, way)?;
        ensure_eq!(answer, Answer::of(way, status));
        let after = &page.bytes()[page.bytes().len() - image.bytes.len()..];
        for field in &form.fields {
            if field.written != Written::Always {
                let range = field.at..field.at + field.size;
                ensure_eq!(after[range.clone()], image.bytes[range], "{}", field.name);
            }
        }
    }
    if let Some(before) = before {
        ensure_eq!(world.watch.totals()?, before, "counters");
    }
    Ok(())
}

/// The call answers as with good arguments; what it makes is destroyed again.
fn accepted(world: &World, form: &Form, image: &Image, status: Status) -> TestResult {
    if status != Status::SUCCESS {
        return refused(world, form, image, status);
    }
    let page = Page::ending_with(&image.bytes)?;
    let address = page.end() - image.bytes.len() as u64;
    let answer = call(world, form, image, address, Way::Exact)?;
    ensure_eq!(answer, Answer::of(Way::Exact, Status::SUCCESS));
    let mut after = Image::zeroed(form.size);
    after
        .bytes
        .copy_from_slice(&page.bytes()[page.bytes().len() - image.bytes.len()..]);
    if form.is_queued {
        world.settle()?;
    }
    image.settle()?;
    for field in &form.fields {
        if field.written == Written::Never {
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
fn undo(world: &World, form: &Form, image: &Image, after: &Image) -> TestResult {
    for field in &form.fields {
        match field.kind {
            Kind::Output(Made::Handle(kind)) => {
                destroy(world, kind, after.get(field.at, 4) as u32)?
            }
            Kind::Output(Made::Range { size_at, unit }) => {
                let (address, size) = (after.get(field.at, 8), image.get(size_at, 8));
                world.adapter.free_gpu_range(address, size * unit)?;
            }
            Kind::Output(Made::Descriptor) => close(after.get(field.at, 4))?,
            Kind::OptionalHandle { kind, .. } if field.written == Written::OnSuccess => {
                destroy(world, kind, after.get(field.at, 4) as u32)?
            }
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

fn destroy(world: &World, kind: Object, handle: u32) -> TestResult {
    let nr = match kind {
        Object::Adapter => 0x15,
        Object::Device => 0x19,
        Object::Context | Object::AnyContext => 0x05,
        Object::PagingQueue => 0x1c,
        Object::HwQueue | Object::UserQueue => 0x1b,
        Object::HwContext => 0x1a,
        Object::KeyedMutex => 0x95,
        Object::Sync | Object::Fence | Object::Shared => 0x1d,
        Object::Doorbell => {
            let mut arg = D3DKMT_DESTROY_DOORBELL {
                hDoorbell: handle,
                ..Default::default()
            };
            ensure_eq!(world.raw.exec(&mut arg), Ok(Status::SUCCESS), "destroying");
            return Ok(());
        }
        Object::Resource | Object::Allocation | Object::Shareable | Object::Ring => {
            return destroy_memory(world, kind, handle);
        }
    };
    let handle = [handle];
    let code = code(nr, 4);
    ensure_eq!(
        world.raw.ioctl(code, handle.as_ptr() as u64),
        Ok(0),
        "destroying {kind:?}"
    );
    Ok(())
}

/// DestroyAllocation2 of a resource or an allocation.
fn destroy_memory(world: &World, kind: Object, handle: u32) -> TestResult {
    let list = [handle];
    let mut arg = D3DKMT_DESTROYALLOCATION2 {
        hDevice: world.device.handle().0,
        ..Default::default()
    };
    match kind {
        Object::Allocation => {
            arg.phAllocationList = list.as_ptr() as u64;
            arg.AllocationCount = 1;
        }
        _ => arg.hResource = handle,
    }
    ensure_eq!(
        world.raw.exec(&mut arg),
        Ok(Status::SUCCESS),
        "destroying {kind:?}"
    );
    Ok(())
}

fn close(number: u64) -> TestResult {
    ensure!((1..0x4000_0000).contains(&number), "descriptor {number:#x}");
    // SAFETY: the call under test made the descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(number as i32) };
    rustix::io::fcntl_getfd(&fd)?;
    Ok(())
}

/// The argument struct itself is at a bad place.
fn pointers(world: &World, form: &Form) -> TestResult {
    let page = Page::new()?;
    let cut_off = page.end() + 1 - u64::from(form.size);
    let image = good(world, form)?;
    for address in [
        0,
        1,
        UNMAPPED,
        KERNEL_HALF,
        u64::MAX - 3,
        page.end() - 1,
        cut_off,
    ] {
        refused_at(world, form, &image, address, FAULT)
            .map_err(|failure| format!("struct at {address:#x}: {failure}"))?;
    }
    let page = Page::beginning_with(&image.bytes)?.read_only()?;
    let has_outputs = form
        .fields
        .iter()
        .any(|field| field.written != Written::Never);
    if form.status == Status::SUCCESS && has_outputs {
        refused_at(world, form, &image, page.address(), FAULT)
            .map_err(|failure| format!("read-only struct: {failure}"))?;
    } else if form.status == Status::SUCCESS {
        // Nothing is written to it, so nothing is wrong.
        let answer = call(world, form, &image, page.address(), Way::Plain)?;
        let expected = Answer::of(Way::Plain, Status::SUCCESS);
        ensure_eq!(answer, expected, "read-only struct without outputs");
        if form.is_queued {
            world.settle()?;
        }
        image.settle()?;
        undo(world, form, &image, &image)?;
    }
    Ok(())
}
