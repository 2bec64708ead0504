// SPDX-License-Identifier: GPL-2.0

//! Private driver data of an allocation: what clients describe it with (RES-23, RES-26).

use crate::ddi::types::KmdError;

/// Sizes are multiples of this.
const PAGE: u64 = 4096;

/// Magic number of [`DriverData`]: "DXGA".
pub const MAGIC: u32 = 0x4147_5844;

/// Private driver data of the software adapter, `struct opendxg_allocation_data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverData {
    /// Bytes.
    pub size: u64,
    /// Elements of a row.
    pub width: u64,
    /// Bytes of a row.
    pub pitch: u64,
    /// Rows.
    pub height: u32,
    /// 0 or a power of two.
    pub alignment: u32,
    /// Whether it is in the adapter's own memory instead of system memory.
    pub local: bool,
    /// Whether engines use physical addresses of it, so that it is one range.
    pub accessed_physically: bool,
    /// Whether the KMD is told where it is; only together with `accessed_physically`.
    pub notify_residency: bool,
}

/// The flag for [`DriverData::local`], `OPENDXG_ALLOCATION_LOCAL`.
const LOCAL: u32 = 1 << 0;
/// The flag for [`DriverData::accessed_physically`], `OPENDXG_ALLOCATION_PHYSICAL`.
const PHYSICAL: u32 = 1 << 1;
/// The flag for [`DriverData::notify_residency`], `OPENDXG_ALLOCATION_NOTIFY_RESIDENCY`.
const NOTIFY_RESIDENCY: u32 = 1 << 2;

/// Bytes of private driver data that the software adapter understands.
pub const DRIVER_DATA_SIZE: usize = 48;
/// Largest alignment.
const MAX_ALIGNMENT: u32 = 65536;

impl DriverData {
    /// What is made for a standard allocation: one linear row (RES-26).
    pub fn linear(size: u64) -> Self {
        Self {
            size,
            width: size,
            pitch: size,
            height: 1,
            alignment: 0,
            local: false,
            accessed_physically: false,
            notify_residency: false,
        }
    }

    /// Whether bytes say that they are for the software adapter. Others may be for the driver of
    /// another vendor, whose clients run here too (RES-23).
    pub fn is_ours(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC.to_le_bytes())
    }

    /// What the software adapter reads from a client's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, KmdError> {
        let bytes: &[u8; DRIVER_DATA_SIZE] =
            bytes.try_into().map_err(|_| KmdError::InvalidParameter)?;
        let word = |at: usize| {
            bytes
                .get(at..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |chunk| u32::from_le_bytes(*chunk))
        };
        let long = |at: usize| u64::from(word(at)) | (u64::from(word(at + 4)) << 32);
        let data = Self {
            size: long(8),
            width: long(16),
            pitch: long(24),
            height: word(32),
            alignment: word(36),
            local: word(40) & LOCAL != 0,
            accessed_physically: word(40) & PHYSICAL != 0,
            notify_residency: word(40) & NOTIFY_RESIDENCY != 0,
        };

        if word(0) != MAGIC
            || word(4) != 1
            || data.size == 0
            || data.size % PAGE != 0
            || data.alignment > MAX_ALIGNMENT
            || data.alignment != 0 && !data.alignment.is_power_of_two()
            || word(40) & !(LOCAL | PHYSICAL | NOTIFY_RESIDENCY) != 0
            || word(44) != 0
        {
            return Err(KmdError::InvalidParameter);
        }
        Ok(data)
    }

    /// The bytes.
    pub fn encode(&self) -> [u8; DRIVER_DATA_SIZE] {
        let mut bytes = [0; DRIVER_DATA_SIZE];
        let words = [
            MAGIC,
            1,
            low(self.size),
            high(self.size),
            low(self.width),
            high(self.width),
            low(self.pitch),
            high(self.pitch),
            self.height,
            self.alignment,
            flag(self.local, LOCAL)
                | flag(self.accessed_physically, PHYSICAL)
                | flag(self.notify_residency, NOTIFY_RESIDENCY),
        ];

        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

fn flag(is_set: bool, flag: u32) -> u32 {
    if is_set {
        flag
    } else {
        0
    }
}

fn low(long: u64) -> u32 {
    // CAST: the low half.
    long as u32
}

fn high(long: u64) -> u32 {
    // CAST: the high half.
    (long >> 32) as u32
}
