// SPDX-License-Identifier: GPL-2.0

//! The doorbell of a native fence, which engines of other adapters ring (FEN-159).

use super::native_fences::{
    Fence,
    NativeFences, //
};
use crate::{
    ddi::{
        native_fence::FenceDoorbell,
        types::{
            KmdError,
            KmdResult,
            NativeFenceCookie, //
        }, //
    },
    platform::{
        self,
        Shared, //
    }, //
};

/// The doorbell of a fence.
struct Own {
    fences: Shared<NativeFences>,
    fence: Shared<Fence>,
}

impl FenceDoorbell for Own {
    fn ring(&self) {
        self.fences.ring(&self.fence);
    }
}

/// The doorbell of a fence of this adapter. May sleep.
pub fn of(
    fences: &Shared<NativeFences>,
    fence: NativeFenceCookie,
) -> KmdResult<Shared<dyn FenceDoorbell>> {
    let own: Shared<dyn FenceDoorbell> = platform::shared(Own {
        fences: fences.clone(),
        fence: fences.by_cookie(fence).ok_or(KmdError::InvalidParameter)?,
    })
    .ok_or(KmdError::NoMemory)?;

    Ok(own)
}
