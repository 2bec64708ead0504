// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the library its shared-object name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libd3dkmt.so.1");
}
