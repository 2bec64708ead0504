// SPDX-License-Identifier: GPL-2.0

//! A caller's payload: little-endian fields at fixed offsets, every access checked.
//!
//! The table in `adapter_info.rs` guarantees the size, so that a refusal from here is a mistake in
//! an answer; it is reported like any other bad payload instead of a panic.

/// Why a query is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Unknown type, short payload, or an input that names something that does not exist.
    InvalidParameter,
    /// A known type whose subject this adapter does not have.
    NotSupported,
}

/// The part of the caller's buffer that a query type uses.
pub(super) struct Payload<'a> {
    bytes: &'a mut [u8],
}

impl<'a> Payload<'a> {
    /// A payload in `bytes`.
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes }
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// All bytes, for the KMD to fill.
    pub(super) fn all(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Reads an input.
    pub(super) fn u32_at(&self, at: usize) -> Result<u32, Refusal> {
        self.bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map(|bytes| u32::from_le_bytes(*bytes))
            .ok_or(Refusal::InvalidParameter)
    }

    /// Sets everything from offset `at` to 0.
    pub(super) fn clear_from(&mut self, at: usize) {
        if let Some(rest) = self.bytes.get_mut(at..) {
            rest.fill(0);
        }
    }

    /// Writes `bytes` at offset `at`.
    pub(super) fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> Result<(), Refusal> {
        self.bytes
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut())
            .map(|place| *place = bytes)
            .ok_or(Refusal::InvalidParameter)
    }

    /// Writes a 32-bit field.
    pub(super) fn put_u32(&mut self, at: usize, value: u32) -> Result<(), Refusal> {
        self.put(at, value.to_le_bytes())
    }

    /// Writes a 32-bit field of flags: the first is bit 0, and those that are not named are 0.
    pub(super) fn put_bits<const N: usize>(
        &mut self,
        at: usize,
        flags: [bool; N],
    ) -> Result<(), Refusal> {
        let value = flags
            .into_iter()
            .rev()
            .fold(0, |bits, flag| (bits << 1) | u32::from(flag));

        self.put_u32(at, value)
    }

    /// Writes a 64-bit field.
    pub(super) fn put_u64(&mut self, at: usize, value: u64) -> Result<(), Refusal> {
        self.put(at, value.to_le_bytes())
    }

    /// Writes ASCII text as 16-bit characters into a field of `capacity` characters and fills the
    /// field up with NUL. Text that leaves no room for one NUL is cut.
    pub(super) fn put_text(
        &mut self,
        at: usize,
        capacity: usize,
        text: impl Iterator<Item = u8>,
    ) -> Result<(), Refusal> {
        let field = self
            .bytes
            .get_mut(at..)
            .and_then(|rest| rest.get_mut(..capacity.saturating_mul(2)))
            .ok_or(Refusal::InvalidParameter)?;
        let room = capacity.saturating_sub(1);

        field.fill(0);
        for (place, byte) in field.chunks_exact_mut(2).zip(text).take(room) {
            place.copy_from_slice(&u16::from(byte).to_le_bytes());
        }
        Ok(())
    }
}
