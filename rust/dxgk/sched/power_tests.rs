// SPDX-License-Identifier: GPL-2.0

//! D0 and D3 of an adapter of the double, which finds wrong orders of its entries (GPU-28). Run by
//! every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_power)]
mod tests {
    use crate::{
        ddi::power::PowerState,
        dxgk::sched::test_scene::{
            comes,
            Scene, //
        },
        kmd::fake::journal::Entry, //
    };
    use kernel::prelude::*;

    /// An adapter with work stays in D0, and one that sleeps wakes up for a submission.
    #[test]
    fn work_keeps_it_awake_and_wakes_it() -> Result {
        let scene = Scene::that_suspends_at_once()?;
        let (_device, parent) = scene.device()?;
        let (_context, queue) = scene.context(&parent)?;

        for number in 1..=3 {
            assert!(scene.submit(&queue).is_ok());
            assert!(comes(|| scene.engines.submitted(queue.id) == number));
            assert!(comes(|| scene.adapter.power.state() == PowerState::D0));
            assert!(!scene.journal.is_asleep());
            assert_eq!(scene.adapter.power.down(), Err(EBUSY));
            assert!(scene.adapter.power.state() == PowerState::D0);
            assert!(scene.engines.complete(queue.id, number));
            assert_eq!(scene.adapter.power.down(), Ok(()));
            assert!(scene.adapter.power.state() == PowerState::D3);
            assert!(scene.journal.is_asleep());
            // Once more is no change.
            assert_eq!(scene.adapter.power.down(), Ok(()));
        }
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }

    /// Each context is suspended before D3 and resumed after it, also one that is made in D3.
    #[test]
    fn contexts_are_suspended_in_d3() -> Result {
        let scene = Scene::that_suspends_at_once()?;
        let (_device, parent) = scene.device()?;
        let _first = scene.context(&parent)?;
        let (suspends, resumes) = (
            || scene.journal.count(Entry::SuspendContext),
            || scene.journal.count(Entry::ResumeContext),
        );

        assert_eq!(scene.adapter.power.down(), Ok(()));
        assert_eq!((suspends(), resumes()), (1, 0));

        let _second = scene.context(&parent)?;

        assert_eq!((suspends(), resumes()), (2, 0));
        assert!(scene.adapter.power.up().is_ok());
        assert_eq!((suspends(), resumes()), (2, 2));
        assert!(scene.adapter.power.up().is_ok());
        assert_eq!(scene.journal.count(Entry::SetPowerState), 2);
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }

    /// An adapter that is removed in D3 does not come back.
    #[test]
    fn removed_in_d3() -> Result {
        let scene = Scene::that_suspends_at_once()?;
        let (_device, parent) = scene.device()?;
        let (_context, queue) = scene.context(&parent)?;

        assert_eq!(scene.adapter.power.down(), Ok(()));
        scene.client.driver.remove_adapter(&scene.adapter);
        assert!(scene.adapter.power.up().is_err());
        assert_eq!(scene.adapter.power.down(), Ok(()));
        assert!(scene.submit(&queue).is_err());
        assert_eq!(scene.journal.count(Entry::SetPowerState), 1);
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }
}
