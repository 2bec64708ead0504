// SPDX-License-Identifier: GPL-2.0

//! How the GPU addresses of a process are divided: what clients may have, and what the OS part
//! keeps for the values of fences.

use super::{
    gpu_ranges::{
        Bounds,
        FIRST,
        PAGE, //
    },
    gpu_va_rules::ClientSpace,
    page_levels::Levels, //
};
use crate::ddi::native_fence::NativeFenceCaps;

/// One of this many pages is kept for what the OS part shows.
const KEPT: u64 = 4;

/// The same where the root of page tables is as large as addresses are high.
const KEPT_LOW: u64 = 64;

/// Most pages that the OS part keeps.
const MOST_KEPT: u64 = 1 << 20;

/// Who has which addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// What clients may have.
    pub clients: ClientSpace,
    /// Where fences are.
    pub kept: Bounds,
}

/// Where a GPU wants its native fences (FEN-65), in whole pages.
pub fn wish(caps: &NativeFenceCaps) -> Bounds {
    Bounds {
        first: caps.minimum_address.div_ceil(PAGE),
        end: match caps.maximum_address {
            0 => u64::MAX,
            end => end / PAGE,
        },
    }
}

/// Divides the addresses. Fences are at the end, where they are in nobody's way, or if the root is
/// resizable at the beginning, because it is always used. There the first entry of the root leads
/// nowhere (MEM-40).
///
/// A GPU may want them within other pages. Then the larger part beside them is for clients, from
/// the next table of level 0 on. `None` if there are no such pages, or nothing is left.
pub fn divide(levels: &Levels, wish: Option<Bounds>) -> Option<Division> {
    let pages = levels.pages();
    let (lowest, share) = match levels.has_resizable_root() {
        true => {
            let first = levels.pages_of_entry(levels.root());

            (first, (pages / KEPT_LOW).max(first))
        }
        false => (FIRST, pages / KEPT),
    };
    let wish = wish.unwrap_or(Bounds {
        first: 0,
        end: u64::MAX,
    });
    let first = wish.first.max(lowest);
    let end = wish.end.min(pages);
    let most = share.min(MOST_KEPT);
    let kept = match levels.has_resizable_root() {
        true => Bounds {
            first,
            end: end.min(first.saturating_add(most)),
        },
        false => Bounds {
            first: first.max(end.saturating_sub(most)),
            end,
        },
    };
    let table = levels.pages_of_table(0);
    let below = ClientSpace {
        first: lowest,
        end: kept.first.checked_sub(kept.first.checked_rem(table)?)?,
    };
    let above = ClientSpace {
        first: kept.end.checked_next_multiple_of(table)?,
        end: pages,
    };
    let size = |space: ClientSpace| space.end.saturating_sub(space.first);
    let clients = match size(below) > size(above) {
        true => below,
        false => above,
    };

    (kept.first < kept.end && clients.first < clients.end).then_some(Division { clients, kept })
}
