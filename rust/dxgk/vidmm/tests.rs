// SPDX-License-Identifier: GPL-2.0

//! GPU address spaces over a double, whose engines a test stands for. Run by every load of the
//! module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_vidmm)]
mod tests {
    use super::super::{
        address_space::AddressSpace,
        opened::Opened, //
    };
    use crate::{
        ddi::{
            caps::{
                DriverCaps,
                GpuMmuCaps,
                PageTableUpdateMode, //
            },
            paging::PageTableEntry,
            reserve::ReserveRange,
            types::KmdError, //
        },
        dxgk::{
            adapter::{
                Adapter,
                AdapterKind,
                AdapterOptions, //
            },
            context::Context,
            handle::Parent,
            test_client::{
                context,
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
            mmu::{
                Found,
                Mmu,
                Tables,
                Wishes, //
            },
            operations::{
                Operation,
                Operations,
                What, //
            },
            queues::Queues,
            reserves::Reserves,
            Behaviour,
            FakeKmd, //
        },
        logic::{
            gpu_ranges::{
                Mapping,
                PAGE, //
            },
            gpu_va_rules::{
                protection,
                reservation,
                Map,
                Reserve,
                Wish, //
            }, //
        },
        platform::{
            completion,
            Completion, //
        }, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Release, //
            },
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue, //
    };

    /// `doc2`, whose root is as large as is asked for.
    const DOC2: Tables = Tables::Doc2 { rounds_to: 1 };

    /// What one entry of a root of `doc2` stands for.
    const PART: u64 = 4 << 20;

    fn ok<T>(result: DxgResult<T>) -> Result<T> {
        result.map_err(|_| EINVAL)
    }

    /// A client of an adapter with these page tables.
    struct Scene {
        journal: Arc<Journal>,
        mmu: Arc<Mmu>,
        operations: Arc<Operations>,
        engines: Arc<Queues>,
        adapter: Arc<Adapter>,
        client: Client,
    }

    impl Scene {
        fn new(tables: Tables, wishes: Wishes, suspends_at_once: bool) -> Result<Self> {
            Self::with(tables, wishes, suspends_at_once, None)
        }

        fn with(
            tables: Tables,
            wishes: Wishes,
            suspends_at_once: bool,
            reserves: Option<Arc<Reserves>>,
        ) -> Result<Self> {
            let client = Client::new()?;
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let engines = Arc::new(Queues::new(journal.clone()).ok_or(ENOMEM)?, GFP_KERNEL)?;
            let mmu = Mmu::new(&journal, tables, wishes).ok_or(ENOMEM)?;
            let mmu = Arc::new(mmu, GFP_KERNEL)?;
            let operations = Arc::new(Operations::new().ok_or(ENOMEM)?, GFP_KERNEL)?;
            let behaviour = Behaviour {
                mmu: Some(mmu.clone()),
                operations: Some(operations.clone()),
                queues: Some(engines.clone()),
                suspends_at_once,
                reserves,
                ..Behaviour::default()
            };
            let adapter = client.driver.add_adapter(
                AdapterKind::TestDouble,
                &AdapterOptions::NONE,
                |_| {
                    let kmd = FakeKmd::add_device(journal.clone(), behaviour.clone());

                    Ok(KBox::new(kmd, GFP_KERNEL)?)
                },
            )?;

            Ok(Self {
                journal,
                mmu,
                operations,
                engines,
                adapter,
                client,
            })
        }

        /// A device, and its address space.
        fn device(&self) -> Result<(Parent, Arc<AddressSpace>)> {
            let (_, parent) = ok(self.client.create_device(&self.adapter))?;
            let space = ok(parent.device.space())?.clone();

            Ok((parent, space))
        }

        /// An allocation of two pages, open on the device.
        fn allocation(&self, parent: &Parent) -> Result<(u32, Arc<Opened>)> {
            let (driver, process) = (&self.client.driver, &self.client.process);
            let handles = ok(Client::create_resource_in(driver, process, parent, 1))?;
            let local = *handles.get(1).ok_or(EINVAL)?;
            let found = ok(process.handles.allocation(local))?;

            Ok((local, ok(found.what.opened())?.clone()))
        }

        fn page(&self, context: &Context, address: u64) -> Option<u64> {
            match self.mmu.access(context.id(), address) {
                Found::Page(entry) => Some(entry.target().address),
                Found::Fault(_) | Found::Suspended => None,
            }
        }

        fn count(&self, entry: Entry) -> usize {
            self.journal.count(entry)
        }

        fn end(self) -> bool {
            let journal = self.journal.clone();

            self.client.driver.remove_adapter(&self.adapter);
            drop(self);
            wait_for_good_end(&journal);
            journal.is_good_end()
        }
    }

    /// Both pages at an address.
    fn map(space: &AddressSpace, opened: &Arc<Opened>, base: u64) -> DxgResult<u64> {
        let wish = Wish {
            base,
            minimum: 0,
            maximum: 0,
        };
        let request = Map::new(space.clients, wish, (0, 2), protection::WRITE, true)?;

        let undo = space.map(&request, Some(opened.opening()))?;

        Ok(undo.pages().0 * PAGE)
    }

    fn make_resident(opened: &Opened) -> Result {
        assert!(opened.memory.want(opened.id));
        opened.memory.prepare().map_err(|_| ENOMEM)?;
        ok(opened.memory.finish())
    }

    fn evict(opened: &Opened) {
        assert!(opened.memory.unwant(opened.id, opened.device, false));
        opened.memory.trim(false);
    }

    /// Where a page of an allocation is.
    fn physical(opened: &Opened, offset: u64) -> Option<u64> {
        let mapping = Mapping {
            opening: opened.id,
            offset,
            write: true,
            execute: false,
            driver_protection: 0,
        };

        match opened.memory.placement()?.entry(&mapping) {
            PageTableEntry::Page(page) => Some(page.address),
            _ => None,
        }
    }

    /// MEM-51: an adapter whose page tables make no sense does not start, and one with none does.
    #[test]
    fn mem_51_bad_levels_are_refused_at_start() -> Result {
        type Change = fn(&mut DriverCaps);

        let cases: [(Change, bool); 11] = [
            (|_| (), true),
            (|caps| caps.gpu_mmu.page_table_levels = 1, false),
            (|caps| caps.gpu_mmu.page_table_levels = 7, false),
            (|caps| caps.gpu_mmu.levels[2].index_bits = 0, false),
            (|caps| caps.gpu_mmu.levels[0].table_bytes = 8192, false),
            (|caps| caps.gpu_mmu.address_bits = 20, false),
            // There is no such segment.
            (|caps| caps.gpu_mmu.levels[1].segment = 9, false),
            (
                |caps| caps.gpu_mmu.levels[1].paging_process_segment = 9,
                false,
            ),
            (
                |caps| caps.gpu_mmu.page_table_update_mode = PageTableUpdateMode::GpuVirtual,
                false,
            ),
            (
                |caps| (caps.gpu_mmu, caps.io_mmu) = (GpuMmuCaps::default(), true),
                false,
            ),
            (
                |caps| (caps.gpu_mmu, caps.io_mmu) = (GpuMmuCaps::default(), false),
                true,
            ),
        ];

        for (change, starts) in cases {
            let client = Client::new()?;
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let behaviour = Behaviour {
                change_caps: Some(change),
                ..Behaviour::default()
            };
            let added =
                client
                    .driver
                    .add_adapter(AdapterKind::TestDouble, &AdapterOptions::NONE, |_| {
                        let kmd = FakeKmd::add_device(journal.clone(), behaviour);

                        Ok(KBox::new(kmd, GFP_KERNEL)?)
                    });

            match added {
                Ok(adapter) => {
                    assert!(starts);
                    client.driver.remove_adapter(&adapter);
                }
                Err(error) => assert!(!starts && error == EINVAL),
            }
            drop(client);
            wait_for_good_end(&journal);
            assert!(journal.is_good_end());
        }
        Ok(())
    }

    /// Every set of wishes of a KMD, for both kinds of tables.
    fn profiles() -> impl Iterator<Item = (Tables, Wishes)> {
        (0..16u32).map(|bits| {
            let wishes = Wishes {
                idle: bits & 1 != 0,
                invalid_not_cached: bits & 2 != 0,
                explicit_invalidation: bits & 4 != 0,
                pages_64kb: false,
            };

            (if bits & 8 != 0 { DOC2 } else { Tables::Uma }, wishes)
        })
    }

    /// MEM-52, MEM-54, MEM-56: whatever the tables look like and the KMD wishes, engines find what
    /// is mapped and resident, and nothing else, and never what was before.
    #[test]
    fn mem_52_every_profile_finds_what_is_mapped() -> Result {
        for (tables, wishes) in profiles() {
            let scene = Scene::new(tables, wishes, true)?;
            let (parent, space) = scene.device()?;
            let context = ok(context(parent.device.clone()))?;
            let (_, first) = scene.allocation(&parent)?;
            let (_, second) = scene.allocation(&parent)?;
            let low = ok(map(&space, &first, 0))?;
            let high = 0xf000_0000;

            assert_eq!(ok(map(&space, &first, high))?, high);
            assert_eq!(scene.page(&context, low), None);
            make_resident(&first)?;
            make_resident(&second)?;
            for address in [low, high] {
                assert_eq!(scene.page(&context, address), physical(&first, 0));
                assert_eq!(scene.page(&context, address + PAGE), physical(&first, 1));
                assert_eq!(scene.page(&context, address + 2 * PAGE), None);
            }
            // MEM-44: what is mapped over it is found at once.
            assert_eq!(ok(map(&space, &second, high))?, high);
            assert_eq!(scene.page(&context, high), physical(&second, 0));
            evict(&second);
            assert_eq!(scene.page(&context, high), None);
            ok(space.free(high / PAGE, high / PAGE + 2))?;
            assert_eq!(scene.page(&context, high), None);
            assert_eq!(scene.page(&context, low), physical(&first, 0));
            drop((context, first, second, space, parent));
            assert!(scene.end());
        }
        Ok(())
    }

    /// MEM-54, MEM-59: the root grows with the highest address and shrinks with it. Contexts are
    /// suspended meanwhile, those of HW queues too, and one that comes later knows the new root.
    #[test]
    fn mem_54_mem_59_contexts_learn_of_a_root_that_moves() -> Result {
        let scene = Scene::new(DOC2, Wishes::default(), true)?;
        let (parent, space) = scene.device()?;
        let early = ok(context(parent.device.clone()))?;
        let gone = ok(context(parent.device.clone()))?;
        let (_, opened) = scene.allocation(&parent)?;
        let roots = scene.count(Entry::SetRootPageTable);

        assert_eq!(roots, 2);
        make_resident(&opened)?;
        drop(gone);
        assert_eq!(ok(map(&space, &opened, 100 * PART))?, 100 * PART);
        assert_eq!(scene.mmu.root_entries(early.id()), 101);
        assert_eq!(scene.page(&early, 100 * PART), physical(&opened, 0));

        let late = ok(context(parent.device.clone()))?;

        assert_eq!(scene.mmu.root_entries(late.id()), 101);
        assert_eq!(scene.page(&late, 100 * PART), physical(&opened, 0));
        ok(space.free(100 * PART / PAGE, 100 * PART / PAGE + 2))?;
        assert!(scene.mmu.root_entries(early.id()) < 100);
        assert_eq!(
            scene.mmu.root_entries(early.id()),
            scene.mmu.root_entries(late.id())
        );
        assert_eq!(scene.page(&late, 100 * PART), None);
        assert_eq!(
            scene.count(Entry::SuspendContext),
            scene.count(Entry::ResumeContext)
        );
        drop((early, late, opened, space, parent));
        assert!(scene.end());
        Ok(())
    }

    /// MEM-40, MEM-54: the first entry of a root of two levels leads nowhere, and values of fences
    /// do not make it large.
    #[test]
    fn mem_40_the_first_entry_of_a_small_root_stays_invalid() -> Result {
        let scene = Scene::new(DOC2, Wishes::default(), true)?;
        let (parent, space) = scene.device()?;
        let context = ok(context(parent.device.clone()))?;
        let (_, opened) = scene.allocation(&parent)?;

        make_resident(&opened)?;
        for base in [PAGE, 64 << 10, PART - 2 * PAGE] {
            assert!(is(
                map(&space, &opened, base).map(drop),
                Status::INVALID_PARAMETER
            ));
        }

        let picked = ok(map(&space, &opened, 0))?;

        assert!(picked >= PART);
        assert!(scene.mmu.root_entries(context.id()) < 64);
        assert_eq!(scene.page(&context, picked), physical(&opened, 0));
        drop((context, opened, space, parent));
        assert!(scene.end());
        Ok(())
    }

    /// MEM-55: entries that go with their memory are told to be evicted, others are not.
    #[test]
    fn mem_55_evictions_are_notified() -> Result {
        let scene = Scene::new(Tables::Uma, Wishes::default(), true)?;
        let (parent, space) = scene.device()?;
        let (_, opened) = scene.allocation(&parent)?;
        let base = ok(map(&space, &opened, 0))?;
        let notified = |from| {
            let evictions = scene.operations.since(from).filter(|said| {
                matches!(
                    said.what,
                    What::UpdatePageTable {
                        notify_eviction: true,
                        first: PageTableEntry::Invalid,
                        count: 2,
                        ..
                    }
                )
            });

            evictions.count()
        };
        let before = scene.operations.count();

        make_resident(&opened)?;
        assert_eq!(notified(before), 0);
        evict(&opened);
        assert_eq!(notified(before), 1);
        make_resident(&opened)?;

        let before = scene.operations.count();

        ok(space.free(base / PAGE, base / PAGE + 2))?;
        assert_eq!(notified(before), 0);
        drop((opened, space, parent));
        assert!(scene.end());
        Ok(())
    }

    /// MEM-43: DriverProtection of a map comes with its entries, whenever they are written.
    #[test]
    fn mem_43_driver_protection_reaches_the_kmd() -> Result {
        let scene = Scene::new(Tables::Uma, Wishes::default(), true)?;
        let (parent, space) = scene.device()?;
        let (_, opened) = scene.allocation(&parent)?;
        let wish = Wish {
            base: 0,
            minimum: 0,
            maximum: 0,
        };
        let request = Map {
            driver_protection: 0xfedc_ba98_7654_3210,
            ..ok(Map::new(space.clients, wish, (0, 2), 0, true).map_err(Into::into))?
        };
        let said = |from| {
            scene.operations.since(from).any(|said| {
                matches!(
                    said.what,
                    What::UpdatePageTable {
                        level: 0,
                        driver_protection: 0xfedc_ba98_7654_3210,
                        first: PageTableEntry::Page(_),
                        ..
                    }
                )
            })
        };
        let before = scene.operations.count();

        ok(space.map(&request, Some(opened.opening())))?;
        assert!(!said(before));
        make_resident(&opened)?;
        assert!(said(before));
        drop((opened, space, parent));
        assert!(scene.end());
        Ok(())
    }

    /// MEM-49, MEM-58: a map that comes when the open has ended finds that out, although the open
    /// still counts as a user of the allocation. It would write entries that nobody takes out.
    #[test]
    fn mem_58_nothing_is_mapped_of_an_open_that_has_ended() -> Result {
        let scene = Scene::new(Tables::Uma, Wishes::default(), true)?;
        let (parent, space) = scene.device()?;
        let context = ok(context(parent.device.clone()))?;
        let (_, opened) = scene.allocation(&parent)?;
        let base = ok(map(&space, &opened, 0))?;

        make_resident(&opened)?;
        assert_eq!(scene.page(&context, base), physical(&opened, 0));
        space.end_opening(opened.opening());
        assert_eq!(scene.page(&context, base), None);
        assert!(is(
            map(&space, &opened, base).map(drop),
            Status::INVALID_PARAMETER
        ));
        assert_eq!(scene.page(&context, base), None);
        drop((context, opened, space, parent));
        assert!(scene.end());
        Ok(())
    }

    /// What the KMD reserves: two parts of 2 MiB, of which clients may map in the second.
    const RESERVED: [ReserveRange; 3] = [
        ReserveRange {
            size: 2 << 20,
            alignment: 2 << 20,
            allow_user_mode_mapping: false,
        },
        ReserveRange {
            size: 2 << 20,
            alignment: 2 << 20,
            allow_user_mode_mapping: true,
        },
        ReserveRange {
            size: 1 << 20,
            alignment: 2 << 20,
            allow_user_mode_mapping: true,
        },
    ];

    /// MEM-64: what the KMD has reserved has tables from the start, full of invalid entries, and
    /// clients can neither get it nor free it. In a part that is shared they can map.
    #[test]
    fn mem_64_what_the_kmd_reserves_is_its_own() -> Result {
        let reserves = Arc::new(Reserves::new(&RESERVED).ok_or(ENOMEM)?, GFP_KERNEL)?;
        let scene = Scene::with(Tables::Uma, Wishes::default(), true, Some(reserves.clone()))?;
        let before = scene.operations.count();
        let (parent, space) = scene.device()?;
        let given = |number| {
            reserves
                .given(number)
                .and_then(|given| given.ok())
                .ok_or(EINVAL)
        };
        let (own, shared) = (given(0)?, given(1)?);

        assert_eq!(reserves.given(2), Some(Err(KmdError::InvalidParameter)));
        assert!(own % (2 << 20) == 0 && shared % (2 << 20) == 0 && own != shared);
        for base in [own, shared] {
            let is_initial = |said: Operation| {
                matches!(
                    said.what,
                    What::UpdatePageTable {
                        level: 0,
                        address,
                        count: 512,
                        first: PageTableEntry::Invalid,
                        initial_update: true,
                        ..
                    } if address == base
                )
            };

            assert_eq!(
                scene
                    .operations
                    .since(before)
                    .filter(|it| is_initial(*it))
                    .count(),
                1
            );
        }

        let context = ok(context(parent.device.clone()))?;
        let (_, opened) = scene.allocation(&parent)?;
        let extent = space.extent();
        let refused = |result: DxgResult| is(result, Status::INVALID_PARAMETER);
        let reserve = |base| {
            let wish = Wish {
                base,
                minimum: 0,
                maximum: 0,
            };
            let request = Reserve::new(space.clients, wish, 64 << 10, reservation::ZERO)?;

            space.reserve(&request).map(drop)
        };
        let free = |base| space.free(base / PAGE, base / PAGE + 2);

        make_resident(&opened)?;
        assert!(refused(map(&space, &opened, own).map(drop)));
        for base in [own, shared] {
            assert!(refused(reserve(base)));
            assert!(refused(free(base)));
        }
        assert_eq!(space.extent(), extent);
        for round in 0..3 {
            assert_eq!(ok(map(&space, &opened, shared))?, shared);
            assert_eq!(scene.page(&context, shared), physical(&opened, 0));
            // Not more than what is mapped.
            assert!(refused(space.free(shared / PAGE, shared / PAGE + 3)));
            match round {
                2 => space.end_opening(opened.opening()),
                _ => ok(free(shared))?,
            }
            assert_eq!(scene.page(&context, shared), None);
            assert_eq!(space.extent(), extent);
        }
        assert!(refused(free(shared)));
        drop((context, opened, space, parent));
        assert!(scene.end());
        Ok(())
    }

    /// Something that another thread does.
    struct Beside {
        is_done: Atomic<bool>,
        done: Completion,
    }

    impl Beside {
        fn start(run: impl FnOnce() + Send + 'static) -> Result<Arc<Self>> {
            let this = Arc::new(
                Self {
                    is_done: Atomic::new(false),
                    done: completion().ok_or(ENOMEM)?,
                },
                GFP_KERNEL,
            )?;
            let theirs = this.clone();

            workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
                run();
                theirs.is_done.store(true, Release);
                theirs.done.complete_all();
            })?;
            Ok(this)
        }
    }

    /// MEM-59: a call that moves the root waits until every context says that it does not run.
    #[test]
    fn mem_59_a_root_moves_when_the_last_context_is_suspended() -> Result {
        let scene = Scene::new(DOC2, Wishes::default(), false)?;
        let (parent, space) = scene.device()?;
        let contexts = [
            ok(context(parent.device.clone()))?,
            ok(context(parent.device.clone()))?,
        ];
        let (_, opened) = scene.allocation(&parent)?;
        let before = scene.mmu.root_entries(contexts[0].id());

        assert!(before < 500);

        let mapping = Beside::start({
            let (space, opened) = (space.clone(), opened.clone());
            move || {
                let _mapped = map(&space, &opened, 500 * PART);
            }
        })?;

        while scene.count(Entry::SuspendContext) != 2 {
            fsleep(Delta::from_millis(1));
        }
        for (context, is_last) in contexts.iter().zip([false, true]) {
            fsleep(Delta::from_millis(20));
            assert!(!mapping.is_done.load(Acquire));
            assert_eq!(scene.mmu.root_entries(context.id()), before);
            // Another id is of no suspension that anybody waits for.
            assert!(scene.engines.suspended(context.id(), 77));
            fsleep(Delta::from_millis(20));
            assert!(!mapping.is_done.load(Acquire));
            scene.mmu.suspended(context.id());
            assert!(scene.engines.suspended(context.id(), 1));
            if is_last {
                mapping.done.wait_for_completion();
            }
        }
        for context in &contexts {
            assert_eq!(scene.mmu.root_entries(context.id()), 501);
        }
        drop((contexts, opened, space, parent));
        // The double would keep contexts suspended for ever that shrink the root.
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }

    /// MEM-53, MEM-56: a reservation that reads as zero, with parts of it mapped and not, leaves
    /// nothing in the tables when it goes, and no table but the root.
    #[test]
    fn mem_53_tables_go_with_what_needs_them() -> Result {
        for (tables, wishes) in profiles() {
            let scene = Scene::new(tables, wishes, true)?;
            let (parent, space) = scene.device()?;
            let context = ok(context(parent.device.clone()))?;
            let (_, opened) = scene.allocation(&parent)?;
            let (_, before) = space.extent();
            let wish = Wish {
                base: 0x8000_0000,
                minimum: 0,
                maximum: 0,
            };
            let request = Reserve::new(space.clients, wish, 3 * PART, reservation::ZERO);
            let undo = ok(space.reserve(&ok(request.map_err(Into::into))?))?;
            let base = undo.pages().0 * PAGE;

            make_resident(&opened)?;
            assert_eq!(ok(map(&space, &opened, base + PART))?, base + PART);
            assert_eq!(scene.page(&context, base + PART), physical(&opened, 0));
            ok(space.free(base / PAGE, (base + 3 * PART) / PAGE))?;
            assert_eq!(scene.page(&context, base + PART), None);
            assert_eq!(space.extent(), (0, before));
            drop((context, opened, space, parent));
            assert!(scene.end());
        }
        Ok(())
    }
}
