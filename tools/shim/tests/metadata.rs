// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys and the sizes in `opendxg/metadata.h` are those of the crate and of the layouts.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use opendxg::Guid;

const KEYS: [(&str, Guid); 7] = [
    ("LEGACY", Guid::LEGACY),
    ("IMAGE_LAYOUT", Guid::IMAGE_LAYOUT),
    ("DIRECT3D", Guid::DIRECT3D),
    ("VULKAN", Guid::VULKAN),
    ("OPENGL", Guid::OPENGL),
    ("OPENCL", Guid::OPENCL),
    ("SYNC_PAYLOAD", Guid::SYNC_PAYLOAD),
];

const LAYOUTS: [&str; 6] = [
    "image_layout",
    "direct3d_info",
    "vulkan_info",
    "opengl_info",
    "opencl_info",
    "sync_payload",
];

/// A program that fails for the first thing that is not as it should be.
fn program() -> String {
    let mut text = String::from("#include <opendxg/metadata.h>\n#include <string.h>\n");
    for layout in LAYOUTS {
        let smallest = layout.to_uppercase();
        writeln!(
            text,
            "_Static_assert(sizeof(struct opendxg_{layout}) == OPENDXG_{smallest}_MIN, \"{layout}\");"
        )
        .unwrap();
    }
    text.push_str("int main(void)\n{\n");
    for (number, (name, key)) in KEYS.iter().enumerate() {
        let bytes = key.0.map(|byte| byte.to_string()).join(", ");
        writeln!(
            text,
            "\t{{ const __u8 a[16] = OPENDXG_KEY_{name}, b[16] = {{ {bytes} }};\n\
             \t  if (memcmp(a, b, 16)) return {}; }}",
            number + 1
        )
        .unwrap();
    }
    text + "\treturn 0;\n}\n"
}

#[test]
fn header_agrees_with_the_crate() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, built) = (directory.join("metadata.c"), directory.join("metadata"));
    std::fs::write(&source, program()).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    // Padding would be a hole in the layout.
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-I"])
        .args([&include, &source])
        .arg("-o")
        .arg(&built)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    let status = Command::new(&built).status().unwrap();
    assert_eq!(status.code(), Some(0), "the key of this number differs");
}
