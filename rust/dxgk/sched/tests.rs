// SPDX-License-Identifier: GPL-2.0

//! Queues with a double below them, whose work the test completes. Run by every load of the module
//! in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_sched)]
mod tests {
    use crate::{
        ddi::queue::{
            Fault,
            FaultKind, //
        },
        dxgk::{
            adapter::{
                Adapter,
                AdapterKind, //
            },
            context::{
                Class,
                Context,
                Description,
                Scheduling, //
            },
            device::{
                DeviceState,
                StatePart, //
            },
            handle::{
                HandleTarget,
                Parent, //
            },
            object::{
                Object,
                Strong, //
            },
            quota::account::Limit,
            sched::{
                item::Commands,
                new_item::NewItem,
                queue::Queue,
                queued_work::AfterWork,
                signal::{
                    Effect,
                    SignalElement, //
                }, //
            },
            sync::{
                cpu_wait::Element,
                fence::Fence, //
            },
            test_client::{
                is,
                wait_for_good_end,
                Client, //
            }, //
        },
        error::{
            DxgResult,
            Status, //
        },
        kmd::fake::{
            journal::{
                Entry,
                Journal, //
            },
            queues::Queues,
            Behaviour,
            FakeKmd, //
        },
        logic::sync_flags::{
            Contents,
            Creation, //
        }, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// A client of an adapter whose engines are the test.
    struct Scene {
        journal: Arc<Journal>,
        engines: Arc<Queues>,
        adapter: Arc<Adapter>,
        client: Client,
    }

    /// Waits for what a worker does, for some seconds at most.
    fn comes(condition: impl Fn() -> bool) -> bool {
        for _ in 0..1000 {
            if condition() {
                return true;
            }
            fsleep(Delta::from_millis(5));
        }
        false
    }

    impl Scene {
        fn new() -> Result<Self> {
            let client = Client::new()?;
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let engines = Arc::new(Queues::new(journal.clone()).ok_or(ENOMEM)?, GFP_KERNEL)?;
            let behaviour = || Behaviour {
                queues: Some(engines.clone()),
                ..Behaviour::default()
            };
            let adapter = client.driver.add_adapter(AdapterKind::TestDouble, |_| {
                let kmd = FakeKmd::add_device(journal.clone(), behaviour());

                Ok(KBox::new(kmd, GFP_KERNEL)?)
            })?;

            Ok(Self {
                journal,
                engines,
                adapter,
                client,
            })
        }

        fn device(&self) -> Result<(u32, Parent)> {
            self.client.create_device(&self.adapter).map_err(|_| EINVAL)
        }

        /// A context of packets, and its handle.
        fn context(&self, parent: &Parent) -> Result<(u32, Arc<Queue>)> {
            let description = Description {
                scheduling: Scheduling::Packets,
                class: Class::Context,
                node: 0,
                engines: 1,
                private_data: KVVec::new(),
            };
            let context = Context::new(parent.device.clone(), &description).map_err(|_| EINVAL)?;
            let queue = context.queue().cloned().ok_or(EINVAL)?;
            let reserved = self
                .client
                .process
                .handles
                .reserve(HandleTarget::Context(context), Some(parent))
                .map_err(|_| EINVAL)?;
            let handle = reserved.handle();

            reserved.commit();
            Ok((handle, queue))
        }

        fn destroy(&self, handle: u32) -> bool {
            self.client
                .process
                .handles
                .destroy(handle, |_| true)
                .is_ok()
        }

        /// A fence that shows 0.
        fn fence(&self, parent: &Parent) -> Result<Arc<Fence>> {
            let contents = Contents::MonitoredFence {
                value: 0,
                engines: 0,
            };
            let creation = Creation::new(contents, 0).map_err(|_| EINVAL)?;
            let reserved = self
                .client
                .process
                .create_sync_object(&self.client.driver.tables, parent, &creation)
                .map_err(|_| EINVAL)?
                .opened
                .reserved;
            let handle = reserved.handle();

            reserved.commit();
            match self.client.process.handles.sync_object(handle) {
                Ok(opened) => match opened.object {
                    Object::Fence(fence) => Ok(fence),
                    _ => Err(EINVAL),
                },
                Err(_) => Err(EINVAL),
            }
        }

        fn submit(&self, queue: &Arc<Queue>) -> DxgResult {
            let commands = Commands {
                address: 0x1000,
                length: 4,
                progress: None,
            };

            NewItem::commands(queue, &self.client.process, commands)?.push()
        }

        fn wait(&self, queue: &Arc<Queue>, fence: &Arc<Fence>, value: u64) -> DxgResult {
            let element = Element {
                fence: fence.clone(),
                value,
            };

            NewItem::fence_wait(queue, &self.client.process, &[element])?.push()
        }

        /// A signal in one or more queues.
        fn signal(
            &self,
            queues: &[&Arc<Queue>],
            fence: &Arc<Fence>,
            value: u64,
            at_submission: bool,
        ) -> DxgResult {
            let strong =
                Strong::upgrade(&Object::Fence(fence.clone())).ok_or(Status::INVALID_PARAMETER)?;
            let mut elements = KVVec::new();

            elements.push(SignalElement { strong, value }, GFP_KERNEL)?;

            // CAST: few.
            let count = queues.len() as u32;
            let signal = Effect::Objects(elements).into_signal(at_submission, count)?;

            for queue in queues {
                NewItem::signal(queue, &self.client.process, 1, &signal)?.push()?;
            }
            Ok(())
        }

        /// How many items the process's user has queued.
        fn queued(&self) -> u32 {
            self.client.process.account.used(Limit::QueuedItems)
        }
    }

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
        ok(scene.signal(&[&queue], &second, 1, true))?;
        ok(scene.signal(&[&queue], &first, 1, false))?;
        ok(scene.wait(&queue, &second, 2))?;
        ok(scene.submit(&queue))?;
        ok(scene.signal(&[&queue], &first, 2, false))?;

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
        assert!(scene.signal(&[&second], &fence, 1, true).is_ok());
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
        assert!(scene.signal(&[&first, &second], &fence, 5, false).is_ok());
        assert_eq!(fence.value(), 0);
        assert!(scene.engines.complete(first.id, 1));
        assert!(comes(|| fence.value() == 5));

        assert!(scene.wait(&second, &gate, 1).is_ok());
        assert!(scene.signal(&[&first, &second], &fence, 9, false).is_ok());
        assert!(scene.destroy(handle));
        assert!(gate.signal(1, false).is_ok());
        scene.adapter.worker.flush();
        assert_eq!(fence.value(), 5);
        assert_eq!(scene.queued(), 0);
        Ok(())
    }

    /// FEN-46: what runs comes to its end after its context, which the KMD keeps until then.
    #[test]
    fn running_work_ends_after_its_context() -> Result {
        let scene = Scene::new()?;
        let (_device, parent) = scene.device()?;
        let (handle, queue) = scene.context(&parent)?;
        let fence = scene.fence(&parent)?;

        assert!(scene.submit(&queue).is_ok());
        assert!(scene.signal(&[&queue], &fence, 1, false).is_ok());
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
        assert!(scene.signal(&[&queue], &fence, 1, false).is_ok());
        assert!(scene.destroy(handle));
        assert!(comes(|| scene.journal.count(Entry::DestroyContext) == 1));
        assert_eq!(fence.value(), 0);
        assert!(comes(|| scene.queued() == 0));
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
        let fault = Fault {
            kind: FaultKind::PageFault {
                address: 0x1234_5000,
                write: true,
                level: 2,
            },
            packet: 0x1000,
            number: 1,
            flags: 1,
        };

        assert!(scene.submit(&queue).is_ok());
        assert!(scene.signal(&[&queue], &fence, 1, false).is_ok());
        assert!(scene.wait(&neighbour, &other_fence, 1).is_ok());
        assert!(scene.wait(&stranger, &fence, 7).is_ok());
        assert!(scene.submit(&stranger).is_ok());
        assert!(scene.engines.fault(queue.id, &fault));
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
            Ok(DeviceState::Faulted(own)) if own == fault
        ));
        assert!(matches!(
            other.device.state(StatePart::Execution),
            Ok(DeviceState::Active)
        ));
        assert!(scene.engines.complete(stranger.id, 1));
        assert!(comes(|| scene.queued() == 0));
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
