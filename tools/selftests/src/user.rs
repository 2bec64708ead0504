// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other users and other namespaces, for children that end soon.

use crate::{ensure, ensure_eq, skip, TestResult};

/// A user of the guest.
pub const USER: u32 = 1000;
/// Another one.
pub const OTHER: u32 = 1001;

/// Skips the test unless this process is root.
pub fn needs_root() -> TestResult {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        skip!("needs root");
    }
    Ok(())
}

/// Becomes this user and group, without any capability.
pub fn become_user(user: u32) -> TestResult {
    become_member(user, user)
}

/// Becomes this user with this group, without any capability.
pub fn become_member(user: u32, group: u32) -> TestResult {
    // SAFETY: plain system calls.
    let done = unsafe {
        libc::setgroups(0, core::ptr::null()) == 0
            && libc::setgid(group) == 0
            && libc::setuid(user) == 0
    };
    ensure!(done, "setuid: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Gives up every capability, and stays root: what root owns can still be read.
pub fn drop_capabilities() -> TestResult {
    // `_LINUX_CAPABILITY_VERSION_3`, for this process.
    let header = [0x2008_0522u32, 0];
    let none = [0u32; 6];
    // SAFETY: the addresses are of a header and two sets, of the layout of this version.
    let done = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    ensure_eq!(done, 0, "capset: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Puts the calling process into new namespaces (`CLONE_NEW*`). Skips the test where the kernel
/// has none.
pub fn unshare(namespaces: i32) -> TestResult {
    // SAFETY: plain system call.
    if unsafe { libc::unshare(namespaces) } != 0 {
        skip!("no such namespaces: {}", std::io::Error::last_os_error());
    }
    Ok(())
}
