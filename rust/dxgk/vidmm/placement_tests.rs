// SPDX-License-Identifier: GPL-2.0

//! Residency with a double below it: what the KMD is told, in which order and by which thread. Run
//! by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_placement)]
mod tests {
    use crate::{
        ddi::{
            paging::PageTableEntry,
            segments::SYSTEM_MEMORY, //
        },
        dxgk::{
            adapter::{
                Adapter,
                AdapterKind,
                AdapterOptions, //
            },
            handle::Parent,
            object::Object,
            sync::fence::Fence,
            test_client::Client,
            vidmm::{
                opened::Opened,
                paging_queue::PagingQueue,
                resident_list::{
                    Evicted,
                    MadeResident,
                    NotResident, //
                }, //
            }, //
        },
        kmd::fake::{
            allocation_data,
            journal::{
                Entry,
                Journal, //
            },
            operations::{
                Operations,
                What, //
            },
            Behaviour,
            FakeKmd,
            Pause,
            IN_LOCAL,
            PHYSICAL, //
        },
        logic::{
            allocation_properties::{
                flags,
                mask,
                Update, //
            },
            gpu_ranges::PAGE,
            gpu_va_rules::{
                self,
                Map,
                Wish, //
            },
            paging_rules::{
                evict::ONLY_IF_NECESSARY,
                Priority,
                AT_ONCE_PAGES, //
            }, //
        },
        platform::thread_id, //
    };
    use kernel::{
        prelude::*,
        sync::Arc,
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// Segments of the double.
    const APERTURE: u32 = 1;
    const LOCAL: u32 = 2;

    /// Pages of memory that it has.
    const LOCAL_PAGES: u64 = 16;

    /// A device of an adapter of the double, with a paging queue.
    struct Scene {
        journal: Arc<Journal>,
        operations: Arc<Operations>,
        parent: Parent,
        queue: Arc<PagingQueue>,
        fence: Arc<Fence>,
        // The last, because it ends what the others are.
        client: Client,
        adapter: Arc<Adapter>,
    }

    fn failed<E>(_: E) -> Error {
        EINVAL
    }

    impl Scene {
        fn new(pause: Option<Arc<Pause>>) -> Result<Self> {
            let client = Client::new()?;
            let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
            let operations = Arc::new(Operations::new().ok_or(ENOMEM)?, GFP_KERNEL)?;
            let behaviour = || Behaviour {
                operations: Some(operations.clone()),
                pause: pause.clone(),
                local_memory: LOCAL_PAGES * PAGE,
                ..Behaviour::default()
            };
            let adapter = client.driver.add_adapter(
                AdapterKind::TestDouble,
                &AdapterOptions::NONE,
                |_| {
                    let kmd = FakeKmd::add_device(journal.clone(), behaviour());

                    Ok(KBox::new(kmd, GFP_KERNEL)?)
                },
            )?;
            let (_, parent) = client.create_device(&adapter).map_err(failed)?;
            let made = client
                .process
                .create_paging_queue(&parent, Priority::Normal)
                .map_err(failed)?;
            let (queue, fence) = (made.handle(), made.fence_handle());

            made.commit();

            let handles = &client.process.handles;
            let queue = handles.paging_queue(queue).map_err(failed)?.what;
            let Object::Fence(fence) = handles.sync_object(fence).map_err(failed)?.object else {
                return Err(EINVAL);
            };

            Ok(Self {
                journal,
                operations,
                parent,
                queue,
                fence,
                client,
                adapter,
            })
        }

        fn allocation(&self, pages: u64, flags: u64, primary: bool) -> Result<Arc<Opened>> {
            let data = allocation_data(pages * PAGE, flags);
            let handle = self
                .client
                .create_allocation(&self.parent, &data, primary)
                .map_err(failed)?;
            let found = self.client.process.handles.allocation(handle);

            Ok(found
                .map_err(failed)?
                .what
                .opened()
                .map_err(failed)?
                .clone())
        }

        /// Shows all pages of an allocation somewhere.
        fn map(&self, opened: &Arc<Opened>) -> Result {
            let wish = Wish {
                base: 0,
                minimum: 0,
                maximum: 0,
            };
            let pages = (0, opened.memory.size() / PAGE);
            let protection = gpu_va_rules::protection::WRITE;
            let map = Map::new(opened.space.clients, wish, pages, protection, true);

            opened
                .space
                .map(&map.map_err(failed)?, Some(opened.opening()))
                .map_err(failed)?;
            Ok(())
        }

        fn list(all: &[&Arc<Opened>]) -> Result<KVVec<Arc<Opened>>> {
            let mut list = KVVec::new();

            for opened in all {
                list.push((*opened).clone(), GFP_KERNEL)?;
            }
            Ok(list)
        }

        /// Its value; `None` if there is no room.
        fn make_resident(&self, all: &[&Arc<Opened>]) -> Result<Option<u64>> {
            match MadeResident::new(&self.queue, Self::list(all)?, 0) {
                Ok(made) => {
                    let value = made.value;

                    made.commit();
                    Ok(Some(value))
                }
                Err(NotResident::OverBudget(_)) => Ok(None),
                Err(NotResident::Failed(_)) => Err(EINVAL),
            }
        }

        fn evict(&self, all: &[&Arc<Opened>], flags: u32) -> Result {
            Evicted::new(self.queue.device.clone(), Self::list(all)?, flags)
                .map_err(failed)?
                .commit();
            Ok(())
        }

        /// Waits until the fence of the queue shows a value, for some seconds at most.
        fn reaches(&self, value: u64) -> bool {
            for _ in 0..1000 {
                if self.fence.value() >= value {
                    return true;
                }
                fsleep(Delta::from_millis(5));
            }
            false
        }

        /// The valid entries of pages that were written since: the segment of all of them, and
        /// whether they follow each other. `None` if there are none, or in more than one segment.
        fn placed_since(&self, number: usize) -> Option<(u32, bool)> {
            let mut placed: Option<(u32, bool)> = None;

            for operation in self.operations.since(number) {
                let What::UpdatePageTable {
                    level: 0,
                    first: PageTableEntry::Page(page),
                    is_range,
                    ..
                } = operation.what
                else {
                    continue;
                };
                let (segment, all) = placed.unwrap_or((page.segment, true));

                if segment != page.segment {
                    return None;
                }
                placed = Some((segment, all && is_range));
            }
            placed
        }

        fn count_since(&self, number: usize, is_it: impl Fn(&What) -> bool) -> usize {
            self.operations
                .since(number)
                .filter(|operation| is_it(&operation.what))
                .count()
        }

        /// Memory in pieces of one page: every other one is taken, until those are evicted.
        fn divided(&self) -> Result<KVec<Arc<Opened>>> {
            let mut pieces = KVec::new();

            // All of it is more than the budget, and its size counts.
            for _ in 0..LOCAL_PAGES - 1 {
                let piece = self.allocation(1, IN_LOCAL, false)?;

                if self.make_resident(&[&piece])? != Some(0) {
                    return Err(ENOMEM);
                }
                pieces.push(piece, GFP_KERNEL)?;
            }
            for piece in pieces.iter().step_by(2) {
                self.evict(&[piece], 0)?;
            }
            Ok(pieces)
        }
    }

    fn is_map(what: &What) -> bool {
        matches!(what, What::MapApertureSegment { .. })
    }

    fn is_unmap(what: &What) -> bool {
        matches!(what, What::UnmapApertureSegment(_))
    }

    /// MEM-4: in a memory segment, what is accessed physically and what is displayed is one range,
    /// and what is neither takes any pages.
    #[test]
    fn mem_4_who_is_one_range_in_a_memory_segment() -> Result {
        for (flags, primary, is_range) in [
            (IN_LOCAL, false, false),
            (IN_LOCAL | PHYSICAL, false, true),
            (IN_LOCAL, true, true),
        ] {
            let scene = Scene::new(None)?;
            let pieces = scene.divided()?;
            let opened = scene.allocation(4, flags, primary)?;

            scene.map(&opened)?;

            let before = scene.operations.count();
            let resident = scene.make_resident(&[&opened])?;

            if is_range {
                assert!(resident.is_none());
                for piece in pieces.iter().skip(1).step_by(2) {
                    scene.evict(&[piece], 0)?;
                }
                assert_eq!(scene.make_resident(&[&opened])?, Some(0));
            } else {
                assert_eq!(resident, Some(0));
            }
            assert_eq!(scene.placed_since(before), Some((LOCAL, is_range)));
            assert_eq!(scene.journal.count(Entry::MapApertureSegment), 0);
            assert_eq!(scene.journal.broken(), 0);
        }
        Ok(())
    }

    /// MEM-4, MEM-78: in system memory the aperture shows what is accessed physically, each page
    /// once, while it is resident. Everything else is in page tables alone, also a primary, which
    /// is not displayed.
    #[test]
    fn mem_4_who_is_in_the_aperture() -> Result {
        for (flags, primary, is_shown) in
            [(0, false, false), (PHYSICAL, false, true), (0, true, false)]
        {
            let scene = Scene::new(None)?;
            let opened = scene.allocation(70, flags, primary)?;

            scene.map(&opened)?;
            assert_eq!(scene.journal.in_aperture(), 0);
            for round in 1..3 {
                let before = scene.operations.count();

                assert_eq!(scene.make_resident(&[&opened, &opened])?, Some(0));
                assert_eq!(
                    scene.placed_since(before).map(|(at, _)| at),
                    Some(SYSTEM_MEMORY)
                );
                // 70 pages are two operations.
                let maps = usize::from(is_shown) * 2;

                assert_eq!(scene.count_since(before, is_map), maps);
                assert_eq!(scene.journal.in_aperture(), usize::from(is_shown) * 70);
                if is_shown {
                    // Before anything leads there.
                    let first = scene.operations.get(before).ok_or(EINVAL)?.what;

                    assert!(matches!(
                        first,
                        What::MapApertureSegment {
                            segment: APERTURE,
                            page: 0,
                            ..
                        }
                    ));
                }

                let before = scene.operations.count();

                scene.evict(&[&opened], 0)?;
                assert_eq!(scene.operations.count(), before);
                scene.evict(&[&opened], 0)?;
                assert_eq!(scene.count_since(before, is_unmap), usize::from(is_shown));
                assert_eq!(scene.journal.in_aperture(), 0);
                assert_eq!(
                    scene.journal.count(Entry::UnmapApertureSegment),
                    usize::from(is_shown) * round
                );
                if is_shown {
                    // After the page tables were flushed.
                    let last = scene.operations.count().checked_sub(1).ok_or(EINVAL)?;
                    let last = scene.operations.get(last).ok_or(EINVAL)?.what;

                    assert!(is_unmap(&last));
                }
            }
            assert_eq!(scene.journal.broken(), 0);
        }
        Ok(())
    }

    /// MEM-78: also when handle, device and process end while it is resident, and after the adapter
    /// was removed.
    #[test]
    fn mem_78_the_aperture_shows_nothing_of_what_has_ended() -> Result {
        for is_removed in [false, true] {
            let scene = Scene::new(None)?;
            let opened = scene.allocation(3, PHYSICAL, false)?;

            scene.map(&opened)?;
            assert_eq!(scene.make_resident(&[&opened])?, Some(0));
            assert_eq!(scene.journal.in_aperture(), 3);
            if is_removed {
                scene.client.driver.remove_adapter(&scene.adapter);
            }
            drop(opened);

            let (journal, operations) = (scene.journal.clone(), scene.operations.clone());

            drop(scene);
            // A stopped adapter is told nothing.
            let unmaps = operations
                .since(0)
                .filter(|operation| is_unmap(&operation.what))
                .count();

            assert_eq!(unmaps, usize::from(!is_removed));
            assert_eq!(journal.in_aperture(), 0);
            assert!(journal.is_good_end());
        }
        Ok(())
    }

    /// MEM-28, MEM-72: the thread that calls takes pages and a value, and is told that they are
    /// pending. The worker tells the KMD, and signals after that.
    #[test]
    fn mem_28_the_calling_thread_takes_and_the_worker_does() -> Result {
        let pause = Pause::new(Entry::MapApertureSegment).ok_or(ENOMEM)?;
        let pause = Arc::new(pause, GFP_KERNEL)?;
        let scene = Scene::new(Some(pause.clone()))?;
        let shown = scene.allocation(2, PHYSICAL, false)?;
        let plain = scene.allocation(AT_ONCE_PAGES + 7, 0, false)?;

        scene.map(&plain)?;

        let before = scene.operations.count();

        assert_eq!(scene.make_resident(&[&shown, &plain])?, Some(1));

        // It has returned while the worker is at the first of them.
        pause.wait_for_call();
        assert_eq!(scene.fence.value(), 0);
        assert_eq!(scene.count_since(before, |what| !is_map(what)), 0);
        assert!(plain.memory.resident_in().is_none());

        // What is done in a call now comes after it.
        let other = scene.allocation(1, 0, false)?;

        assert_eq!(scene.make_resident(&[&other])?, Some(2));
        pause.release();
        assert!(scene.reaches(2));
        assert_eq!(plain.memory.resident_in(), Some(SYSTEM_MEMORY));

        let own = thread_id();
        let mut written = 0;

        for operation in scene.operations.since(before) {
            assert!(operation.thread != own);
            if let What::UpdatePageTable { count, .. } = operation.what {
                written += count as u64;
            }
        }
        assert_eq!(written, AT_ONCE_PAGES + 7);
        assert_eq!(scene.count_since(before, is_map), 1);
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }

    /// MEM-23: what stays until its room is wanted is resident again without any paging operation.
    #[test]
    fn mem_23_what_need_not_go_costs_no_operation() -> Result {
        let scene = Scene::new(None)?;

        for flags in [0, PHYSICAL, IN_LOCAL, IN_LOCAL | PHYSICAL] {
            let opened = scene.allocation(2, flags, false)?;

            scene.map(&opened)?;
            assert_eq!(scene.make_resident(&[&opened])?, Some(0));

            let before = scene.operations.count();

            for _ in 0..3 {
                scene.evict(&[&opened], ONLY_IF_NECESSARY)?;
                assert_eq!(scene.make_resident(&[&opened])?, Some(0));
            }
            assert_eq!(scene.operations.count(), before);
            scene.evict(&[&opened], 0)?;
            assert!(scene.operations.count() > before);
            assert!(opened.memory.resident_in().is_none());
        }
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }

    /// MEM-8: the change of one property tells the KMD what it has to know, and one that changes
    /// nothing tells it nothing.
    #[test]
    fn mem_8_a_change_is_told_and_no_change_is_not() -> Result {
        let scene = Scene::new(None)?;
        let opened = scene.allocation(2, 0, false)?;
        let both = (1 << (APERTURE - 1)) | (1 << (LOCAL - 1));
        let mut update = Update {
            mask: mask::SUPPORTED_SEGMENTS,
            supported: both,
            ..Update::default()
        };
        let change = |update: &Update| scene.queue.update_properties(&opened, update).is_ok();

        scene.map(&opened)?;
        assert_eq!(scene.make_resident(&[&opened])?, Some(0));

        let mut before = scene.operations.count();

        assert!(change(&update));
        assert!(change(&Update::default()));
        assert_eq!(scene.operations.count(), before);

        update.mask = mask::ACCESSED_PHYSICALLY;
        update.flags = flags::ACCESSED_PHYSICALLY;
        assert!(change(&update));
        assert_eq!(scene.count_since(before, is_map), 1);
        before = scene.operations.count();
        assert!(change(&update));
        assert_eq!(scene.operations.count(), before);

        update.mask = mask::PREFERRED_SEGMENT;
        update.preference = LOCAL;
        assert!(change(&update));
        assert_eq!(scene.count_since(before, is_unmap), 1);
        assert_eq!(scene.placed_since(before), Some((LOCAL, true)));
        assert_eq!(opened.memory.resident_in(), Some(LOCAL));
        before = scene.operations.count();
        update.preference = APERTURE;
        assert!(change(&update));
        assert_eq!(scene.count_since(before, is_map), 1);
        assert_eq!(
            scene.placed_since(before).map(|(at, _)| at),
            Some(SYSTEM_MEMORY)
        );
        assert_eq!(scene.journal.broken(), 0);
        Ok(())
    }
}
