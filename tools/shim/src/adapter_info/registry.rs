// SPDX-License-Identifier: MIT OR Apache-2.0
//! QUERYREGISTRY, whose payload ends with a value of any length.
//!
//! The size alone does not tell the two forms apart here. From the smallest size of the 4-byte
//! form on it is taken for that form; programs with 16-bit WCHAR that need long values call
//! D3DKMTQueryAdapterInfo16.

use opendxg::uapi::*;
use opendxg::Status;

use super::{ask, narrow_parts, widen_parts, zeroed, Bytes, Part, Text};
use crate::text;

/// Everything before the value: type, flags, name, four numbers.
const HEADER: &[Part] = &[Bytes(8), Text(260), Bytes(16)];

/// Where the value starts in the 16-bit form, and the smallest size of that form.
const NARROW_VALUE: usize = 544;
pub(super) const NARROW_MIN: usize = NARROW_VALUE + 8;

/// Where the value starts in the 4-byte form, and the smallest size of that form.
const WIDE_VALUE: usize = 1064;
pub(super) const WIDE_MIN: usize = WIDE_VALUE + 8;

/// `OutputValueSize` and `Status`, counted back from the value.
const SIZE_BEFORE_VALUE: usize = 8;
const STATUS_BEFORE_VALUE: usize = 4;

/// Kinds of registry values that are text.
const REG_SZ: u32 = 1;
const REG_EXPAND_SZ: u32 = 2;
const REG_MULTI_SZ: u32 = 7;

/// Runs the query for a payload in the 4-byte form.
pub(super) fn query(arg: &D3DKMT_QUERYADAPTERINFO, wide: &mut [u8]) -> Status {
    query_with(wide, |narrow| ask(arg, narrow))
}

fn query_with(wide: &mut [u8], ask: impl FnOnce(&mut [u8]) -> Status) -> Status {
    // With as many bytes for the value as the caller has, whatever fits after widening fits
    // before.
    let mut narrow = match zeroed(NARROW_VALUE + (wide.len() - WIDE_VALUE)) {
        Ok(narrow) => narrow,
        Err(refused) => return refused,
    };
    narrow_parts(HEADER, &wide[..WIDE_VALUE], &mut narrow[..NARROW_VALUE]);
    let status = ask(&mut narrow);
    if status.is_success() {
        let (header, value) = narrow.split_at(NARROW_VALUE);
        let (wide_header, wide_value) = wide.split_at_mut(WIDE_VALUE);
        widen_parts(HEADER, header, wide_header);
        if is_text(header) {
            widen_value(wide_header, value, wide_value);
        } else {
            wide_value.copy_from_slice(value);
        }
    }
    status
}

fn is_text(header: &[u8]) -> bool {
    let kind = word(header, 0);
    let value_type = word(header, NARROW_VALUE - 16);
    match kind {
        D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH | D3DDDI_QUERYREGISTRY_DRIVERIMAGEPATH => true,
        _ => [REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ].contains(&value_type),
    }
}

/// Widens the value and says in the header how long it is, or would be.
fn widen_value(header: &mut [u8], value: &[u8], wide: &mut [u8]) {
    let size = header.len() - SIZE_BEFORE_VALUE;
    let state = header.len() - STATUS_BEFORE_VALUE;
    let bytes = word(header, size) as usize;
    match word(header, state) {
        D3DDDI_QUERYREGISTRY_STATUS_SUCCESS => {
            let text = &value[..bytes.min(value.len())];
            let needed = text::wide_len(text) * 4;
            put(header, size, needed as u32);
            if needed > wide.len() {
                put(header, state, D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW);
            } else {
                text::widen_all(text, wide);
            }
        }
        D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW => {
            put(header, size, (bytes * 2) as u32);
        }
        _ => {}
    }
}

fn put(bytes: &mut [u8], offset: usize, word: u32) {
    bytes[offset..][..4].copy_from_slice(&word.to_ne_bytes());
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes([
        bytes[offset],
        bytes[offset + 1],
        bytes[offset + 2],
        bytes[offset + 3],
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/usr/lib/dxg/drivers";

    /// Pretends to be the kernel: answers the driver store path.
    fn kernel(narrow: &mut [u8]) -> Status {
        let value: Vec<u8> = PATH
            .encode_utf16()
            .chain([0])
            .flat_map(u16::to_ne_bytes)
            .collect();
        let fits = NARROW_VALUE + value.len() <= narrow.len();
        narrow[536..540].copy_from_slice(&(value.len() as u32).to_ne_bytes());
        narrow[540..544].copy_from_slice(&u32::from(!fits).to_ne_bytes());
        if fits {
            narrow[NARROW_VALUE..][..value.len()].copy_from_slice(&value);
        }
        Status::SUCCESS
    }

    fn wide(size: usize, kind: u32) -> Vec<u8> {
        let mut wide = vec![0; size];
        put(&mut wide, 0, kind);
        wide
    }

    #[test]
    fn first_the_size_then_the_value() {
        let needed = (PATH.len() + 1) * 4;
        let mut payload = wide(WIDE_MIN, D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH);
        assert_eq!(query_with(&mut payload, kernel), Status::SUCCESS);
        assert_eq!(
            (word(&payload, 1056), word(&payload, 1060)),
            (needed as u32, 1)
        );

        let mut payload = wide(WIDE_VALUE + needed, D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH);
        assert_eq!(query_with(&mut payload, kernel), Status::SUCCESS);
        assert_eq!(
            (word(&payload, 1056), word(&payload, 1060)),
            (needed as u32, 0)
        );
        let expected: Vec<u8> = PATH
            .chars()
            .chain(['\0'])
            .flat_map(|c| u32::from(c).to_ne_bytes())
            .collect();
        assert_eq!(&payload[WIDE_VALUE..], expected);
    }

    #[test]
    fn a_value_that_only_fits_narrow_overflows() {
        let size = WIDE_VALUE + (PATH.len() + 1) * 4 - 4;
        let mut payload = wide(size, D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH);
        assert_eq!(query_with(&mut payload, kernel), Status::SUCCESS);
        assert_eq!(word(&payload, 1060), 1);
        assert!(payload[WIDE_VALUE..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn numbers_are_not_text() {
        let mut payload = wide(WIDE_MIN, D3DDDI_QUERYREGISTRY_SERVICEKEY);
        let dword = |narrow: &mut [u8]| {
            narrow[536..540].copy_from_slice(&4u32.to_ne_bytes());
            narrow[544..548].copy_from_slice(&7u32.to_ne_bytes());
            Status::SUCCESS
        };
        query_with(&mut payload, dword);
        assert_eq!((word(&payload, 1056), word(&payload, WIDE_VALUE)), (4, 7));
    }

    #[test]
    fn the_name_is_narrowed_and_failure_leaves_the_payload() {
        let mut payload = wide(WIDE_MIN, D3DDDI_QUERYREGISTRY_ADAPTERKEY);
        payload[8] = b'N';
        let before = payload.clone();
        let refuse = |narrow: &mut [u8]| {
            assert_eq!(&narrow[8..12], [b'N', 0, 0, 0]);
            narrow.fill(0xee);
            Status::INVALID_PARAMETER
        };
        assert_eq!(query_with(&mut payload, refuse), Status::INVALID_PARAMETER);
        assert_eq!(payload, before);
    }
}
