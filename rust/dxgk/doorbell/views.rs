// SPDX-License-Identifier: GPL-2.0

//! What a process sees of a doorbell, and how that changes (GPU-20 to GPU-23).
//!
//! LOCK: everything here changes under the lock of the pages, and is rotated before the status says
//! so. See `sys::mem::doorbell_pages` for why no ring is lost.

use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        doorbell::{
            Connected,
            Disconnect,
            DoorbellCallbacks, //
        },
        object, //
    },
    error::DxgResult,
    logic::doorbell::DoorbellStatus,
    sys::mem::{
        doorbell_pages::{
            DoorbellPages,
            Physical,
            Rung, //
        },
        value_page::ValuePage, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The pages of a doorbell, and its status.
pub(crate) struct Views {
    /// The doorbell, and what the process writes.
    pub(super) pages: Arc<DoorbellPages>,
    /// In its first word the status.
    pub(super) status: Arc<ValuePage>,
    /// How often it was disconnected.
    disconnections: Atomic<u64>,
}

/// A moment: what was disconnected since is not connected by an older connection.
#[derive(Clone, Copy)]
pub(super) struct Moment(u64);

/// What the KMD may do with the views: what DxgkCbDisconnectDoorbell does.
pub(super) struct Callbacks(pub(super) Arc<Views>);

/// Tells the KMD that its physical doorbell is rung.
struct Bell(Arc<object::Doorbell>);

impl Rung for Bell {
    fn rung(&self) {
        Dispatch::below(&mut Passive::here(), |class| self.0.rung(class));
    }
}

impl DoorbellCallbacks for Callbacks {
    fn disconnect(&self, _: &Passive, why: Disconnect) {
        self.0.disconnect(why);
    }

    fn trap(&self, _: &Passive) {
        self.0.pages.trap();
    }
}

impl Views {
    /// Those of a doorbell that is not connected: the status says so before anybody sees it
    /// (GPU-20).
    ///
    /// Context: may sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let status = ValuePage::new()?;

        status.word(0).store(DoorbellStatus::Retry.word(), Relaxed);
        Ok(Arc::new(
            Self {
                pages: DoorbellPages::new()?,
                status: Arc::new(status, GFP_KERNEL_ACCOUNT)?,
                disconnections: Atomic::new(0),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What the status says.
    pub(crate) fn status(&self) -> DoorbellStatus {
        DoorbellStatus::from_word(self.status.word(0).load(Acquire))
    }

    /// The progress value that the process says comes last (FEN-128).
    pub(super) fn last_queued(&self) -> u64 {
        self.pages.shared().word(0).load(Acquire)
    }

    /// Now, before the KMD is asked for a physical doorbell.
    pub(super) fn moment(&self) -> Moment {
        // ORDERING: one that is too old only makes the process connect once more.
        Moment(self.disconnections.load(Relaxed))
    }

    fn say(&self, status: DoorbellStatus) {
        status.say(self.status.word(0));
    }

    /// Shows what the KMD has answered, unless it was taken away meanwhile.
    ///
    /// Context: may sleep.
    pub(super) fn connect(
        &self,
        kmd: &Arc<object::Doorbell>,
        since: Moment,
        to: Connected,
    ) -> DxgResult {
        let Connected {
            page,
            secondary,
            notify,
            traps,
        } = to;
        let rung = match traps {
            true => {
                let bell: Arc<dyn Rung> = Arc::new(Bell(kmd.clone()), GFP_KERNEL_ACCOUNT)?;

                Some(bell)
            }
            false => None,
        };
        let status = match notify {
            true => DoorbellStatus::ConnectedNotify,
            false => DoorbellStatus::Connected,
        };

        self.pages.rotate(
            Some(Physical {
                page,
                secondary,
                rung,
            }),
            || {
                self.disconnections.load(Relaxed) == since.0
                    && self.status() == DoorbellStatus::Retry
            },
            || self.say(status),
        );
        Ok(())
    }

    /// Takes the physical doorbell away: on return nobody writes to it.
    ///
    /// Context: may sleep. Locks that a page fault does not take may be held.
    pub(super) fn disconnect(&self, why: Disconnect) {
        let next = match why {
            Disconnect::Retry => DoorbellStatus::Retry,
            Disconnect::Abort => DoorbellStatus::Abort,
        };

        self.pages.rotate(
            None,
            || {
                self.disconnections.add(1, Relaxed);
                self.status().may_disconnect(next)
            },
            || self.say(next),
        );
    }
}
