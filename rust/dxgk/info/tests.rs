// SPDX-License-Identifier: GPL-2.0

//! Run by every load of the module in a kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_attachments)]
mod tests {
    use crate::{
        dxgk::{
            info::{
                attachments::{
                    Attachments,
                    PreparedChange, //
                },
                store::Value, //
            },
            object::{
                Header,
                Object,
                Strong,
                Traits, //
            },
            quota::account::{
                Accounts,
                ObjectCharge, //
            },
            stats::{
                Module,
                ObjectKind, //
            },
            sync::legacy::{
                LegacyState,
                LegacySync, //
            },
            tables::Tables, //
        },
        logic::{
            info_rules::BLOB,
            sync_flags::Sharing, //
        }, //
    };
    use kernel::{
        prelude::*,
        sync::{
            Arc, //
        }, //
    };

    fn object(tables: &Tables) -> Result<Strong> {
        let charge = ObjectCharge::new(&tables.accounts.of_caller()?)?;
        let header = Header::new(
            ObjectKind::Fence,
            None,
            Sharing::Global,
            Traits::NONE,
            charge,
        );
        let fence = LegacySync::new(header, LegacyState::Fence { value: 0 })?;

        Ok(Strong::first(Object::Legacy(fence)))
    }

    fn attachments(strong: &Strong) -> Attachments<'_, Object> {
        strong.object().header().attachments()
    }

    fn value(accounts: &Arc<Accounts>, size: usize) -> Result<Arc<Value>> {
        let bytes = KVVec::from_elem(7, size, GFP_KERNEL)?;

        Value::new(accounts, &Module, bytes).map_err(|_| ENOMEM)
    }

    /// RES-72: one weak target, which resolves until the last strong reference goes and hangs up
    /// then.
    #[test]
    fn a_link_outlives_its_object() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let id = strong.object().header().id();
        let weak_target = strong.object().weak_target().map_err(|_| EINVAL)?;
        let again = strong.object().weak_target().map_err(|_| EINVAL)?;

        assert!(Arc::ptr_eq(&weak_target, &again));
        assert_eq!(weak_target.events(), 0);

        let resolved = Strong::of_weak(&weak_target).ok_or(EINVAL)?;

        assert_eq!(resolved.object().header().id(), id);
        drop(strong);
        assert!(Strong::of_weak(&weak_target).is_some());
        drop(resolved);
        assert!(Strong::of_weak(&weak_target).is_none());
        assert_ne!(weak_target.events(), 0);
        assert_eq!(weak_target.object_id(), id);
        Ok(())
    }

    /// Removes the private runtime data, which must have this generation.
    fn delete(attachments: Attachments<'_, Object>, generation: u64) -> Result<bool> {
        let change = attachments.prepare_delete(BLOB, generation);

        change.and_then(PreparedChange::commit).map_err(|_| EINVAL)
    }

    /// Gives the object its first private runtime data.
    fn give(attachments: Attachments<'_, Object>, value: &Arc<Value>) -> Result<bool> {
        let change = attachments.prepare_first_blob(value).map_err(|_| EINVAL)?;

        change.ok_or(EINVAL)?.commit().map_err(|_| EINVAL)
    }

    /// RES-3: what is prepared is seen when it is committed, and only if no other change came
    /// first.
    #[test]
    fn a_prepared_change_is_not_seen() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let attachments = attachments(&strong);
        let prepare = |size| -> Result<_> {
            attachments
                .prepare_first_blob(&value(&tables.accounts, size)?)
                .map_err(|_| EINVAL)?
                .ok_or(EINVAL)
        };

        drop(prepare(1)?);
        assert_eq!(attachments.generation(), 0);

        let first = prepare(2)?;
        let second = prepare(3)?;

        assert_eq!(first.generation(), 1);
        assert_eq!(attachments.generation(), 0);
        assert!(attachments.blob().is_none());
        assert!(matches!(second.commit(), Ok(true)));
        assert!(matches!(first.commit(), Ok(false)));
        assert_eq!(attachments.generation(), 1);
        assert_eq!(attachments.blob_size(), 3);
        Ok(())
    }

    /// RES-67, RES-58, RES-71: private data is one, changes are counted, and it is freed with the
    /// object.
    #[test]
    fn the_blob_is_an_entry() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let attachments = attachments(&strong);
        let kept = value(&tables.accounts, 6)?;

        assert!(attachments.blob().is_none());
        assert_eq!(attachments.generation(), 0);
        assert!(attachments.set_blob(kept.clone()).is_ok());
        assert!(matches!(
            attachments.prepare_first_blob(&value(&tables.accounts, 9)?),
            Ok(None)
        ));
        assert_eq!(attachments.blob_size(), 6);
        assert_eq!(attachments.generation(), 1);
        assert!(attachments.prepare_delete(BLOB, 2).is_err());
        assert!(delete(attachments, 1)?);
        assert_eq!(attachments.generation(), 2);
        assert!(attachments.blob().is_none());
        assert!(give(attachments, &value(&tables.accounts, 9)?)?);
        assert_eq!(attachments.blob_size(), 9);

        let object = strong.object().clone();

        drop(strong);
        assert!(object.header().attachments().blob().is_none());
        assert_eq!(kept.bytes(), &[7; 6]);
        Ok(())
    }

    /// RES-59: what was read stays as it was.
    #[test]
    fn a_snapshot_does_not_change() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let attachments = attachments(&strong);

        assert!(attachments.set_blob(value(&tables.accounts, 1)?).is_ok());

        let before = attachments.store();

        assert!(attachments.set_blob(value(&tables.accounts, 2)?).is_ok());
        assert_eq!(before.generation(), 1);
        assert_eq!(before.entry(BLOB).map(|entry| entry.rule().size), Some(1));
        assert_eq!(attachments.store().generation(), 2);
        Ok(())
    }
}
