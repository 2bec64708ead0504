// SPDX-License-Identifier: GPL-2.0

//! The verifier of the driver interface in the kernel: rules that are broken on purpose, with the
//! locks and the contexts that there really are. The host tests have a case for every rule.

#[kernel::macros::kunit_tests(opendxg_verifier)]
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
            paging::PagingOperation,
            process::{
                local_process,
                CreateProcessArgs, //
            },
            queue::{
                QueueCallbacks,
                Submission, //
            },
            reserve::NoAddresses,
            types::{
                ContextCookie,
                ContextId,
                CreateContextArgs,
                CreateDeviceArgs,
                DeviceCookie,
                DeviceId,
                ProcessCookie,
                ProcessId,
                Scheduling, //
            },
            verifier::{
                entry::Entry,
                rule::{
                    Log,
                    Rule, //
                },
                Verifier, //
            },
            Destroy,
            Kmd, //
        },
        kmd::fake::{
            journal::Journal,
            queues::Queues,
            Behaviour,
            FakeKmd, //
        }, //
    };
    use kernel::{
        new_mutex,
        new_spinlock,
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Full, //
            },
            Arc, //
        }, //
    };

    /// How many calls there were, and the first rule that was broken: its number and the entry's.
    struct Record {
        called: Atomic<u32>,
        first: Atomic<u32>,
    }

    const fn broken(rule: Rule, entry: Entry) -> u32 {
        // CAST: the numbers of the variants.
        (rule as u32) << 16 | entry as u32
    }

    impl Log for Record {
        fn called(&self, _: Entry, _: u64) {
            let _before = self.called.fetch_add(1, Full);
        }

        fn broken(&self, rule: Rule, entry: Entry, _: u64) {
            let _first = self.first.cmpxchg(0, broken(rule, entry), Full);
        }
    }

    /// Who is not interested.
    struct Nobody;

    impl QueueCallbacks for Nobody {
        fn completed(&self, _: &DeviceInterrupt, _: u64) {}

        fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

        fn faulted(&self, _: &DeviceInterrupt, _: &crate::ddi::queue::Fault) {}

        fn invalidated(&self) {}

        fn suspended(&self, _: &DeviceInterrupt, _: u64) {}
    }

    /// What a case works with. The context has the id 7.
    struct Made {
        kmd: Verifier,
        process: ProcessCookie,
        device: DeviceCookie,
        context: ContextCookie,
        queues: Arc<Queues>,
        log: Arc<Record>,
    }

    impl Made {
        fn new() -> Result<Self> {
            let class = &Passive::here();
            let log = Arc::new(
                Record {
                    called: Atomic::new(0),
                    first: Atomic::new(0),
                },
                GFP_KERNEL,
            )?;
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let queues = Arc::new(Queues::new(journal.clone()).ok_or(ENOMEM)?, GFP_KERNEL)?;
            let behaviour = Behaviour {
                queues: Some(queues.clone()),
                ..Behaviour::default()
            };
            let kmd = KBox::new(FakeKmd::add_device(journal, behaviour), GFP_KERNEL)?;
            let mut kmd = Verifier::around(kmd, log.clone()).ok_or(ENOMEM)?;
            let luid = Luid::default();

            kmd.start_device(class, &StartInfo::of(luid).ok_or(ENOMEM)?)
                .map_err(|_| EINVAL)?;

            let callbacks = local_process().ok_or(ENOMEM)?;
            let process = CreateProcessArgs {
                id: ProcessId(1),
                is_of_virtual_machine: false,
                is_system: false,
                callbacks: &callbacks,
            };
            let process = kmd
                .create_process(class, &process, &mut NoAddresses)
                .map_err(|_| EINVAL)?;
            let id = DeviceId(2);
            let device = kmd
                .create_device(
                    class,
                    &CreateDeviceArgs {
                        id,
                        process,
                        is_system: false,
                    },
                )
                .map_err(|_| EINVAL)?;
            let callbacks: Arc<dyn QueueCallbacks> = Arc::new(Nobody, GFP_KERNEL)?;
            let args = CreateContextArgs {
                id: ContextId(7),
                scheduling: Scheduling::Packets,
                node: 0,
                engines: 0,
                is_system: false,
                private_data: &[],
                callbacks: &callbacks,
            };
            let context = kmd
                .create_context(class, device, &args)
                .map_err(|_| EINVAL)?;

            Ok(Self {
                kmd,
                process,
                device,
                context,
                queues,
                log,
            })
        }

        fn submit(&self, number: u64, length: u32) {
            let submission = Submission {
                number,
                commands: 0x1000,
                length,
                progress: None,
            };

            Dispatch::below(&mut Passive::here(), |class| {
                self.kmd.submit_command(class, self.context, &submission);
            });
        }

        fn first(&self) -> u32 {
            self.log.first.load(Acquire)
        }

        /// The end of everything, in order.
        fn end(self) -> u32 {
            let class = &Passive::here();

            self.kmd.destroy_context(class, self.context);
            self.kmd.stop_device(class);
            self.kmd.destroy_device(class, self.device);
            self.kmd.destroy_process(class, self.process);

            let Self { kmd, log, .. } = self;

            drop(kmd);
            log.first.load(Acquire)
        }
    }

    /// MEM-95: what is right passes, and is logged.
    #[test]
    fn mem_95_what_is_right_passes() -> Result {
        let made = Made::new()?;

        made.submit(1, 4);
        assert!(made.queues.complete(7, 1));

        let log = made.log.clone();

        assert_eq!(made.end(), 0);
        // StartDevice, three creates, a submission and its end, StopDevice, three destroys,
        // RemoveDevice.
        assert_eq!(log.called.load(Acquire), 11);
        Ok(())
    }

    /// MEM-95: what the OS part does wrong is reported, with the entry where it shows.
    #[test]
    fn mem_95_what_the_os_part_does_wrong_is_reported() -> Result {
        type Case = (Rule, Entry, fn(&Made));
        let cases: [Case; 7] = [
            (Rule::NotStarted, Entry::Query, |made| {
                made.kmd.stop_device(&Passive::here());
                made.kmd.query_feature_support(&Passive::here(), 1, true);
            }),
            (Rule::BadCookie, Entry::DestroyContext, |made| {
                made.kmd.destroy_context(&Passive::here(), made.context);
                made.kmd.destroy_context(&Passive::here(), made.context);
            }),
            (Rule::BadCookie, Entry::FlushTlb, |made| {
                let flush = PagingOperation::FlushTlb {
                    process: ProcessCookie(made.device.0),
                    first: 0,
                    last: 0,
                    buffer: None,
                };

                let _built = made.kmd.build_paging_buffer(&Passive::here(), flush);
            }),
            (Rule::ChildrenLeft, Entry::DestroyProcess, |made| {
                made.kmd.destroy_process(&Passive::here(), made.process);
            }),
            (Rule::OutOfOrder, Entry::SubmitCommand, |made| {
                made.submit(2, 4)
            }),
            (Rule::BadValue, Entry::SubmitCommand, |made| {
                made.submit(1, 3)
            }),
            (Rule::BadValue, Entry::SetContextPriority, |made| {
                made.kmd
                    .set_context_priority(&Passive::here(), made.context, 32);
            }),
        ];

        for (rule, entry, wrong) in cases {
            let made = Made::new()?;

            assert_eq!(made.first(), 0);
            wrong(&made);
            assert_eq!(made.first(), broken(rule, entry));
        }
        Ok(())
    }

    /// MEM-95, MEM-96: an entry in the wrong context, and one under a spinlock. A mutex is right.
    #[test]
    fn mem_95_mem_96_contexts_and_locks_are_reported() -> Result {
        if !cfg!(CONFIG_PREEMPT_RCU) {
            return Ok(());
        }

        let made = Made::new()?;
        let class = Passive::here();
        let mutex = KBox::pin_init(new_mutex!(()), GFP_KERNEL)?;

        {
            let _held = mutex.lock();

            made.kmd.query_feature_support(&class, 1, true);
        }
        assert_eq!(made.first(), 0);
        Dispatch::below(&mut Passive::here(), |_| {
            made.kmd.query_feature_support(&class, 1, true);
        });
        assert_eq!(made.first(), broken(Rule::WrongClass, Entry::Query));

        let made = Made::new()?;
        let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;

        Dispatch::below(&mut Passive::here(), |class| {
            let _held = lock.lock();

            made.kmd.resume_context(class, made.context);
        });
        assert_eq!(
            made.first(),
            broken(Rule::SpinLockHeld, Entry::ResumeContext)
        );
        Ok(())
    }

    /// MEM-95: what the KMD does wrong is reported: work completes that it was not given, and
    /// callbacks are kept after their queue.
    #[test]
    fn mem_95_what_the_kmd_does_wrong_is_reported() -> Result {
        let made = Made::new()?;

        assert!(made.queues.with(7, &|class, told| told.completed(class, 1)));
        assert_eq!(made.first(), broken(Rule::BadCallback, Entry::Completed));

        let made = Made::new()?;
        let kept = made.queues.callbacks(7).ok_or(EINVAL)?;

        assert_eq!(
            made.end(),
            broken(Rule::CallbacksKept, Entry::DestroyContext)
        );
        drop(kept);
        Ok(())
    }

    /// MEM-95: what is left at RemoveDevice is reported.
    #[test]
    fn mem_95_what_is_left_is_reported() -> Result {
        let made = Made::new()?;
        let log = made.log.clone();

        made.kmd.stop_device(&Passive::here());
        drop(made);
        assert_eq!(
            log.first.load(Acquire),
            broken(Rule::NotEmpty, Entry::RemoveDevice)
        );
        Ok(())
    }
}
