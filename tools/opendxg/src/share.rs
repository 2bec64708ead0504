// SPDX-License-Identifier: MIT OR Apache-2.0
//! NT handles with names and rights, and how to find them again.

use std::os::fd::AsFd;

use crate::calls::object::{call_about, Place};
use crate::calls::share::{self, Attributes};
use crate::dxg::Dxg;
use crate::handle::{adopt_checked, LocalHandle, NtHandle};
use crate::raw::Argument;
use crate::sync_object::Access;
use crate::uapi::*;
use crate::{Result, Status};

/// How to make an NT handle: rights, and a name that other processes can open.
///
/// ```no_run
/// # use opendxg::{Access, Dxg, ShareOptions};
/// # fn main() -> opendxg::Result<()> {
/// # let dxg = Dxg::open()?;
/// # let device = dxg.adapters()?[0].create_device()?;
/// let fence = device.create_shareable_fence(0)?;
/// let options = ShareOptions::new(Access::ALL).name(r"\BaseNamedObjects\frame").mode(0o666);
/// let nt_handle = dxg.share(&[fence.handle()], &options)?;
/// // Any process of this IPC namespace, while the NT handle is open:
/// let found = dxg.open_sync_name(r"\BaseNamedObjects\Frame", Access::WAIT)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ShareOptions {
    access: Access,
    name: Option<Vec<u16>>,
    attributes: u32,
    mode: Option<u32>,
}

impl ShareOptions {
    /// No name, closed on exec.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            name: None,
            attributes: 0,
            mode: None,
        }
    }

    /// A full name, such as `\BaseNamedObjects\picture`. It lives as long as some NT handle of the
    /// share.
    pub fn name(self, name: &str) -> Self {
        self.name_units(units(name))
    }

    /// A full name in UTF-16 units, which need not be text.
    pub fn name_units(mut self, units: Vec<u16>) -> Self {
        self.name = Some(units);
        self
    }

    /// The descriptor stays open across exec.
    pub fn inherit(self) -> Self {
        self.attributes(OBJ_INHERIT)
    }

    /// If the name exists and means an object of the same type, open that object instead.
    pub fn open_if(self) -> Self {
        self.attributes(OBJ_OPENIF)
    }

    /// Adds `OBJ_*` bits.
    pub fn attributes(mut self, bits: u32) -> Self {
        self.attributes |= bits;
        self
    }

    /// Who may open the name, as for a file: some of `0o666`. Without it only the same user.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    fn is_plain(&self) -> bool {
        self.name.is_none() && self.attributes == 0 && self.mode.is_none()
    }
}

/// A name in UTF-16.
fn units(name: &str) -> Vec<u16> {
    // Most names are ASCII, and as many units as bytes.
    if name.is_ascii() {
        name.bytes().map(u16::from).collect()
    } else {
        name.encode_utf16().collect()
    }
}

impl Dxg {
    /// Makes an NT handle for one resource, one synchronisation object, or a resource, a keyed
    /// mutex and a synchronisation object in this order.
    pub fn share(&self, objects: &[LocalHandle], options: &ShareOptions) -> Result<NtHandle> {
        self.share_or_open(objects, options)
            .map(|(_, handle)| handle)
    }

    /// As [`share`](Self::share); the status is OBJECT_NAME_EXISTS when
    /// [`open_if`](ShareOptions::open_if) opened an existing object.
    pub fn share_or_open(
        &self,
        objects: &[LocalHandle],
        options: &ShareOptions,
    ) -> Result<(Status, NtHandle)> {
        let objects: Vec<u32> = objects.iter().map(|object| object.0).collect();
        let access = options.access.bits();
        if options.is_plain() {
            let fd = share::share(self.node(), &objects, access)?;
            return Ok((Status::SUCCESS, fd.into()));
        }
        let attributes = Attributes {
            name: options.name.as_deref(),
            bits: options.attributes,
        };
        let made = share::share_with(self.node(), &objects, access, &attributes, options.mode);
        made.map(|(status, fd)| (status, fd.into()))
    }

    /// A new NT handle of the resource with this name.
    pub fn open_resource_name(&self, name: &str, access: Access) -> Result<NtHandle> {
        let units = units(name);
        let attributes = Attributes {
            name: Some(&units),
            bits: 0,
        };
        let fd = share::open_resource_name(self.node(), access.bits(), &attributes)?;
        Ok(fd.into())
    }

    /// A new NT handle of the synchronisation object with this name.
    pub fn open_sync_name(&self, name: &str, access: Access) -> Result<NtHandle> {
        let units = units(name);
        let attributes = Attributes {
            name: Some(&units),
            bits: 0,
        };
        let fd = share::open_sync_name(self.node(), access.bits(), &attributes)?;
        Ok(fd.into())
    }
}

/// Works without the device, on the descriptor itself.
impl NtHandle {
    /// Another NT handle with at most the rights of this one: an open file description of its own.
    ///
    /// ACCESS_DENIED for more rights. [`try_clone`](Self::try_clone) makes another descriptor of
    /// the same description.
    pub fn duplicate(&self, access: Access) -> Result<Self> {
        self.duplicate_with(access, 0)
    }

    /// Another NT handle with the same rights.
    pub fn duplicate_same(&self) -> Result<Self> {
        self.duplicate_with(Access::empty(), OPENDXG_DUP_SAME_ACCESS)
    }

    /// As [`duplicate`](Self::duplicate), with `OPENDXG_DUP_*` flags.
    pub fn duplicate_with(&self, access: Access, flags: u32) -> Result<Self> {
        let mut arg = opendxg_dup_nt::zeroed();
        arg.access = access.bits();
        arg.flags = flags;
        call_about(Place::Own(self.as_fd()), &mut arg)?;
        // A slot that is not a descriptor becomes a negative one, which is refused.
        let fd = i32::try_from(arg.new_handle).unwrap_or(-1);
        adopt_checked(fd).map(Self::from)
    }
}
