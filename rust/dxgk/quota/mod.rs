// SPDX-License-Identifier: GPL-2.0

//! Quotas: what a user may have, and what each process has charged.

pub(crate) mod account;
pub(crate) mod holder;
pub(in crate::dxgk) mod queued;
