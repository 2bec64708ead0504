// SPDX-License-Identifier: GPL-2.0

//! How queues end, with a double below them. Run by every load of the module in a kernel with
//! KUnit.

#[kernel::macros::kunit_tests(opendxg_sched_end)]
mod tests {
    use crate::{
        ddi::queue::{
            Fault,
            FaultKind, //
        },
        dxgk::{
            device::{
                DeviceState,
                StatePart, //
            },
            sched::test_scene::{
                comes,
                Blocker,
                Scene, //
            },
            test_client::{
                is,
                wait_for_good_end, //
            }, //
        },
        error::Status,
        kmd::fake::journal::Entry,
        logic::submission_order::Moment, //
    };
    use kernel::prelude::*;

    /// A store to what is not there.
    const FAULT: Fault = Fault {
        kind: FaultKind::PageFault {
            address: 0x1234_5000,
            write: true,
            level: 2,
        },
        packet: 0x1000,
        number: 1,
        flags: 1,
    };

    /// FEN-46: what runs comes to its end after its context, which the KMD keeps until then.
    #[test]
    fn running_work_ends_after_its_context() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (handle, queue) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        assert!(scene.submit(&queue).is_ok());
        assert!(scene
            .signal(&[&queue], &fence, 1, Moment::Completed)
            .is_ok());
        assert!(scene.destroy(handle));
        assert_eq!(scene.journal.count(Entry::DestroyContext), 0);
        assert!(is(scene.submit(&queue), Status::INVALID_PARAMETER));
        assert!(scene.engines.complete(queue.id, 1));
        assert!(comes(|| scene.journal.count(Entry::DestroyContext) == 1));
        assert_eq!(fence.value(), 1);
        assert_eq!(scene.queued(), 0);
        Ok(())
    }

    /// FEN-46: commands that never end are given some time, and stopped then. No signal behind them
    /// takes effect.
    #[test]
    fn endless_work_is_stopped() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (handle, queue) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        assert!(scene.submit(&queue).is_ok());
        assert!(scene
            .signal(&[&queue], &fence, 1, Moment::Completed)
            .is_ok());
        assert!(scene.destroy(handle));
        assert!(comes(|| scene.journal.count(Entry::DestroyContext) == 1));
        assert_eq!(fence.value(), 0);
        assert!(comes(|| scene.queued() == 0));
        Ok(())
    }

    /// GPU-12, GPU-68, FEN-104: a fault puts its device in error, and no other.
    #[test]
    fn a_fault_ends_its_device() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_other_device, other) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;
        let (_, neighbour) = scene.context(&parent)?;
        let (_, stranger) = scene.context(&other)?;
        let fence = scene.fence(&parent)?;
        let other_fence = scene.fence(&other)?;

        assert!(scene.submit(&queue).is_ok());
        assert!(scene
            .signal(&[&queue], &fence, 1, Moment::Completed)
            .is_ok());
        assert!(scene.wait(&neighbour, &other_fence, 1).is_ok());
        assert!(scene.wait(&stranger, &fence, 7).is_ok());
        assert!(scene.submit(&stranger).is_ok());
        assert!(scene.engines.fault(queue.id, &FAULT));
        // Who waits for what the device could signal goes on.
        assert!(comes(|| scene.engines.submitted(stranger.id) == 1));
        assert_eq!(fence.value(), u64::MAX);
        assert_eq!(other_fence.value(), 0);
        assert!(comes(|| scene.journal.count(Entry::DestroyContext) == 2));

        assert!(is(scene.submit(&queue), Status::DEVICE_REMOVED));
        assert!(is(scene.submit(&neighbour), Status::DEVICE_REMOVED));
        assert!(scene.context(&parent).is_err());
        assert!(matches!(
            parent.device.state(StatePart::Execution),
            Ok(DeviceState::DmaPageFault)
        ));
        assert!(matches!(
            parent.device.state(StatePart::PageFault),
            Ok(DeviceState::Faulted(own)) if own == FAULT
        ));
        assert!(matches!(
            other.device.state(StatePart::Execution),
            Ok(DeviceState::Active)
        ));
        assert!(scene.engines.complete(stranger.id, 1));
        assert!(comes(|| scene.queued() == 0));
        Ok(())
    }

    /// GPU-68: nothing of a queue begins after its fault, although the end of its device takes a
    /// while.
    #[test]
    fn nothing_begins_after_a_fault() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;
        let (_, other) = scene.context(&parent)?;
        let gate = scene.fence(&parent)?;
        let blocker = Blocker::new()?;

        // Keeps the adapter's worker busy.
        assert!(scene.submit(&other).is_ok());
        parent.device.process.work.cut()?.after(blocker.clone());

        assert!(scene.submit(&queue).is_ok());
        assert!(scene.wait(&queue, &gate, 1).is_ok());
        assert!(scene.submit(&queue).is_ok());
        assert!(gate.signal(1, false).is_ok());
        assert!(scene.engines.complete(other.id, 1));
        blocker.wait_for_call();
        assert!(scene.engines.complete(queue.id, 1));
        assert!(scene.engines.fault(queue.id, &FAULT));
        blocker.release();
        assert!(comes(|| scene.journal.count(Entry::DestroyContext) == 2));
        assert_eq!(scene.journal.count(Entry::SubmitCommand), 2);
        Ok(())
    }

    /// GPU-96, FEN-105: an adapter is removed while its queues are full.
    #[test]
    fn an_adapter_goes_with_full_queues() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, running) = scene.context(&parent)?;
        let (_, waiting) = scene.context(&parent)?;
        let (closing, ending) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        for queue in [&running, &ending] {
            assert!(scene.submit(queue).is_ok());
        }
        // The double has room for so many calls.
        for _ in 0..8 {
            assert!(scene.wait(&waiting, &fence, 1).is_ok());
            assert!(scene.submit(&running).is_ok());
        }
        assert!(scene.destroy(closing));
        scene.client.driver.remove_adapter(&scene.adapter);
        assert!(scene.adapter.queues.is_empty());
        assert_eq!(scene.queued(), 0);
        assert_eq!(scene.journal.count(Entry::DestroyContext), 3);
        assert_eq!(fence.value(), u64::MAX);
        assert!(is(scene.submit(&running), Status::DEVICE_REMOVED));

        let Scene {
            journal,
            adapter,
            client,
            ..
        } = scene;

        drop((parent, running, waiting, ending, fence));
        drop(client);
        drop(adapter);
        wait_for_good_end(&journal);
        assert!(journal.is_good_end());
        Ok(())
    }
}
