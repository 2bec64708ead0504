// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first versions of the synchronisation functions, served by the second ones.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library::call;

/// D3DKMTCreateSynchronizationObject: mutexes and semaphores only.
pub(crate) unsafe fn create(arg: &mut D3DKMT_CREATESYNCHRONIZATIONOBJECT) -> Status {
    let mut create = match translate(arg) {
        Ok(create) => create,
        Err(refused) => return refused,
    };
    // SAFETY: the struct holds no addresses.
    let status = unsafe { call(&mut create) };
    if status.is_success() {
        arg.hSyncObject = create.hSyncObject;
    }
    status
}

fn translate(
    arg: &D3DKMT_CREATESYNCHRONIZATIONOBJECT,
) -> Result<D3DKMT_CREATESYNCHRONIZATIONOBJECT2, Status> {
    let mut create = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    create.hDevice = arg.hDevice;
    create.Info.Type = arg.Info.Type;
    let (from, to) = (
        &arg.Info.__bindgen_anon_1,
        &mut create.Info.__bindgen_anon_1,
    );
    match arg.Info.Type {
        D3DDDI_SYNCHRONIZATION_MUTEX => {
            // SAFETY: the arm of this type; all arms are integers.
            let from = unsafe { from.SynchronizationMutex };
            to.SynchronizationMutex.InitialState = from.InitialState;
        }
        D3DDDI_SEMAPHORE => {
            // SAFETY: the arm of this type; all arms are integers.
            let from = unsafe { from.Semaphore };
            to.Semaphore.MaxCount = from.MaxCount;
            to.Semaphore.InitialCount = from.InitialCount;
        }
        _ => return Err(Status::INVALID_PARAMETER),
    }
    Ok(create)
}

/// D3DKMTWaitForSynchronizationObject.
pub(crate) unsafe fn wait(arg: &mut D3DKMT_WAITFORSYNCHRONIZATIONOBJECT) -> Status {
    let mut wait = D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2::zeroed();
    wait.hContext = arg.hContext;
    wait.ObjectCount = arg.ObjectCount;
    wait.ObjectHandleArray = arg.ObjectHandleArray;
    // SAFETY: the struct holds no addresses.
    unsafe { call(&mut wait) }
}

/// D3DKMTSignalSynchronizationObject.
pub(crate) unsafe fn signal(arg: &mut D3DKMT_SIGNALSYNCHRONIZATIONOBJECT) -> Status {
    let mut signal = D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2::zeroed();
    signal.hContext = arg.hContext;
    signal.ObjectCount = arg.ObjectCount;
    signal.ObjectHandleArray = arg.ObjectHandleArray;
    signal.Flags = arg.Flags;
    // SAFETY: the struct holds no addresses; `EnqueueCpuEvent` finds event 0.
    unsafe { call(&mut signal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(kind: u32) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT {
        let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT {
            hDevice: 0x4000_0040,
            ..Default::default()
        };
        arg.Info.Type = kind;
        arg
    }

    #[test]
    fn a_semaphore_keeps_both_counts() {
        let mut arg = argument(D3DDDI_SEMAPHORE);
        arg.Info.__bindgen_anon_1.Semaphore.MaxCount = 9;
        arg.Info.__bindgen_anon_1.Semaphore.InitialCount = 4;
        let create = translate(&arg).unwrap();
        assert_eq!(
            (create.hDevice, create.Info.Type),
            (0x4000_0040, D3DDDI_SEMAPHORE)
        );
        // SAFETY: the arm of this type.
        let semaphore = unsafe { create.Info.__bindgen_anon_1.Semaphore };
        assert_eq!((semaphore.MaxCount, semaphore.InitialCount), (9, 4));
    }

    #[test]
    fn a_mutex_keeps_its_state() {
        let mut arg = argument(D3DDDI_SYNCHRONIZATION_MUTEX);
        arg.Info.__bindgen_anon_1.SynchronizationMutex.InitialState = 1;
        let create = translate(&arg).unwrap();
        // SAFETY: the arm of this type.
        let mutex = unsafe { create.Info.__bindgen_anon_1.SynchronizationMutex };
        assert_eq!(mutex.InitialState, 1);
    }

    #[test]
    fn other_types_are_refused() {
        for kind in [
            0,
            D3DDDI_FENCE,
            D3DDDI_CPU_NOTIFICATION,
            D3DDDI_MONITORED_FENCE,
            u32::MAX,
        ] {
            assert_eq!(
                translate(&argument(kind)).err(),
                Some(Status::INVALID_PARAMETER),
                "{kind}"
            );
        }
    }
}
