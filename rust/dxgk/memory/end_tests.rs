// SPDX-License-Identifier: GPL-2.0

//! What a KMD is told of the end of an allocation.

#[kernel::macros::kunit_tests(opendxg_allocation_end)]
mod tests {
    use crate::{
        ddi::types::{
            Escape,
            KmdError, //
        },
        dxgk::{
            object::Strong,
            quota::account::{
                Account,
                Limit, //
            },
            test_client::{
                context,
                is,
                started,
                wait_for_good_end,
                Client, //
            }, //
        },
        error::Status,
        kmd::fake::{
            journal::Entry,
            Behaviour,
            Pause, //
        },
        logic::handle, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };

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
                    Client::create_resource_in(&driver, &process, &parent, 2).map(drop)
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
        assert!(handles.destroy_resource(device, resource, 0).is_ok());
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
        let escaped = adapter.escape(&Escape::default(), &mut []);
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
            fail: Some((12, KmdError::NoMemory)),
            ..Behaviour::default()
        })?;
        let adapter = adapter.map_err(|_| EINVAL)?;
        // StartDevice, CreateDevice, and four for the first resource.
        let (device, parent) = client.create_device(&adapter).map_err(|_| EINVAL)?;
        let handles = &client.process.handles;

        client.create_resource(&parent).map_err(|_| EINVAL)?;
        assert!(handles
            .destroy_allocations(device, &[device + 0x80], 0)
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
}
