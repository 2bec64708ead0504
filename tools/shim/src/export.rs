// SPDX-License-Identifier: MIT OR Apache-2.0
//! The macro that turns the table of functions into exported functions and into a list of them for
//! tests and documentation.

use core::ffi::c_void;

use opendxg::Status;

/// One exported function, as the tests and the documentation see it.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The exported symbol.
    pub name: &'static str,
    /// Name of the argument struct in C; `None` for another signature.
    pub argument: Option<&'static str>,
    /// The entry, if it has the usual signature.
    pub entry: Option<unsafe extern "C" fn(*mut c_void) -> Status>,
    /// How it is served.
    pub route: Route,
}

/// How a function is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The kernel runs the call of this number with the caller's argument.
    Direct(u32),
    /// The same, and the node is opened again in a forked child.
    Reopening(u32),
    /// The library turns it into the call of this number.
    Translated(u32),
    /// The library answers by itself.
    Answered,
    /// NOT_SUPPORTED until the kernel has a call for it.
    Pending,
    /// NOT_SUPPORTED.
    Unsupported,
}

macro_rules! functions {
    ($($group:literal {
        $($kind:ident $name:ident $arg:tt $(via $via:ident)? $(= $path:path)? $(, null $null:ident)?;)*
    })*) => {
        $($(
            $crate::export::entry!($kind $name $arg $($path)? $(, $null)?);
        )*)*

        /// Every exported function, in groups.
        pub const GROUPS: &[(&str, &[$crate::export::Function])] = &[
            $(($group, &[$($crate::export::Function {
                name: stringify!($name),
                argument: $crate::export::argument!($arg),
                entry: $crate::export::pointer!($name $arg),
                route: $crate::export::route!($kind $arg $($via)?),
            },)*]),)*
        ];
    };
}

/// Defines the exported function of one row.
macro_rules! entry {
    // Written out elsewhere.
    ($kind:ident $name:ident {} $($path:path)?) => {};
    ($kind:ident $name:ident ($arg:ident) $($path:path)? $(, $null:ident)?) => {
        #[doc = concat!("`NTSTATUS ", stringify!($name), "(", stringify!($arg), " *)`")]
        ///
        /// # Safety
        ///
        /// The argument is NULL or such a struct, with addresses the function may use.
        #[no_mangle]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name(arg: *mut core::ffi::c_void) -> opendxg::Status {
            $crate::export::body!($kind arg $arg $($path)? $(, $null)?)
        }
    };
}

/// The body of an exported function.
macro_rules! body {
    (direct $value:ident $arg:ident) => {
        // SAFETY: the contract of the exported function.
        unsafe { $crate::library::direct::<$arg>($value) }
    };
    (object $value:ident $arg:ident) => {
        // SAFETY: the contract of the exported function.
        unsafe { $crate::library::object::<$arg>($value) }
    };
    (reopening $value:ident $arg:ident) => {
        // SAFETY: the contract of the exported function.
        unsafe { $crate::library::reopening::<$arg>($value) }
    };
    (translated $value:ident $arg:ident $path:path) => {
        $crate::export::body!(translated $value $arg $path, INVALID_PARAMETER)
    };
    (translated $value:ident $arg:ident $path:path, $null:ident) => {
        // SAFETY: the contract of the exported function.
        unsafe { $crate::library::served($value, opendxg::Status::$null, $path) }
    };
    (answered $value:ident $arg:ident $path:path) => {
        $crate::export::body!(translated $value $arg $path)
    };
    (pending $value:ident $arg:ident) => {
        $crate::library::not_served($value, opendxg::Status::NOT_SUPPORTED)
    };
    (unsupported $value:ident $arg:ident) => {
        $crate::library::not_served($value, opendxg::Status::NOT_SUPPORTED)
    };
}

macro_rules! argument {
    ({}) => {
        None
    };
    (($arg:ident)) => {
        Some(stringify!($arg))
    };
}

macro_rules! pointer {
    ($name:ident {}) => {
        None
    };
    ($name:ident ($arg:ident)) => {
        Some($name)
    };
}

macro_rules! route {
    (direct ($arg:ident)) => {
        $crate::export::Route::Direct(<$arg as opendxg::raw::Argument>::NR)
    };
    (direct {} $via:ident) => {
        $crate::export::Route::Direct(<$via as opendxg::raw::Argument>::NR)
    };
    (object ($arg:ident)) => {
        $crate::export::Route::Direct(<$arg as opendxg::raw::Argument>::NR)
    };
    (reopening ($arg:ident)) => {
        $crate::export::Route::Reopening(<$arg as opendxg::raw::Argument>::NR)
    };
    (translated $arg:tt $via:ident) => {
        $crate::export::Route::Translated(<$via as opendxg::raw::Argument>::NR)
    };
    (answered $arg:tt) => {
        $crate::export::Route::Answered
    };
    (pending $arg:tt) => {
        $crate::export::Route::Pending
    };
    (unsupported $arg:tt) => {
        $crate::export::Route::Unsupported
    };
}

pub(crate) use {argument, body, entry, functions, pointer, route};
