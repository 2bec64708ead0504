// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices and contexts: making, asking, destroying in every order.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{ExecutionState, Status};
use selftests::call::{refused, succeeds};
use selftests::memory::KERNEL_HALF;
use selftests::poison::{bytes, poisoned, POISON};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "ABI-6.2 CreateDevice writes its outputs, legacy buffers as 0",
            create_device,
        )
        .test(
            "ABI-6.12 CreateDevice accepts its flags and refuses all others",
            device_flags,
        )
        .test("ABI-6.2 pAdapter is never interpreted", kernel_pointer)
        .test(
            "GPU-5 ABI-6.2 contexts: every node, both kinds, engine affinity",
            contexts,
        )
        .test(
            "ABI-6.12 contexts accept their flags and refuse all others",
            context_flags,
        )
        .test(
            "ABI-6.2 contexts are destroyed only as what they are",
            context_kinds,
        )
        .test(
            "RES-31 destroying a device ends everything made on it",
            destroy_order,
        )
        .test(
            "RES-31 a shared fence outlives the device it was made on",
            fence_survives,
        )
        .test(
            "RES-6 closing an adapter leaves its devices usable",
            close_adapter_first,
        )
        .test(
            "GPU-99 GetDeviceState: a fresh device is active",
            device_state,
        )
}

fn create_device() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    let mut arg: D3DKMT_CREATEDEVICE = poisoned();
    arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
    arg.Flags = 0;
    succeeds(&raw, &mut arg)?;
    ensure!(
        arg.hDevice & 0xc000_003f == 0x4000_0000,
        "handle {:#x}",
        arg.hDevice
    );
    ensure_eq!((arg.pCommandBuffer, arg.CommandBufferSize), (0, 0));
    ensure_eq!((arg.pAllocationList, arg.AllocationListSize), (0, 0));
    ensure_eq!((arg.pPatchLocationList, arg.PatchLocationListSize), (0, 0));
    ensure_eq!(
        bytes(&arg)[4..8],
        POISON.to_ne_bytes(),
        "upper half of the adapter slot"
    );
    succeeds(
        &raw,
        &mut D3DKMT_DESTROYDEVICE {
            hDevice: arg.hDevice,
        },
    )?;
    refused(
        &raw,
        &mut D3DKMT_DESTROYDEVICE {
            hDevice: arg.hDevice,
        },
        Status::INVALID_PARAMETER,
    )
}

fn device_flags() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    for bit in 0..32 {
        let mut arg = D3DKMT_CREATEDEVICE::zeroed();
        arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
        arg.Flags = 1 << bit;
        if bit < 3 {
            succeeds(&raw, &mut arg)?;
            succeeds(
                &raw,
                &mut D3DKMT_DESTROYDEVICE {
                    hDevice: arg.hDevice,
                },
            )?;
        } else {
            refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        }
    }
    Ok(())
}

fn kernel_pointer() -> TestResult {
    let raw = fixture::raw()?;
    let mut arg = D3DKMT_CREATEDEVICE::zeroed();
    arg.__bindgen_anon_1.pAdapter = KERNEL_HALF;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}

/// A context for CreateContextVirtual.
fn context(device: u32, node: u32, affinity: u32) -> D3DKMT_CREATECONTEXTVIRTUAL {
    let mut arg: D3DKMT_CREATECONTEXTVIRTUAL = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
    (arg.hDevice, arg.NodeOrdinal, arg.EngineAffinity) = (device, node, affinity);
    arg.hContext = POISON;
    arg
}

/// A context for CreateHwContext.
fn hw_context(device: u32, node: u32, affinity: u32) -> D3DKMT_CREATEHWCONTEXT {
    let mut arg: D3DKMT_CREATEHWCONTEXT = D3DKMT_CREATEHWCONTEXT::zeroed();
    (arg.hDevice, arg.NodeOrdinal, arg.EngineAffinity) = (device, node, affinity);
    arg.hHwContext = POISON;
    arg
}

fn contexts() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let handle = device.handle().0;
    // GPU-1: 0 3D, 1 compute, 2 copy.
    for node in 0..3 {
        for affinity in [0, 1] {
            let mut arg = context(handle, node, affinity);
            succeeds(&raw, &mut arg)?;
            succeeds(
                &raw,
                &mut D3DKMT_DESTROYCONTEXT {
                    hContext: arg.hContext,
                },
            )?;
            let mut arg = hw_context(handle, node, affinity);
            succeeds(&raw, &mut arg)?;
            succeeds(
                &raw,
                &mut D3DKMT_DESTROYHWCONTEXT {
                    hHwContext: arg.hHwContext,
                },
            )?;
        }
    }
    for (node, affinity) in [
        (4, 0),
        (u32::MAX, 0),
        (0, 2),
        (0, 3),
        (0, 1 << 31),
        (0, u32::MAX),
    ] {
        refused(
            &raw,
            &mut context(handle, node, affinity),
            Status::INVALID_PARAMETER,
        )?;
        refused(
            &raw,
            &mut hw_context(handle, node, affinity),
            Status::INVALID_PARAMETER,
        )?;
    }
    Ok(())
}

fn context_flags() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    for bit in 0..32 {
        let mut arg = context(device.handle().0, 0, 0);
        arg.Flags = 1 << bit;
        if bit < 6 {
            succeeds(&raw, &mut arg)?;
            succeeds(
                &raw,
                &mut D3DKMT_DESTROYCONTEXT {
                    hContext: arg.hContext,
                },
            )?;
        } else {
            refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        }
        let mut arg = hw_context(device.handle().0, 0, 0);
        arg.Flags = 1 << bit;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn context_kinds() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let context = device.create_context(0)?;
    let hw_context = device.create_hw_context(0)?;
    let fence = device.create_fence(0)?;
    let all = [
        device.handle().0,
        device.adapter().handle().0,
        context.handle().0,
        hw_context.handle().0,
        fence.handle().0,
    ];
    let others = |own: u32| all.into_iter().filter(move |&handle| handle != own);
    let refuse = Status::INVALID_PARAMETER;
    for handle in others(context.handle().0) {
        refused(
            &raw,
            &mut D3DKMT_DESTROYCONTEXT { hContext: handle },
            refuse,
        )?;
    }
    for handle in others(hw_context.handle().0) {
        refused(
            &raw,
            &mut D3DKMT_DESTROYHWCONTEXT { hHwContext: handle },
            refuse,
        )?;
    }
    for handle in others(device.handle().0) {
        refused(&raw, &mut D3DKMT_DESTROYDEVICE { hDevice: handle }, refuse)?;
    }
    for handle in others(fence.handle().0) {
        let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
            hSyncObject: handle,
        };
        refused(&raw, &mut arg, refuse)?;
    }
    context.destroy()?;
    hw_context.destroy()?;
    Ok(())
}

fn destroy_order() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let handle = device.handle().0;
    let watch = selftests::leak::Watch::start()?;
    let doomed = device.adapter().create_device()?;
    let context = doomed.create_context(0)?.into_raw().0;
    let fence = doomed.create_fence(3)?.into_raw().0;
    let hw_context = doomed.create_hw_context(0)?.into_raw().0;
    // Destroyed behind the back of its owner, which then finds nothing left to destroy.
    succeeds(
        &raw,
        &mut D3DKMT_DESTROYDEVICE {
            hDevice: doomed.handle().0,
        },
    )?;
    let refuse = Status::INVALID_PARAMETER;
    refused(
        &raw,
        &mut D3DKMT_DESTROYCONTEXT { hContext: context },
        refuse,
    )?;
    refused(
        &raw,
        &mut D3DKMT_DESTROYHWCONTEXT {
            hHwContext: hw_context,
        },
        refuse,
    )?;
    let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT { hSyncObject: fence };
    refused(&raw, &mut arg, refuse)?;
    let mut arg = D3DKMT_GETDEVICESTATE::zeroed();
    (arg.hDevice, arg.StateType) = (doomed.handle().0, D3DKMT_DEVICESTATE_EXECUTION);
    refused(&raw, &mut arg, refuse)?;
    watch.unchanged()?;
    // The neighbour is alive.
    ensure_eq!(device.handle().0, handle);
    ensure_eq!(device.execution_state()?, ExecutionState::Active);
    drop(doomed);
    Ok(())
}

fn fence_survives() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let doomed = device.adapter().create_device()?;
    let fence = doomed.create_shareable_fence(5)?;
    let shared = fence.share(opendxg::Access::ALL)?;
    fence.into_raw();
    succeeds(
        &raw,
        &mut D3DKMT_DESTROYDEVICE {
            hDevice: doomed.handle().0,
        },
    )?;
    let opened = device.open_fence(&shared, opendxg::SyncFlags::empty())?;
    ensure_eq!(opened.value(), 5);
    opened.signal(6)?;
    ensure_eq!(opened.value(), 6);
    Ok(())
}

fn close_adapter_first() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let adapter = device.adapter().handle().0;
    succeeds(&raw, &mut D3DKMT_CLOSEADAPTER { hAdapter: adapter })?;
    ensure_eq!(device.execution_state()?, ExecutionState::Active);
    let fence = device.create_fence(1)?;
    fence.signal(2)?;
    ensure_eq!(fence.value(), 2);
    let mut arg = D3DKMT_CREATEDEVICE::zeroed();
    arg.__bindgen_anon_1.hAdapter = adapter;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}

fn device_state() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let ask = |state: u32| {
        let mut arg: D3DKMT_GETDEVICESTATE = poisoned();
        (arg.hDevice, arg.StateType) = (device.handle().0, state);
        arg
    };
    let mut arg = ask(D3DKMT_DEVICESTATE_EXECUTION);
    succeeds(&raw, &mut arg)?;
    ensure_eq!(bytes(&arg)[8..12], 1u32.to_ne_bytes(), "ACTIVE");
    ensure_eq!(
        bytes(&arg)[12..16],
        POISON.to_ne_bytes(),
        "outside of the arm"
    );
    let mut arg = ask(D3DKMT_DEVICESTATE_RESET);
    succeeds(&raw, &mut arg)?;
    ensure_eq!(bytes(&arg)[8..12], [0; 4], "not reset");
    let mut arg = ask(D3DKMT_DEVICESTATE_PAGE_FAULT);
    succeeds(&raw, &mut arg)?;
    ensure_eq!(bytes(&arg)[8..40], [0; 32], "no page fault");
    for unknown in [0, 7, POISON, u32::MAX] {
        refused(&raw, &mut ask(unknown), Status::INVALID_PARAMETER)?;
    }
    let mut arg = ask(D3DKMT_DEVICESTATE_EXECUTION);
    arg.hDevice = device.adapter().handle().0;
    refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}
