// SPDX-License-Identifier: GPL-2.0

//! The OS part over a test double of a KMD. Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_kmd)]
mod tests {
    use crate::{
        ddi::{
            caps::{
                DriverCaps,
                Luid,
                StartInfo, //
            },
            class::{
                Dispatch,
                Passive, //
            },
            native_fence::NativeFenceFunction,
            process::{
                local_process,
                CreateProcessArgs, //
            },
            reserve::NoAddresses,
            types::{
                Escape,
                KmdError,
                ProcessId, //
            },
            Kmd, //
        },
        dxgk::{
            adapter::{
                Adapter,
                AdapterKind,
                AdapterOptions, //
            },
            device::Device,
            driver::MAX_ADAPTERS,
            handle::{
                HandleTarget,
                Parent, //
            },
            memory::allocation,
            quota::account::Limit,
            test_client::{
                context,
                is,
                started,
                Client,
                TWO_PAGES, //
            }, //
        },
        error::{
            DxgResult,
            Status, //
        },
        kmd::fake::{
            features::Features,
            journal::{
                Broken,
                Entry,
                Journal, //
            },
            native_fences::NativeFences,
            Behaviour,
            FakeKmd,
            Pause, //
        },
        logic::{adapter_info::filter::Filter, allocation_rules::Source},
        platform::{
            completion,
            Completion, //
        },
        sys::work, //
    };
    use kernel::{
        bindings,
        new_spinlock,
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        },
        workqueue, //
    };

    impl Client {
        /// All adapters that run; the double, which only computes, has to be asked for.
        fn adapters(&self) -> Result<KVec<Arc<Adapter>>> {
            let filter = Filter::decode(0b11).map_err(|_| EINVAL)?;

            Ok(self.driver.adapters(filter)?)
        }

        /// Adds an adapter with a double, and has the journal of it.
        fn add(&self, behaviour: Behaviour) -> Result<(Arc<Journal>, Result<Arc<Adapter>>)> {
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let adapter =
                self.driver
                    .add_adapter(AdapterKind::TestDouble, &AdapterOptions::NONE, |_| {
                        let kmd = FakeKmd::add_device(journal.clone(), behaviour);

                        Ok(KBox::new(kmd, GFP_KERNEL)?)
                    });

            Ok((journal, adapter))
        }

        /// What a call that failed must not have changed.
        fn has(&self, journal: &Journal) -> (usize, u32, [u32; 4]) {
            let limits = [
                Limit::Objects,
                Limit::Allocations,
                Limit::Claimed,
                Limit::Files,
            ];

            (
                journal.alive(),
                self.process.handles.count(),
                limits.map(|limit| self.process.account.used(limit)),
            )
        }

        /// One call after the other; the first that fails must have changed nothing.
        fn make_everything(
            &self,
            adapter: &Arc<Adapter>,
            journal: &Journal,
        ) -> Result<DxgResult<(u32, Parent)>> {
            let unchanged = |before, result: DxgResult| match result {
                Err(error) if self.has(journal) == before => Ok(Err(error)),
                Err(_) => Err(EINVAL),
                Ok(()) => Ok(Ok(())),
            };

            let before = self.has(journal);
            let (device, parent) = match self.create_device(adapter) {
                Ok(made) => made,
                Err(error) => return Ok(unchanged(before, Err(error))?.and(Err(error))),
            };
            let calls: [fn(&Self, &Parent) -> DxgResult; 2] =
                [Self::create_context, Self::create_resource];

            for call in calls {
                let before = self.has(journal);

                if let Err(error) = unchanged(before, call(self, &parent))? {
                    return Ok(Err(error));
                }
            }
            Ok(Ok((device, parent)))
        }
    }

    /// GPU-105: what a device has is destroyed with it, each before what it was made on.
    #[test]
    fn every_create_has_its_destroy() -> Result {
        let client = Client::new()?;
        let (journal, adapter) = started(Behaviour::default())?;
        let adapter = adapter.map_err(|_| EINVAL)?;
        let (device, parent) = client
            .make_everything(&adapter, &journal)?
            .map_err(|_| EINVAL)?;

        assert_eq!(journal.alive(), 7);
        assert_eq!(client.process.handles.count(), 5);

        drop(parent);
        assert!(client
            .process
            .handles
            .destroy(device, |item| matches!(item, HandleTarget::Device(_)))
            .is_ok());
        assert_eq!(client.has(&journal), (0, 0, [0; 4]));
        for (create, destroy, count) in [
            (Entry::CreateProcess, Entry::DestroyProcess, 1),
            (Entry::CreateDevice, Entry::DestroyDevice, 1),
            (Entry::CreateContext, Entry::DestroyContext, 1),
            (Entry::CreateAllocation, Entry::DestroyAllocation, 2),
            (Entry::OpenAllocation, Entry::CloseAllocation, 2),
        ] {
            assert_eq!(journal.count(create), count);
            assert_eq!(journal.count(destroy), count);
        }
        drop(adapter);
        assert!(journal.is_good_end());
        Ok(())
    }

    /// GPU-104, GPU-106: each call that may fail does once, with each error.
    #[test]
    fn when_the_nth_call_fails_nothing_is_left() -> Result {
        let errors = [
            (KmdError::NoMemory, Status::NO_MEMORY),
            (KmdError::InvalidParameter, Status::INVALID_PARAMETER),
            (KmdError::NotSupported, Status::NOT_SUPPORTED),
            (KmdError::DeviceRemoved, Status::DEVICE_REMOVED),
        ];
        // StartDevice, a process, a device, a context, two allocations and two opens of them.
        const MAY_FAIL: u32 = 8;

        for number in 1..=MAY_FAIL + 1 {
            for (error, status) in errors {
                let client = Client::new()?;
                let (journal, adapter) = started(Behaviour {
                    fail: Some((number, error)),
                    ..Behaviour::default()
                })?;
                let result = match adapter {
                    Ok(adapter) => client.make_everything(&adapter, &journal)?.map(drop),
                    Err(error) => Err(error),
                };

                if number <= MAY_FAIL {
                    assert!(is(result, status));
                } else {
                    assert!(result.is_ok());
                }
                drop(client);
                assert_eq!(journal.alive(), 0);
                assert!(journal.is_good_end());
            }
        }
        Ok(())
    }

    /// GPU-105: a removed adapter makes nothing, and what it has made is destroyed later.
    #[test]
    fn after_stop_device_there_are_only_destroys() -> Result {
        let client = Client::new()?;
        let (journal, adapter) = client.add(Behaviour::default())?;
        let adapter = adapter?;
        let (_device, parent) = client
            .make_everything(&adapter, &journal)?
            .map_err(|_| EINVAL)?;
        let before = client.has(&journal);

        assert_eq!(client.adapters()?.len(), 1);
        client.driver.remove_adapter(&adapter);
        assert_eq!(client.adapters()?.len(), 0);
        assert_eq!(journal.count(Entry::StopDevice), 1);

        let removed = Status::DEVICE_REMOVED;

        assert!(is(client.create_device(&adapter).map(drop), removed));
        assert!(is(client.create_context(&parent), removed));
        assert!(is(client.create_resource(&parent), removed));
        assert!(is(adapter.calibrate_clock(0, 0).map(drop), removed));
        assert!(is(adapter.escape(&Escape::default(), &mut []), removed));
        assert!(is(adapter.standard_allocation_data(1).map(drop), removed));
        assert_eq!(client.has(&journal), before);

        drop((parent, adapter));
        assert_eq!(journal.count(Entry::RemoveDevice), 0);
        drop(client);
        assert_eq!(journal.count(Entry::StopDevice), 1);
        assert!(journal.is_good_end());
        Ok(())
    }

    /// A failed start uses no number up, and its errno says what failed. A number that was in use
    /// does not come back.
    #[test]
    fn an_adapter_that_does_not_start_uses_no_number() -> Result {
        let client = Client::new()?;
        let add = |fail: Option<KmdError>| {
            client.add(Behaviour {
                fail: fail.map(|error| (1, error)),
                ..Behaviour::default()
            })
        };
        let (_, first) = add(None)?;
        let first = first?;

        for (error, errno) in [
            (KmdError::NoMemory, bindings::ENOMEM),
            (KmdError::InvalidParameter, bindings::EINVAL),
            (KmdError::NotSupported, bindings::EOPNOTSUPP),
            (KmdError::DeviceRemoved, bindings::ENODEV),
        ] {
            let (journal, adapter) = add(Some(error))?;

            assert_eq!(
                adapter.err().map(|error| error.to_errno().unsigned_abs()),
                Some(errno)
            );
            assert!(journal.is_good_end());
        }
        assert_eq!(client.adapters()?.len(), 1);
        client.driver.remove_adapter(&first);

        let (_, second) = add(None)?;
        let second = second?;

        assert_eq!(
            (first.luid.low, second.luid.low),
            (0x0d9b_0000, 0x0d9b_0001)
        );
        client.driver.remove_adapter(&second);
        Ok(())
    }

    /// FEN-7, FEN-112: it is stopped and removed again.
    #[test]
    fn an_adapter_does_not_start_with_such_caps() -> Result {
        let client = Client::new()?;
        let changes: [(fn(&mut DriverCaps), u32); 3] = [
            (|caps| caps.no_64_bit_atomics = true, bindings::EOPNOTSUPP),
            (|caps| caps.swizzling_ranges = 1, bindings::EOPNOTSUPP),
            (|caps| caps.native_gpu_fence = true, bindings::EINVAL),
        ];

        for (change, errno) in changes {
            let (journal, adapter) = client.add(Behaviour {
                change_caps: Some(change),
                ..Behaviour::default()
            })?;

            assert_eq!(
                adapter.err().map(|error| error.to_errno().unsigned_abs()),
                Some(errno)
            );
            assert_eq!(journal.count(Entry::StopDevice), 1);
            assert!(journal.is_good_end());
        }
        assert!(client.adapters()?.is_empty());
        Ok(())
    }

    /// FEN-111: the same without a function of native fences.
    #[test]
    fn an_adapter_does_not_start_without_a_function() -> Result {
        let client = Client::new()?;
        let mut features = Features::new().ok_or(ENOMEM)?;

        features.functions = Some(|all| *all = all.without(NativeFenceFunction::UpdateLogs));

        let (journal, adapter) = client.add(Behaviour {
            native_fences: Some(Arc::new(NativeFences::new().ok_or(ENOMEM)?, GFP_KERNEL)?),
            features: Some(Arc::new(features, GFP_KERNEL)?),
            ..Behaviour::default()
        })?;

        assert_eq!(adapter.err(), Some(EINVAL));
        assert_eq!(journal.count(Entry::StopDevice), 1);
        assert!(journal.is_good_end());
        Ok(())
    }

    /// Without room there is no AddDevice and no StartDevice.
    #[test]
    fn there_is_room_before_an_adapter_starts() -> Result {
        let client = Client::new()?;
        let mut journals = KVec::new();

        for _ in 0..MAX_ADAPTERS {
            let (journal, adapter) = client.add(Behaviour::default())?;

            adapter?;
            journals.push(journal, GFP_KERNEL)?;
        }

        let (journal, adapter) = client.add(Behaviour::default())?;

        assert_eq!(adapter.err(), Some(ENOSPC));
        assert_eq!(journal.entries().count(), 0);
        for adapter in &client.adapters()? {
            client.driver.remove_adapter(adapter);
        }
        assert!(journals.iter().all(|journal| journal.is_good_end()));
        assert!(client.add(Behaviour::default())?.1.is_ok());
        Ok(())
    }

    /// Something that other threads do, and how often it succeeded.
    struct Beside {
        succeeded: Atomic<u32>,
        done: Completion,
    }

    impl Beside {
        /// `run` must not keep what the test looks at afterwards.
        fn start(run: impl FnOnce() -> bool + Send + 'static) -> Result<Arc<Self>> {
            let this = Arc::new(
                Self {
                    succeeded: Atomic::new(0),
                    done: completion().ok_or(ENOMEM)?,
                },
                GFP_KERNEL,
            )?;
            let theirs = this.clone();

            workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
                theirs.succeeded.store(u32::from(run()), Relaxed);
                theirs.done.complete_all();
            })?;
            Ok(this)
        }

        fn wait(&self) -> bool {
            self.done.wait_for_completion();
            self.succeeded.load(Relaxed) != 0
        }
    }

    /// GPU-101: StopDevice waits for the call that is inside, and refuses others meanwhile.
    #[test]
    fn a_removal_waits_for_the_call_inside() -> Result {
        let client = Client::new()?;
        let pause = Arc::new(Pause::new(Entry::CreateContext).ok_or(ENOMEM)?, GFP_KERNEL)?;
        let (journal, adapter) = client.add(Behaviour {
            pause: Some(pause.clone()),
            ..Behaviour::default()
        })?;
        let adapter = adapter?;
        let device =
            Device::new(adapter.clone(), client.process.clone(), false).map_err(|_| EINVAL)?;
        let creation = Beside::start({
            let device = device.clone();
            move || context(device).is_ok()
        })?;

        pause.wait_for_call();

        let removal = Beside::start({
            let (driver, adapter) = (client.driver.clone(), adapter.clone());
            move || {
                driver.remove_adapter(&adapter);
                true
            }
        })?;

        while !adapter.is_removed() {
            work::breathe();
        }

        let refused = context(device.clone()).map(drop);
        let stops = journal.count(Entry::StopDevice);

        pause.release();
        assert!(is(refused, Status::DEVICE_REMOVED));
        assert_eq!(stops, 0);
        // The KMD has made the context. What the call does with it after that is refused, so that
        // it goes at once.
        assert!(!creation.wait());
        assert!(removal.wait());
        assert_eq!(journal.count(Entry::StopDevice), 1);
        assert_eq!(journal.count(Entry::DestroyContext), 1);
        drop((device, adapter));
        assert!(journal.is_good_end());
        Ok(())
    }

    /// GPU-101, GPU-105: many calls of several threads, and the removal among them.
    #[test]
    fn a_removal_among_calls() -> Result {
        for _ in 0..8 {
            let client = Client::new()?;
            let (journal, adapter) = client.add(Behaviour {
                rounds: 2000,
                ..Behaviour::default()
            })?;
            let adapter = adapter?;
            let device =
                Device::new(adapter.clone(), client.process.clone(), false).map_err(|_| EINVAL)?;
            let use_it = || {
                let device = device.clone();

                move || {
                    for _ in 0..8 {
                        let _context = context(device.clone());
                        let _allocation = allocation::described(
                            &device.adapter,
                            0,
                            &TWO_PAGES,
                            Source::New,
                            false,
                        );
                    }
                    true
                }
            };
            let users = [
                Beside::start(use_it())?,
                Beside::start(use_it())?,
                Beside::start(use_it())?,
            ];

            client.driver.remove_adapter(&adapter);
            drop((device, adapter));
            assert!(users.iter().all(|user| user.wait()));
            assert!(journal.is_good_end());
        }
        Ok(())
    }

    /// GPU-100, MEM-96: the double finds an entry that is called in the wrong class, where RCU
    /// readers are counted: so nothing that must not sleep is around one that may.
    #[test]
    fn gpu_100_mem_96_classes_are_checked() -> Result {
        let (journal, adapter) = started(Behaviour::default())?;
        let adapter = adapter.map_err(|_| EINVAL)?;

        assert!(adapter.calibrate_clock(0, 0).is_ok());
        assert_eq!(journal.count(Entry::CalibrateGpuClock), 1);
        assert!(is(
            adapter.calibrate_clock(1, 0).map(drop),
            Status::INVALID_PARAMETER
        ));
        drop(adapter);
        assert!(journal.is_good_end());

        let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
        let mut kmd = FakeKmd::add_device(journal.clone(), Behaviour::default());
        let class = Passive::here();
        let luid = Luid::default();

        assert!(kmd
            .start_device(&class, &StartInfo::of(luid).ok_or(ENOMEM)?)
            .is_ok());

        let callbacks = local_process().ok_or(ENOMEM)?;
        let process = CreateProcessArgs {
            id: ProcessId(1),
            is_of_virtual_machine: false,
            is_system: false,
            callbacks: &callbacks,
        };
        let process = Dispatch::below(&mut Passive::here(), |_| {
            kmd.create_process(&class, &process, &mut NoAddresses)
        });

        assert!(process.is_ok());
        if cfg!(CONFIG_PREEMPT_RCU) {
            assert_eq!(journal.broken(), Broken::WrongClass as u32);
        }
        Ok(())
    }

    /// MEM-96: the double finds a spinlock over an entry, also over one of class D. So every test
    /// with it shows that there is none.
    #[test]
    fn mem_96_spinlocks_over_entries_are_found() -> Result {
        let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
        let mut kmd = FakeKmd::add_device(journal.clone(), Behaviour::default());
        let luid = Luid::default();
        let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;

        assert!(kmd
            .start_device(&Passive::here(), &StartInfo::of(luid).ok_or(ENOMEM)?)
            .is_ok());
        Dispatch::below(&mut Passive::here(), |class| {
            kmd.calibrate_gpu_clock(class, 0, 0);
        });
        assert_eq!(journal.broken(), 0);
        Dispatch::below(&mut Passive::here(), |class| {
            let _held = lock.lock();

            kmd.calibrate_gpu_clock(class, 0, 0);
        });
        if cfg!(CONFIG_PREEMPT_RCU) {
            assert_eq!(journal.broken(), Broken::SpinLockHeld as u32);
        }
        Ok(())
    }

    /// GPU-100: lockdep knows who is inside a KMD.
    #[cfg(CONFIG_LOCKDEP)]
    #[test]
    fn lockdep_knows_who_is_inside() -> Result {
        use crate::sys::lockdep::is_gate_held;

        let client = Client::new()?;
        let (journal, adapter) = started(Behaviour::default())?;
        let adapter = adapter.map_err(|_| EINVAL)?;
        let device =
            Device::new(adapter.clone(), client.process.clone(), false).map_err(|_| EINVAL)?;

        assert!(!is_gate_held());

        let calls = adapter.port.enter().map_err(|_| EINVAL)?;

        assert!(is_gate_held());
        // A destroy inside a call.
        drop(device);
        assert!(is_gate_held());
        drop(calls);
        assert!(!is_gate_held());
        drop(adapter);
        assert!(!is_gate_held());
        assert!(journal.is_good_end());
        Ok(())
    }
}
