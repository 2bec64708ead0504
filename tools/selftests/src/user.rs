// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other users and other namespaces, for children that end soon.

use crate::{ensure, skip, Outcome};

/// A user of the guest.
pub const USER: u32 = 1000;
/// Another one.
pub const OTHER: u32 = 1001;

/// Skips the test unless this process is root.
pub fn needs_root() -> Outcome {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        skip!("needs root");
    }
    Ok(())
}

/// Becomes this user and group, without any capability.
pub fn become_user(user: u32) -> Outcome {
    become_member(user, user)
}

/// Becomes this user with this group, without any capability.
pub fn become_member(user: u32, group: u32) -> Outcome {
    // SAFETY: plain system calls.
    let done = unsafe {
        libc::setgroups(0, core::ptr::null()) == 0
            && libc::setgid(group) == 0
            && libc::setuid(user) == 0
    };
    ensure!(done, "setuid: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Puts the calling process into new namespaces (`CLONE_NEW*`). Skips the test where the kernel has none.
pub fn unshare(namespaces: i32) -> Outcome {
    // SAFETY: plain system call.
    if unsafe { libc::unshare(namespaces) } != 0 {
        skip!("no such namespaces: {}", std::io::Error::last_os_error());
    }
    Ok(())
}
