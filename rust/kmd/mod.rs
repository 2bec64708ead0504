// SPDX-License-Identifier: GPL-2.0

//! Kernel-mode drivers: what is below `ddi`. Each folder drives one kind of adapter and knows
//! nothing of the others, nor of the OS part.

#[cfg(any(test, CONFIG_KUNIT = "y"))]
pub mod fake;
pub mod soft;
