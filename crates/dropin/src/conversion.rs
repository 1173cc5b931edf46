//! Conversion functions of the program, called with handles of the host.
//!
//! The standard gives such a function the datatype that the program passed to the data access,
//! or an equivalent one. Data may be converted long after the call, when the program may have
//! freed its handle, so duplicates are kept, one per distinct datatype.
#![allow(unsafe_code)] // functions of the program's are called

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pario_datarep::{Conversion, Transfer, UserError, UserRepresentation};
use pario_layout::Basic;
use pario_mpi::host::combiner::Combiner;
use pario_mpi::{Datatype, ErrorClass, Host, MpiError};

use crate::call::SUCCESS;
use crate::failure::Failure;

type CFunction =
    unsafe extern "C" fn(*mut c_void, u64, c_int, *mut c_void, i64, *mut c_void) -> c_int;
type LargeCFunction =
    unsafe extern "C" fn(*mut c_void, u64, i64, *mut c_void, i64, *mut c_void) -> c_int;
/// `Count` is the type of Fortran's count.
type FortranFunction<Count> = unsafe extern "C" fn(
    *mut c_void,
    *mut c_int,
    *mut Count,
    *mut c_void,
    *mut i64,
    *mut c_void,
    *mut c_int,
);
type CExtent = unsafe extern "C" fn(u64, *mut i64, *mut c_void) -> c_int;
type FortranExtent = unsafe extern "C" fn(*mut c_int, *mut i64, *mut c_void, *mut c_int);

/// A function that converts items.
#[derive(Clone, Copy)]
pub(crate) enum Item {
    /// `MPI_CONVERSION_FN_NULL`: the file holds the native form.
    Null,
    C(CFunction),
    LargeC(LargeCFunction),
    Fortran(FortranFunction<c_int>),
    LargeFortran(FortranFunction<i64>),
}

/// Defines the constructor of one kind of function from its address.
macro_rules! from_address {
    ($($(#[$doc:meta])* $name:ident, $variant:ident, $type:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// It is null or such a function.
        pub(crate) unsafe fn $name(function: *const c_void) -> Item {
            match function.is_null() {
                true => Item::Null,
                // SAFETY: promised by the caller.
                false => Item::$variant(unsafe { mem::transmute::<*const c_void, $type>(function) }),
            }
        }
    )*};
}

impl Item {
    from_address! {
        /// A `MPI_Datarep_conversion_function`.
        c, C, CFunction;
        /// A `MPI_Datarep_conversion_function_c`.
        large_c, LargeC, LargeCFunction;
        /// A Fortran subroutine.
        fortran, Fortran, FortranFunction<c_int>;
        /// A Fortran subroutine with a large count.
        large_fortran, LargeFortran, FortranFunction<i64>;
    }

    fn call(self, transfer: &Transfer<'_>, state: usize) -> Result<(), UserError> {
        let host = Host::current()?;
        let datatype = handle_of(host, transfer.datatype)?;
        let user = transfer.user_buffer.cast::<c_void>();
        let file = transfer.file_buffer.cast::<c_void>();
        let state = std::ptr::with_exposed_provenance_mut::<c_void>(state);
        let (mut large_count, mut position) = (
            i64::try_from(transfer.count)?,
            i64::try_from(transfer.position)?,
        );
        let integer = || host.type_to_fortran(datatype);
        let mut code = SUCCESS;
        // SAFETY: the program that registered the functions promised their types; the
        // buffers are those of the standard.
        unsafe {
            match self {
                Item::Null => return Ok(()),
                Item::C(convert) => {
                    let count = few(transfer.count)?;
                    code = convert(user, datatype.0, count, file, position, state);
                }
                Item::LargeC(convert) => {
                    code = convert(user, datatype.0, large_count, file, position, state);
                }
                Item::Fortran(convert) => {
                    let (mut datatype, mut count) = (integer(), few(transfer.count)?);
                    let (count, position) = (&mut count, &mut position);
                    convert(user, &mut datatype, count, file, position, state, &mut code);
                }
                Item::LargeFortran(convert) => {
                    let mut datatype = integer();
                    let (count, position) = (&mut large_count, &mut position);
                    convert(user, &mut datatype, count, file, position, state, &mut code);
                }
            }
        }
        check(host, "the conversion function", code)
    }

    fn conversion(self, state: usize) -> Conversion {
        match self {
            Item::Null => Conversion::Identity,
            // SAFETY: the program's promise to the standard is the same.
            item => unsafe { Conversion::callback(move |transfer| item.call(transfer, state)) },
        }
    }
}

/// A count for functions without large counts.
fn few(count: u64) -> Result<c_int, UserError> {
    c_int::try_from(count).map_err(|_| {
        let message = format!(
            "{count} items are too many for its conversion functions: MPI_Register_datarep_c \
             takes functions for large counts"
        );
        message.into()
    })
}

fn check(host: &Host, what: &str, code: c_int) -> Result<(), UserError> {
    match code {
        SUCCESS => Ok(()),
        _ => Err(format!("{what} returned {code} ({})", host.error_string(code)).into()),
    }
}

/// The function that returns the size of an item in the file.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    Null,
    C(CExtent),
    Fortran(FortranExtent),
}

impl Extent {
    /// # Safety
    /// It is null or a `MPI_Datarep_extent_function`.
    pub(crate) unsafe fn c(function: *const c_void) -> Extent {
        match function.is_null() {
            true => Extent::Null,
            // SAFETY: promised by the caller.
            false => Extent::C(unsafe { mem::transmute::<*const c_void, CExtent>(function) }),
        }
    }

    /// # Safety
    /// It is null or a Fortran subroutine for extents.
    pub(crate) unsafe fn fortran(function: *const c_void) -> Extent {
        match function.is_null() {
            true => Extent::Null,
            false => {
                // SAFETY: promised by the caller.
                let function = unsafe { mem::transmute::<*const c_void, FortranExtent>(function) };
                Extent::Fortran(function)
            }
        }
    }

    fn call(self, basic: Basic, state: usize) -> Result<u64, UserError> {
        let host = Host::current()?;
        let datatype = predefined(host, basic)?;
        let state = std::ptr::with_exposed_provenance_mut::<c_void>(state);
        let (mut extent, mut code) = (0, SUCCESS);
        // SAFETY: the program that registered the function promised its type.
        unsafe {
            match self {
                Extent::Null => return Ok(basic.size()),
                Extent::C(function) => code = function(datatype.0, &mut extent, state),
                Extent::Fortran(function) => {
                    let mut integer = host.type_to_fortran(datatype);
                    function(&mut integer, &mut extent, state, &mut code);
                }
            }
        }
        check(host, "the extent function", code)?;
        let negative = |_| format!("the extent of {} is {extent}", basic.name());
        Ok(u64::try_from(extent).map_err(negative)?)
    }
}

/// The functions that a program registers.
pub(crate) struct Functions {
    pub(crate) read: Item,
    pub(crate) write: Item,
    pub(crate) extent: Extent,
    /// Passed to all three.
    pub(crate) state: *mut c_void,
}

impl TryFrom<Functions> for UserRepresentation {
    type Error = Failure;

    fn try_from(functions: Functions) -> Result<UserRepresentation, Failure> {
        let Functions {
            read,
            write,
            extent,
            state,
        } = functions;
        if let Extent::Null = extent {
            let message = "the extent function is null";
            return Err(Failure::new(ErrorClass::Arg, message));
        }
        let state = state.expose_provenance();
        let file_extent = move |basic| extent.call(basic, state);
        if !matches!((read, write), (Item::Null, Item::Null)) {
            WANTED.store(true, Ordering::Release);
        }
        let (write, read) = (write.conversion(state), read.conversion(state));
        Ok(UserRepresentation::new(file_extent, write, read))
    }
}

/// The host's handle of a basic type.
fn predefined(host: &Host, basic: Basic) -> Result<Datatype, UserError> {
    let handle = host.named_type(basic.name());
    handle.ok_or_else(|| format!("the MPI has no {}", basic.name()).into())
}

/// Whether any representation converts, so that handles will be needed.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Whether no data is converted, so that only its bytes matter.
#[inline]
pub(crate) fn never_happens() -> bool {
    !HAS_FOREIGN_VIEWS.load(Ordering::Acquire)
}

/// Notes that a view with another representation than the native one is about to be set.
pub(crate) fn expect() {
    HAS_FOREIGN_VIEWS.store(true, Ordering::Release);
}

static HAS_FOREIGN_VIEWS: AtomicBool = AtomicBool::new(false);

/// Derived datatypes and the host's handles of them.
static KEPT: Mutex<Vec<(pario_layout::Datatype, Datatype)>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<(pario_layout::Datatype, Datatype)>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known(datatype: &pario_layout::Datatype) -> Option<Datatype> {
    let kept = kept();
    let found = kept.iter().find(|(known, _)| known == datatype);
    found.map(|(_, handle)| *handle)
}

/// The predefined type that a datatype is equal to, if any.
fn basic_of(datatype: &pario_layout::Datatype) -> Option<Basic> {
    let (basic, _) = datatype.signature().runs(0..1).next()?;
    (*datatype == pario_layout::Datatype::basic(basic)).then_some(basic)
}

/// The host's handle of a datatype that the program has used.
fn handle_of(host: &Host, datatype: &pario_layout::Datatype) -> Result<Datatype, UserError> {
    match basic_of(datatype) {
        Some(basic) => predefined(host, basic),
        None => known(datatype).ok_or_else(|| "the datatype of the buffer is unknown".into()),
    }
}

/// Keeps the handle of a datatype that the program uses, if a conversion function may need it.
#[inline]
pub(crate) fn note(
    host: &Host,
    handle: Datatype,
    datatype: &pario_layout::Datatype,
) -> Result<(), MpiError> {
    match WANTED.load(Ordering::Acquire) {
        false => Ok(()),
        true => keep(host, handle, datatype),
    }
}

fn keep(host: &Host, handle: Datatype, datatype: &pario_layout::Datatype) -> Result<(), MpiError> {
    if basic_of(datatype).is_some() || known(datatype).is_some() {
        return Ok(());
    }
    // If another thread kept the same type in the meantime, there is one duplicate too many.
    let combiner = host.type_envelope(handle)?.combiner;
    let lasting = match combiner.is_some_and(Combiner::is_predefined) {
        true => handle,
        false => host.type_dup(handle)?,
    };
    kept().push((datatype.clone(), lasting));
    Ok(())
}

/// Frees the duplicates, at the end of the MPI.
pub(crate) fn free_all(host: &Host) {
    for (_, handle) in std::mem::take(&mut *kept()) {
        let combiner = host.type_envelope(handle).map(|envelope| envelope.combiner);
        // An error cannot be handled: the duplicate leaks.
        if let Ok(Some(false)) = combiner.map(|combiner| combiner.map(Combiner::is_predefined)) {
            let _ = host.type_free(handle);
        }
    }
}
