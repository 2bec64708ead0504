// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that say which object they are about.

use crate::arguments::Argument;
use crate::uapi::*;

/// An argument with the members `handle` and `handle_type`.
pub trait ObjectArgument: Argument {
    /// The handle and its `OPENDXG_HANDLE_*` type.
    fn object(&self) -> (u64, u32);

    /// Names the object.
    fn about(&mut self, handle: u64, handle_type: u32);
}

macro_rules! object_arguments {
    ($($name:ident)*) => {
        $(
            impl ObjectArgument for $name {
                fn object(&self) -> (u64, u32) {
                    (self.handle, self.handle_type)
                }

                fn about(&mut self, handle: u64, handle_type: u32) {
                    self.handle = handle;
                    self.handle_type = handle_type;
                }
            }
        )*
    };
}

object_arguments! {
    opendxg_query_object
    opendxg_dup_nt
    opendxg_set_info
    opendxg_get_info
    opendxg_enum_info
    opendxg_delete_info
    opendxg_open_weak
    opendxg_watch
}
