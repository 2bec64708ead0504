// SPDX-License-Identifier: GPL-2.0

//! What queues do not wait for: all of an adapter are served by one worker, whatever becomes of one
//! of them. Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_sched_others)]
mod tests {
    use crate::{
        dxgk::{
            handle::Parent,
            sched::{
                queue::Queue,
                test_scene::{
                    comes,
                    Blocker,
                    Scene, //
                }, //
            },
            sync::fence::Fence, //
        },
        kmd::fake::{
            journal::Entry,
            Pause, //
        },
        logic::submission_order::Moment, //
    };
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    /// A queue of a device of its own, with commands and a signal behind them.
    struct Other {
        _parent: Parent,
        queue: Arc<Queue>,
        fence: Arc<Fence>,
    }

    impl Other {
        fn new(scene: &Scene) -> Result<Self> {
            let (_device, parent) = scene.device()?;
            let (_context, queue) = scene.context(&parent)?;
            let fence = scene.fence(&parent)?;

            scene.submit(&queue).map_err(|_| EINVAL)?;
            scene
                .signal(&[&queue], &fence, 1, Moment::Completed)
                .map_err(|_| EINVAL)?;
            Ok(Self {
                _parent: parent,
                queue,
                fence,
            })
        }

        /// Whether it goes on now.
        fn goes_on(&self, scene: &Scene) -> bool {
            scene.engines.complete(self.queue.id, 1) && comes(|| self.fence.value() == 1)
        }
    }

    /// GPU-101: while a call about a queue is inside the KMD, this queue and others go on.
    #[test]
    fn a_call_about_a_queue_holds_up_none() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;
        let gate = scene.fence(&parent)?;
        let other = Other::new(&scene)?;

        assert!(scene.wait(&queue, &gate, 1).is_ok());
        assert!(scene.submit(&queue).is_ok());

        let went_on = queue.with_context(|_| {
            gate.signal(1, false).is_ok()
                && comes(|| scene.engines.submitted(queue.id) == 1)
                && other.goes_on(&scene)
        });

        assert_eq!(went_on, Some(true));
        Ok(())
    }

    /// FEN-46: while the KMD destroys what it has of a queue, others go on.
    #[test]
    fn the_end_of_a_queue_holds_up_no_other() -> Result {
        let pause = Arc::new(Pause::new(Entry::DestroyContext).ok_or(ENOMEM)?, GFP_KERNEL)?;
        let scene = Scene::with(Some(pause.clone()))?;
        let (_device, parent) = scene.device()?;
        let (handle, queue) = scene.context(&parent)?;
        let other = Other::new(&scene)?;

        assert!(scene.submit(&queue).is_ok());
        assert!(scene.destroy(handle));
        assert!(scene.engines.complete(queue.id, 1));
        pause.wait_for_call();

        let went_on = other.goes_on(&scene);

        pause.release();
        assert!(went_on);
        assert!(comes(|| scene.journal.count(Entry::DestroyContext) == 1));
        Ok(())
    }

    /// FEN-46: while what a queue has is discarded, however long that takes, others go on.
    #[test]
    fn what_is_discarded_holds_up_no_other() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (handle, queue) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;
        let blocker = Blocker::new()?;

        assert!(fence.signal(1, false).is_ok());
        assert!(scene.submit(&queue).is_ok());
        assert!(scene.wait(&queue, &fence, 1).is_ok());
        assert!(scene.submit(&queue).is_ok());
        parent.device.process.work.cut()?.after(blocker.clone());

        let other = Other::new(&scene)?;

        // When it is the turn of the wait, it is not satisfied any more.
        assert!(scene.destroy(handle));
        assert!(fence.signal(0, true).is_ok());
        assert!(scene.engines.complete(queue.id, 1));
        blocker.wait_for_call();

        let went_on = other.goes_on(&scene);

        blocker.release();
        assert!(went_on);
        assert!(comes(|| scene.queued() == 0));
        Ok(())
    }
}
