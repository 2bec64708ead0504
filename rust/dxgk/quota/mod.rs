// SPDX-License-Identifier: GPL-2.0

//! Limits of a user, and what each process takes of them.

pub(crate) mod account;
pub(crate) mod holder;
