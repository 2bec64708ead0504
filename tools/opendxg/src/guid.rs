// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the information store.

use core::fmt;
use core::str::FromStr;

/// A GUID, in memory order: the first three parts little-endian, as Windows stores them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The legacy runtime blob of a resource or a keyed mutex, schema 0.
    pub const LEGACY: Self = Self([0; 16]);
    /// Image layout: format, modifier, planes, extent, layers, levels.
    pub const IMAGE_LAYOUT: Self = Self::new(0x1ad4_fdb7, 0x7c6c, 0x4b4f, 0xae9d_f6a3_9ab9_32dd);
    /// Direct3D description.
    pub const DIRECT3D: Self = Self::new(0x98fb_6f47, 0x3e6a, 0x46bd, 0xbb3f_2e18_90bb_948c);
    /// Vulkan description.
    pub const VULKAN: Self = Self::new(0x15cc_3245, 0x8dcd, 0x4c21, 0x8037_4c0d_efd1_cf3c);
    /// OpenGL description.
    pub const OPENGL: Self = Self::new(0xa04c_6e50, 0x5c2c, 0x429b, 0x9d7b_3246_c8b3_3517);
    /// OpenCL description.
    pub const OPENCL: Self = Self::new(0xb795_3b58, 0x9e7d, 0x49b4, 0xb0ea_149e_70dc_5bc6);
    /// Description of the payload of a synchronisation object.
    pub const SYNC_PAYLOAD: Self = Self::new(0x29bf_82fe, 0x390f, 0x4cbf, 0xb950_7fa0_3bf6_a7e7);

    /// The keys with a meaning fixed by this project, and their names.
    pub const RESERVED: &'static [(Self, &'static str)] = &[
        (Self::LEGACY, "legacy"),
        (Self::IMAGE_LAYOUT, "image-layout"),
        (Self::DIRECT3D, "direct3d"),
        (Self::VULKAN, "vulkan"),
        (Self::OPENGL, "opengl"),
        (Self::OPENCL, "opencl"),
        (Self::SYNC_PAYLOAD, "sync-payload"),
    ];

    /// A GUID from its parts as they are written: `a-b-c-` and the last two parts as one number.
    pub const fn new(a: u32, b: u16, c: u16, d: u64) -> Self {
        let (a, b, c, d) = (
            a.to_le_bytes(),
            b.to_le_bytes(),
            c.to_le_bytes(),
            d.to_be_bytes(),
        );
        Self([
            a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5],
            d[6], d[7],
        ])
    }

    /// The name, for a key whose meaning is fixed by this project.
    pub fn name(self) -> Option<&'static str> {
        let mut reserved = Self::RESERVED.iter();
        reserved
            .find(|(key, _)| *key == self)
            .map(|&(_, name)| name)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let g = self.0;
        let a = u32::from_le_bytes([g[0], g[1], g[2], g[3]]);
        let (b, c) = (
            u16::from_le_bytes([g[4], g[5]]),
            u16::from_le_bytes([g[6], g[7]]),
        );
        let d = u16::from_be_bytes([g[8], g[9]]);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-")?;
        g[10..].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not a GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseGuidError;

impl fmt::Display for ParseGuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a GUID")
    }
}

impl core::error::Error for ParseGuidError {}

/// Reads `1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd`, with or without braces, or one of the names in
/// [`Guid::RESERVED`].
impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Self, ParseGuidError> {
        if let Some((key, _)) = Self::RESERVED.iter().find(|(_, name)| *name == text) {
            return Ok(*key);
        }
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let parts: Vec<&str> = inner.unwrap_or(text).split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let digits = parts.concat();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if lengths != [8, 4, 4, 4, 12] || !is_hex {
            return Err(ParseGuidError);
        }
        let value = u128::from_str_radix(&digits, 16).map_err(|_| ParseGuidError)?;
        let (high, low) = ((value >> 64) as u64, value as u64);
        Ok(Self::new(
            (high >> 32) as u32,
            (high >> 16) as u16,
            high as u16,
            low,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_memory_order() {
        let text = "1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd";
        assert_eq!(Guid::IMAGE_LAYOUT.to_string(), text);
        assert_eq!(text.parse(), Ok(Guid::IMAGE_LAYOUT));
        assert_eq!(
            format!("{{{text}}}").to_uppercase().parse(),
            Ok(Guid::IMAGE_LAYOUT)
        );
        assert_eq!(Guid::IMAGE_LAYOUT.0[..4], [0xb7, 0xfd, 0xd4, 0x1a]);
        assert_eq!("vulkan".parse(), Ok(Guid::VULKAN));
        for bad in [
            "",
            "vulkano",
            "1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932d",
            "+ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd",
        ] {
            assert_eq!(bad.parse::<Guid>(), Err(ParseGuidError), "{bad}");
        }
    }

    #[test]
    fn reserved_keys_are_those_of_the_specification() {
        let texts = [
            "00000000-0000-0000-0000-000000000000",
            "1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd",
            "98fb6f47-3e6a-46bd-bb3f-2e1890bb948c",
            "15cc3245-8dcd-4c21-8037-4c0defd1cf3c",
            "a04c6e50-5c2c-429b-9d7b-3246c8b33517",
            "b7953b58-9e7d-49b4-b0ea-149e70dc5bc6",
            "29bf82fe-390f-4cbf-b950-7fa03bf6a7e7",
        ];
        let keys = Guid::RESERVED.iter().map(|(key, _)| key.to_string());
        assert_eq!(keys.collect::<Vec<_>>(), texts);
        assert_eq!(Guid::OPENGL.name(), Some("opengl"));
        assert_eq!(Guid([1; 16]).name(), None);
    }
}
