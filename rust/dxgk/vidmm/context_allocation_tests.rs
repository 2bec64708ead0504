// SPDX-License-Identifier: GPL-2.0

//! What the OS part refuses of the calls of a KMD about context allocations, and what it makes.

#[kernel::macros::kunit_tests(opendxg_context_allocations)]
mod tests {
    use crate::{
        ddi::{
            callbacks::Callbacks,
            class::Passive,
            context_allocation::{
                flags,
                CreateContextAllocationArgs,
                MapContextAllocationArgs,
                MAX_PRIVATE_DATA,
                MAX_SIZE, //
            },
            types::{
                AllocationCookie,
                ContextAllocationId,
                ContextId,
                DeviceId,
                KmdError,
                KmdResult, //
            }, //
        },
        dxgk::{
            adapter::{
                Adapter,
                AdapterKind,
                AdapterOptions, //
            },
            context::Context,
            handle::Parent,
            stats::next_id,
            test_client::{
                context,
                wait_for_good_end,
                Client, //
            }, //
        },
        error::DxgResult,
        kmd::fake::{
            journal::{
                Entry,
                Journal, //
            },
            Ask,
            Behaviour,
            FakeKmd, //
        },
        logic::gpu_ranges::PAGE,
        platform::{
            self,
            Lock, //
        }, //
    };
    use kernel::{
        prelude::*,
        sync::Arc,
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// The aperture of the double, which has no other segment.
    const APERTURE: u32 = 1;

    /// How many pages its aperture shows at a time.
    const SHOWN: u64 = 128;

    const INVALID: Option<KmdError> = Some(KmdError::InvalidParameter);

    fn ok<T>(result: DxgResult<T>) -> Result<T> {
        result.map_err(|_| EINVAL)
    }

    fn made<T>(result: KmdResult<T>) -> Result<T> {
        result.map_err(|_| EIO)
    }

    /// What becomes true soon.
    fn comes(is_true: impl Fn() -> bool) -> bool {
        for _ in 0..1000 {
            if is_true() {
                return true;
            }
            fsleep(Delta::from_millis(10));
        }
        false
    }

    /// What is right, for a context.
    fn args_for(context: u64) -> CreateContextAllocationArgs {
        CreateContextAllocationArgs {
            context: ContextId(context),
            device: DeviceId(0),
            flags: 0,
            size: 4 * PAGE,
            alignment: 4096,
            supported_segments: 1 << APERTURE,
            eviction_segments: 1 << APERTURE,
            preferred_segment: APERTURE,
            driver: AllocationCookie(9),
        }
    }

    /// The same, for a device.
    fn args_for_device(device: u64) -> CreateContextAllocationArgs {
        CreateContextAllocationArgs {
            context: ContextId(0),
            device: DeviceId(device),
            flags: flags::SHARED_ACROSS_CONTEXTS,
            ..args_for(0)
        }
    }

    /// What a KMD asks by, and what it is to destroy in an entry, with the answer.
    #[derive(Default)]
    struct Kept {
        callbacks: Option<Callbacks>,
        doomed: Option<(Entry, ContextAllocationId)>,
        answer: Option<KmdResult>,
    }

    impl Kept {
        fn asked(&mut self, callbacks: &Callbacks, class: &Passive, inside: Entry) {
            self.callbacks = Some(callbacks.clone());
            if let Some((_, doomed)) = self.doomed.take_if(|(entry, _)| *entry == inside) {
                self.answer = Some(callbacks.destroy_context_allocation(class, doomed));
            }
        }
    }

    /// An adapter with a paging node, and what its KMD asks by.
    struct Double {
        journal: Arc<Journal>,
        adapter: Arc<Adapter>,
        callbacks: Callbacks,
        kept: Arc<Lock<Kept>>,
    }

    impl Double {
        fn new(client: &Client) -> Result<Self> {
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let kept = platform::lock!(Kept::default(), "tests::Kept").ok_or(ENOMEM)?;
            let kept: Arc<Lock<Kept>> = Arc::new(kept, GFP_KERNEL)?;
            let told = kept.clone();
            let ask: Arc<Ask> = Arc::new(
                move |callbacks: &Callbacks, class: &Passive, entry: Entry| {
                    told.lock().asked(callbacks, class, entry);
                },
                GFP_KERNEL,
            )?;
            let behaviour = Behaviour {
                asks: Some(ask),
                has_paging_node: true,
                ..Behaviour::default()
            };
            let adapter = client.driver.add_adapter(
                AdapterKind::TestDouble,
                &AdapterOptions::NONE,
                |_| {
                    let kmd = FakeKmd::add_device(journal.clone(), behaviour);

                    Ok(KBox::new(kmd, GFP_KERNEL)?)
                },
            )?;
            // It has made contexts of the paging process.
            let callbacks = kept.lock().callbacks.take().ok_or(EINVAL)?;

            Ok(Self {
                journal,
                adapter,
                callbacks,
                kept,
            })
        }

        fn create(&self, args: &CreateContextAllocationArgs) -> KmdResult<ContextAllocationId> {
            self.callbacks
                .create_context_allocation(&Passive::here(), args)
        }

        fn map(&self, allocation: ContextAllocationId, pages: u64) -> KmdResult<u64> {
            let map = MapContextAllocationArgs {
                pages,
                ..MapContextAllocationArgs::default()
            };

            self.callbacks
                .map_context_allocation(&Passive::here(), allocation, &map)
        }

        fn update(&self, allocation: ContextAllocationId, data: &[u8]) -> KmdResult {
            self.callbacks
                .update_context_allocation(&Passive::here(), allocation, data)
        }

        fn destroy(&self, allocation: ContextAllocationId) -> KmdResult {
            self.callbacks
                .destroy_context_allocation(&Passive::here(), allocation)
        }

        /// Whether its aperture comes to show so many pages.
        fn shows(&self, pages: usize) -> bool {
            comes(|| self.journal.in_aperture() == pages)
        }
    }

    /// Two adapters, and a context of a client on the first one.
    struct Scene {
        client: Client,
        double: Double,
        other: Double,
        parent: Parent,
        context: Arc<Context>,
        /// Objects of the scene have ids from this one on.
        first_id: u64,
    }

    impl Scene {
        fn new() -> Result<Self> {
            let first_id = next_id();
            let client = Client::new()?;
            let double = Double::new(&client)?;
            let other = Double::new(&client)?;
            let (_, parent) = ok(client.create_device(&double.adapter))?;
            let context = ok(context(parent.device.clone()))?;

            Ok(Self {
                client,
                double,
                other,
                parent,
                context,
                first_id,
            })
        }

        /// Which of all ids that anything has would do. What was made is destroyed again.
        fn good_ids(
            &self,
            double: &Double,
            args: fn(u64) -> CreateContextAllocationArgs,
        ) -> Result<KVec<u64>> {
            let mut good = KVec::new();

            for id in self.first_id..next_id() {
                match double.create(&args(id)) {
                    Ok(allocation) => {
                        made(double.destroy(allocation))?;
                        good.push(id, GFP_KERNEL)?;
                    }
                    Err(error) => assert_eq!(Some(error), INVALID),
                }
            }
            Ok(good)
        }

        /// The end of everything. False if the OS part has done something wrong.
        fn end(self) -> bool {
            let Self {
                client,
                double,
                other,
                parent,
                context,
                ..
            } = self;

            drop((context, parent));
            ends(client, [double, other])
        }
    }

    /// The end of a client with all that it has, and then of adapters. False if the OS part has
    /// done something wrong.
    fn ends(client: Client, doubles: [Double; 2]) -> bool {
        client.driver.release_process(&client.process);
        for double in doubles {
            let journal = double.journal.clone();

            client.driver.remove_adapter(&double.adapter);
            drop(double);
            wait_for_good_end(&journal);
            if !journal.is_good_end() {
                return false;
            }
        }
        true
    }

    /// MEM-82: a context or a device of a client on this adapter can have them, and nothing else:
    /// neither the system context, nor the system device, nor those of another adapter, nor what is
    /// gone. No object of the whole scene is left out.
    #[test]
    fn mem_82_only_contexts_and_devices_of_clients_on_this_adapter() -> Result {
        let scene = Scene::new()?;
        let foreign = ok(scene.client.create_device(&scene.other.adapter))?.1;
        let foreign_context = ok(context(foreign.device.clone()))?;
        let contexts = scene.good_ids(&scene.double, args_for)?;
        let devices = scene.good_ids(&scene.double, args_for_device)?;

        assert_eq!(contexts.len(), 1);
        assert_eq!(contexts.first(), Some(&scene.context.id()));
        assert_eq!(devices.len(), 1);
        // The other way round it is another one that is right.
        let contexts = scene.good_ids(&scene.other, args_for)?;

        assert_eq!(contexts.first(), Some(&foreign_context.id()));
        assert_eq!(contexts.len(), 1);
        assert_ne!(
            scene.good_ids(&scene.other, args_for_device)?.first(),
            devices.first()
        );

        let gone = foreign_context.id();

        drop(foreign_context);
        assert!(comes(
            || scene.other.create(&args_for(gone)).err() == INVALID
        ));
        drop(foreign);
        assert!(scene.end());
        Ok(())
    }

    /// MEM-82: bad sizes and segments, reserved bits, and whose memory it is to be if that is not
    /// said as the flags want it.
    #[test]
    fn mem_82_mem_84_sizes_segments_and_reserved_bits_are_refused() -> Result {
        let scene = Scene::new()?;
        let good = args_for(scene.context.id());
        let devices = scene.good_ids(&scene.double, args_for_device)?;
        let device = DeviceId(*devices.first().ok_or(EINVAL)?);
        let create = |change: &dyn Fn(&mut CreateContextAllocationArgs)| {
            let mut args = good;

            change(&mut args);
            scene.double.create(&args)
        };
        let cases: [&dyn Fn(&mut CreateContextAllocationArgs); 18] = [
            &|args| args.size = 0,
            &|args| args.size = PAGE + 1,
            &|args| args.size = MAX_SIZE + PAGE,
            &|args| args.size = u64::MAX,
            &|args| args.alignment = 0,
            &|args| args.alignment = 2048,
            &|args| args.alignment = 12288,
            &|args| args.supported_segments = 0,
            &|args| args.supported_segments |= 1,
            &|args| args.supported_segments |= 1 << 2,
            &|args| args.eviction_segments |= 1 << 2,
            &|args| args.preferred_segment = 0,
            &|args| args.preferred_segment = u32::MAX,
            &|args| args.context = ContextId(0),
            // SharedAcrossContexts needs no context, and a device.
            &|args| args.flags = flags::SHARED_ACROSS_CONTEXTS,
            &|args| (args.flags, args.device) = (flags::SHARED_ACROSS_CONTEXTS, device),
            &|args| (args.context, args.device) = (ContextId(0), device),
            &|args| args.device = device,
        ];

        for case in cases {
            assert_eq!(create(case).err(), INVALID);
        }
        for bit in 0..u32::BITS {
            let reserved = flags::KNOWN & 1 << bit == 0;

            if reserved {
                assert_eq!(create(&|args| args.flags |= 1 << bit).err(), INVALID);
            }
        }
        // Nothing of that has made anything.
        assert_eq!(scene.double.journal.count(Entry::InitContextResource), 1);
        made(scene.double.destroy(made(create(&|_| ()))?))?;
        assert_eq!(scene.double.journal.count(Entry::InitContextResource), 2);
        assert!(scene.end());
        Ok(())
    }

    /// MEM-84: what is accessed physically in system memory is one range of the aperture before its
    /// driver is called, and is not there any more when it has ended. What does not fit is refused.
    #[test]
    fn mem_84_mem_90_the_aperture_shows_what_is_accessed_physically() -> Result {
        let scene = Scene::new()?;
        let double = &scene.double;
        let physical = |size| CreateContextAllocationArgs {
            flags: flags::ACCESSED_PHYSICALLY,
            size: size * PAGE,
            ..args_for(scene.context.id())
        };
        let plain = made(double.create(&args_for(scene.context.id())))?;

        assert_eq!(double.journal.in_aperture(), 0);

        // More than one operation shows.
        let first = made(double.create(&physical(100)))?;

        assert_eq!(double.journal.in_aperture(), 100);
        assert_eq!(double.journal.count(Entry::MapApertureSegment), 2);
        assert_eq!(
            double.create(&physical(SHOWN - 99)).err(),
            Some(KmdError::NoMemory)
        );
        assert_eq!(double.journal.in_aperture(), 100);

        let second = made(double.create(&physical(8)))?;

        assert_eq!(double.journal.in_aperture(), 108);
        made(double.destroy(first))?;
        assert!(double.shows(8));
        made(double.destroy(second))?;
        assert!(double.shows(0));
        made(double.destroy(plain))?;
        assert!(scene.end());
        Ok(())
    }

    /// MEM-86: a KMD cannot show what is protected or accessed physically by mistake, nor what it
    /// has no name of.
    #[test]
    fn mem_86_what_is_privileged_is_not_mapped() -> Result {
        let scene = Scene::new()?;
        let double = &scene.double;

        for bits in 0..=flags::KNOWN {
            let args = CreateContextAllocationArgs {
                flags: bits,
                ..args_for(scene.context.id())
            };

            if args.has(flags::SHARED_ACROSS_CONTEXTS) {
                continue;
            }

            let is_private = args.has(flags::PROTECTED | flags::ACCESSED_PHYSICALLY);
            let allocation = made(double.create(&args))?;

            match is_private && !args.has(flags::USER_VISIBLE) {
                true => assert_eq!(double.map(allocation, 1).err(), INVALID),
                false => assert_ne!(made(double.map(allocation, 1))?, 0),
            }
            assert_eq!(double.map(allocation, 5).err(), INVALID);
            assert_eq!(
                double.update(allocation, &[0; MAX_PRIVATE_DATA + 1]).err(),
                INVALID
            );
            // Those of nobody, and that of the other adapter.
            for near in [0, allocation.0 - 1, allocation.0 + 1, !allocation.0] {
                let near = ContextAllocationId(near);

                assert_eq!(double.map(near, 1).err(), INVALID);
                assert_eq!(double.update(near, &[1]).err(), INVALID);
                assert_eq!(double.destroy(near).err(), INVALID);
            }
            assert_eq!(scene.other.map(allocation, 1).err(), INVALID);
            assert_eq!(scene.other.destroy(allocation).err(), INVALID);
            made(double.destroy(allocation))?;
        }
        assert!(scene.end());
        Ok(())
    }

    /// MEM-90: a KMD destroys at any time: also in entries that hold what others wait for.
    #[test]
    fn mem_90_a_destroy_is_possible_in_every_entry() -> Result {
        let scene = Scene::new()?;
        let double = &scene.double;
        let args = CreateContextAllocationArgs {
            flags: flags::ACCESSED_PHYSICALLY,
            ..args_for(scene.context.id())
        };

        for inside in [
            Entry::CreateContext,
            Entry::SetRootPageTable,
            Entry::FlushTlb,
        ] {
            let visible = made(double.create(&args_for(scene.context.id())))?;

            made(double.map(visible, 1))?;

            let doomed = made(double.create(&args))?;

            assert!(double.shows(4));
            double.kept.lock().doomed = Some((inside, doomed));
            // A create, a root and a flush.
            drop(ok(context(scene.parent.device.clone()))?);
            made(double.destroy(visible))?;
            assert!(double.shows(0));
            assert_eq!(double.kept.lock().answer.take(), Some(Ok(())));
            assert_eq!(double.destroy(doomed).err(), INVALID);
        }
        assert!(scene.end());
        Ok(())
    }

    /// MEM-90: it is destroyed once, and by the end of its context or device otherwise. That of a
    /// device outlives its contexts (MEM-83).
    #[test]
    fn mem_83_mem_90_what_is_left_behind_ends_with_its_context_or_device() -> Result {
        let scene = Scene::new()?;
        let double = &scene.double;
        let devices = scene.good_ids(double, args_for_device)?;
        let of_context = CreateContextAllocationArgs {
            flags: flags::ACCESSED_PHYSICALLY,
            ..args_for(scene.context.id())
        };
        let device = args_for_device(*devices.first().ok_or(EINVAL)?);
        let of_device = CreateContextAllocationArgs {
            flags: device.flags | flags::ACCESSED_PHYSICALLY,
            size: 2 * PAGE,
            ..device
        };
        let once = made(double.create(&of_context))?;

        made(double.destroy(once))?;
        assert_eq!(double.destroy(once).err(), INVALID);
        assert_eq!(double.update(once, &[1]).err(), INVALID);
        assert!(double.shows(0));

        let [_, _] = [
            made(double.create(&of_context))?,
            made(double.create(&of_context))?,
        ];
        let left = made(double.create(&of_device))?;

        assert_eq!(double.journal.in_aperture(), 10);

        let Scene {
            client,
            double,
            other,
            parent,
            context,
            ..
        } = scene;

        drop(context);
        assert!(double.shows(2));
        // A context more or less makes no difference.
        drop(ok(crate::dxgk::test_client::context(
            parent.device.clone(),
        ))?);
        assert_eq!(double.map(left, 2).err(), INVALID);
        assert_eq!(double.journal.in_aperture(), 2);

        let journal = double.journal.clone();

        // The handle is the last reference.
        drop(parent);
        client.driver.release_process(&client.process);
        assert!(comes(|| journal.in_aperture() == 0));
        assert!(ends(client, [double, other]));
        Ok(())
    }
}
