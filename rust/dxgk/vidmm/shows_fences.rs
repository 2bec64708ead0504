// SPDX-License-Identifier: GPL-2.0

//! What a page of fence values that moves asks of those that show it (FEN-64). It names itself by
//! a number, so that it and an address space need not know each other.

/// Somebody who shows pages of fence values to engines.
pub(super) trait ShowsFences: Send + Sync {
    /// The page with this name is somewhere else now. On return no engine finds it where it was.
    ///
    /// Context: may sleep, `LocalPage::turn`.
    fn refresh_fence_page(&self, name: u64);

    /// Runs `change` while no engine works for it. Engines go on after it.
    ///
    /// Context: may sleep, `LocalPage::turn`.
    fn while_stopped(&self, change: &mut dyn FnMut());

    /// It uses one page of fence values of a budget group more, or one less.
    fn count_fence_page(&self, group: usize, is_more: bool);
}
