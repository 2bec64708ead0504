// SPDX-License-Identifier: GPL-2.0

//! Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_handle_table)]
mod tests {
    use crate::{
        dxgk::{
            adapter::Adapter,
            context::{
                Class,
                Context,
                Description,
                Scheduling, //
            },
            device::Device,
            handle::{
                more_handles::Part,
                *, //
            },
            object::Object,
            test_client::{
                started,
                Client, //
            }, //
        },
        kmd::fake::Behaviour,
        logic::{
            access,
            sync_flags::{
                bits,
                Contents,
                Creation, //
            }, //
        },
    };
    use kernel::sync::Arc;

    fn table() -> Result<Arc<HandleTable>> {
        Arc::pin_init(HandleTable::new(), GFP_KERNEL)
    }

    /// An adapter with a test double below it.
    fn adapter_with_double() -> Result<Arc<Adapter>> {
        let (_, adapter) = started(Behaviour::default())?;

        adapter.map_err(|_| EINVAL)
    }

    fn adapter() -> Result<HandleTarget> {
        Ok(HandleTarget::Adapter(adapter_with_double()?))
    }

    fn reserve<'a>(table: &'a HandleTable, parent: Option<&Parent>) -> Result<Reserved<'a>> {
        table.reserve(adapter()?, parent).map_err(|_| EINVAL)
    }

    fn is_adapter(item: &HandleTarget) -> bool {
        matches!(item, HandleTarget::Adapter(_))
    }

    /// RES-6, FEN-52.
    #[test]
    fn handles_come_in_one_chain() -> Result {
        let table = table()?;
        let first = reserve(&table, None)?;
        let second = reserve(&table, None)?;

        assert_eq!(first.handle() + 0x40, second.handle());
        assert_eq!(first.handle() & 0x3f, 0);
        first.commit();
        second.commit();
        Ok(())
    }

    /// RES-3.
    #[test]
    fn a_reserved_handle_does_not_resolve() -> Result {
        let table = table()?;
        let reserved = reserve(&table, None)?;
        let handle = reserved.handle();

        assert!(table.adapter(handle).is_err());
        assert!(table.destroy(handle, is_adapter).is_err());
        reserved.commit();
        assert!(table.adapter(handle).is_ok());
        assert!(table.device(handle).is_err());
        Ok(())
    }

    /// RES-4.
    #[test]
    fn a_dropped_reservation_gives_its_number_back() -> Result {
        let table = table()?;
        let reserved = reserve(&table, None)?;
        let handle = reserved.handle();

        drop(reserved);
        assert_eq!(table.count(), 0);
        assert_eq!(reserve(&table, None)?.handle(), handle);
        Ok(())
    }

    /// A destroyed number is dead and is not given out again.
    #[test]
    fn a_destroyed_handle_stays_dead() -> Result {
        let table = table()?;
        let reserved = reserve(&table, None)?;
        let handle = reserved.handle();

        reserved.commit();
        assert!(table.destroy(handle, |_| false).is_err());
        assert!(table.destroy(handle, is_adapter).is_ok());
        assert!(table.destroy(handle, is_adapter).is_err());
        assert!(table.adapter(handle).is_err());
        assert_eq!(reserve(&table, None)?.handle(), handle + 0x40);
        Ok(())
    }

    /// A published handle of a new device.
    fn device(table: &HandleTable) -> Result<Parent> {
        let client = Client::new()?;
        let device = Device::new(adapter_with_double()?, client.process.clone(), false)
            .map_err(|_| EINVAL)?;
        let item = HandleTarget::Device(device);
        let reserved = table.reserve(item, None).map_err(|_| EINVAL)?;
        let handle = reserved.handle();

        reserved.commit();
        table.parent(handle).map_err(|_| EINVAL)
    }

    fn destroy_device(table: &HandleTable, parent: &Parent) -> bool {
        table
            .destroy(handle::local(parent.index), |item| {
                matches!(item, HandleTarget::Device(_))
            })
            .is_ok()
    }

    fn publish(table: &HandleTable, parent: Option<&Parent>) -> Result<u32> {
        publish_of(table, parent, adapter_with_double()?)
    }

    /// The same of an adapter that there is: an adapter takes its time to start.
    fn publish_of(
        table: &HandleTable,
        parent: Option<&Parent>,
        adapter: Arc<Adapter>,
    ) -> Result<u32> {
        let item = HandleTarget::Adapter(adapter);
        let reserved = table.reserve(item, parent).map_err(|_| EINVAL)?;
        let handle = reserved.handle();

        reserved.commit();
        Ok(handle)
    }

    /// RES-31: what was made on a device is destroyed with it, and nothing else.
    #[test]
    fn a_device_takes_its_children_along() -> Result {
        let table = table()?;
        let other = publish(&table, None)?;
        let parent = device(&table)?;
        let child = publish(&table, Some(&parent))?;

        assert_eq!(table.count(), 3);
        assert!(destroy_device(&table, &parent));
        assert!(table.adapter(child).is_err());
        assert!(table.adapter(other).is_ok());
        assert_eq!(table.count(), 1);
        assert!(!destroy_device(&table, &parent));
        // The device was looked up before it went.
        assert!(reserve(&table, Some(&parent)).is_err());
        assert_eq!(table.count(), 1);
        Ok(())
    }

    /// RES-31: among the children of two devices, in whatever order they go.
    #[test]
    fn devices_keep_their_own_children() -> Result {
        let table = table()?;
        let (first, second) = (device(&table)?, device(&table)?);
        let adapter = adapter_with_double()?;
        let mut mine = KVec::new();
        let mut theirs = KVec::new();

        for _ in 0..100 {
            mine.push(
                publish_of(&table, Some(&first), adapter.clone())?,
                GFP_KERNEL,
            )?;
            theirs.push(
                publish_of(&table, Some(&second), adapter.clone())?,
                GFP_KERNEL,
            )?;
        }
        // The oldest, the youngest, and every third one.
        for (number, handle) in mine.iter().enumerate() {
            if number % 3 == 0 {
                assert!(table.destroy(*handle, is_adapter).is_ok());
            }
        }
        assert!(destroy_device(&table, &first));
        assert_eq!(table.count(), 101);
        assert!(mine.iter().all(|handle| table.adapter(*handle).is_err()));
        assert!(theirs.iter().all(|handle| table.adapter(*handle).is_ok()));
        assert!(destroy_device(&table, &second));
        assert_eq!(table.count(), 0);
        Ok(())
    }

    /// A published handle of a new context below `parent`, as a parent itself.
    fn context(table: &HandleTable, parent: &Parent) -> Result<Parent> {
        let description = Description {
            scheduling: Scheduling::HwQueues,
            class: Class::HwContext,
            node: 0,
            engines: 1,
            disable_gpu_timeout: false,
            private_data: KVVec::new(),
        };
        let context = Context::new(parent.device.clone(), &description).map_err(|_| EINVAL)?;
        let id = context.id();
        let item = HandleTarget::Context(context);
        let reserved = table.reserve(item, Some(parent)).map_err(|_| EINVAL)?;
        let index = handle::local_index(reserved.handle()).ok_or(EINVAL)?;

        reserved.commit();
        Ok(Parent {
            device: parent.device.clone(),
            index,
            id,
        })
    }

    /// RES-31: four levels, and what is in the middle is destroyed with what is below it only.
    #[test]
    fn children_have_children() -> Result {
        let table = table()?;
        let top = device(&table)?;
        let first = publish(&table, Some(&top))?;
        let second = context(&table, &top)?;
        let last = publish(&table, Some(&top))?;
        let third = context(&table, &second)?;
        let fourth = [
            publish(&table, Some(&third))?,
            publish(&table, Some(&third))?,
        ];
        let beside = publish(&table, Some(&second))?;

        assert_eq!(table.count(), 8);
        assert!(table
            .destroy(handle::local(third.index), is_adapter)
            .is_err());
        assert!(table
            .destroy(handle::local(third.index), is_context)
            .is_ok());
        assert!(fourth.iter().all(|handle| table.adapter(*handle).is_err()));
        assert_eq!(table.count(), 5);
        assert!(table.adapter(beside).is_ok());
        assert!(reserve(&table, Some(&third)).is_err());

        let again = context(&table, &second)?;
        let deepest = publish(&table, Some(&again))?;
        let pending = reserve(&table, Some(&again))?;

        assert!(destroy_device(&table, &top));
        assert_eq!(table.count(), 0);
        for handle in [first, last, beside, deepest] {
            assert!(table.adapter(handle).is_err());
        }
        pending.commit();
        assert_eq!(table.count(), 0);
        Ok(())
    }

    /// RES-31: as deep as a table has room for. No step of its end is recursive.
    #[test]
    fn a_tree_may_be_deep() -> Result {
        let table = table()?;
        let top = device(&table)?;
        let mut at = context(&table, &top)?;

        // Far more than fit the stack, if each took some of it.
        for _ in 0..1_000 {
            at = context(&table, &at)?;
        }
        assert!(destroy_device(&table, &top));
        assert_eq!(table.count(), 0);

        // Closing a table whose numbers have wrapped ends children first, too.
        let table = Arc::pin_init(
            HandleTable::starting_with(Cursor::starting_at(handle::LAST_INDEX - 1)),
            GFP_KERNEL,
        )?;
        let top = device(&table)?;
        let middle = context(&table, &top)?;

        publish(&table, Some(&context(&table, &middle)?))?;
        table.close();
        assert_eq!(table.count(), 0);
        Ok(())
    }

    impl Client {
        /// A fence that devices of all adapters may use.
        fn create_fence(&self, parent: &Parent) -> Result<u32> {
            let contents = Contents::MonitoredFence {
                value: 1,
                engines: 1,
            };
            let flags = bits::SHARED | bits::NT_SECURITY_SHARING | bits::CROSS_ADAPTER;
            let creation = Creation::new(contents, flags).map_err(|_| EINVAL)?;
            let reserved = self
                .process
                .create_sync_object(&self.driver.tables, parent, &creation)
                .map_err(|_| EINVAL)?
                .opened
                .reserved;
            let handle = reserved.handle();

            reserved.commit();
            Ok(handle)
        }

        /// Opens it on something else as well.
        fn open_fence(&self, handle: u32, parent: &Parent) -> Result<u32> {
            let shareable = self.process.handles.shareable(handle);
            let opened = self
                .process
                .open_object(
                    shareable.map_err(|_| EINVAL)?.strong,
                    access::ALL,
                    Some(parent),
                )
                .map_err(|_| EINVAL)?;
            let handle = opened.first();

            opened.commit();
            Ok(handle)
        }

        fn duplicate(&self, handle: u32) -> Result<u32> {
            let reserved = self
                .process
                .duplicate(handle, Part::Whole)
                .map_err(|_| EINVAL)?;
            let handle = reserved.handle();

            reserved.commit();
            Ok(handle)
        }

        fn fence_value(&self, handle: u32) -> Option<u64> {
            match self.process.handles.shareable(handle).ok()?.strong.object() {
                Object::Fence(fence) => Some(fence.value()),
                _ => None,
            }
        }

        /// A resource with one allocation: the handles of both.
        fn create_one(&self, parent: &Parent) -> Result<[u32; 2]> {
            let made = Self::create_resource_in(&self.driver, &self.process, parent, 1);
            let made = made.map_err(|_| EINVAL)?;

            made.as_slice().try_into().map_err(|_| EINVAL)
        }
    }

    fn is_context(item: &HandleTarget) -> bool {
        matches!(item, HandleTarget::Context(_))
    }

    /// The handles of the parent and of the device.
    fn place(table: &HandleTable, local: u32) -> Option<(Option<u32>, Option<u32>)> {
        let state = table.state.lock();
        let entry = state.find(local)?;

        Some((entry.parent(), state.device_of(entry)))
    }

    /// RES-17, RES-31, FEN-26, FEN-105: a fence below a context, and what is made beside it, is one
    /// of the device, and ends with the context.
    #[test]
    fn a_fence_below_a_context_belongs_to_its_device() -> Result {
        let client = Client::new()?;
        let table = &client.process.handles;
        let (home, top) = (device(table)?, device(table)?);
        let middle = context(table, &top)?;
        let below = context(table, &middle)?;
        let [home_device, top_device, context_handle] =
            [home.index, top.index, below.index].map(handle::local);
        let first = client.create_fence(&home)?;
        let fence = client.open_fence(first, &below)?;
        let copy = client.duplicate(fence)?;

        assert_eq!(
            place(table, first),
            Some((Some(home_device), Some(home_device)))
        );
        for local in [fence, copy] {
            assert_eq!(
                place(table, local),
                Some((Some(context_handle), Some(top_device)))
            );

            let is_for = |device| {
                let lookup = table.lookup();
                let opened = lookup.sync_object(local).ok()?;

                lookup.is_for(&opened, device).ok()
            };

            assert_eq!(is_for(top_device), Some(true));
            assert_eq!(is_for(home_device), Some(true));
            // A context is no device.
            assert_eq!(is_for(context_handle), None);
        }

        assert_eq!(client.fence_value(first), Some(1));
        table.adapter_removed(&top.device.adapter);
        assert_eq!(client.fence_value(first), Some(u64::MAX));

        assert!(table
            .destroy(handle::local(middle.index), is_context)
            .is_ok());
        for local in [context_handle, fence, copy] {
            assert!(place(table, local).is_none());
        }
        assert!(place(table, first).is_some());
        assert!(place(table, top_device).is_some());
        Ok(())
    }

    /// RES-31: a resource below a context is found and destroyed by the device alone.
    #[test]
    fn a_resource_below_a_context_belongs_to_its_device() -> Result {
        let client = Client::new()?;
        let table = &client.process.handles;
        let (other, top) = (device(table)?, device(table)?);
        let below = context(table, &top)?;
        let device = handle::local(top.index);

        for wrong in [other.index, below.index].map(handle::local) {
            let [resource, allocation] = client.create_one(&below)?;

            assert!(table.allocation_of(wrong, allocation).is_err());
            assert!(table.allocations_of_resource(wrong, resource).is_err());
            assert!(table.destroy_allocations(wrong, &[allocation], 0).is_err());
            assert!(table.destroy_resource(wrong, resource, 0).is_err());

            assert!(table.allocation_of(device, allocation).is_ok());
            assert!(table.allocations_of_resource(device, resource).is_ok());
            assert!(table.destroy_allocations(device, &[allocation], 0).is_ok());
            assert!(table.destroy_resource(device, resource, 0).is_ok());
        }

        let [resource, allocation] = client.create_one(&below)?;
        let copy = client.duplicate(allocation)?;

        assert!(table.allocation_of(device, copy).is_ok());
        assert!(table
            .destroy(handle::local(below.index), is_context)
            .is_ok());
        for local in [resource, allocation, copy] {
            assert!(place(table, local).is_none());
        }
        assert_eq!(table.count(), 2);
        Ok(())
    }

    /// A child that is only reserved is destroyed with its device, and does not come back.
    #[test]
    fn a_device_takes_reserved_children_along() -> Result {
        let table = table()?;
        let parent = device(&table)?;
        let (kept, dropped) = (
            reserve(&table, Some(&parent))?,
            reserve(&table, Some(&parent))?,
        );
        let (kept_handle, number) = (kept.handle(), dropped.handle());

        assert!(destroy_device(&table, &parent));
        assert_eq!(table.count(), 0);
        kept.commit();
        assert!(table.adapter(kept_handle).is_err());
        drop(dropped);
        assert_eq!(table.count(), 0);
        assert_eq!(publish(&table, None)?, number);
        Ok(())
    }

    /// RES-3, RES-4: a reserved handle that was destroyed with its device, and whose number another
    /// call has reserved meanwhile: the entry is that of the other call.
    #[test]
    fn a_number_that_is_reserved_again_is_another_handle() -> Result {
        let table = table()?;

        for is_kept in [true, false] {
            let parent = device(&table)?;
            let stale = reserve(&table, Some(&parent))?;
            let number = stale.handle();

            assert!(destroy_device(&table, &parent));
            // As if all other numbers had been given out since then.
            table.state.lock().cursor = Cursor::starting_at(stale.index);

            let reserved = reserve(&table, None)?;

            assert_eq!(reserved.handle(), number);
            if is_kept {
                assert!(!stale.commit());
            } else {
                drop(stale);
            }
            assert!(table.adapter(number).is_err());
            assert_eq!(table.count(), 1);
            assert!(reserved.commit());
            assert!(table.adapter(number).is_ok());
            assert!(table.destroy(number, is_adapter).is_ok());
        }
        Ok(())
    }

    /// RES-6: more handles than one level of nodes has room for, and after them.
    #[test]
    fn the_table_grows() -> Result {
        const MANY: u32 = 4_200;

        let table = table()?;
        let adapter = adapter_with_double()?;
        let mut handles = KVVec::new();

        for _ in 0..MANY {
            let reserved = table
                .reserve(HandleTarget::Adapter(adapter.clone()), None)
                .map_err(|_| EINVAL)?;

            handles.push(reserved.handle(), GFP_KERNEL)?;
            reserved.commit();
        }
        assert_eq!(table.count(), MANY);
        for (number, handle) in (handle::FIRST_INDEX..).zip(&handles) {
            assert_eq!(handle::local_index(*handle), Some(number));
            assert!(table.adapter(*handle).is_ok());
            if number % 64 != 0 {
                assert!(table.destroy(*handle, is_adapter).is_ok());
            }
        }
        assert_eq!(table.count(), MANY / 64);

        let mut seen = 0;

        while let Some((index, ())) = table.after(seen, |_, _| ()) {
            assert_eq!(index, seen + 64);
            seen = index;
        }
        assert_eq!(seen, MANY / 64 * 64);
        table.close();
        assert_eq!(table.count(), 0);
        Ok(())
    }

    /// RES-6: after the last number comes the first one that is free.
    #[test]
    fn numbers_start_over() -> Result {
        let table = Arc::pin_init(
            HandleTable::starting_with(Cursor::starting_at(handle::LAST_INDEX - 1)),
            GFP_KERNEL,
        )?;
        let parent = device(&table)?;
        let last = publish(&table, Some(&parent))?;
        let first = publish(&table, Some(&parent))?;
        let second = publish(&table, None)?;

        assert_eq!(handle::local_index(last), Some(handle::LAST_INDEX));
        assert_eq!(handle::local_index(first), Some(handle::FIRST_INDEX));
        assert_eq!(handle::local_index(second), Some(handle::FIRST_INDEX + 1));
        assert!(destroy_device(&table, &parent));
        assert!(table.adapter(last).is_err());
        assert!(table.adapter(first).is_err());
        assert!(table.adapter(second).is_ok());
        assert_eq!(table.count(), 1);
        Ok(())
    }

    /// RES-8.
    #[test]
    fn a_closed_table_is_empty_and_takes_no_more() -> Result {
        let table = table()?;

        reserve(&table, None)?.commit();

        let pending = reserve(&table, None)?;

        table.close();
        assert_eq!(table.count(), 0);
        assert!(reserve(&table, None).is_err());
        pending.commit();
        assert_eq!(table.count(), 0);
        Ok(())
    }
}
