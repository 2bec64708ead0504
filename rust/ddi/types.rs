// SPDX-License-Identifier: GPL-2.0

//! What goes through the driver interface: plain values that the caller owns for the call only
//! (GPU-103).

/// Why a KMD does not do what an entry asks for. Only entries whose result has it may fail
/// (GPU-104).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmdError {
    /// There is no memory, or no room in the hardware.
    NoMemory,
    /// The caller's values make no sense to the KMD.
    InvalidParameter,
    /// The KMD has nothing of the kind.
    NotSupported,
    /// The adapter is stopped.
    DeviceRemoved,
}

/// The result of an entry that may fail.
pub type KmdResult<T = ()> = Result<T, KmdError>;

/// ASCII text of at most `N` characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// This text, cut off where it has no more room or is not ASCII.
    pub const fn new(text: &str) -> Self {
        let mut all = [0; N];
        let mut room: &mut [u8] = &mut all;
        let mut rest = text.as_bytes();

        while let ([byte, more @ ..], [place, places @ ..]) = (rest, room) {
            if !byte.is_ascii() {
                break;
            }
            *place = *byte;
            rest = more;
            room = places;
        }
        Self(all)
    }

    /// Its characters.
    pub fn characters(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);

        self.0.get(..end).unwrap_or_default().iter().copied()
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N])
    }
}
