//! The functions that pario intercepts, for calls that do not concern it.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use pario_mpi::Host;
use pario_mpi::host::symbols;

use crate::notice;

/// The function of that name which a program would call without pario: that of a tool, if one
/// is loaded after pario, or the host's.
#[derive(Debug)]
pub(super) struct Next {
    name: &'static str,
    address: OnceLock<usize>,
}

/// The result if there is no such function. It is not a code of any host, since there is no host.
pub(super) const NO_FUNCTION: c_int = -1;

impl Next {
    /// By its whole name, `"MPI_Wait"` or `"PMPI_Wait"` for instance.
    pub(super) const fn new(name: &'static str) -> Next {
        Next {
            name,
            address: OnceLock::new(),
        }
    }

    /// Its address. A missing function is looked up again later: an MPI may be loaded in the
    /// meantime.
    pub(super) fn get(&self) -> Option<*const c_void> {
        if let Some(address) = self.address.get() {
            return Some(*address as *const c_void);
        }
        let address = self.look_up()?;
        self.address.get_or_init(|| address as usize);
        Some(address)
    }

    /// The host may not be visible to the dynamic linker.
    fn look_up(&self) -> Option<*const c_void> {
        symbols::next(self.name).or_else(|| {
            let bare = self.name.trim_start_matches('P').strip_prefix("MPI_")?;
            Some(Host::current().ok()?.function(bare)?.cast_const())
        })
    }

    /// Reports that a program called a function that its MPI lacks.
    pub(super) fn refuse(&self) -> c_int {
        notice::line(&format!(
            "{} was called, but no MPI of this process has it",
            self.name
        ));
        NO_FUNCTION
    }
}

/// Defines functions that are passed on to the next one of their name, unless the block returns
/// a code; `then` gets the resulting code. Both may rely on what the caller of the function
/// promises.
macro_rules! passing_functions {
    ($(
        $(#[$doc:meta])*
        $name:literal fn $rust:ident ( $($arg:ident : $type:ty),* $(,)? )
        $(unless $instead:block)?
        $(then |$code:ident| $then:block)?
    )*) => {$(
        mod $rust {
            #![allow(unused_imports)]
            use super::*;

            #[allow(dead_code)]
            const NAME: &str = concat!("MPI_", $name);

            type Function = unsafe extern "C-unwind" fn($($type),*) -> ::std::ffi::c_int;

            $(#[$doc])*
            unsafe fn work($($arg: $type,)* next: &$crate::entry::next::Next) -> ::std::ffi::c_int {
                // SAFETY: promised by the caller.
                let code = unsafe { passed($($arg,)* next) };
                $({
                    let $code = code;
                    $then
                })?
                code
            }

            #[allow(unused_unsafe)] // not every block calls the MPI
            unsafe fn passed($($arg: $type,)* next: &$crate::entry::next::Next) -> ::std::ffi::c_int {
                // SAFETY: the body calls functions of the same family with the arguments of
                // this one, or with its own memory.
                $(if let Some(code) = unsafe { $instead } {
                    return code;
                })?
                match next.get() {
                    // SAFETY: the function of this name has this type, and the
                    // caller's promises are those of the function.
                    Some(function) => unsafe {
                        let function = ::std::mem::transmute::<*const ::std::ffi::c_void, Function>(function);
                        function($($arg),*)
                    },
                    None => next.refuse(),
                }
            }

            #[unsafe(export_name = concat!("MPI_", $name))]
            unsafe extern "C-unwind" fn mpi($($arg: $type),*) -> ::std::ffi::c_int {
                static NEXT: $crate::entry::next::Next = $crate::entry::next::Next::new(concat!("MPI_", $name));
                // SAFETY: the caller's promises are those of the function.
                unsafe { work($($arg,)* &NEXT) }
            }

            #[unsafe(export_name = concat!("PMPI_", $name))]
            unsafe extern "C-unwind" fn pmpi($($arg: $type),*) -> ::std::ffi::c_int {
                static NEXT: $crate::entry::next::Next = $crate::entry::next::Next::new(concat!("PMPI_", $name));
                // SAFETY: the caller's promises are those of the function.
                unsafe { work($($arg,)* &NEXT) }
            }
        }
    )*};
}

pub(super) use passing_functions;
