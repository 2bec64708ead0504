// SPDX-License-Identifier: GPL-2.0

//! Suspending and resuming contexts of the software GPU, with its threads as they are in the
//! kernel. Run by every load of the module in a kernel with KUnit.
//!
//! The contexts have no page tables, so what runs faults at once, which tells that it ran.

#[kernel::macros::kunit_tests(opendxg_suspend)]
mod tests {
    use crate::{
        ddi::{
            caps::{
                Luid,
                StartInfo, //
            },
            class::{
                DeviceInterrupt,
                Dispatch,
                Passive, //
            },
            object::{
                Context,
                Device,
                Process, //
            },
            port::Port,
            queue::{
                Fault,
                QueueCallbacks,
                Submission,
                Suspend, //
            },
            reserve::NoAddresses,
            types::{
                ContextId,
                CreateContextArgs,
                DeviceId,
                KmdResult,
                ProcessId,
                Scheduling, //
            }, //
        },
        dxgk::{
            sched::test_scene::comes,
            stats::next_id, //
        },
        kmd::soft::{
            Config,
            SoftKmd, //
        }, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Full,
                Release, //
            },
            Arc, //
        }, //
    };

    /// What a context has told.
    struct Ear {
        faults: Atomic<u32>,
        /// The id of the last answer to a suspension, and how many there were.
        suspended: Atomic<u64>,
        answers: Atomic<u32>,
        /// Ids that came after a later one.
        late: Atomic<u32>,
    }

    impl Ear {
        fn answered(&self, id: u64) -> bool {
            comes(|| self.suspended.load(Acquire) == id)
        }

        fn ran(&self) -> u32 {
            self.faults.load(Acquire)
        }
    }

    impl QueueCallbacks for Ear {
        fn completed(&self, _: &DeviceInterrupt, _: u64) {}

        fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

        fn faulted(&self, _: &DeviceInterrupt, _: &Fault) {
            let _before = self.faults.fetch_add(1, Full);
        }

        fn invalidated(&self) {}

        fn suspended(&self, _: &DeviceInterrupt, id: u64) {
            let _before = self.answers.fetch_add(1, Full);

            if self.suspended.load(Acquire) >= id {
                let _before = self.late.fetch_add(1, Full);
            }
            self.suspended.store(id, Release);
        }
    }

    /// A device of a software adapter.
    struct Scene {
        port: Arc<Port>,
        device: Arc<Device>,
    }

    impl Scene {
        fn new() -> Result<Self> {
            let class = Passive::here();
            let config = Config {
                local_memory: 0,
                nodes: 1,
                ..Config::default()
            };
            let info = StartInfo::of(Luid::default()).ok_or(ENOMEM)?;
            let kmd = KBox::new(SoftKmd::add_device(config), GFP_KERNEL)?;
            let port = Port::start(kmd, &class, &info).map_err(|_| ENOMEM)?;
            let process = Process::create(&port, &class, ProcessId(next_id()), &mut NoAddresses)
                .map_err(|_| ENOMEM)?;
            let device =
                Device::create(&process, &class, DeviceId(next_id())).map_err(|_| ENOMEM)?;

            Ok(Self { port, device })
        }

        fn context(&self) -> Result<(Arc<Context>, Arc<Ear>)> {
            let ear = Arc::new(
                Ear {
                    faults: Atomic::new(0),
                    suspended: Atomic::new(0),
                    answers: Atomic::new(0),
                    late: Atomic::new(0),
                },
                GFP_KERNEL,
            )?;
            let callbacks: Arc<dyn QueueCallbacks> = ear.clone();
            let args = CreateContextArgs {
                id: ContextId(next_id()),
                scheduling: Scheduling::Packets,
                node: 0,
                engines: 0,
                is_system: false,
                private_data: &[],
                callbacks: &callbacks,
            };
            let context = Context::create(&self.device, &Passive::here(), &args);

            Ok((context.map_err(|_| ENOMEM)?, ear))
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            self.port.stop(&Passive::here());
        }
    }

    fn suspend(context: &Context, id: u64) -> KmdResult<Suspend> {
        context.suspend(&mut Passive::here(), id)
    }

    fn resume(context: &Context) -> bool {
        context.resume(&mut Passive::here()).is_ok()
    }

    fn submit(context: &Context) -> bool {
        let submission = Submission {
            number: 1,
            commands: 0x1000,
            length: 4,
            progress: None,
        };

        Dispatch::below(&mut Passive::here(), |class| {
            context.submit(class, &submission)
        })
        .is_ok()
    }

    /// GPU-11: what a suspended context gets runs after it is resumed. Another context of the same
    /// engine shows that the engine has looked.
    #[test]
    fn a_suspended_context_takes_submissions() -> Result {
        let scene = Scene::new()?;
        let (context, ear) = scene.context()?;
        let (other, other_ear) = scene.context()?;

        assert!(suspend(&context, 1) == Ok(Suspend::Pending));
        assert!(ear.answered(1));
        assert!(submit(&context) && submit(&other));
        assert!(comes(|| other_ear.ran() == 1));
        assert_eq!(ear.ran(), 0);
        assert!(resume(&context));
        assert!(comes(|| ear.ran() == 1));
        Ok(())
    }

    /// GPU-51: each suspension is answered with its id, once; one that is there already needs no
    /// answer.
    #[test]
    fn suspensions_are_answered_with_their_ids() -> Result {
        let scene = Scene::new()?;
        let (context, ear) = scene.context()?;

        for id in 1..=20 {
            assert!(suspend(&context, id) == Ok(Suspend::Pending));
            assert!(ear.answered(id));
            assert!(suspend(&context, 100) == Ok(Suspend::Done));
            assert!(resume(&context));
        }
        assert_eq!(ear.answers.load(Acquire), 20);
        assert_eq!(ear.late.load(Acquire), 0);
        Ok(())
    }

    /// GPU-51: an answer to a request that was taken back may come, but not after that of a later
    /// request. The id tells them apart.
    #[test]
    fn late_answers_do_not_come_after_later_ones() -> Result {
        let scene = Scene::new()?;
        let (context, ear) = scene.context()?;

        for round in 0..50 {
            let id = 2 * round + 1;

            assert!(suspend(&context, id) == Ok(Suspend::Pending));
            assert!(resume(&context));
            assert!(suspend(&context, id + 1) == Ok(Suspend::Pending));
            assert!(ear.answered(id + 1));
            assert!(resume(&context));
        }
        assert_eq!(ear.late.load(Acquire), 0);
        assert!(ear.answers.load(Acquire) <= 100);
        Ok(())
    }
}
