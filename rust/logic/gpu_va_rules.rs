// SPDX-License-Identifier: GPL-2.0

//! Which arguments calls on GPU virtual addresses may have (MEM-40, MEM-41, MEM-43, MEM-45,
//! MEM-49). They come in bytes and leave in pages.

use super::{
    gpu_ranges::{
        Bounds,
        ALIGNMENT,
        PAGE, //
    },
    invalid_if,
    Invalid, //
};

/// Bits of `D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE`.
pub mod protection {
    /// Stores are allowed.
    pub const WRITE: u64 = 1 << 0;
    /// Execution is allowed.
    pub const EXECUTE: u64 = 1 << 1;
    /// Reads give 0.
    pub const ZERO: u64 = 1 << 2;
    /// Every access faults.
    pub const NO_ACCESS: u64 = 1 << 3;
}

/// Which kinds of reservations there are (`D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE`).
pub mod reservation {
    /// Every access faults.
    pub const NO_ACCESS: u32 = 0;
    /// Reads give 0.
    pub const ZERO: u32 = 1;
}

/// The addresses that clients have: all that their adapter has, but for the first ones and those
/// that the OS part keeps for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSpace {
    /// The first page.
    pub first: u64,
    /// The page after the last one.
    pub end: u64,
}

/// Where a range is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Where the caller says: the first page.
    Fixed(u64),
    /// Where there is room.
    Picked(Bounds),
}

/// Where a range is to be, as a call says it in bytes. 0 is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The address.
    pub base: u64,
    /// The lowest that will do.
    pub minimum: u64,
    /// The end of the last that will do.
    pub maximum: u64,
}

fn is_aligned(value: u64, pages: u64) -> bool {
    value % (pages * PAGE) == 0
}

impl ClientSpace {
    /// The first and the end of these pages, if clients may have all of them.
    pub fn check(&self, first: u64, pages: u64) -> Result<(u64, u64), Invalid> {
        let end = first.checked_add(pages).ok_or(Invalid)?;

        invalid_if(pages == 0 || first < self.first || end > self.end)?;
        Ok((first, end))
    }

    /// Where a range of so many pages is to be. `alignment` is in pages.
    fn position(&self, wish: Wish, pages: u64, alignment: u64) -> Result<Position, Invalid> {
        let Wish {
            base,
            minimum,
            maximum,
        } = wish;

        invalid_if(
            [base, minimum, maximum]
                .iter()
                .any(|value| !is_aligned(*value, alignment)),
        )?;
        if base != 0 {
            return self
                .check(base / PAGE, pages)
                .map(|(first, _)| Position::Fixed(first));
        }

        let end = match maximum {
            0 => self.end,
            _ => self.end.min(maximum / PAGE),
        };

        Ok(Position::Picked(Bounds {
            first: self.first.max(minimum / PAGE),
            end,
        }))
    }
}

/// ReserveGpuVirtualAddress, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Where.
    pub position: Position,
    /// How many pages.
    pub pages: u64,
    /// Whether they read as zero.
    pub zero: bool,
}

impl Reserve {
    /// Checks the arguments; `size` is in bytes.
    pub fn new(space: ClientSpace, wish: Wish, size: u64, kind: u32) -> Result<Self, Invalid> {
        invalid_if(size == 0 || !is_aligned(size, ALIGNMENT))?;

        let zero = match kind {
            reservation::NO_ACCESS => false,
            reservation::ZERO => true,
            // Only the system reserves without commitment.
            _ => return Err(Invalid),
        };
        let pages = size / PAGE;

        Ok(Self {
            position: space.position(wish, pages, ALIGNMENT)?,
            pages,
            zero,
        })
    }
}

/// What a call makes of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Pages of an allocation, which can be read.
    Pages {
        /// Whether they can be written.
        write: bool,
        /// Whether they can be executed.
        execute: bool,
    },
    /// They read as zero.
    Zero,
    /// Every access faults.
    NoAccess,
}

impl Protection {
    /// What the bits say. Zero and NoAccess exclude each other and everything else.
    pub fn new(bits: u64) -> Result<Self, Invalid> {
        use protection::*;

        match bits {
            ZERO => Ok(Self::Zero),
            NO_ACCESS => Ok(Self::NoAccess),
            _ => {
                invalid_if(bits & !(WRITE | EXECUTE) != 0)?;
                Ok(Self::Pages {
                    write: bits & WRITE != 0,
                    execute: bits & EXECUTE != 0,
                })
            }
        }
    }
}

/// The part of an allocation that a call names, in bytes or pages, all in the same unit.
pub fn check_part(offset: u64, size: u64, whole: u64) -> Result<(), Invalid> {
    let end = offset.checked_add(size).ok_or(Invalid)?;

    invalid_if(size == 0 || end > whole)
}

/// MapGpuVirtualAddress, checked but for the allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Where.
    pub position: Position,
    /// How many pages.
    pub pages: u64,
    /// The first page of the allocation.
    pub offset: u64,
    /// What becomes of them.
    pub protection: Protection,
    /// What the client says to the KMD about them, whatever it is.
    pub driver_protection: u64,
}

impl Map {
    /// Checks the arguments. `has_allocation`: the call names one. DriverProtection is 0.
    pub fn new(
        space: ClientSpace,
        wish: Wish,
        (offset, pages): (u64, u64),
        protection: u64,
        has_allocation: bool,
    ) -> Result<Self, Invalid> {
        let protection = Protection::new(protection)?;
        let needs_allocation = matches!(protection, Protection::Pages { .. });

        invalid_if(pages == 0 || needs_allocation != has_allocation)?;
        // The pages of the address and those of the allocation are as many.
        offset.checked_add(pages).ok_or(Invalid)?;
        Ok(Self {
            position: space.position(wish, pages, 1)?,
            pages,
            offset,
            protection,
            driver_protection: 0,
        })
    }
}

/// The pages that FreeGpuVirtualAddress names: the first and the end.
pub fn check_free(space: ClientSpace, base: u64, size: u64) -> Result<(u64, u64), Invalid> {
    invalid_if(!is_aligned(base, 1) || !is_aligned(size, 1))?;
    space.check(base / PAGE, size / PAGE)
}

/// One operation of UpdateGpuVirtualAddress, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateBytes {
    /// Pages of an allocation, again and again.
    Map {
        /// The first address.
        base: u64,
        /// How many bytes there.
        size: u64,
        /// Where in the allocation.
        offset: u64,
        /// How much of it; 0 is all of `size`.
        part: u64,
        /// `D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE`.
        protection: u64,
        /// What the client says to the KMD about them.
        driver_protection: u64,
    },
    /// What was reserved.
    Unmap {
        /// The first address.
        base: u64,
        /// How many bytes.
        size: u64,
        /// What becomes of it: Zero or NoAccess.
        protection: u64,
    },
    /// What is elsewhere.
    Copy {
        /// The first address that is copied.
        source: u64,
        /// How many bytes.
        size: u64,
        /// The first address that changes.
        destination: u64,
    },
}

/// The same, checked, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Pages of an allocation.
    Map {
        /// The first page that changes.
        first: u64,
        /// How many.
        pages: u64,
        /// The first page of the allocation.
        offset: u64,
        /// After how many it begins again.
        part: u64,
        /// Whether they can be written.
        write: bool,
        /// Whether they can be executed.
        execute: bool,
        /// What the client says to the KMD about them.
        driver_protection: u64,
    },
    /// Nothing of an allocation.
    Unmap {
        /// The first page that changes.
        first: u64,
        /// How many.
        pages: u64,
        /// Whether they read as zero.
        zero: bool,
    },
    /// What is elsewhere.
    Copy {
        /// The first page that is copied.
        source: u64,
        /// The first page that changes.
        first: u64,
        /// How many.
        pages: u64,
    },
}

/// Most operations of one UpdateGpuVirtualAddress.
pub const MAX_UPDATES: u32 = 4096;

impl Update {
    /// Checks one operation but for what is at its addresses.
    pub fn new(space: ClientSpace, bytes: UpdateBytes) -> Result<Self, Invalid> {
        let pages = |values: &[u64]| invalid_if(values.iter().any(|value| !is_aligned(*value, 1)));

        match bytes {
            UpdateBytes::Map {
                base,
                size,
                offset,
                part,
                protection,
                driver_protection,
            } => {
                pages(&[base, size, offset, part])?;
                space.check(base / PAGE, size / PAGE)?;

                let part = if part == 0 { size } else { part };

                invalid_if(size % part != 0)?;
                offset.checked_add(part).ok_or(Invalid)?;

                let Protection::Pages { write, execute } = Protection::new(protection)? else {
                    return Err(Invalid);
                };

                Ok(Self::Map {
                    first: base / PAGE,
                    pages: size / PAGE,
                    offset: offset / PAGE,
                    part: part / PAGE,
                    write,
                    execute,
                    driver_protection,
                })
            }
            UpdateBytes::Unmap {
                base,
                size,
                protection,
            } => {
                pages(&[base, size])?;
                space.check(base / PAGE, size / PAGE)?;

                let zero = match Protection::new(protection)? {
                    Protection::Zero => true,
                    Protection::NoAccess => false,
                    Protection::Pages { .. } => return Err(Invalid),
                };

                Ok(Self::Unmap {
                    first: base / PAGE,
                    pages: size / PAGE,
                    zero,
                })
            }
            UpdateBytes::Copy {
                source,
                size,
                destination,
            } => {
                pages(&[source, size, destination])?;
                space.check(source / PAGE, size / PAGE)?;
                space.check(destination / PAGE, size / PAGE)?;
                Ok(Self::Copy {
                    source: source / PAGE,
                    first: destination / PAGE,
                    pages: size / PAGE,
                })
            }
        }
    }

    /// The pages that change: the first and the end.
    pub fn destination(&self) -> (u64, u64) {
        let (first, pages) = match *self {
            Self::Map { first, pages, .. }
            | Self::Unmap { first, pages, .. }
            | Self::Copy { first, pages, .. } => (first, pages),
        };

        (first, first.saturating_add(pages))
    }

    /// The pages that are copied: the first and the end.
    pub fn source(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Copy { source, pages, .. } => Some((source, source.saturating_add(pages))),
            _ => None,
        }
    }
}
