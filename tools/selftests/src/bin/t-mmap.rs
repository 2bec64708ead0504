// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mapping of fence values: readable, never writable, and only made by the driver.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use opendxg::{Access, Device, Dxg, MonitoredFence, SyncFlags};
use selftests::child::{Child, Gate};
use selftests::memory::PAGE;
use selftests::rounds::{crowd, rounds};
use selftests::{ensure, ensure_eq, fixture, skip, Suite, TestResult};

/// A fence that shares a page with others, and one with a page of its own.
fn fences(device: &Device) -> TestResult<[MonitoredFence; 2]> {
    Ok([device.create_fence(7)?, device.create_shareable_fence(7)?])
}

/// The start of the page a value is in.
fn page_of(address: *const u64) -> *mut c_void {
    address
        .map_addr(|address| address & !(PAGE - 1))
        .cast_mut()
        .cast()
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Runs `check` for both kinds of fences and demands that the value is still the same afterwards.
fn with_fences(check: impl Fn(&MonitoredFence) -> TestResult) -> TestResult {
    let device = fixture::device()?;
    for fence in fences(&device)? {
        check(&fence)?;
        ensure_eq!(fence.value(), 7);
        fence.signal(8)?;
        ensure_eq!(fence.value(), 8);
    }
    Ok(())
}

/// The line of `/proc/self/maps` for an address.
fn maps_line(address: *const u64) -> TestResult<String> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let holds = |line: &&str| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        range.is_some_and(|(start, end)| {
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            (number(start)..number(end)).contains(&address.addr())
        })
    };
    let line = maps.lines().find(holds).ok_or("not mapped")?;
    Ok(line.into())
}

fn shared_and_read_only(fence: &MonitoredFence) -> TestResult {
    let line = maps_line(fence.value_address())?;
    let rights = line.split(' ').nth(1);
    // With the file open for reading only the kernel shows `s` for a shared mapping all the same.
    ensure_eq!(rights, Some("r--s"), "{line}");
    ensure_eq!(fence.value_address().addr() % 8, 0);
    Ok(())
}

fn mprotect_fails(fence: &MonitoredFence) -> TestResult {
    let page = page_of(fence.value_address());
    for rights in [
        libc::PROT_WRITE,
        libc::PROT_READ | libc::PROT_WRITE,
        libc::PROT_READ | libc::PROT_EXEC,
    ] {
        // SAFETY: a mapping of the driver; the call is refused.
        let done = unsafe { libc::mprotect(page, PAGE, rights) };
        ensure_eq!((done, errno()), (-1, libc::EACCES), "rights {rights}");
    }
    Ok(())
}

fn write_faults(fence: &MonitoredFence) -> TestResult {
    let address = fence.value_address().cast_mut();
    let (tell, ready) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        tell.open()?;
        ready.wait()?;
        // SAFETY: none: this is expected to kill the process.
        unsafe { address.write_volatile(1) };
        Err("the write succeeded".into())
    })?;
    tell.wait()?;
    ready.open()?;
    let Err(error) = child.join() else {
        return Err("the write succeeded".into());
    };
    let expected = format!("wait status {:#x}", libc::SIGSEGV);
    ensure!(error.to_string().ends_with(&expected), "{error}");
    Ok(())
}

fn proc_mem_fails(fence: &MonitoredFence) -> TestResult {
    let address = fence.value_address();
    let memory = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/proc/self/mem")?;
    let mut word = [0; 8];
    memory.read_exact_at(&mut word, address.addr() as u64)?;
    ensure_eq!(u64::from_ne_bytes(word), 7);
    let written = memory.write_at(&99u64.to_ne_bytes(), address.addr() as u64);
    ensure!(written.is_err(), "{written:?}");
    Ok(())
}

fn write_of_another_process_fails(fence: &MonitoredFence) -> TestResult {
    let address = fence.value_address();
    let parent = std::process::id() as i32;
    let child = Child::spawn(|| {
        let mut word = 99u64;
        let part = |base: *mut c_void| libc::iovec {
            iov_base: base,
            iov_len: 8,
        };
        let (local, remote) = (
            part((&raw mut word).cast()),
            part(address.cast_mut().cast()),
        );
        // SAFETY: the local side is a live word; the remote side is refused.
        let done = unsafe { libc::process_vm_writev(parent, &local, 1, &remote, 1, 0) };
        let errno = errno();
        if errno == libc::ENOSYS {
            skip!("the kernel has no process_vm_writev");
        }
        ensure_eq!((done, errno), (-1, libc::EFAULT));
        Ok(())
    })?;
    child.join()
}

fn ptrace_fails(fence: &MonitoredFence) -> TestResult {
    let address = fence.value_address();
    let stop = Gate::new()?;
    let child = Child::spawn(|| {
        stop.wait()?;
        ensure_eq!(
            // SAFETY: inherited by the fork.
            unsafe { address.read_volatile() },
            7
        );
        Ok(())
    })?;
    let pid = child.pid();
    // SAFETY: our own child, stopped here; the address is one of its mappings.
    let (read, written, errno) = unsafe {
        ensure_eq!(libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0), 0);
        libc::waitpid(pid, null_mut(), 0);
        let read = libc::ptrace(libc::PTRACE_PEEKDATA, pid, address, 0);
        let written = libc::ptrace(libc::PTRACE_POKEDATA, pid, address, 99usize);
        let errno = errno();
        libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0);
        (read, written, errno)
    };
    stop.open()?;
    child.join()?;
    ensure_eq!(read, 7);
    ensure_eq!(written, -1);
    ensure!(errno == libc::EIO || errno == libc::EFAULT, "errno {errno}");
    Ok(())
}

fn does_not_grow(fence: &MonitoredFence) -> TestResult {
    let page = page_of(fence.value_address());
    for (old, new) in [(PAGE, 2 * PAGE), (0, PAGE), (0, 4 * PAGE)] {
        // SAFETY: refused; a new mapping elsewhere would be nobody's.
        let moved = unsafe { libc::mremap(page, old, new, libc::MREMAP_MAYMOVE) };
        ensure!(moved == libc::MAP_FAILED, "mremap of {old} to {new}");
    }
    Ok(())
}

/// Tries to map the device, or any descriptor of the module, at an offset.
fn try_map(fd: impl AsFd, rights: i32, length: usize, page_offset: u64) -> TestResult<bool> {
    let (fd, offset) = (fd.as_fd().as_raw_fd(), (page_offset * PAGE as u64) as i64);
    // SAFETY: a new mapping, anywhere, taken back below.
    let start = unsafe { libc::mmap(null_mut(), length, rights, libc::MAP_SHARED, fd, offset) };
    if start == libc::MAP_FAILED {
        return Ok(false);
    }
    // SAFETY: made above.
    unsafe { libc::munmap(start, length) };
    Ok(true)
}

/// Offsets near all those that the driver has used or could use.
fn offsets() -> impl Iterator<Item = u64> {
    let powers = (0..52).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    (0..3000).chain(powers)
}

fn cannot_be_mapped_by_hand() -> TestResult {
    let device = fixture::device()?;
    let fences = fences(&device)?;
    let nt = fences[1].share(Access::ALL)?;
    let point = fences[0].point(100)?;
    let dxg = Dxg::open()?;
    for offset in offsets() {
        ensure!(
            !try_map(&dxg, libc::PROT_READ, PAGE, offset)?,
            "{offset:#x}"
        );
    }
    for rights in [
        libc::PROT_NONE,
        libc::PROT_WRITE,
        libc::PROT_READ | libc::PROT_WRITE,
        libc::PROT_EXEC,
    ] {
        for length in [1, PAGE, 2 * PAGE, 1 << 30] {
            for offset in offsets().take(64) {
                let place = format!("{offset:#x} {length:#x} {rights}");
                ensure!(!try_map(&dxg, rights, length, offset)?, "device {place}");
                ensure!(!try_map(&nt, rights, length, offset)?, "NT handle {place}");
                ensure!(!try_map(&point, rights, length, offset)?, "point {place}");
            }
        }
    }
    Ok(())
}

/// One thread maps the device by hand at the offsets that come next, while others make fences.
fn cannot_be_guessed() -> TestResult {
    let device = fixture::device()?;
    let dxg = Dxg::open()?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    crowd(2, |part| match part {
        0 => {
            for round in 0..rounds(300) {
                let fence = device.create_shareable_fence(round.into())?;
                ensure_eq!(fence.value(), u64::from(round));
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        }
        _ => {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for offset in 0..5000 {
                    ensure!(!try_map(&dxg, libc::PROT_READ, PAGE, offset)?, "{offset}");
                }
            }
            Ok(())
        }
    })
}

/// Replaces the page at an address with memory of the test's own.
fn put_own_memory(page: *mut c_void) -> TestResult {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: takes the place of a mapping that nobody reads from now on.
    let start = unsafe { libc::mmap(page, PAGE, rights, flags, -1, 0) };
    ensure_eq!(start, page);
    // SAFETY: just mapped.
    unsafe { page.cast::<u64>().write_volatile(0xfeed) };
    Ok(())
}

fn foreign_memory_survives(unmap_first: bool, shareable: bool) -> TestResult {
    let device = fixture::device()?;
    let fence = match shareable {
        true => device.create_shareable_fence(1)?,
        false => device.create_fence(1)?,
    };
    let page = page_of(fence.value_address());
    if unmap_first {
        // SAFETY: nobody reads the value any more.
        ensure_eq!(unsafe { libc::munmap(page, PAGE) }, 0);
    }
    put_own_memory(page)?;
    // The fence works without its mapping.
    fence.signal(2)?;
    fence.wait(2)?;
    fence.destroy()?;
    // SAFETY: mapped by `put_own_memory`, if the driver left it alone; otherwise the test dies
    // here.
    ensure_eq!(unsafe { page.cast::<u64>().read_volatile() }, 0xfeed);
    // SAFETY: as above.
    ensure_eq!(unsafe { libc::munmap(page, PAGE) }, 0);
    Ok(())
}

/// Whether there is anything to read at an address, as the kernel finds it.
fn is_shown(address: *const u64) -> TestResult<bool> {
    let (_reader, writer) = selftests::fds::pipe()?;
    // SAFETY: the kernel looks whether it can read there.
    let done = unsafe { libc::write(writer.as_raw_fd(), address.cast(), 8) };
    match (done, errno()) {
        (8, _) => Ok(true),
        (-1, libc::EFAULT) => Ok(false),
        other => Err(format!("{other:?}").into()),
    }
}

/// How many mappings of fence values this process has.
fn mappings() -> TestResult<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    Ok(maps
        .lines()
        .filter(|line| line.contains("[DxgkFenceValues]"))
        .count())
}

/// So many shareable fences, the values of which are their numbers.
fn shareable(device: &Device, count: u64) -> TestResult<Vec<MonitoredFence>> {
    Ok((0..count)
        .map(|number| device.create_shareable_fence(number))
        .collect::<opendxg::Result<_>>()?)
}

fn not_shown_after_destroy() -> TestResult {
    let device = fixture::device()?;
    let mut fences = shareable(&device, 200)?;
    let addresses: Vec<_> = fences.iter().map(MonitoredFence::value_address).collect();
    // Every third one goes; the others stay what they are.
    for number in (0..200).rev().filter(|number| number % 3 == 0) {
        fences.remove(number).destroy()?;
        ensure!(!is_shown(addresses[number])?, "{number} is shown");
    }
    for (number, address) in addresses.iter().enumerate() {
        ensure_eq!(is_shown(*address)?, number % 3 != 0, "{number}");
    }
    for fence in &fences {
        fence.signal(1000)?;
        ensure_eq!(fence.value(), 1000);
    }
    Ok(())
}

/// As many mappings as windows are full, whether fences come or go.
fn many_in_few_mappings(count: u64) -> TestResult {
    let device = fixture::device()?;
    let before = mappings()?;
    let fences = shareable(&device, count)?;
    let made = mappings()? - before;
    ensure!(made <= count.div_ceil(64) as usize, "{made} mappings");
    for (number, fence) in (0..).zip(&fences) {
        ensure_eq!(fence.value(), number);
    }
    drop(fences);
    let fences = shareable(&device, count)?;
    ensure_eq!(mappings()?, before + made);
    drop(fences);
    Ok(())
}

fn place_is_used_at_once() -> TestResult {
    let device = fixture::device()?;
    let _stays = device.create_shareable_fence(0)?;
    let first = device.create_shareable_fence(0)?;
    let address = first.value_address();
    first.destroy()?;
    let before = mappings()?;
    for value in 0..1000 {
        let fence = device.create_shareable_fence(value)?;
        ensure_eq!(fence.value_address(), address);
        ensure_eq!(fence.value(), value);
        fence.destroy()?;
    }
    ensure_eq!(mappings()?, before);
    Ok(())
}

/// What a client may do to the place of a value.
#[derive(Clone, Copy, Debug)]
enum Change {
    Unmap,
    UnmapAll,
    Forbid,
    Forget,
    NotInherit,
}

/// The client changes a place, while its fence lives or before. Later fences are readable and show
/// their own values, the others go on.
fn changed_place(change: Change, destroy_first: bool) -> TestResult {
    let device = fixture::device()?;
    let mut fences = shareable(&device, 40)?;
    let fence = fences.remove(20);
    let page = page_of(fence.value_address());
    let fence = match destroy_first {
        true => fence.destroy().map(|()| None)?,
        false => Some(fence),
    };
    // SAFETY: nobody reads a value there any more; of the whole range, only these fences are read
    // below, unless they are unmapped.
    let done = unsafe {
        match change {
            Change::Unmap => libc::munmap(page, PAGE),
            Change::UnmapAll => {
                let mut done = 0;
                for fence in &fences {
                    done |= libc::munmap(page_of(fence.value_address()), PAGE);
                }
                done | libc::munmap(page, PAGE)
            }
            Change::Forbid => libc::mprotect(page, PAGE, libc::PROT_NONE),
            Change::Forget => libc::madvise(page, PAGE, libc::MADV_DONTNEED),
            Change::NotInherit => libc::madvise(page, PAGE, libc::MADV_DONTFORK),
        }
    };
    ensure_eq!(done, 0);
    if let Some(fence) = fence {
        fence.signal(77)?;
        fence.wait(77)?;
        fence.destroy()?;
    }
    let others = (1000..1130)
        .map(|value| device.create_shareable_fence(value))
        .collect::<opendxg::Result<Vec<_>>>()?;
    for (value, other) in (1000..).zip(&others) {
        ensure!(is_shown(other.value_address())?, "{value} is not shown");
        ensure_eq!(other.value(), value);
    }
    let child = Child::spawn(|| {
        for (value, other) in (1000..).zip(&others) {
            ensure!(is_shown(other.value_address())?, "{value} is not inherited");
            ensure_eq!(look(other.value_address()), value);
        }
        Ok(())
    })?;
    child.join()?;
    if !matches!(change, Change::UnmapAll) {
        let numbers = (0..40).filter(|number| *number != 20);
        for (number, fence) in numbers.zip(&fences) {
            ensure_eq!(fence.value(), number);
        }
    }
    drop((fences, others));
    Ok(())
}

/// Where the client has moved the place of a shareable fence to, it shows that one's last value. If
/// it moves it back, later fences have their places elsewhere.
fn moved_place_shows_no_other_fence(back: bool) -> TestResult {
    let device = fixture::device()?;
    let _stays = device.create_shareable_fence(1)?;
    let fence = device.create_shareable_fence(7)?;
    let address = fence.value_address();
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of the test's own, to be replaced.
    let place = unsafe { libc::mmap(null_mut(), PAGE, libc::PROT_NONE, anonymous, -1, 0) };
    ensure!(place != libc::MAP_FAILED);
    // SAFETY: nobody reads the value at the old place any more, and the new one is this test's.
    let moved = unsafe { libc::mremap(page_of(address), PAGE, PAGE, flags, place) };
    ensure_eq!(moved, place);
    fence.destroy()?;
    if back {
        // SAFETY: nothing was mapped at the old place since: it is between pages of the window.
        let moved = unsafe { libc::mremap(place, PAGE, PAGE, flags, page_of(address)) };
        ensure_eq!(moved, page_of(address));
    }
    let others = shareable(&device, 200)?;
    for (number, other) in (0..).zip(&others) {
        ensure!(other.value_address() != address);
        ensure_eq!(other.value(), number);
    }
    let now = if back { page_of(address) } else { place };
    ensure_eq!(look(now.cast::<u64>()), 7);
    drop(others);
    ensure_eq!(look(now.cast::<u64>()), 7);
    // SAFETY: nobody reads there any more.
    ensure_eq!(unsafe { libc::munmap(now, PAGE) }, 0);
    Ok(())
}

/// A process that closes the device, and goes on, has no mappings of values left.
fn unmapped_by_close() -> TestResult {
    let before = mappings()?;
    let child = Child::spawn(|| {
        let device = fixture::device()?;
        let fences = shareable(&device, 100)?;
        let private = many(&device, 3)?;
        ensure!(mappings()? >= before + 6);
        drop((fences, private, device));
        ensure_eq!(mappings()?, before);
        Ok(())
    })?;
    child.join()
}

fn one_mapping_for_all_openings() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(4)?;
    let nt = fence.share(Access::ALL)?;
    let address = fence.value_address();
    let second = device.open_fence(&nt, SyncFlags::empty())?;
    ensure_eq!(second.value_address(), address);
    fence.destroy()?;
    ensure_eq!(second.value(), 4);
    second.destroy()?;
    ensure!(!is_shown(address)?, "still shown");
    Ok(())
}

/// What is at an address of the caller.
fn look(address: *const u64) -> u64 {
    // SAFETY: callers keep it mapped, by a fence or in a child that has inherited it.
    unsafe { address.read_volatile() }
}

/// A fence for 7 in a page in which another fence stays, so that the page stays mapped.
fn in_shared_page(device: &Device) -> TestResult<(MonitoredFence, MonitoredFence)> {
    let stays = device.create_fence(1)?;
    let fence = device.create_fence(7)?;
    ensure_eq!(
        page_of(stays.value_address()),
        page_of(fence.value_address())
    );
    Ok((stays, fence))
}

/// Runs a test in a process that has had no private fence before, so that no page is left of one.
fn alone(test: impl FnOnce() -> TestResult) -> TestResult {
    Child::spawn(test)?.join()
}

/// A process whose only fence comes and goes has one page, which stays where it is.
fn only_fence_stays_in_one_page() -> TestResult {
    let device = fixture::device()?;
    let first = device.create_fence(1)?;
    let page = page_of(first.value_address());
    let before = mappings()?;
    first.destroy()?;
    for value in 0..1000 {
        let fence = device.create_fence(value)?;
        ensure_eq!(page_of(fence.value_address()), page);
        ensure_eq!(fence.value(), value);
        fence.signal(value + 1)?;
        ensure_eq!(fence.value(), value + 1);
        fence.destroy()?;
    }
    ensure_eq!(mappings()?, before);
    Ok(())
}

/// However many fences there were, one page is left of them.
fn one_page_is_left() -> TestResult {
    let device = fixture::device()?;
    let before = mappings()?;
    for _ in 0..3 {
        let fences = many(&device, 2)?;
        ensure!(mappings()? >= before + 4);
        drop(fences);
        ensure_eq!(mappings()?, before + 1);
    }
    Ok(())
}

/// What a client may do with the page while it has no fence. Later fences are readable all the
/// same, and what the client has put there stays.
fn changed_page(change: impl FnOnce(*mut c_void) -> TestResult) -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(7)?;
    let page = page_of(fence.value_address());
    fence.destroy()?;
    change(page)?;
    for round in 0..3 {
        let fences = many(&device, round)?;
        for fence in &fences {
            ensure!(is_shown(fence.value_address())?);
            ensure_eq!(fence.value(), round);
            ensure!(page_of(fence.value_address()) != page);
        }
    }
    Ok(())
}

fn unmapped_page(page: *mut c_void) -> TestResult {
    // SAFETY: nobody reads a value there any more.
    ensure_eq!(unsafe { libc::munmap(page, PAGE) }, 0);
    // Something else is there, so that no later page of values is.
    put_own_memory(page)
}

fn replaced_page() -> TestResult {
    let mut own = null_mut();
    changed_page(|page| {
        own = page;
        put_own_memory(page)
    })?;
    ensure_eq!(look(own.cast::<u64>()), 0xfeed);
    Ok(())
}

/// A child that was forked when the process had no fence sees none of those that it makes later.
fn child_sees_no_fence_after_none() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(7)?;
    let page = page_of(fence.value_address());
    fence.destroy()?;
    let gate = Gate::new()?;
    let child = Child::spawn(|| {
        gate.wait()?;
        for word in 0..PAGE / 8 {
            let value = look(page.cast::<u64>().wrapping_add(word));
            ensure!(value != 0xbad, "word {word}");
        }
        Ok(())
    })?;
    let others = many(&device, 0xbad)?;
    gate.open()?;
    child.join()?;
    drop(others);
    Ok(())
}

/// Fences for `value`, more than any page has room for.
fn many(device: &Device, value: u64) -> TestResult<Vec<MonitoredFence>> {
    Ok((0..200)
        .map(|_| device.create_fence(value))
        .collect::<opendxg::Result<_>>()?)
}

/// A child that was forked while a fence existed goes on to see the last value of that one,
/// whatever its parent creates. With `forget` the parent drops its own mapping of the page.
fn child_sees_no_other_fence(forget: bool) -> TestResult {
    let device = fixture::device()?;
    let (_stays, fence) = in_shared_page(&device)?;
    let address = fence.value_address();
    let gate = Gate::new()?;
    let child = Child::spawn(|| {
        gate.wait()?;
        ensure_eq!(look(address), 7);
        Ok(())
    })?;
    if forget {
        let page = page_of(address);
        // SAFETY: nobody in this process reads a value in that page any more.
        ensure_eq!(unsafe { libc::madvise(page, PAGE, libc::MADV_DONTNEED) }, 0);
    }
    fence.destroy()?;
    let others = many(&device, 0xbad)?;
    ensure!(others.iter().all(|other| other.value_address() != address));
    gate.open()?;
    child.join()
}

/// A child that was forked when places were free sees no later fence of its parent in them. With
/// `forget` the parent drops its own mapping of the page.
fn child_sees_no_later_fence(forget: bool) -> TestResult {
    let device = fixture::device()?;
    let (stays, fence) = in_shared_page(&device)?;
    let page = page_of(stays.value_address());
    drop(many(&device, 2)?);
    fence.destroy()?;
    // The page is checked for this one, and all its other places are free.
    let mut elsewhere = Vec::new();
    let last = (0..400).find_map(|_| {
        let fence = device.create_fence(3).ok()?;
        if page_of(fence.value_address()) == page {
            return Some(fence);
        }
        elsewhere.push(fence);
        None
    });
    ensure!(last.is_some(), "no place is used again");
    drop(elsewhere);
    let gate = Gate::new()?;
    let child = Child::spawn(|| {
        gate.wait()?;
        for word in 0..PAGE / 8 {
            ensure!(
                look(page.cast::<u64>().wrapping_add(word)) != 0xbad,
                "word {word}"
            );
        }
        Ok(())
    })?;
    if forget {
        // SAFETY: nobody in this process reads a value in that page any more.
        ensure_eq!(unsafe { libc::madvise(page, PAGE, libc::MADV_DONTNEED) }, 0);
    }
    let others = many(&device, 0xbad)?;
    gate.open()?;
    child.join()?;
    drop(others);
    Ok(())
}

/// Once the child is gone the place is used again.
fn place_is_free_without_the_child() -> TestResult {
    let device = fixture::device()?;
    let (stays, fence) = in_shared_page(&device)?;
    let address = fence.value_address();
    let gate = Gate::new()?;
    let child = Child::spawn(|| gate.wait())?;
    fence.destroy()?;
    drop(many(&device, 2)?);
    gate.open()?;
    child.join()?;
    // The page is checked before a new one is taken.
    let others = (0..400)
        .map(|_| device.create_fence(3))
        .collect::<opendxg::Result<Vec<_>>>()?;
    ensure_eq!(stays.value(), 1);
    ensure!(
        others.iter().any(|other| other.value_address() == address),
        "the place is not used again"
    );
    Ok(())
}

/// Where the client has moved the page to, it sees the last value of its fence.
fn moved_page_shows_no_other_fence() -> TestResult {
    let device = fixture::device()?;
    let (_stays, fence) = in_shared_page(&device)?;
    let address = fence.value_address();
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let rights = libc::PROT_NONE;
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of the test's own, to be replaced.
    let place = unsafe { libc::mmap(null_mut(), PAGE, rights, anonymous, -1, 0) };
    ensure!(place != libc::MAP_FAILED);
    // SAFETY: nobody reads a value at the old place any more, and the new one is this test's.
    let moved = unsafe { libc::mremap(page_of(address), PAGE, PAGE, flags, place) };
    ensure_eq!(moved, place);
    fence.destroy()?;
    let others = many(&device, 0xbad)?;
    ensure_eq!(
        look(
            place
                .cast::<u64>()
                .map_addr(|start| start | (address.addr() % PAGE))
        ),
        7
    );
    drop(others);
    // SAFETY: the test's own mapping.
    ensure_eq!(unsafe { libc::munmap(place, PAGE) }, 0);
    Ok(())
}

/// A process that makes and destroys one fence after the other stays in one page.
fn places_are_used_again() -> TestResult {
    let device = fixture::device()?;
    let (stays, fence) = in_shared_page(&device)?;
    let page = page_of(stays.value_address());
    fence.destroy()?;
    for value in 0..1000 {
        let fence = device.create_fence(value)?;
        ensure_eq!(page_of(fence.value_address()), page);
        ensure_eq!(fence.value(), value);
        fence.destroy()?;
    }
    Ok(())
}

/// Threads that unmap the value while others signal and destroy the fence.
fn unmapped_while_used() -> TestResult {
    let device = fixture::device()?;
    for _ in 0..rounds(100) {
        let fence = device.create_shareable_fence(0)?;
        let page = page_of(fence.value_address()).addr();
        let fence = std::sync::Mutex::new(Some(fence));
        crowd(3, |part| {
            if part == 0 {
                // SAFETY: nobody reads the value; a page that was mapped there since belongs to
                // this test.
                unsafe { libc::munmap(core::ptr::without_provenance_mut(page), PAGE) };
                return Ok(());
            }
            let taken = fence.lock().map_err(|_| "poisoned")?.take();
            match taken {
                Some(fence) => {
                    fence.signal(1)?;
                    Ok(fence.destroy()?)
                }
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}

pub(crate) fn main() {
    Suite::new("mmap")
        .test("FEN-8 the value is mapped shared and read-only", || {
            with_fences(shared_and_read_only)
        })
        .test("FEN-8 mprotect to writable or executable fails", || {
            with_fences(mprotect_fails)
        })
        .test("FEN-8 a write is SIGSEGV", || with_fences(write_faults))
        .test("FEN-8 a write through /proc/self/mem fails", || {
            with_fences(proc_mem_fails)
        })
        .test("FEN-8 process_vm_writev fails", || {
            with_fences(write_of_another_process_fails)
        })
        .test("FEN-8 ptrace reads and does not write", || {
            with_fences(ptrace_fails)
        })
        .test("the mapping does not grow and is not doubled", || {
            with_fences(does_not_grow)
        })
        .test(
            "no descriptor of this module can be mapped by hand",
            cannot_be_mapped_by_hand,
        )
        .test("nor while the module maps", cannot_be_guessed)
        .test(
            "FEN-12 destroying a shareable fence takes its value out of the process at once",
            not_shown_after_destroy,
        )
        .test(
            "FEN-12 shareable fences are not limited by how many mappings there may be",
            || many_in_few_mappings(2000),
        )
        .test(
            "FEN-12 one shareable fence after the other makes no mapping",
            place_is_used_at_once,
        )
        .test(
            "FEN-12 closing the device unmaps all values",
            unmapped_by_close,
        )
        .with(|suite| {
            use Change::*;
            [Unmap, UnmapAll, Forbid, Forget, NotInherit]
                .into_iter()
                .flat_map(|change| [(change, false), (change, true)])
                .fold(suite, |suite, (change, first)| {
                    let when = if first { "free place" } else { "place in use" };
                    suite.test(
                        format!("FEN-1 FEN-12 the client changes a {when}: {change:?}"),
                        move || changed_place(change, first),
                    )
                })
        })
        .test(
            "FEN-12 a shareable fence's value that the client has moved shows no other fence",
            || moved_place_shows_no_other_fence(false),
        )
        .test("FEN-12 nor if the client moves it back", || {
            moved_place_shows_no_other_fence(true)
        })
        .test(
            "FEN-12 all openings of one process have one mapping",
            one_mapping_for_all_openings,
        )
        .test(
            "FEN-12 FEN-11 a forked child sees no other fence of its parent",
            || alone(|| child_sees_no_other_fence(false)),
        )
        .test(
            "FEN-12 nor if the parent has dropped its mapping of the page",
            || alone(|| child_sees_no_other_fence(true)),
        )
        .test(
            "FEN-12 nor one that its parent creates later in a free place",
            || alone(|| child_sees_no_later_fence(false)),
        )
        .test(
            "FEN-12 nor if the parent has dropped its mapping of that page",
            || alone(|| child_sees_no_later_fence(true)),
        )
        .test(
            "FEN-12 a place is used again when the child is gone",
            || alone(place_is_free_without_the_child),
        )
        .test(
            "FEN-12 a value that the client has moved shows no other fence",
            || alone(moved_page_shows_no_other_fence),
        )
        .test("FEN-13 FEN-61 places in a page are used again", || {
            alone(places_are_used_again)
        })
        .test(
            "FEN-12 FEN-13 the only fence of a process comes and goes in one page",
            || alone(only_fence_stays_in_one_page),
        )
        .test("FEN-12 one page is left of all private fences", || {
            alone(one_page_is_left)
        })
        .test(
            "FEN-1 FEN-12 the client unmaps the page that is left of its fences",
            || alone(|| changed_page(unmapped_page)),
        )
        .test("FEN-1 FEN-12 the client replaces it", || {
            alone(replaced_page)
        })
        .test(
            "FEN-12 a child that was forked when there was no fence sees no later one",
            || alone(child_sees_no_fence_after_none),
        )
        .test(
            "FEN-12 memory mapped over a shareable fence's value survives",
            || foreign_memory_survives(false, true),
        )
        .test(
            "FEN-12 memory mapped over a private fence's value survives",
            || foreign_memory_survives(false, false),
        )
        .test(
            "FEN-12 memory mapped where a value was unmapped survives",
            || foreign_memory_survives(true, true),
        )
        .test(
            "the value is unmapped while the fence is signalled and destroyed",
            unmapped_while_used,
        )
        .run()
}
