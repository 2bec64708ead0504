// SPDX-License-Identifier: MIT OR Apache-2.0

//! The status of a doorbell.

use crate::logic::doorbell::DoorbellStatus::{self, Abort, Connected, ConnectedNotify, Retry};

const ALL: [DoorbellStatus; 4] = [Connected, ConnectedNotify, Retry, Abort];

#[test]
fn gpu_20_the_status_has_the_numbers_of_the_contract() {
    for (number, status) in (0..).zip(ALL) {
        assert_eq!(status.word(), number);
        assert_eq!(DoorbellStatus::from_word(number), status);
    }
    // A zeroed page reads as connected, which is why it is written before anybody sees it.
    assert_eq!(DoorbellStatus::from_word(0), Connected);
    for word in [4, 5, 1 << 32, u64::MAX] {
        assert_eq!(DoorbellStatus::from_word(word), Abort);
    }
}

#[test]
fn gpu_22_gpu_26_what_may_follow_a_status() {
    for status in ALL {
        let is_connected = matches!(status, Connected | ConnectedNotify);

        assert_eq!(status.is_connected(), is_connected);
        assert_eq!(status.may_disconnect(Retry), is_connected);
        assert_eq!(status.may_disconnect(Abort), status != Abort);
    }
}
