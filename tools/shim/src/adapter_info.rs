// SPDX-License-Identifier: MIT OR Apache-2.0
//! D3DKMTQueryAdapterInfo for programs whose WCHAR has four bytes.
//!
//! The kernel knows the 16-bit forms only. Which form a caller uses shows in the size it passes,
//! because the two sizes of a payload never are the same. Payloads without text go through
//! unchanged.

use core::slice;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library::call;
use crate::text;

/// One stretch of a payload.
#[derive(Clone, Copy)]
enum Part {
    /// Bytes that are the same in both forms.
    Bytes(usize),
    /// An array of this many WCHARs.
    Text(usize),
}

use Part::{Bytes, Text};

/// Parts of the payloads that are converted; `None` for types that are not.
fn parts(kind: u32) -> Option<&'static [Part]> {
    Some(match kind {
        KMTQAITYPE_UMDRIVERNAME => &[Bytes(4), Text(260)],
        KMTQAITYPE_UMOPENGLINFO => &[Text(260), Bytes(8)],
        KMTQAITYPE_ADAPTERREGISTRYINFO | KMTQAITYPE_ADAPTERREGISTRYINFO_RENDER => {
            &[Text(260), Text(260), Text(260), Text(260)]
        }
        KMTQAITYPE_NODEMETADATA => &[Bytes(8), Text(32), Bytes(6)],
        KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID => &[Text(40)],
        KMTQAITYPE_DRIVER_DESCRIPTION | KMTQAITYPE_DRIVER_DESCRIPTION_RENDER => &[Text(4096)],
        _ => return None,
    })
}

fn size(parts: &[Part], unit: usize) -> usize {
    parts
        .iter()
        .map(|part| match part {
            Bytes(count) => *count,
            Text(units) => units * unit,
        })
        .sum()
}

/// D3DKMTQueryAdapterInfo.
pub(crate) unsafe fn query(arg: &mut D3DKMT_QUERYADAPTERINFO) -> Status {
    let size_of_caller = arg.PrivateDriverDataSize as usize;
    if arg.pPrivateDriverData == 0 {
        // SAFETY: an argument without an address.
        return unsafe { call(arg) };
    }
    if arg.Type == KMTQAITYPE_QUERYREGISTRY {
        return match size_of_caller {
            // SAFETY: the caller promises a payload of that size.
            registry::WIDE_MIN.. => registry::query(arg, unsafe { payload(arg) }),
            // SAFETY: the caller's own argument.
            registry::NARROW_MIN.. => unsafe { call(arg) },
            _ => Status::INVALID_PARAMETER,
        };
    }
    match parts(arg.Type) {
        Some(parts) if size_of_caller == size(parts, 4) => {
            // SAFETY: the caller promises a payload of that size.
            convert(arg, parts, unsafe { payload(arg) })
        }
        Some(parts) if size_of_caller != size(parts, 2) => Status::INVALID_PARAMETER,
        // SAFETY: the caller's own argument.
        _ => unsafe { call(arg) },
    }
}

/// The payload of the caller.
///
/// # Safety
///
/// The argument's address is not 0, its size is right, and nothing else uses that memory during
/// `'a`.
unsafe fn payload<'a>(arg: &D3DKMT_QUERYADAPTERINFO) -> &'a mut [u8] {
    let start = arg.pPrivateDriverData as usize as *mut u8;
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts_mut(start, arg.PrivateDriverDataSize as usize) }
}

/// Asks the kernel with another payload.
fn ask(arg: &D3DKMT_QUERYADAPTERINFO, payload: &mut [u8]) -> Status {
    let mut ask = D3DKMT_QUERYADAPTERINFO::zeroed();
    ask.hAdapter = arg.hAdapter;
    ask.Type = arg.Type;
    ask.pPrivateDriverData = payload.as_mut_ptr() as u64;
    ask.PrivateDriverDataSize = payload.len() as u32;
    // SAFETY: the address and the size are those of `payload`; no converted type holds addresses.
    unsafe { call(&mut ask) }
}

/// Memory of the heap for a payload; NO_MEMORY where there is none.
fn zeroed(size: usize) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(size);
    reserved.map_err(|_| Status::NO_MEMORY)?;
    bytes.resize(size, 0);
    Ok(bytes)
}

fn convert(arg: &D3DKMT_QUERYADAPTERINFO, parts: &[Part], wide: &mut [u8]) -> Status {
    let mut narrow = match zeroed(size(parts, 2)) {
        Ok(narrow) => narrow,
        Err(refused) => return refused,
    };
    narrow_parts(parts, wide, &mut narrow);
    let status = ask(arg, &mut narrow);
    if status.is_success() {
        widen_parts(parts, &narrow, wide);
    }
    status
}

fn narrow_parts(parts: &[Part], mut wide: &[u8], mut narrow: &mut [u8]) {
    for part in parts {
        let (from, to);
        match *part {
            Bytes(count) => {
                (from, wide) = wide.split_at(count);
                (to, narrow) = narrow.split_at_mut(count);
                to.copy_from_slice(from);
            }
            Text(units) => {
                (from, wide) = wide.split_at(units * 4);
                (to, narrow) = narrow.split_at_mut(units * 2);
                text::narrow(from, to);
            }
        }
    }
}

fn widen_parts(parts: &[Part], mut narrow: &[u8], mut wide: &mut [u8]) {
    for part in parts {
        let (from, to);
        match *part {
            Bytes(count) => {
                (from, narrow) = narrow.split_at(count);
                (to, wide) = wide.split_at_mut(count);
                to.copy_from_slice(from);
            }
            Text(units) => {
                (from, narrow) = narrow.split_at(units * 2);
                (to, wide) = wide.split_at_mut(units * 4);
                text::widen(from, to);
            }
        }
    }
}

mod registry;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_specification() {
        for (kind, narrow, wide) in [
            (1, 524, 1044),
            (2, 528, 1048),
            (8, 2080, 4160),
            (54, 2080, 4160),
            (25, 78, 142),
            (60, 80, 160),
            (65, 8192, 16384),
            (66, 8192, 16384),
        ] {
            let parts = parts(kind).unwrap();
            assert_eq!(
                (size(parts, 2), size(parts, 4)),
                (narrow, wide),
                "type {kind}"
            );
        }
        assert!((0..128).filter(|&kind| parts(kind).is_some()).count() == 8);
    }

    #[test]
    fn text_changes_width_and_bytes_stay() {
        let parts = &[Bytes(3), Text(4), Bytes(1)];
        let narrow = [1, 2, 3, b'a', 0, b'b', 0, 0, 0, 0xee, 0xee, 4];
        let mut wide = [0xcc; 20];
        widen_parts(parts, &narrow, &mut wide);
        let expected = [
            1, 2, 3, b'a', 0, 0, 0, b'b', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4,
        ];
        assert_eq!(wide, expected);
        let mut back = [0xcc; 12];
        narrow_parts(parts, &wide, &mut back);
        assert_eq!(back, [1, 2, 3, b'a', 0, b'b', 0, 0, 0, 0, 0, 4]);
    }
}
