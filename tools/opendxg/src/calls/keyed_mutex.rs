// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of keyed mutexes that take addresses.

use super::{buffer, call_with_addresses, input};
use crate::handle::LocalHandle;
use crate::node::Node;
use crate::raw::Argument;
use crate::uapi::*;
use crate::{Result, Status};

/// CreateKeyedMutex2; returns the local and the global handle.
pub(crate) fn create(node: &Node, key: u64, data: &[u8], flags: u32) -> Result<(u32, u32)> {
    let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
    arg.InitialValue = key;
    arg.Flags = flags;
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = input(data)?;
    // SAFETY: the address and the size are those of the borrowed slice, only read.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok((arg.hKeyedMutex, arg.hSharedHandle))
}

/// OpenKeyedMutex2; returns the local handle.
pub(crate) fn open(node: &Node, global: u32, data: &[u8]) -> Result<u32> {
    let mut arg = D3DKMT_OPENKEYEDMUTEX2::zeroed();
    arg.hSharedHandle = global;
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = input(data)?;
    // SAFETY: the address and the size are those of the borrowed slice, only read.
    unsafe { call_with_addresses(node, &mut arg) }?;
    Ok(arg.hKeyedMutex)
}

/// AcquireKeyedMutex; returns the fence value.
pub(crate) fn acquire(
    node: &Node,
    mutex: LocalHandle,
    key: u64,
    timeout: Option<i64>,
) -> Result<(Status, u64)> {
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
    arg.hKeyedMutex = mutex.0;
    arg.Key = key;
    arg.pTimeout = address(timeout.as_ref());
    // SAFETY: the address is 0 or that of the live `timeout`, only read.
    let status = unsafe { call_with_addresses(node, &mut arg) }?;
    Ok((status, arg.FenceValue))
}

/// AcquireKeyedMutex2; returns the fence value.
pub(crate) fn acquire2(
    node: &Node,
    mutex: LocalHandle,
    key: u64,
    timeout: Option<i64>,
    data: &mut [u8],
) -> Result<(Status, u64)> {
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
    arg.hKeyedMutex = mutex.0;
    arg.Key = key;
    arg.pTimeout = address(timeout.as_ref());
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = buffer(data)?;
    // SAFETY: the addresses are 0, that of the live `timeout`, only read, and that of the borrowed
    // slice with its size.
    let status = unsafe { call_with_addresses(node, &mut arg) }?;
    Ok((status, arg.FenceValue))
}

/// ReleaseKeyedMutex2.
pub(crate) fn release2(
    node: &Node,
    mutex: LocalHandle,
    (key, fence_value): (u64, u64),
    data: &[u8],
) -> Result<Status> {
    let mut arg = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
    arg.hKeyedMutex = mutex.0;
    arg.Key = key;
    arg.FenceValue = fence_value;
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = input(data)?;
    // SAFETY: the address and the size are those of the borrowed slice, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// The address of an optional time limit, 0 for none.
fn address(timeout: Option<&i64>) -> u64 {
    timeout.map_or(0, |timeout| core::ptr::from_ref(timeout) as u64)
}
