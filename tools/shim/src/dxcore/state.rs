// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapter states. The kernel-mode driver decides which ones there are: a state is supported when
//! the call behind it succeeds.
//!
//! Memory usage and running times would need D3DKMTQueryStatistics, which the module does not
//! have: they are known and not supported.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use super::abi::{state, ProcessSet};
use super::adapter::Adapter;
use super::com::HResult;
use super::kmt::{OpenAdapter, Plain};

/// Bytes of the largest answer.
const MAX_ANSWER: usize = 32;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    bytes: [u8; MAX_ANSWER],
    length: usize,
}

impl Answer {
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn of(value: impl IntoIterator<Item = u8>) -> Self {
        let (mut bytes, mut length) = ([0; MAX_ANSWER], 0);
        for (slot, byte) in bytes.iter_mut().zip(value) {
            *slot = byte;
            length += 1;
        }
        Self { bytes, length }
    }

    fn wide<const N: usize>(values: [u64; N]) -> Self {
        Self::of(values.into_iter().flat_map(u64::to_ne_bytes))
    }

    fn words<const N: usize>(values: [u32; N]) -> Self {
        Self::of(values.into_iter().flat_map(u32::to_ne_bytes))
    }
}

/// Bytes of the input and the answer of a query; `None` if the header has no such state.
fn shape(state: u32) -> Option<(usize, usize)> {
    Some(match state {
        state::DRIVER_UPDATE_IN_PROGRESS => (0, 1),
        state::MEMORY_BUDGET => (8, 32),
        state::MEMORY_USAGE => (8, 16),
        state::MEMORY_USAGE_BY_PROCESS => (12, 24),
        state::ENGINE_RUNNING_TIME => (8, 8),
        state::ENGINE_RUNNING_TIME_BY_PROCESS => (12, 16),
        state::TEMPERATURE => (4, 4),
        state::PROCESS_COUNT => (0, 4),
        state::PROCESS_SET => (size_of::<ProcessSet>(), 8),
        state::ENGINE_FREQUENCY => (8, 24),
        state::MEMORY_FREQUENCY => (4, 24),
        _ => return None,
    })
}

/// The input: two numbers, or the place for processes.
#[derive(Clone, Copy)]
struct Input {
    first: u32,
    second: u32,
    processes: *mut u32,
}

impl Input {
    /// The first physical adapter, its first engine, local memory, no place for processes.
    const DEFAULT: Self = Self {
        first: 0,
        second: 0,
        processes: core::ptr::null_mut(),
    };

    /// Reads the input of a state.
    ///
    /// # Safety
    ///
    /// `input` is NULL or has `size` bytes.
    unsafe fn read(
        state: u32,
        needed: usize,
        (size, input): (usize, *const u8),
    ) -> Result<Self, HResult> {
        if needed == 0 {
            return Ok(Self::DEFAULT);
        }
        if input.is_null() {
            return Err(HResult::E_POINTER);
        }
        if size < needed {
            return Err(HResult::E_INVALIDARG);
        }
        if state == state::PROCESS_SET {
            // SAFETY: not null and large enough.
            let set = unsafe { input.cast::<ProcessSet>().read_unaligned() };
            return Ok(Self {
                first: set.size,
                second: 0,
                processes: set.processes,
            });
        }
        let word = |index: usize| {
            // SAFETY: not null, and `needed` covers the word.
            unsafe { input.cast::<u32>().add(index).read_unaligned() }
        };
        Ok(Self {
            first: word(0),
            second: if needed >= 8 { word(1) } else { 0 },
            processes: core::ptr::null_mut(),
        })
    }
}

/// What a program hears when the driver refuses.
fn refused(status: Status) -> HResult {
    match status {
        Status::INVALID_PARAMETER => HResult::E_INVALIDARG,
        Status::NOT_SUPPORTED | Status::NOT_IMPLEMENTED => HResult::DXGI_ERROR_UNSUPPORTED,
        Status::DEVICE_REMOVED => HResult::DXGI_ERROR_DEVICE_REMOVED,
        Status::NO_MEMORY => HResult::E_OUTOFMEMORY,
        _ => HResult::E_FAIL,
    }
}

/// QueryState.
///
/// # Safety
///
/// Both buffers are NULL or have their sizes, and what the input points to has the size the input
/// says.
pub(super) unsafe fn query(
    adapter: &Adapter,
    state: u32,
    input: (usize, *const u8),
    (size, buffer): (usize, *mut u8),
) -> Result<Answer, HResult> {
    let (needed, answered) = shape(state).ok_or(HResult::DXGI_ERROR_INVALID_CALL)?;
    if adapter.is_gone() {
        return Err(HResult::DXGI_ERROR_DEVICE_REMOVED);
    }
    if buffer.is_null() {
        return Err(HResult::E_POINTER);
    }
    if size < answered {
        return Err(HResult::E_INVALIDARG);
    }
    // SAFETY: the caller's promise.
    let input = unsafe { Input::read(state, needed, input) }?;
    // SAFETY: as above.
    adapter.open(|adapter| unsafe { ask(adapter, state, input) })
}

/// Whether QueryState has an answer for the first physical adapter.
pub(super) fn is_query_supported(adapter: &Adapter, state: u32) -> bool {
    // SAFETY: the input points to nothing.
    let answer = adapter.open(|adapter| unsafe { ask(adapter, state, Input::DEFAULT) });
    answer.is_ok()
}

/// Asks the driver.
///
/// # Safety
///
/// What the input points to has the size the input says.
unsafe fn ask(adapter: &OpenAdapter<'_>, state: u32, input: Input) -> Result<Answer, HResult> {
    match state {
        state::DRIVER_UPDATE_IN_PROGRESS => {
            let mut updating = 0u32;
            adapter
                .ask(KMTQAITYPE_CHECKDRIVERUPDATESTATUS_RENDER, &mut updating)
                .map_err(refused)?;
            Ok(Answer::of([u8::from(updating != 0)]))
        }
        state::MEMORY_BUDGET => budget(adapter, input.first, input.second).map(Answer::wide),
        state::TEMPERATURE => {
            let data = adapter_data(adapter, input.first)?;
            // Tenths of a degree.
            let celsius = data.Temperature as f32 / 10.0;
            Ok(Answer::of(celsius.to_ne_bytes()))
        }
        state::MEMORY_FREQUENCY => {
            let data = adapter_data(adapter, input.first)?;
            Ok(Answer::wide([
                data.MemoryFrequency,
                data.MaxMemoryFrequency,
                data.MaxMemoryFrequencyOC,
            ]))
        }
        state::ENGINE_FREQUENCY => {
            let mut data = D3DKMT_NODE_PERFDATA::zeroed();
            data.PhysicalAdapterIndex = input.first;
            data.NodeOrdinal = input.second;
            adapter
                .ask(KMTQAITYPE_NODEPERFDATA, &mut data)
                .map_err(refused)?;
            Ok(Answer::wide([
                data.Frequency,
                data.MaxFrequency,
                data.MaxFrequencyOC,
            ]))
        }
        state::PROCESS_COUNT => {
            // SAFETY: no place for processes.
            let (_, total) = unsafe { processes(adapter, Input::DEFAULT) }?;
            Ok(Answer::words([total]))
        }
        state::PROCESS_SET => {
            // SAFETY: the caller's promise.
            let (written, total) = unsafe { processes(adapter, input) }?;
            Ok(Answer::words([written, total]))
        }
        _ => Err(HResult::DXGI_ERROR_UNSUPPORTED),
    }
}

fn adapter_data(
    adapter: &OpenAdapter<'_>,
    physical_adapter: u32,
) -> Result<D3DKMT_ADAPTER_PERFDATA, HResult> {
    let mut data = D3DKMT_ADAPTER_PERFDATA::zeroed();
    data.PhysicalAdapterIndex = physical_adapter;
    adapter
        .ask(KMTQAITYPE_ADAPTERPERFDATA, &mut data)
        .map_err(refused)?;
    Ok(data)
}

/// `DXCoreAdapterMemoryBudget`: budget, usage, available for reservation, reservation.
fn budget(
    adapter: &OpenAdapter<'_>,
    physical_adapter: u32,
    group: u32,
) -> Result<[u64; 4], HResult> {
    let mut arg = D3DKMT_QUERYVIDEOMEMORYINFO::zeroed();
    arg.hAdapter = adapter.handle();
    arg.PhysicalAdapterIndex = physical_adapter;
    arg.MemorySegmentGroup = group;
    // SAFETY: the struct holds no addresses.
    unsafe { adapter.call(&mut arg) }.map_err(refused)?;
    Ok([
        arg.Budget,
        arg.CurrentUsage,
        arg.AvailableForReservation,
        arg.CurrentReservation,
    ])
}

/// The budgets of local and other memory, for those who want to hear of changes.
pub(super) fn budgets(adapter: &Adapter) -> Option<[u64; 2]> {
    let both = adapter.open(|adapter| {
        let [local, ..] = budget(adapter, 0, 0)?;
        let [other, ..] = budget(adapter, 0, 1)?;
        Ok([local, other])
    });
    both.ok()
}

/// How many processes use the adapter: as many as were written, and all.
///
/// # Safety
///
/// The place for processes is NULL or has the size the input says.
unsafe fn processes(adapter: &OpenAdapter<'_>, input: Input) -> Result<(u32, u32), HResult> {
    let mut arg = d3dkmt_enumprocesses::zeroed();
    let luid = adapter.luid();
    (arg.adapter_luid.LowPart, arg.adapter_luid.HighPart) = (luid.low, luid.high);
    arg.buffer = input.processes as u64;
    arg.buffer_count = if input.processes.is_null() {
        0
    } else {
        input.first.into()
    };
    // SAFETY: the caller's promise.
    match unsafe { adapter.call(&mut arg) } {
        Ok(()) => Ok((arg.buffer_count as u32, arg.buffer_count as u32)),
        Err(Status::BUFFER_TOO_SMALL) => Ok((0, arg.buffer_count as u32)),
        Err(status) => Err(refused(status)),
    }
}

/// SetState: the reservation of memory is the one state that can be set.
///
/// # Safety
///
/// Both buffers are NULL or have their sizes.
pub(super) unsafe fn set(
    adapter: &Adapter,
    state: u32,
    input: (usize, *const u8),
    (size, data): (usize, *const u8),
) -> Result<(), HResult> {
    let (needed, _) = shape(state).ok_or(HResult::DXGI_ERROR_INVALID_CALL)?;
    if state != state::MEMORY_BUDGET {
        return Err(HResult::DXGI_ERROR_UNSUPPORTED);
    }
    if adapter.is_gone() {
        return Err(HResult::DXGI_ERROR_DEVICE_REMOVED);
    }
    if data.is_null() {
        return Err(HResult::E_POINTER);
    }
    if size < size_of::<u64>() {
        return Err(HResult::E_INVALIDARG);
    }
    // SAFETY: the caller's promise.
    let input = unsafe { Input::read(state, needed, input) }?;
    let mut arg = D3DKMT_CHANGEVIDEOMEMORYRESERVATION::zeroed();
    // SAFETY: not null and large enough.
    arg.Reservation = unsafe { data.cast::<u64>().read_unaligned() };
    arg.PhysicalAdapterIndex = input.first;
    arg.MemorySegmentGroup = input.second;
    adapter.open(|adapter| {
        arg.hAdapter = adapter.handle();
        // SAFETY: the struct holds no addresses.
        unsafe { adapter.call(&mut arg) }.map_err(refused)
    })
}

/// Whether SetState can succeed: whether the driver takes the reservation that there is.
pub(super) fn is_set_supported(adapter: &Adapter, state: u32) -> bool {
    if state != state::MEMORY_BUDGET {
        return false;
    }
    let again = adapter.open(|adapter| {
        let [.., reservation] = budget(adapter, 0, 0)?;
        let mut arg = D3DKMT_CHANGEVIDEOMEMORYRESERVATION::zeroed();
        arg.hAdapter = adapter.handle();
        arg.Reservation = reservation;
        // SAFETY: the struct holds no addresses.
        unsafe { adapter.call(&mut arg) }.map_err(refused)
    });
    again.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_checked_before_they_are_read() {
        let read = |state, bytes: Option<&[u8]>| {
            let (needed, _) = shape(state).unwrap();
            let input = bytes.map_or((99, core::ptr::null()), |it| (it.len(), it.as_ptr()));
            // SAFETY: NULL, or a live slice.
            unsafe { Input::read(state, needed, input) }.map(|input| (input.first, input.second))
        };
        let two: Vec<u8> = [5u32, 6].into_iter().flat_map(u32::to_ne_bytes).collect();
        let budget = state::MEMORY_BUDGET;
        assert_eq!(read(budget, Some(&two)), Ok((5, 6)));
        assert_eq!(read(budget, Some(&two[..7])), Err(HResult::E_INVALIDARG));
        assert_eq!(read(budget, None), Err(HResult::E_POINTER));
        assert_eq!(read(state::TEMPERATURE, Some(&two[..4])), Ok((5, 0)));
        assert_eq!(read(state::PROCESS_COUNT, None), Ok((0, 0)));
        let set = [9u64.to_ne_bytes(), 0u64.to_ne_bytes()].concat();
        assert_eq!(read(state::PROCESS_SET, Some(&set)), Ok((9, 0)));
        assert!(shape(11).is_none());
    }

    #[test]
    fn statuses() {
        for (status, result) in [
            (Status::INVALID_PARAMETER, HResult::E_INVALIDARG),
            (Status::NOT_SUPPORTED, HResult::DXGI_ERROR_UNSUPPORTED),
            (Status::DEVICE_REMOVED, HResult::DXGI_ERROR_DEVICE_REMOVED),
            (Status::NO_MEMORY, HResult::E_OUTOFMEMORY),
            (Status::UNSUCCESSFUL, HResult::E_FAIL),
        ] {
            assert_eq!(refused(status), result);
        }
    }
}
