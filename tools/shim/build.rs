// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the library its shared-object name, and keeps it loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libd3dkmt.so.1");
    // After dlclose other threads may still be in its functions, and handles live on. So nothing
    // is undone then, and there is nothing to undo when the process ends.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
