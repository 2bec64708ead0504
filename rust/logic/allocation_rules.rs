// SPDX-License-Identifier: GPL-2.0

//! Which allocations and resources may be created (RES-19 to RES-21, RES-23, RES-26, MEM-3).

use super::{
    global_access::OpenPolicy,
    invalid_if,
    sync_flags::Sharing,
    Invalid, //
};
use crate::ddi::{
    paging::PageSize,
    types::AllocationInfo, //
};

/// Bits of `D3DKMT_CREATEALLOCATIONFLAGS`.
pub mod bits {
    /// Make a resource for the allocations.
    pub const CREATE_RESOURCE: u32 = 1 << 0;
    /// The resource can be opened elsewhere.
    pub const CREATE_SHARED: u32 = 1 << 1;
    /// Every process may open it by global handle.
    pub const NON_SECURE: u32 = 1 << 2;
    /// Only admitted processes may open it by global handle.
    pub const RESTRICT_SHARED_ACCESS: u32 = 1 << 4;
    /// Standard allocation in memory of the caller.
    pub const EXISTING_SYS_MEM: u32 = 1 << 5;
    /// Sharing goes by NT handle.
    pub const NT_SECURITY_SHARING: u32 = 1 << 6;
    /// The bytes are never written.
    pub const READ_ONLY: u32 = 1 << 7;
    /// It is a back buffer of a swap chain, which is remembered.
    pub const SWAP_CHAIN_BACK_BUFFER: u32 = 1 << 10;
    /// Devices of other adapters may open it.
    pub const CROSS_ADAPTER: u32 = 1 << 11;
    /// The memory is zero (output).
    pub const ZEROED: u32 = 1 << 14;
    /// The kernel describes the allocation, not the driver.
    pub const STANDARD_ALLOCATION: u32 = 1 << 16;
    /// Standard allocation in a file.
    pub const EXISTING_SECTION: u32 = 1 << 17;

    const ALLOW_NOT_ZEROED: u32 = 1 << 18;
    /// One range in a memory segment.
    pub const PHYSICALLY_CONTIGUOUS: u32 = 1 << 19;
    const NO_KMD_ACCESS: u32 = 1 << 20;

    /// Every bit that is accepted.
    pub const KNOWN: u32 = CREATE_RESOURCE
        | CREATE_SHARED
        | NON_SECURE
        | RESTRICT_SHARED_ACCESS
        | EXISTING_SYS_MEM
        | NT_SECURITY_SHARING
        | READ_ONLY
        | SWAP_CHAIN_BACK_BUFFER
        | CROSS_ADAPTER
        | ZEROED
        | STANDARD_ALLOCATION
        | EXISTING_SECTION
        | ALLOW_NOT_ZEROED
        | PHYSICALLY_CONTIGUOUS
        | NO_KMD_ACCESS;
}

/// The flags of an entry of the array that are accepted: Primary, Stereo and OverridePriority.
pub const KNOWN_ENTRY_FLAGS: u32 = 0x7;

/// The flag of what is to be displayed: Primary.
const PRIMARY: u32 = 1 << 0;

/// Most allocations of one call.
pub const MAX_ALLOCATIONS: u32 = 4096;
/// Most bytes of private driver data of one allocation or resource, and of private runtime data.
pub const MAX_PRIVATE_DATA: u32 = 64 << 10;
/// Sizes are multiples of this.
pub const PAGE: u64 = 4096;

/// A D3DKMTCreateAllocation2 as the rules see it. They are methods, in the order of RES-19; between
/// them the caller's memory is copied and the resource is looked up, which may fail with a status
/// of their own.
#[derive(Clone, Copy)]
pub struct Creation {
    /// `D3DKMT_CREATEALLOCATIONFLAGS`.
    pub flags: u32,
    /// `NumAllocations`.
    pub count: u32,
    /// Whether `pAllocationInfo2` is not NULL.
    pub has_infos: bool,
    /// `PrivateDriverDataSize` of the resource.
    pub driver_data_size: u32,
    /// `PrivateRuntimeDataSize`.
    pub runtime_data_size: u32,
    /// The standard allocation, once it is copied.
    pub standard: Option<Standard>,
}

/// The resource that allocations are to be added to.
#[derive(Clone, Copy)]
pub struct Existing {
    /// Its handle was made on the device of the call.
    pub same_device: bool,
    /// It was created or opened, so that its handle comes with those of its allocations.
    pub is_whole: bool,
    /// It can be opened elsewhere.
    pub shared: bool,
}

impl Creation {
    fn has(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }

    /// The flags by themselves: first of all.
    pub fn check_flags(&self) -> Result<(), Invalid> {
        use bits::*;

        invalid_if(
            self.has(!KNOWN)
                || self.has(NT_SECURITY_SHARING) && !self.has(CREATE_SHARED)
                || self.has(EXISTING_SYS_MEM) && self.has(EXISTING_SECTION),
        )
    }

    /// Whether a standard allocation is described at this address.
    pub fn describes_standard(&self, address: u64) -> Result<bool, Invalid> {
        let describes = self.has(bits::STANDARD_ALLOCATION);

        invalid_if(describes && address == 0)?;
        Ok(describes)
    }

    /// The standard allocation, or that there is none: before the resource. `page` is the size of
    /// the caller's pages. Without one, ExistingSysMem needs an address and `driver_data` for each
    /// allocation, which the KMD need not know (RES-23).
    pub fn check_standard(&self, page: u64, driver_data: bool) -> Result<(), Invalid> {
        let existing = match driver_data {
            true => bits::EXISTING_SECTION,
            false => bits::EXISTING_SYS_MEM | bits::EXISTING_SECTION,
        };

        match &self.standard {
            Some(standard) => standard.check(self.flags, page),
            None => invalid_if(self.has(bits::STANDARD_ALLOCATION | existing)),
        }
    }

    /// The resource that allocations are to be added to (RES-24), once its handle is found good.
    pub fn check_existing(&self, existing: Existing) -> Result<(), Invalid> {
        invalid_if(
            self.has(bits::CREATE_RESOURCE | bits::STANDARD_ALLOCATION)
                || !existing.same_device
                || !existing.is_whole
                || existing.shared,
        )
    }

    /// Numbers and sizes: last.
    pub fn check_sizes(&self) -> Result<(), Invalid> {
        invalid_if(
            self.has(bits::CREATE_SHARED) && !self.creates_resource()
                || self.count > MAX_ALLOCATIONS
                || self.count != 0 && !self.has_infos
                || self.count == 0 && !self.creates_resource()
                || self.runtime_data_size > MAX_PRIVATE_DATA
                || self.driver_data_size > MAX_PRIVATE_DATA,
        )
    }

    /// An entry of the array by itself, before its private driver data is copied.
    pub fn check_entry(
        flags: u32,
        reserved_is_zero: bool,
        driver_data_size: u32,
    ) -> Result<(), Invalid> {
        invalid_if(
            flags & !KNOWN_ENTRY_FLAGS != 0
                || !reserved_is_zero
                || driver_data_size > MAX_PRIVATE_DATA,
        )
    }

    /// Whether an entry of the array is to be displayed.
    pub fn is_primary(flags: u32) -> bool {
        flags & PRIMARY != 0
    }

    /// Whether what is made is to be one range in a memory segment.
    pub fn is_contiguous(&self) -> bool {
        self.has(bits::PHYSICALLY_CONTIGUOUS)
    }

    /// Whether the array can be copied; if not, [`Creation::check_sizes`] refuses the call, when it
    /// is its turn.
    pub fn has_readable_infos(&self) -> bool {
        self.count <= MAX_ALLOCATIONS && self.has_infos
    }

    /// Whether a resource is made.
    pub fn creates_resource(&self) -> bool {
        self.has(bits::CREATE_RESOURCE)
    }

    /// Whether what is made can be opened elsewhere.
    pub fn is_shared(&self) -> bool {
        self.has(bits::CREATE_SHARED)
    }

    /// How it can be opened elsewhere.
    pub fn sharing(&self) -> Sharing {
        match (self.is_shared(), self.has(bits::NT_SECURITY_SHARING)) {
            (false, _) => Sharing::Private,
            (true, false) => Sharing::Global,
            (true, true) => Sharing::Nt,
        }
    }

    /// Who may open it by its global handle.
    pub fn open_policy(&self) -> OpenPolicy {
        if self.has(bits::RESTRICT_SHARED_ACCESS) {
            OpenPolicy::Restricted
        } else if self.has(bits::NON_SECURE) {
            OpenPolicy::World
        } else {
            OpenPolicy::Default
        }
    }

    /// Whether devices of other adapters may open it.
    pub fn is_cross_adapter(&self) -> bool {
        self.has(bits::CROSS_ADAPTER)
            || self
                .standard
                .as_ref()
                .is_some_and(Standard::is_cross_adapter)
    }

    /// Whether the bytes are never written.
    pub fn is_read_only(&self) -> bool {
        self.has(bits::READ_ONLY)
    }

    /// Whether it is a back buffer of a swap chain.
    pub fn is_back_buffer(&self) -> bool {
        self.has(bits::SWAP_CHAIN_BACK_BUFFER)
    }
}

/// The flags that a creation returns: they say whether all its memory is zero.
pub fn answered_flags(flags: u32, zeroed: bool) -> u32 {
    if zeroed {
        flags | bits::ZEROED
    } else {
        flags & !bits::ZEROED
    }
}

/// Has an allocation be in whole pages of this size (MEM-2). Invalid if it is too large for that,
/// and then it is as it was.
pub fn align_to(info: &mut AllocationInfo, page: PageSize) -> Result<(), Invalid> {
    let alignment = u32::try_from(page.bytes()).map_err(|_| Invalid)?;

    info.size = info
        .size
        .checked_next_multiple_of(page.bytes())
        .ok_or(Invalid)?;
    info.alignment = info.alignment.max(alignment);
    Ok(())
}

/// Where the bytes of an allocation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In memory of the module.
    New,
    /// In pages of the caller, at this address.
    Caller(u64),
    /// In the file behind this descriptor value.
    Section(u64),
}

impl Source {
    /// What the flags of a call say together with the address in an entry of its array. An address
    /// without a standard allocation is that of the caller's pages, with or without a flag
    /// (RES-21).
    pub fn new(flags: u32, existing: u64, page: u64) -> Result<Self, Invalid> {
        if flags & bits::EXISTING_SECTION != 0 {
            return Ok(Self::Section(existing));
        }
        if flags & bits::EXISTING_SYS_MEM == 0 && existing == 0 {
            return Ok(Self::New);
        }
        invalid_if(existing == 0 || existing % page != 0)?;
        Ok(Self::Caller(existing))
    }
}

/// A standard allocation as a call describes it.
#[derive(Clone, Copy)]
pub struct Standard {
    /// `PrivateDriverDataSize` of the resource.
    pub driver_data_size: u32,
    /// `NumAllocations`.
    pub count: u32,
    /// `D3DKMT_STANDARDALLOCATIONTYPE`.
    pub kind: u32,
    /// Bytes.
    pub size: u64,
    /// Flags of `D3DKMT_CREATESTANDARDALLOCATION`.
    pub flags: u32,
    /// The address or descriptor in its entry of the array; `None` without an array.
    pub existing: Option<u64>,
}

/// `D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP`: memory that is there already.
pub const EXISTING_HEAP: u32 = 1;
/// `D3DKMT_STANDARDALLOCATIONTYPE_CROSSADAPTER`: memory of the module, which all adapters can use.
pub const CROSS_ADAPTER: u32 = 2;

impl Standard {
    /// Checks it against the flags of its call, and where its bytes are (RES-19).
    pub fn check(&self, flags: u32, page: u64) -> Result<(), Invalid> {
        let has_existing = flags & (bits::EXISTING_SYS_MEM | bits::EXISTING_SECTION) != 0;
        let existing = self.existing.ok_or(Invalid)?;

        invalid_if(
            self.driver_data_size != 0
                || self.count != 1
                || self.size == 0
                || self.size % PAGE != 0
                || self.flags != 0,
        )?;
        match self.kind {
            EXISTING_HEAP => invalid_if(!has_existing)?,
            CROSS_ADAPTER => invalid_if(has_existing || existing != 0)?,
            _ => return Err(Invalid),
        }
        Source::new(flags, existing, page).map(drop)
    }

    /// Whether devices of every adapter may open it.
    pub fn is_cross_adapter(&self) -> bool {
        self.kind == CROSS_ADAPTER
    }
}
