// SPDX-License-Identifier: GPL-2.0

//! The order in which queues do what they have, with a double below them, whose work the test
//! completes. Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_sched)]
mod tests {
    use crate::{
        dxgk::{
            quota::account::Limit,
            sched::{
                list::ListedQueue,
                new_item::NewItem,
                queued_work::AfterWork,
                test_scene::{
                    comes,
                    Scene, //
                }, //
            },
            test_client::is, //
        },
        error::{
            DxgResult,
            Status, //
        },
        logic::submission_order::Moment, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };

    /// FEN-39, FEN-41: everything in order, and nothing earlier than it may.
    #[test]
    fn a_queue_does_everything_in_order() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_context, queue) = scene.context(&parent)?;
        let (first, second) = (scene.fence(&parent)?, scene.fence(&parent)?);
        let ok = |result: DxgResult| result.map_err(|_| EINVAL);

        ok(scene.submit(&queue))?;
        ok(scene.submit(&queue))?;
        ok(scene.signal(&[&queue], &second, 1, Moment::Submitted))?;
        ok(scene.signal(&[&queue], &first, 1, Moment::Completed))?;
        ok(scene.wait(&queue, &second, 2))?;
        ok(scene.submit(&queue))?;
        ok(scene.signal(&[&queue], &first, 2, Moment::Completed))?;

        // The signal at submission waits for those before it in the queue, as all others do.
        assert_eq!(scene.engines.submitted(queue.id), 2);
        assert_eq!((first.value(), second.value()), (0, 1));
        assert!(scene.engines.complete(queue.id, 1));
        assert!(comes(|| queue.snapshot().completed == 1));
        assert_eq!(first.value(), 0);
        assert!(scene.engines.complete(queue.id, 2));
        assert!(comes(|| first.value() == 1));
        assert!(comes(|| queue.snapshot().blocked.is_some()));
        assert_eq!(scene.engines.submitted(queue.id), 2);
        assert!(second.signal(2, false).is_ok());
        assert!(comes(|| scene.engines.submitted(queue.id) == 3));
        assert_eq!(first.value(), 1);
        assert!(scene.engines.complete(queue.id, 3));
        assert!(comes(|| first.value() == 2 && scene.queued() == 0));
        Ok(())
    }

    /// FEN-41: a signal at fetch waits until the KMD says that all has been read, no longer.
    #[test]
    fn a_signal_at_fetch_does_not_wait_for_the_end() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_context, queue) = scene.context(&parent)?;
        let (top, end) = (scene.fence(&parent)?, scene.fence(&parent)?);

        assert!(scene.submit(&queue).is_ok());
        assert!(scene.submit(&queue).is_ok());
        assert!(scene.signal(&[&queue], &top, 1, Moment::Fetched).is_ok());
        assert!(scene.signal(&[&queue], &end, 1, Moment::Completed).is_ok());
        assert_eq!(scene.engines.submitted(queue.id), 2);
        assert!(scene.engines.fetch(queue.id, 1));
        assert!(scene.engines.complete(queue.id, 1));
        assert!(comes(|| queue.snapshot().completed == 1));
        assert_eq!(top.value(), 0);
        assert!(scene.engines.fetch(queue.id, 2));
        assert!(comes(|| top.value() == 1));
        assert_eq!(end.value(), 0);
        assert!(scene.engines.complete(queue.id, 2));
        assert!(comes(|| end.value() == 1 && scene.queued() == 0));
        Ok(())
    }

    /// FEN-39, FEN-42: a wait looks at its fence when it is its turn: what is before it may still
    /// take back what it waits for.
    #[test]
    fn a_wait_comes_after_what_is_before_it() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_context, queue) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        assert!(fence.signal(1, false).is_ok());
        assert!(scene.submit(&queue).is_ok());
        assert!(scene.wait(&queue, &fence, 1).is_ok());
        assert!(scene.submit(&queue).is_ok());
        assert_eq!(scene.engines.submitted(queue.id), 1);

        // As the commands might do.
        assert!(fence.signal(0, true).is_ok());
        assert!(scene.engines.complete(queue.id, 1));
        assert!(comes(|| queue.snapshot().blocked.is_some()));
        assert_eq!(scene.engines.submitted(queue.id), 1);
        assert!(fence.signal(1, false).is_ok());
        assert!(comes(|| scene.engines.submitted(queue.id) == 2));
        Ok(())
    }

    /// FEN-39: a wait holds back its own queue alone.
    #[test]
    fn other_queues_go_on() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, first) = scene.context(&parent)?;
        let (_, second) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        assert!(scene.wait(&first, &fence, 1).is_ok());
        assert!(scene.submit(&first).is_ok());
        assert!(scene.submit(&second).is_ok());
        assert_eq!(scene.engines.submitted(first.id), 0);
        assert_eq!(scene.engines.submitted(second.id), 1);
        assert!(scene
            .signal(&[&second], &fence, 1, Moment::Submitted)
            .is_ok());
        assert!(comes(|| scene.engines.submitted(first.id) == 1));
        Ok(())
    }

    /// FEN-43, FEN-46: once, from the last queue; never, if one of them is destroyed before.
    #[test]
    fn a_signal_of_two_queues() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, first) = scene.context(&parent)?;
        let (handle, second) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;
        let gate = scene.fence(&parent)?;

        assert!(scene.submit(&first).is_ok());
        assert!(scene
            .signal(&[&first, &second], &fence, 5, Moment::Completed)
            .is_ok());
        assert_eq!(fence.value(), 0);
        assert!(scene.engines.complete(first.id, 1));
        assert!(comes(|| fence.value() == 5));

        assert!(scene.wait(&second, &gate, 1).is_ok());
        assert!(scene
            .signal(&[&first, &second], &fence, 9, Moment::Completed)
            .is_ok());
        assert!(scene.destroy(handle));
        assert!(gate.signal(1, false).is_ok());
        scene.adapter.worker.flush();
        assert_eq!(fence.value(), 5);
        assert!(comes(|| scene.queued() == 0));
        Ok(())
    }

    /// FEN-54: what one of two queues refuses is in neither of them.
    #[test]
    fn what_one_queue_refuses_is_in_none() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, first) = scene.context(&parent)?;
        let (handle, second) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        assert!(scene.submit(&first).is_ok());

        let items = scene
            .signal_items(&[&first, &second], &fence, 1, Moment::Completed)
            .map_err(|_| EINVAL)?;

        assert!(scene.destroy(handle));
        assert!(is(NewItem::push_all(items), Status::INVALID_PARAMETER));
        assert_eq!(first.snapshot().items, 1);
        assert_eq!(scene.queued(), 1);
        Ok(())
    }

    /// FEN-45: what is queued is charged, and refused at the limit.
    #[test]
    fn items_are_charged() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (handle, queue) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        for _ in 0..1000 {
            assert!(scene.wait(&queue, &fence, 1).is_ok());
        }
        assert_eq!(scene.queued(), 1000);

        let account = &scene.client.process.account;
        let mut rest = 0;

        for bit in (0..u32::BITS).rev() {
            if account.take_now(Limit::QueuedItems, 1 << bit).is_ok() {
                rest += 1 << bit;
            }
        }
        assert!(is(scene.submit(&queue), Status::NO_MEMORY));
        account.give_back(Limit::QueuedItems, rest);
        assert!(scene.submit(&queue).is_ok());
        assert!(fence.signal(1, false).is_ok());
        assert!(comes(|| scene.engines.submitted(queue.id) == 1));
        assert!(scene.engines.complete(queue.id, 1));
        assert!(comes(|| scene.queued() == 0));
        assert_eq!(account.used(Limit::QueuedBytes), 0);
        assert_eq!(account.used(Limit::Queues), 1);
        drop(queue);
        assert!(scene.destroy(handle));
        assert!(comes(|| account.used(Limit::Queues) == 0));
        Ok(())
    }

    /// Counts how often it was run.
    struct Counter(Atomic<u32>);

    impl AfterWork for Counter {
        fn run(self: Arc<Self>) {
            self.0.add(1, Relaxed);
        }
    }

    /// RES-30: what is to be done after the work is done after it, at once if there is none, and
    /// whatever is queued later.
    #[test]
    fn things_are_done_after_the_work_before() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (_, queue) = scene.context(&parent)?;
        let work = &parent.device.process.work;
        let counter = Arc::new(Counter(Atomic::new(0)), GFP_KERNEL)?;
        let after = || -> Result {
            work.cut()?.after(counter.clone());
            Ok(())
        };

        after()?;
        assert_eq!(counter.0.load(Relaxed), 1);

        assert!(scene.submit(&queue).is_ok());
        after()?;
        assert!(scene.submit(&queue).is_ok());
        // Many, which end one after the other without recursion.
        for _ in 0..2000 {
            after()?;
        }
        assert_eq!(counter.0.load(Relaxed), 1);
        assert!(scene.engines.complete(queue.id, 1));
        assert!(comes(|| counter.0.load(Relaxed) == 2));
        assert!(scene.engines.complete(queue.id, 2));
        assert!(comes(|| counter.0.load(Relaxed) == 2002));
        Ok(())
    }
}
