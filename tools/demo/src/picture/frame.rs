// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a frame lies in the shared memory: its number and checksum, then the pixels.

use demo::Result;

/// Where the pixels begin: on a page of their own.
pub const PIXELS: usize = 4096;
/// Bytes of number and checksum.
pub const HEAD: usize = 16;

/// What stands in front of the pixels.
pub fn head(number: u64, checksum: u64) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..].copy_from_slice(&checksum.to_ne_bytes());
    bytes
}

/// Checks that this is frame `number` and that its pixels are those that were drawn.
pub fn check(head: &[u8; HEAD], number: u64, pixels: &[u8]) -> Result {
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| head[at + byte]));
    if word(0) != number {
        return Err(format!("frame {number} was due, but frame {} is there", word(0)).into());
    }
    if word(8) != checksum(number, pixels) {
        return Err(format!("the picture of frame {number} is not what was drawn").into());
    }
    Ok(())
}

/// A checksum of a frame.
pub fn checksum(number: u64, pixels: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let words = pixels.chunks_exact(8);
    // A picture has whole rows of an even number of pixels.
    debug_assert!(words.remainder().is_empty());
    words.fold(mix(0, number), |sum, word| {
        mix(
            sum,
            u64::from_ne_bytes(std::array::from_fn(|byte| word[byte])),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let mut pixels: Vec<u8> = (0..64).collect();
        let good = head(3, checksum(3, &pixels));
        assert!(check(&good, 3, &pixels).is_ok());
        assert!(check(&good, 4, &pixels).is_err());
        for bit in 0..pixels.len() * 8 {
            pixels[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&good, 3, &pixels).is_err(), "bit {bit}");
            pixels[bit / 8] ^= 1 << (bit % 8);
        }
        let swapped: Vec<u8> = pixels.iter().skip(8).chain(&pixels[..8]).copied().collect();
        assert!(check(&good, 3, &swapped).is_err());
    }
}
