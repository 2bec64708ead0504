// SPDX-License-Identifier: GPL-2.0

//! Which sizes the calls that open shared objects accept (RES-48, RES-92).

use super::{
    invalid_if,
    Invalid, //
};

/// The private data that an open gives to a keyed mutex (RES-92). `own` is what the mutex has. None
/// is always good; other data must be as long as what is there.
pub fn check_mutex_data(own: Option<usize>, given: u32) -> Result<(), Invalid> {
    // CAST: 32 bits fit a usize.
    invalid_if(own.is_some_and(|own| given != 0 && given as usize != own))
}
