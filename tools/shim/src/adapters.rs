// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding adapters by something other than their LUID.

use core::mem::size_of;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library::{call, call_reopening};
use crate::text::{Text, Unit};

/// As many adapters as the kernel ever returns.
const MAX_ADAPTERS: usize = 64;

/// Units in a GDI display name.
const DISPLAY_NAME_UNITS: usize = 32;

/// What display names begin with; the number of the display, from 1, follows.
const DISPLAY_PREFIX: &str = r"\\.\DISPLAY";

/// What device names may begin with; the unique GUID of the adapter follows.
const DEVICE_PREFIX: &str = r"\\?\";

/// D3DKMTEnumAdapters: the first 16 adapters.
pub(crate) unsafe fn enum_adapters(arg: &mut D3DKMT_ENUMADAPTERS) -> Status {
    let adapters = match graphics() {
        Ok(adapters) => adapters,
        Err(refused) => return refused,
    };
    let count = adapters.len().min(arg.Adapters.len());
    let (returned, closed) = adapters.split_at(count);
    arg.Adapters[..count].copy_from_slice(returned);
    arg.NumAdapters = count as u32;
    closed.iter().for_each(close);
    Status::SUCCESS
}

/// `D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME` for either width of WCHAR.
#[repr(C)]
pub(crate) struct DisplayName<U> {
    name: [U; DISPLAY_NAME_UNITS],
    adapter: u32,
    luid: LUID,
    source: u32,
}

const _: () = assert!(size_of::<DisplayName<u32>>() == 144);
const _: () =
    assert!(size_of::<DisplayName<u16>>() == size_of::<D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME>());

/// D3DKMTOpenAdapterFromGdiDisplayName: displays are numbered through all adapters. A name that is
/// not that of a display is UNSUCCESSFUL, whatever is wrong with it.
pub(crate) unsafe fn open_from_gdi_display_name<U: Unit>(arg: &mut DisplayName<U>) -> Status {
    let Some(mut left) = display_index(&Text::new(arg.name.iter().copied())) else {
        return Status::UNSUCCESSFUL;
    };
    let found = find(|adapter| {
        if left < adapter.NumOfSources {
            return Some(left);
        }
        left -= adapter.NumOfSources;
        None
    });
    found
        .and_then(|found| found.ok_or(Status::UNSUCCESSFUL))
        .and_then(|(luid, source)| Ok((open(luid)?, luid, source)))
        .map_or_else(
            |refused| refused,
            |(adapter, luid, source)| {
                (arg.adapter, arg.luid, arg.source) = (adapter, luid, source);
                Status::SUCCESS
            },
        )
}

/// D3DKMTOpenAdapterFromDeviceName: the name of an adapter is its unique GUID as text.
pub(crate) unsafe fn open_from_device_name<U: Unit>(
    arg: &mut D3DKMT_OPENADAPTERFROMDEVICENAME,
) -> Status {
    if arg.pDeviceName == 0 {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the caller promises a terminated text.
    let name = unsafe { Text::read::<U>(arg.pDeviceName) };
    let name = name.strip_prefix(DEVICE_PREFIX).unwrap_or(&name);
    let found = find(|adapter| {
        let guid = unique_guid(adapter.hAdapter)?;
        guid.eq_ignore_ascii_case(name).then_some(())
    });
    found
        .and_then(|found| found.ok_or(Status::INVALID_PARAMETER))
        .and_then(|(luid, ())| Ok((open(luid)?, luid)))
        .map_or_else(
            |refused| refused,
            |(adapter, luid)| {
                (arg.hAdapter, arg.AdapterLuid) = (adapter, luid);
                Status::SUCCESS
            },
        )
}

/// The number in a display name, from 0.
fn display_index(name: &str) -> Option<u32> {
    let (prefix, number) = name.split_at_checked(DISPLAY_PREFIX.len())?;
    if !prefix.eq_ignore_ascii_case(DISPLAY_PREFIX) || !number.starts_with(|c: char| c != '+') {
        return None;
    }
    number.parse::<u32>().ok()?.checked_sub(1)
}

/// The adapter for which `choose` returns something.
fn find<T>(
    mut choose: impl FnMut(&D3DKMT_ADAPTERINFO) -> Option<T>,
) -> Result<Option<(LUID, T)>, Status> {
    let adapters = everything()?;
    let found = adapters
        .iter()
        .find_map(|adapter| Some((adapter.AdapterLuid, choose(adapter)?)));
    adapters.iter().for_each(close);
    Ok(found)
}

/// All adapters, opened, in memory of the stack.
struct Adapters {
    all: [D3DKMT_ADAPTERINFO; MAX_ADAPTERS],
    count: usize,
}

impl core::ops::Deref for Adapters {
    type Target = [D3DKMT_ADAPTERINFO];

    fn deref(&self) -> &[D3DKMT_ADAPTERINFO] {
        &self.all[..self.count.min(MAX_ADAPTERS)]
    }
}

/// What D3DKMTEnumAdapters2 lists: not those that only compute.
fn graphics() -> Result<Adapters, Status> {
    enumerate(|count, infos| {
        let mut arg = D3DKMT_ENUMADAPTERS2::zeroed();
        (arg.NumAdapters, arg.pAdapters) = (count, infos);
        // SAFETY: the address is that of `count` live entries.
        (unsafe { call_reopening(&mut arg) }, arg.NumAdapters)
    })
}

/// All adapters, by D3DKMTEnumAdapters3.
fn everything() -> Result<Adapters, Status> {
    enumerate(|count, infos| {
        let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
        arg.Filter = D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly
            | D3DKMT_ENUMADAPTERS_FILTER_IncludeDisplayOnly;
        (arg.NumAdapters, arg.pAdapters) = (count, infos);
        // SAFETY: the address is that of `count` live entries.
        (unsafe { call_reopening(&mut arg) }, arg.NumAdapters)
    })
}

/// Runs a call that fills as many entries as it is told, at an address, and answers how many.
fn enumerate(list: impl FnOnce(u32, u64) -> (Status, u32)) -> Result<Adapters, Status> {
    let mut all = [D3DKMT_ADAPTERINFO::default(); MAX_ADAPTERS];
    let (status, count) = list(MAX_ADAPTERS as u32, all.as_mut_ptr() as u64);
    if !status.is_success() {
        return Err(status);
    }
    let count = count as usize;
    Ok(Adapters { all, count })
}

fn open(luid: LUID) -> Result<u32, Status> {
    let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
    arg.AdapterLuid = luid;
    // SAFETY: the struct holds no addresses.
    let status = unsafe { call(&mut arg) };
    status.is_success().then_some(arg.hAdapter).ok_or(status)
}

fn close(adapter: &D3DKMT_ADAPTERINFO) {
    let mut arg = D3DKMT_CLOSEADAPTER::zeroed();
    arg.hAdapter = adapter.hAdapter;
    // A handle that was just returned can be closed, so there is nothing to report.
    // SAFETY: the struct holds no addresses.
    let _ = unsafe { call(&mut arg) };
}

fn unique_guid(adapter: u32) -> Option<Text> {
    let mut payload = D3DKMT_QUERY_ADAPTER_UNIQUE_GUID {
        AdapterUniqueGUID: [0; 40],
    };
    let mut arg = D3DKMT_QUERYADAPTERINFO::zeroed();
    arg.hAdapter = adapter;
    arg.Type = KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID;
    arg.pPrivateDriverData = (&raw mut payload) as u64;
    arg.PrivateDriverDataSize = size_of_val(&payload) as u32;
    // SAFETY: the address and the size are those of `payload`.
    let status = unsafe { call(&mut arg) };
    status
        .is_success()
        .then(|| Text::new(payload.AdapterUniqueGUID.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names() {
        assert_eq!(display_index(r"\\.\DISPLAY1"), Some(0));
        assert_eq!(display_index(r"\\.\display12"), Some(11));
        for name in [
            "",
            "DISPLAY1",
            r"\\.\DISPLAY",
            r"\\.\DISPLAY0",
            r"\\.\DISPLAY+1",
        ] {
            assert_eq!(display_index(name), None, "{name}");
        }
    }
}
