// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a frame as a PNG file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::Result;
use png::{BitDepth, ColorType, Compression, Encoder};

/// Writes XRGB pixels, rows of `width`.
pub fn write(path: &Path, width: usize, pixels: &[u32]) -> Result {
    let height = pixels.len() / width;
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut encoder = Encoder::new(BufWriter::new(file), width.try_into()?, height.try_into()?);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let bytes: Vec<u8> = pixels
        .iter()
        .flat_map(|&pixel| [(pixel >> 16) as u8, (pixel >> 8) as u8, pixel as u8])
        .collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&bytes)?;
    Ok(writer.finish()?)
}
