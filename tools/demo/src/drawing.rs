// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the renderer draws: a plasma that flows, and the number of the frame.
//!
//! Everything is integer arithmetic on tables, so that frame N looks the same on every machine.

/// Pixels of a row.
pub const WIDTH: usize = 320;
/// Rows.
pub const HEIGHT: usize = 240;

/// Draws frames, one after the other or in any order.
pub struct Drawing {
    /// A wave of 256 steps around 128.
    wave: [u8; 256],
    /// A closed circle of 256 colours, XRGB.
    palette: [u32; 256],
    /// How far each pixel is from the middle, in steps of the wave.
    distance: Vec<u8>,
}

impl Default for Drawing {
    fn default() -> Self {
        Self::new()
    }
}

impl Drawing {
    /// Makes the tables.
    pub fn new() -> Self {
        let turn = |step: usize| step as f64 * std::f64::consts::TAU / 256.0;
        let wave = std::array::from_fn(|step| (127.5 + 127.5 * turn(step).sin()).round() as u8);
        let palette = std::array::from_fn(|step| {
            let level = |shift: f64| (127.5 + 127.5 * (turn(step) + shift).cos()).round() as u32;
            (level(0.0) << 16) | (level(2.1) << 8) | level(4.2)
        });
        let mut distance = Vec::with_capacity(WIDTH * HEIGHT);
        for y in 0..HEIGHT {
            for x in 0..WIDTH {
                let (dx, dy) = (
                    x as f64 - WIDTH as f64 / 2.0,
                    y as f64 - HEIGHT as f64 / 2.0,
                );
                distance.push((dx.hypot(dy) * 2.0) as u8);
            }
        }
        Self {
            wave,
            palette,
            distance,
        }
    }

    /// Draws a frame.
    pub fn frame(&self, number: u64, pixels: &mut Vec<u32>) {
        let time = number as usize * 3;
        let wave = |at: usize| usize::from(self.wave[at % 256]);
        // What depends on the column alone.
        let columns: [usize; WIDTH] =
            std::array::from_fn(|x| wave(x + time) + wave(2 * x + 256 - time % 256));
        pixels.clear();
        for y in 0..HEIGHT {
            let row = wave(y + time * 2) + wave(3 * y + time);
            let ring = &self.distance[y * WIDTH..(y + 1) * WIDTH];
            pixels.extend(
                columns
                    .iter()
                    .zip(ring)
                    .enumerate()
                    .map(|(x, (column, ring))| {
                        let field = column
                            + row
                            + wave(usize::from(*ring) + 256 - time % 256)
                            + wave(x + y + time);
                        self.palette[(field / 4 + time) % 256]
                    }),
            );
        }
        write_number(number, pixels);
    }
}

/// Rows of five bits, for each digit.
const DIGITS: [[u8; 7]; 10] = [
    [
        0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110,
    ],
    [
        0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110,
    ],
    [
        0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111,
    ],
    [
        0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110,
    ],
    [
        0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010,
    ],
    [
        0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110,
    ],
    [
        0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110,
    ],
    [
        0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000,
    ],
    [
        0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110,
    ],
    [
        0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100,
    ],
];
/// Pixels of one dot of a digit.
const DOT: usize = 4;

/// Writes a number into the lower left corner, white with a black shadow.
fn write_number(number: u64, pixels: &mut [u32]) {
    let top = HEIGHT - 9 * DOT;
    for (place, digit) in number.to_string().bytes().enumerate() {
        let left = 2 * DOT + place * 6 * DOT;
        for (shift, colour) in [(2, 0x00_0000), (0, 0xff_ffff)] {
            for (y, bits) in DIGITS[usize::from(digit - b'0')].iter().enumerate() {
                for x in (0..5).filter(|x| (bits >> (4 - x)) & 1 != 0) {
                    square(
                        left + x * DOT + shift,
                        top + y * DOT + shift,
                        colour,
                        pixels,
                    );
                }
            }
        }
    }
}

fn square(left: usize, top: usize, colour: u32, pixels: &mut [u32]) {
    for y in top..top + DOT {
        pixels[y * WIDTH + left..][..DOT].fill(colour);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_differ_and_can_be_drawn_again() {
        let drawing = Drawing::new();
        let draw = |number| {
            let mut pixels = Vec::new();
            drawing.frame(number, &mut pixels);
            assert_eq!(pixels.len(), WIDTH * HEIGHT);
            pixels
        };
        assert_eq!(draw(7), draw(7));
        let (seven, eight) = (draw(7), draw(8));
        let different = seven.iter().zip(&eight).filter(|(a, b)| a != b).count();
        assert!(different > WIDTH * HEIGHT / 2, "{different}");
        draw(u64::from(u32::MAX));
    }
}
