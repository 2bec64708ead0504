// SPDX-License-Identifier: GPL-2.0

//! All that has translations of an adapter: its engines, and the CMP. The processor has them
//! forgotten (FlushTlb), or the paging node does (INVALIDATE_TLBS).
//!
//! The engines keep this, and this keeps them, until the adapter ends.
//!
//! LOCK: `engines` is outside `Shell::core`, and held while each engine ends its slice.

use super::{
    cmp::ENGINES,
    system_space::SystemSpace, //
};
use crate::{
    engine::translation::Scope,
    platform::{
        self,
        Lock,
        Shared, //
    }, //
};

/// An engine, which has translations.
pub(super) trait Translates: Send + Sync {
    /// Forgets translations. On return no access that has used one is in progress. May sleep.
    ///
    /// # Arguments
    ///
    /// * `first`, `last` - an address in the first page, and one in the last one.
    fn invalidate(&self, scope: Scope, first: u64, last: u64);
}

/// The engines of an adapter, those that it has.
pub(super) type Engines<E> = [Option<Shared<E>>; ENGINES];

/// All that has translations.
pub(super) struct Translations {
    engines: Lock<Engines<dyn Translates>>,
    /// Where the CMP has its own, if it does.
    system: Option<Shared<SystemSpace>>,
}

impl Translations {
    /// Those of the CMP, and of no engine yet; `None` if there is no memory. May sleep.
    pub(super) fn new(system: Option<Shared<SystemSpace>>) -> Option<Shared<Self>> {
        platform::shared(Self {
            engines: platform::lock!([const { None }; ENGINES], "soft::Translations::engines")?,
            system,
        })
    }

    /// These engines have some, too, until [`Translations::end`]. May sleep.
    pub(super) fn begin<E: Translates + 'static>(&self, engines: &Engines<E>) {
        let engines = engines.each_ref().map(|engine| {
            let engine = engine.as_ref()?;
            let engine: Shared<dyn Translates> = engine.clone();

            Some(engine)
        });

        *self.engines.lock() = engines;
    }

    /// No engine has any. May sleep.
    pub(super) fn end(&self) {
        let none = [const { None }; ENGINES];
        let gone = core::mem::replace(&mut *self.engines.lock(), none);

        drop(gone);
    }

    /// Has one engine after the other forget translations. On return no access that has used one is
    /// in progress. May sleep.
    ///
    /// # Arguments
    ///
    /// * `first`, `last` - an address in the first page, and one in the last one.
    pub(super) fn invalidate(&self, scope: Scope, first: u64, last: u64) {
        for engine in self.engines.lock().iter().flatten() {
            engine.invalidate(scope, first, last);
        }
        if let Some(system) = &self.system {
            system.invalidate(scope, first, last);
        }
    }
}
