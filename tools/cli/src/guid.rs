// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of metadata whose convention is known.

/// The convention behind a key in its usual text form, if it is one of the reserved keys.
pub fn convention(key: &str) -> Option<&'static str> {
    Some(match key.to_ascii_lowercase().as_str() {
        "00000000-0000-0000-0000-000000000000" => "runtime data",
        "1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd" => "image layout",
        "98fb6f47-3e6a-46bd-bb3f-2e1890bb948c" => "Direct3D",
        "15cc3245-8dcd-4c21-8037-4c0defd1cf3c" => "Vulkan",
        "a04c6e50-5c2c-429b-9d7b-3246c8b33517" => "OpenGL",
        "b7953b58-9e7d-49b4-b0ea-149e70dc5bc6" => "OpenCL",
        "29bf82fe-390f-4cbf-b950-7fa03bf6a7e7" => "synchronisation",
        _ => return None,
    })
}
