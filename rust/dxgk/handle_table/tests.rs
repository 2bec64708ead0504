// SPDX-License-Identifier: GPL-2.0

//! Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_handle_table)]
mod tests {
    use super::super::{
        super::{
            adapter::Adapter,
            device::Device, //
        },
        *, //
    };

    fn table() -> Result<Arc<HandleTable>> {
        Arc::pin_init(HandleTable::new(), GFP_KERNEL)
    }

    fn adapter() -> Result<Item> {
        Ok(Item::Adapter(Adapter::new(0)?))
    }

    fn reserve<'a>(table: &'a HandleTable, parent: Option<&Parent>) -> Result<Reserved<'a>> {
        table.reserve(adapter()?, parent).map_err(|_| EINVAL)
    }

    fn is_adapter(item: &Item) -> bool {
        matches!(item, Item::Adapter(_))
    }

    /// RES-6, FEN-52.
    #[test]
    fn handles_come_in_one_chain() -> Result {
        let table = table()?;
        let first = reserve(&table, None)?;
        let second = reserve(&table, None)?;

        assert_eq!(first.handle() + 0x40, second.handle());
        assert_eq!(first.handle() & 0x3f, 0);
        first.publish();
        second.publish();
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
        reserved.publish();
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

        reserved.publish();
        assert!(table.destroy(handle, |_| false).is_err());
        assert!(table.destroy(handle, is_adapter).is_ok());
        assert!(table.destroy(handle, is_adapter).is_err());
        assert!(table.adapter(handle).is_err());
        assert_eq!(reserve(&table, None)?.handle(), handle + 0x40);
        Ok(())
    }

    /// RES-31: what was made on a device goes with it, and nothing else.
    #[test]
    fn a_device_takes_its_children_along() -> Result {
        let table = table()?;
        let other = reserve(&table, None)?;
        let device = table
            .reserve(Item::Device(Device::new(Adapter::new(0)?)?), None)
            .map_err(|_| EINVAL)?;
        let (other_handle, device_handle) = (other.handle(), device.handle());

        other.publish();
        device.publish();

        let parent = table.parent(device_handle).map_err(|_| EINVAL)?;
        let child = reserve(&table, Some(&parent))?;
        let child_handle = child.handle();

        child.publish();
        assert_eq!(table.count(), 3);
        assert!(table
            .destroy(device_handle, |item| matches!(item, Item::Device(_)))
            .is_ok());
        assert!(table.adapter(child_handle).is_err());
        assert!(table.adapter(other_handle).is_ok());
        assert_eq!(table.count(), 1);
        // The device was looked up before it went.
        assert!(reserve(&table, Some(&parent)).is_err());
        Ok(())
    }

    /// RES-8.
    #[test]
    fn a_closed_table_is_empty_and_takes_no_more() -> Result {
        let table = table()?;

        reserve(&table, None)?.publish();

        let pending = reserve(&table, None)?;

        table.close();
        assert_eq!(table.count(), 0);
        assert!(reserve(&table, None).is_err());
        pending.publish();
        assert_eq!(table.count(), 0);
        Ok(())
    }
}
