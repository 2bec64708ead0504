// SPDX-License-Identifier: GPL-2.0

//! Timeout detection and recovery with a double below it: which entries are called, and in which
//! order. Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_recovery)]
mod tests {
    use crate::{
        dxgk::{
            device::{
                DeviceState,
                StatePart, //
            },
            handle::Parent,
            sched::test_scene::{
                comes,
                Scene, //
            },
            test_client::is,
        },
        error::Status,
        kmd::fake::{
            engines::{
                Engines,
                How, //
            },
            journal::Entry, //
        },
        logic::submission_order::Moment, //
    };
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    fn scene() -> Result<(Arc<Engines>, Scene)> {
        let engines = Arc::new(Engines::new().ok_or(ENOMEM)?, GFP_KERNEL)?;
        let scene = Scene::hanging(&engines)?;

        Ok((engines, scene))
    }

    fn state(parent: &Parent) -> Option<DeviceState> {
        parent.device.state(StatePart::Execution).ok()
    }

    /// The entries of a recovery, in their order.
    fn recovery(scene: &Scene) -> Result<KVec<u32>> {
        const WANTED: [Entry; 6] = [
            Entry::PreemptCommand,
            Entry::CollectDbgInfo,
            Entry::ResetHwEngine,
            Entry::ResumeHwEngine,
            Entry::ResetFromTimeout,
            Entry::RestartFromTimeout,
        ];
        let mut seen = KVec::new();

        for entry in scene.journal.entries() {
            // CAST: the number of the variant.
            if WANTED.iter().any(|wanted| *wanted as u32 == entry) {
                seen.push(entry, GFP_KERNEL)?;
            }
        }
        Ok(seen)
    }

    fn is_recovery(scene: &Scene, expected: &[Entry]) -> bool {
        let Ok(seen) = recovery(scene) else {
            return false;
        };
        let expected = expected.iter().map(|entry| *entry as u32);

        seen.iter().copied().eq(expected)
    }

    /// GPU-92, GPU-95: an engine that does not yield is reset, and the device that the KMD names is
    /// in error. Here that is none, and the queue of another one goes on.
    #[test]
    fn an_engine_that_does_not_yield_is_reset() -> Result {
        let (engines, scene) = scene()?;
        let (_device, parent) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;

        engines.set(How {
            hang: true,
            ..How::default()
        });
        assert!(scene.submit(&queue).is_ok());
        assert!(comes(|| is_recovery(
            &scene,
            &[
                Entry::PreemptCommand,
                Entry::CollectDbgInfo,
                Entry::ResetHwEngine,
                Entry::ResumeHwEngine,
            ]
        )));
        assert!(matches!(state(&parent), Some(DeviceState::Active)));
        assert!(scene.engines.complete(queue.id, 1));
        Ok(())
    }

    /// GPU-92, GPU-95: work that is lost, on an engine that yields. Its device hangs, its fences
    /// are signaled, and another device goes on.
    #[test]
    fn a_queue_that_hangs_ends_its_device() -> Result {
        let (engines, scene) = scene()?;
        let (_device, parent) = scene.device()?;
        let (_other_device, other) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;
        let (_, stranger) = scene.context(&other)?;
        let fence = scene.fence(&parent)?;

        engines.set(How {
            is_idle: true,
            ..How::default()
        });
        assert!(scene.submit(&queue).is_ok());
        assert!(scene
            .signal(&[&queue], &fence, 1, Moment::Completed)
            .is_ok());
        assert!(comes(|| fence.value() == u64::MAX));
        assert!(matches!(state(&parent), Some(DeviceState::Hung)));
        assert!(matches!(state(&other), Some(DeviceState::Active)));
        assert!(is(scene.submit(&queue), Status::DEVICE_REMOVED));
        assert!(scene.submit(&stranger).is_ok());
        assert!(scene.engines.complete(stranger.id, 1));
        assert!(comes(|| scene.queued() == 0));
        assert_eq!(scene.journal.count(Entry::ResetHwEngine), 1);
        Ok(())
    }

    /// GPU-93: work that goes on is not even asked for.
    #[test]
    fn work_that_goes_on_is_left_alone() -> Result {
        let (_engines, scene) = scene()?;
        let (_device, parent) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;

        scene.adapter.recovery.set_delay_ms(60_000)?;
        for number in 1..=8 {
            assert!(scene.submit(&queue).is_ok());
            // The worker may have the turn, after the completion before.
            assert!(comes(|| scene.engines.submitted(queue.id) == number));
            assert!(scene.engines.complete(queue.id, number));
        }
        assert!(comes(|| scene.queued() == 0));
        assert!(is_recovery(&scene, &[]));
        Ok(())
    }

    /// GPU-96: the engine is not reset, and so the adapter is. All devices are in error, and new
    /// ones work.
    #[test]
    fn the_adapter_is_reset_if_its_engine_is_not() -> Result {
        let (engines, scene) = scene()?;
        let (_device, parent) = scene.device()?;
        let (_other_device, other) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;

        engines.set(How {
            hang: true,
            engine_reset_fails: true,
            ..How::default()
        });
        assert!(scene.submit(&queue).is_ok());
        assert!(comes(|| is_recovery(
            &scene,
            &[
                Entry::PreemptCommand,
                Entry::CollectDbgInfo,
                Entry::ResetHwEngine,
                Entry::ResetFromTimeout,
                Entry::RestartFromTimeout,
            ]
        )));
        assert!(comes(|| scene.queued() == 0));
        for device in [&parent, &other] {
            assert!(comes(|| matches!(state(device), Some(DeviceState::Reset))));
        }
        engines.set(How::default());

        let (_new_device, new) = scene.device()?;
        let (_, queue) = scene.context(&new)?;

        assert!(scene.submit(&queue).is_ok());
        assert!(scene.engines.complete(queue.id, 1));
        Ok(())
    }

    /// GPU-96: nothing helps, so the adapter is stopped. The machine goes on.
    #[test]
    fn an_adapter_that_does_not_recover_is_stopped() -> Result {
        for (adapter_reset_fails, restart_fails) in [(true, false), (false, true)] {
            let (engines, scene) = scene()?;
            let (_device, parent) = scene.device()?;
            let (_, queue) = scene.context(&parent)?;
            let fence = scene.fence(&parent)?;

            engines.set(How {
                hang: true,
                engine_reset_fails: true,
                adapter_reset_fails,
                restart_fails,
                is_idle: false,
            });
            assert!(scene.submit(&queue).is_ok());
            assert!(scene
                .signal(&[&queue], &fence, 1, Moment::Completed)
                .is_ok());
            assert!(comes(|| fence.value() == u64::MAX));
            assert!(comes(|| scene.queued() == 0));
            assert!(matches!(state(&parent), Some(DeviceState::Stopped)));
            assert!(scene.device().is_err());
            assert_eq!(scene.journal.count(Entry::StopDevice), 1);
            // It may be removed as any other one.
            scene.client.driver.remove_adapter(&scene.adapter);
            assert_eq!(scene.journal.count(Entry::StopDevice), 1);
        }
        Ok(())
    }
}
