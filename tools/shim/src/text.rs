// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of C programs: WCHAR has two bytes or four, the kernel always uses UTF-16.

use opendxg::uapi::D3DKMT_MAX_PATH;

/// A character unit of the caller.
pub(crate) trait Unit: Copy + Default + Into<u32> {
    /// Decodes units; what is not a character becomes U+FFFD.
    fn decode(units: impl Iterator<Item = Self>) -> impl Iterator<Item = char>;
}

impl Unit for u16 {
    fn decode(units: impl Iterator<Item = Self>) -> impl Iterator<Item = char> {
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl Unit for u32 {
    fn decode(units: impl Iterator<Item = Self>) -> impl Iterator<Item = char> {
        units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// Longest text, in units.
const MAX_UNITS: usize = D3DKMT_MAX_PATH as usize;

/// A text of at most [`MAX_UNITS`] units, without memory of the heap.
pub(crate) struct Text {
    bytes: [u8; MAX_UNITS * 4],
    len: usize,
}

impl Text {
    /// Decodes units up to a terminator, an end or the limit.
    pub(crate) fn new<U: Unit>(units: impl Iterator<Item = U>) -> Self {
        let mut text = Self {
            bytes: [0; MAX_UNITS * 4],
            len: 0,
        };
        let units = units.take(MAX_UNITS).take_while(|&unit| unit.into() != 0);
        for character in U::decode(units) {
            // No unit becomes more than four bytes.
            let end = text.len + character.len_utf8();
            if let Some(place) = text.bytes.get_mut(text.len..end) {
                character.encode_utf8(place);
                text.len = end;
            }
        }
        text
    }

    /// Reads a terminated text from memory of the caller.
    ///
    /// # Safety
    ///
    /// `address` is readable up to a terminator or for [`MAX_UNITS`] units.
    pub(crate) unsafe fn read<U: Unit>(address: u64) -> Self {
        let start = address as usize as *const U;
        // SAFETY: readable as promised; nothing is read after the terminator.
        Self::new((0..MAX_UNITS).map(|index| unsafe { start.add(index).read_unaligned() }))
    }
}

impl core::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        // Whole characters were put in.
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// Narrows a text of 4-byte units to UTF-16 up to its terminator, for as much as fits; the rest of
/// `to` is cleared. Both are bytes, in units of their own.
pub(crate) fn narrow(from: &[u8], to: &mut [u8]) {
    to.fill(0);
    let units = units_of_4(from).take_while(|&unit| unit != 0);
    let mut slots = to.chunks_exact_mut(2);
    for character in u32::decode(units) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let Some(slot) = slots.next() else {
                return;
            };
            slot.copy_from_slice(&unit.to_ne_bytes());
        }
    }
}

/// Widens a UTF-16 text to 4-byte units up to its terminator; the rest of `to` is cleared.
pub(crate) fn widen(from: &[u8], to: &mut [u8]) {
    to.fill(0);
    let units = units_of_2(from).take_while(|&unit| unit != 0);
    put(to, u16::decode(units));
}

/// How many 4-byte units UTF-16 becomes, terminators inside included.
pub(crate) fn wide_len(from: &[u8]) -> usize {
    u16::decode(units_of_2(from)).count()
}

/// Widens UTF-16, terminators inside included, for as much as fits.
pub(crate) fn widen_all(from: &[u8], to: &mut [u8]) {
    put(to, u16::decode(units_of_2(from)));
}

/// Writes characters one after the other, as long as there is room.
fn put(to: &mut [u8], text: impl Iterator<Item = char>) {
    for (slot, character) in to.chunks_exact_mut(4).zip(text) {
        slot.copy_from_slice(&u32::from(character).to_ne_bytes());
    }
}

fn units_of_2(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes
        .chunks_exact(2)
        .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]))
}

fn units_of_4(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes
        .chunks_exact(4)
        .map(|unit| u32::from_ne_bytes([unit[0], unit[1], unit[2], unit[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of_4(units: &[u32]) -> Vec<u8> {
        units.iter().flat_map(|unit| unit.to_ne_bytes()).collect()
    }

    fn bytes_of_2(units: &[u16]) -> Vec<u8> {
        units.iter().flat_map(|unit| unit.to_ne_bytes()).collect()
    }

    #[test]
    fn both_widths_round_trip() {
        let text = "gpu \u{e9} \u{1f600}";
        let utf32: Vec<u32> = text.chars().map(u32::from).collect();
        let mut utf16 = [0xaa; 24];
        narrow(&bytes_of_4(&utf32), &mut utf16);
        assert_eq!(&*Text::new(units_of_2(&utf16)), text);
        let mut back = [0xaa; 48];
        widen(&utf16, &mut back);
        assert_eq!(&*Text::new(units_of_4(&back)), text);
        assert_eq!(back[utf32.len() * 4..], [0; 20]);
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut utf16 = [0; 4];
        narrow(&bytes_of_4(&[0x41, 0x42, 0x43]), &mut utf16);
        assert_eq!(utf16[..], bytes_of_2(&[0x41, 0x42]));
        let long = Text::new(core::iter::repeat(0x1_f600u32));
        assert_eq!(long.chars().count(), MAX_UNITS);
    }

    #[test]
    fn not_a_character() {
        let wide = [0x41u32, 0xd800, 0x11_0000, 0, 0x42];
        assert_eq!(&*Text::new(wide.into_iter()), "A\u{fffd}\u{fffd}");
        assert_eq!(&*Text::new([0xdc00u16, 0x41].into_iter()), "\u{fffd}A");
        let utf16 = bytes_of_2(&[0x41, 0, 0xd83d, 0xde00]);
        let mut wide = [0; 12];
        widen_all(&utf16, &mut wide);
        assert_eq!(wide[..], bytes_of_4(&[0x41, 0, 0x1f600]));
        assert_eq!(wide_len(&utf16), 3);
    }

    #[test]
    fn reads_up_to_the_terminator() {
        let units = [0x41u32, 0x42, 0, 0x43];
        // SAFETY: a live array that holds a terminator.
        assert_eq!(&*unsafe { Text::read::<u32>(units.as_ptr() as u64) }, "AB");
    }
}
