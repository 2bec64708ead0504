// SPDX-License-Identifier: GPL-2.0

//! The OS part over a test double of a KMD. Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_kmd)]
mod tests {
    use crate::{
        ddi::{
            caps::{
                Luid,
                StartInfo, //
            },
            class::{
                Dispatch,
                Passive, //
            },
            types::{
                DeviceId,
                KmdError, //
            },
            Kmd, //
        },
        dxgk::{
            adapter::{
                Adapter,
                AdapterKind, //
            },
            context::{
                Context,
                Description,
                Scheduling, //
            },
            device::Device,
            driver::{
                Driver,
                MAX_ADAPTERS, //
            },
            handle::{
                HandleTarget,
                Parent, //
            },
            memory::{
                allocation,
                creation::{
                    CreateAllocationsRequest,
                    Destination,
                    NewAllocation, //
                }, //
            },
            object::Strong,
            process::Process,
            quota::account::{
                Account,
                Limit, //
            }, //
        },
        error::{
            DxgError,
            DxgResult,
            Status, //
        },
        kmd::fake::{
            journal::{
                Broken,
                Entry,
                Journal, //
            },
            Behaviour,
            FakeKmd,
            Pause, //
        },
        logic::{
            adapter_info::filter::Filter,
            allocation_rules::{
                bits,
                Creation,
                Source, //
            },
            handle, //
        },
        platform::{
            completion,
            Completion, //
        },
        sys::{
            task::caller,
            work, //
        }, //
    };
    use kernel::{
        bindings,
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
        },
        workqueue, //
    };

    /// Private data that the double understands: two pages.
    const TWO_PAGES: [u8; 8] = 0x2000u64.to_le_bytes();

    fn started(behaviour: Behaviour) -> Result<(Arc<Journal>, DxgResult<Arc<Adapter>>)> {
        let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
        let kmd = FakeKmd::add_device(journal.clone(), behaviour);

        let kmd = KBox::new(kmd, GFP_KERNEL)?;
        let adapter = Adapter::start(AdapterKind::TestDouble, 0, kmd, None);

        Ok((journal, adapter.map_err(DxgError::from)))
    }

    fn bytes(of: &[u8]) -> Result<KVVec<u8>> {
        let mut all = KVVec::new();

        all.extend_from_slice(of, GFP_KERNEL)?;
        Ok(all)
    }

    fn is(result: DxgResult, status: Status) -> bool {
        result.is_err_and(|error| error.is(status))
    }

    /// A driver without adapters, and the process of the test, which has the device open.
    struct Client {
        driver: Arc<Driver>,
        process: Arc<Process>,
    }

    impl Client {
        fn new() -> Result<Self> {
            caller::attach_mm()?;

            let driver = Driver::new(None)?;
            let process = driver.open_process()?;

            Ok(Self { driver, process })
        }

        /// All adapters that run; the double, which only computes, has to be asked for.
        fn adapters(&self) -> Result<KVec<Arc<Adapter>>> {
            let filter = Filter::decode(0b11).map_err(|_| EINVAL)?;

            Ok(self.driver.adapters(filter)?)
        }

        /// Adds an adapter with a double, and has the journal of it.
        fn add(&self, behaviour: Behaviour) -> Result<(Arc<Journal>, Result<Arc<Adapter>>)> {
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let adapter = self.driver.add_adapter(AdapterKind::TestDouble, |_| {
                let kmd = FakeKmd::add_device(journal.clone(), behaviour);

                Ok(KBox::new(kmd, GFP_KERNEL)?)
            });

            Ok((journal, adapter))
        }

        /// The handle of a new device, and the device.
        fn create_device(&self, adapter: &Arc<Adapter>) -> DxgResult<(u32, Parent)> {
            let device = HandleTarget::Device(Device::new(adapter.clone())?);
            let reserved = self.process.handles.reserve(device, None)?;
            let handle = reserved.handle();

            reserved.commit();
            Ok((handle, self.process.handles.parent(handle)?))
        }

        fn create_context(&self, parent: &Parent) -> DxgResult {
            let context = HandleTarget::Context(context(parent.device.clone())?);

            self.process
                .handles
                .reserve(context, Some(parent))?
                .commit();
            Ok(())
        }

        /// A resource with two allocations.
        fn create_resource(&self, parent: &Parent) -> DxgResult {
            Self::create_resource_in(&self.driver, &self.process, parent)
        }

        fn create_resource_in(driver: &Driver, process: &Process, parent: &Parent) -> DxgResult {
            let mut allocations = KVVec::new();

            for _ in 0..2 {
                let new = NewAllocation {
                    driver_data: bytes(&TWO_PAGES).map_err(|_| Status::NO_MEMORY)?,
                    source: Source::New,
                    priority: None,
                };

                allocations.push(new, GFP_KERNEL)?;
            }

            let request = CreateAllocationsRequest {
                creation: Creation {
                    flags: bits::CREATE_RESOURCE,
                    count: 2,
                    has_infos: true,
                    driver_data_size: 0,
                    runtime_data_size: 0,
                    standard: None,
                },
                allocations,
                destination: Destination::New {
                    driver_data: KVVec::new(),
                    runtime_data: KVVec::new(),
                },
            };

            parent
                .create_allocations(process, &driver.tables, request)?
                .commit();
            Ok(())
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

    impl Drop for Client {
        fn drop(&mut self) {
            self.driver.release_process(&self.process);
        }
    }

    fn context(device: Arc<Device>) -> DxgResult<Arc<Context>> {
        let description = Description {
            scheduling: Scheduling::HwQueues,
            node: 0,
            engines: 1,
            private_data: KVVec::new(),
        };

        Context::new(device, &description)
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

        assert_eq!(journal.alive(), 6);
        assert_eq!(client.process.handles.count(), 5);

        drop(parent);
        assert!(client
            .process
            .handles
            .destroy(device, |item| matches!(item, HandleTarget::Device(_)))
            .is_ok());
        assert_eq!(client.has(&journal), (0, 0, [0; 4]));
        for (create, destroy, count) in [
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

    /// Lets the worker drop the last references to an adapter, for some seconds at most.
    fn wait_for_good_end(journal: &Journal) {
        for _ in 0..1000 {
            if journal.is_good_end() {
                return;
            }
            fsleep(Delta::from_millis(10));
        }
    }

    /// Takes all the objects that a user may still have, and says how many that were.
    fn all_objects_of(account: &Account) -> u32 {
        let mut taken = 0;

        for bit in (0..u32::BITS).rev() {
            if account.take_now(Limit::Objects, 1 << bit).is_ok() {
                taken += 1 << bit;
            }
        }
        taken
    }

    /// RES-75: the KMD is told of the end once, when the last strong reference is gone and the
    /// bytes are there, with no lock held: while it is inside, other calls make the like, and so
    /// does it.
    #[test]
    fn a_kmd_that_asks_is_told_of_the_end() -> Result {
        let client = Client::new()?;
        let end = Entry::NotifyAllocationEnd;
        let pause = Arc::new(Pause::new(end).ok_or(ENOMEM)?, GFP_KERNEL)?;
        let reentered = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let at_end = {
            let (driver, process) = (client.driver.clone(), client.process.clone());
            let (reentered, turn) = (reentered.clone(), Atomic::new(0u32));

            // The first time only. The device is the first handle of the process.
            move || {
                if turn.cmpxchg(0, 1, Relaxed).is_err() {
                    return;
                }

                let create = || {
                    let parent = process.handles.parent(handle::local(handle::FIRST_INDEX))?;

                    context(parent.device.clone())?;
                    Client::create_resource_in(&driver, &process, &parent)
                };
                // At its limit the user is refused: the worker does not wait for itself.
                let taken = all_objects_of(&process.account);
                let refused = create();

                process.account.give_back(Limit::Objects, taken);

                let made = create();

                reentered.store(u32::from(refused.is_err() && made.is_ok()), Relaxed);
            }
        };
        let (journal, adapter) = started(Behaviour {
            notify_end: true,
            at_end: Some(Arc::new(at_end, GFP_KERNEL)?),
            pause: Some(pause.clone()),
            ..Behaviour::default()
        })?;
        let adapter = adapter.map_err(|_| EINVAL)?;
        let (device, parent) = client.create_device(&adapter).map_err(|_| EINVAL)?;
        let handles = &client.process.handles;

        // The handle of the resource comes after that of the device, then those of its allocations.
        client.create_resource(&parent).map_err(|_| EINVAL)?;

        let [resource, first, second] = [1, 2, 3].map(|place| device + place * 0x40);
        let strong = handles.shareable(resource).map_err(|_| EINVAL)?.strong;
        let link = strong.object().weak_target().map_err(|_| EINVAL)?;
        let allocation = {
            let opened = handles.allocation_of(device, second).map_err(|_| EINVAL)?;

            opened.allocation.clone()
        };

        assert!(handles.allocation_of(device, first).is_ok());
        assert!(handles.destroy_resource(device, resource).is_ok());
        assert_eq!(journal.count(end), 0);
        assert!(Strong::of_weak(&link).is_some());

        // The last strong reference. The worker goes into the KMD, and this task goes on.
        drop(strong);
        pause.wait_for_call();

        let inside = journal.count(end);
        let revived = Strong::of_weak(&link).is_some();
        let has_bytes = allocation.storage().is_ok();
        let other = client.create_resource(&parent);
        let context = client.create_context(&parent);
        let escaped = adapter.escape(0, &mut []);
        let destroyed = journal.count(Entry::DestroyAllocation);

        pause.release();
        assert_eq!(inside, 1);
        assert!(!revived);
        assert!(has_bytes);
        assert!(other.is_ok() && context.is_ok() && escaped.is_ok());
        assert_eq!(destroyed, 0);

        client.process.account.wait_for_retirements();
        // Its two allocations, and the two of the call that was refused.
        assert_eq!(journal.count(end), 4);
        assert_eq!(reentered.load(Relaxed), 1);
        assert!(allocation.storage().is_err());
        drop(allocation);

        // The others end with the process.
        drop((parent, adapter));
        drop(client);
        wait_for_good_end(&journal);
        assert_eq!(journal.count(end), 8);
        assert_eq!(journal.count(Entry::DestroyAllocation), 8);
        assert!(journal.is_good_end());
        Ok(())
    }

    /// RES-75, RES-82: one that ends before its resource, and those of a call that fails.
    #[test]
    fn a_kmd_is_told_of_each_allocation_once() -> Result {
        let client = Client::new()?;
        let end = Entry::NotifyAllocationEnd;
        let (journal, adapter) = started(Behaviour {
            notify_end: true,
            // The second OpenAllocation.
            fail: Some((11, KmdError::NoMemory)),
            ..Behaviour::default()
        })?;
        let adapter = adapter.map_err(|_| EINVAL)?;
        // StartDevice, CreateDevice, and four for the first resource.
        let (device, parent) = client.create_device(&adapter).map_err(|_| EINVAL)?;
        let handles = &client.process.handles;

        client.create_resource(&parent).map_err(|_| EINVAL)?;
        assert!(handles
            .destroy_allocations(device, &[device + 0x80])
            .is_ok());
        assert_eq!(journal.count(end), 1);
        // Two allocations, one open, and the one that fails.
        client.create_context(&parent).map_err(|_| EINVAL)?;
        assert!(is(client.create_resource(&parent), Status::NO_MEMORY));
        client.process.account.wait_for_retirements();
        assert_eq!(journal.count(Entry::CreateAllocation), 4);
        assert_eq!(journal.count(end), 3);
        drop((parent, adapter));
        drop(client);
        wait_for_good_end(&journal);
        assert_eq!(journal.count(end), 4);
        assert_eq!(journal.count(Entry::DestroyAllocation), 4);
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
        // StartDevice, a device, a context, two allocations and two opens of them.
        const MAY_FAIL: u32 = 7;

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
        assert!(is(adapter.escape(0, &mut []), removed));
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
        let device = Device::new(adapter.clone()).map_err(|_| EINVAL)?;
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
        // The call ends as if nothing had happened; its context goes at once.
        assert!(creation.wait());
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
            let device = Device::new(adapter.clone()).map_err(|_| EINVAL)?;
            let use_it = || {
                let device = device.clone();

                move || {
                    for _ in 0..8 {
                        let _context = context(device.clone());
                        let _allocation = allocation::described(&device.adapter, &TWO_PAGES);
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

    /// GPU-100: the double finds an entry that is called in the wrong class, where RCU readers are
    /// counted.
    #[test]
    fn classes_are_checked() -> Result {
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

        assert!(kmd.start_device(&class, &StartInfo { luid }).is_ok());

        let device = Dispatch::below(&mut Passive::here(), |_| {
            kmd.create_device(&class, DeviceId(1))
        });

        assert!(device.is_ok());
        if cfg!(CONFIG_PREEMPT_RCU) {
            assert_eq!(journal.broken(), Broken::WrongClass as u32);
        }
        Ok(())
    }

    /// GPU-100: lockdep knows who is inside a KMD.
    #[cfg(CONFIG_LOCKDEP)]
    #[test]
    fn lockdep_knows_who_is_inside() -> Result {
        use crate::sys::lockdep::is_gate_held;

        let (journal, adapter) = started(Behaviour::default())?;
        let adapter = adapter.map_err(|_| EINVAL)?;
        let device = Device::new(adapter.clone()).map_err(|_| EINVAL)?;

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
