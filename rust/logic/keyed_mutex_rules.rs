// SPDX-License-Identifier: GPL-2.0

//! What the calls on keyed mutexes refuse (RES-91, RES-92, RES-101): flags and addresses first,
//! then the handle, then the size of the private runtime data. What a mutex does is in
//! [`super::keyed_mutex`].

use super::{
    allocation_rules::MAX_PRIVATE_DATA,
    check_address,
    invalid_if,
    sync_flags::Sharing,
    Invalid, //
};

/// The only bit of the flags of a creation: the mutex is shared by NT handle, with its resource.
pub const NT_SECURITY_SHARING: u32 = 1 << 0;

/// How a mutex that is created with these flags is shared.
pub fn sharing(flags: u32) -> Result<Sharing, Invalid> {
    match flags {
        0 => Ok(Sharing::Global),
        NT_SECURITY_SHARING => Ok(Sharing::Nt),
        _ => Err(Invalid),
    }
}

/// Private runtime data in the caller's memory: to be copied in, or room for it.
#[derive(Clone, Copy, Debug)]
pub struct PrivateData {
    address: u64,
    size: u32,
}

impl PrivateData {
    /// What the calls of the first generation have.
    pub const NONE: Self = Self {
        address: 0,
        size: 0,
    };

    /// Data of so many bytes at this address.
    pub fn new(address: u64, size: u32) -> Result<Self, Invalid> {
        check_address(address, size)?;
        Ok(Self { address, size })
    }

    /// Whether the call neither brings data nor has room for any.
    pub fn is_empty(self) -> bool {
        self.size == 0
    }

    /// Compares what an open by global handle brings with what the mutex has. No data is always
    /// good; other data must be as long as what is there.
    pub fn check_open(self, own: Option<usize>) -> Result<(), Invalid> {
        // CAST: 32 bits fit a usize.
        invalid_if(own.is_some_and(|own| self.size != 0 && self.size as usize != own))
    }

    /// The address and the size of what is to be copied in; `None` for no data.
    pub fn input(self) -> Result<Option<(u64, usize)>, Invalid> {
        invalid_if(self.size > MAX_PRIVATE_DATA)?;
        // CAST: bounded above.
        Ok((self.size != 0).then_some((self.address, self.size as usize)))
    }

    /// Where the data of a mutex, so many bytes, is to be copied to; `None` if the caller does not
    /// ask for it. There must be room for all of it.
    pub fn output(self, own: usize) -> Result<Option<u64>, Invalid> {
        // CAST: 32 bits fit a usize.
        invalid_if(self.size != 0 && (self.size as usize) < own)?;
        Ok((self.size != 0).then_some(self.address))
    }
}
