// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of C programs: WCHAR has two bytes or four, the kernel always uses UTF-16.

/// A character unit of the caller.
pub(crate) trait Unit: Copy + Default + Into<u32> {
    /// Decodes a text up to its terminator; what is not a character becomes U+FFFD.
    fn decode(units: &[Self]) -> String;
}

impl Unit for u16 {
    fn decode(units: &[Self]) -> String {
        String::from_utf16_lossy(until_terminator(units))
    }
}

impl Unit for u32 {
    fn decode(units: &[Self]) -> String {
        let units = until_terminator(units).iter();
        units
            .map(|&unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }
}

/// Reads a terminated text of at most `limit` units from memory of the caller.
///
/// # Safety
///
/// `address` is readable up to a terminator or for `limit` units.
pub(crate) unsafe fn read<U: Unit>(address: u64, limit: usize) -> String {
    let start = address as usize as *const U;
    // SAFETY: readable as promised; the search stops at the terminator.
    let unit = |index| unsafe { start.add(index).read_unaligned() };
    let units: Vec<U> = (0..limit)
        .map(unit)
        .take_while(|&unit| unit.into() != 0)
        .collect();
    U::decode(&units)
}

/// Narrows a text of 4-byte units to UTF-16, for as much as fits; the rest of `to` is cleared.
pub(crate) fn narrow(from: &[u32], to: &mut [u16]) {
    to.fill(0);
    for (slot, unit) in to.iter_mut().zip(u32::decode(from).encode_utf16()) {
        *slot = unit;
    }
}

/// Widens a UTF-16 text to 4-byte units up to its terminator; the rest of `to` is cleared.
pub(crate) fn widen(from: &[u16], to: &mut [u32]) {
    to.fill(0);
    for (slot, character) in to.iter_mut().zip(u16::decode(from).chars()) {
        *slot = character.into();
    }
}

/// Widens UTF-16 units, terminators inside included.
pub(crate) fn widen_all(from: &[u16]) -> Vec<u32> {
    char::decode_utf16(from.iter().copied())
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER).into())
        .collect()
}

fn until_terminator<U: Unit>(units: &[U]) -> &[U] {
    let end = units.iter().position(|&unit| unit.into() == 0);
    &units[..end.unwrap_or(units.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_round_trip() {
        let text = "gpu \u{e9} \u{1f600}";
        let utf32: Vec<u32> = text.chars().map(u32::from).collect();
        let mut utf16 = [0xaaaa; 12];
        narrow(&utf32, &mut utf16);
        assert_eq!(u16::decode(&utf16), text);
        let mut back = [0xaaaa_aaaa; 12];
        widen(&utf16, &mut back);
        assert_eq!(u32::decode(&back), text);
        assert_eq!(back[utf32.len()..], [0; 5]);
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut utf16 = [0; 2];
        narrow(&[0x41, 0x42, 0x43], &mut utf16);
        assert_eq!(utf16, [0x41, 0x42]);
    }

    #[test]
    fn not_a_character() {
        assert_eq!(
            u32::decode(&[0x41, 0xd800, 0x11_0000, 0, 0x42]),
            "A\u{fffd}\u{fffd}"
        );
        assert_eq!(u16::decode(&[0xdc00, 0x41]), "\u{fffd}A");
        assert_eq!(widen_all(&[0x41, 0, 0xd83d, 0xde00]), [0x41, 0, 0x1f600]);
    }

    #[test]
    fn reads_up_to_the_terminator_and_the_limit() {
        let units = [0x41u32, 0x42, 0, 0x43];
        // SAFETY: a live array that holds a terminator.
        assert_eq!(unsafe { read::<u32>(units.as_ptr() as u64, 99) }, "AB");
        // SAFETY: a live array of more than one unit.
        assert_eq!(unsafe { read::<u32>(units.as_ptr() as u64, 1) }, "A");
    }
}
