//! Views.
#![allow(unsafe_code)] // C functions

use std::ffi::c_char;
use std::sync::{MutexGuard, PoisonError};

use engine::{Displacement, ErrorKind, View};
use pario_mpi::host::combiner::Combiner;
use pario_mpi::{Datatype, Host, MpiError};

use super::{HandlePointer, Offset, Raw, file_functions};
use crate::call::{self, Outcome};
use crate::files::{OpenFile, ViewTypes};
use crate::{conversion, datatypes, info, memory};

/// The longest name of a data representation in the standard, with its final NUL.
const DATAREP_BYTES: usize = 128;

/// The arguments of `MPI_File_set_view`.
#[derive(Clone, Copy, Debug)]
struct Arguments {
    displacement: Offset,
    etype: Raw,
    filetype: Raw,
    datarep: *const c_char,
}

impl Arguments {
    fn displacement(&self, host: &Host) -> engine::Result<Displacement> {
        if self.displacement == host.constants().displacement_current {
            return Ok(Displacement::Current);
        }
        let bytes = memory::unsigned(self.displacement, "the displacement")?;
        Ok(Displacement::Bytes(bytes))
    }

    /// The view that the arguments describe.
    fn view(&self, host: &Host) -> engine::Result<View> {
        let displacement = self.displacement(host)?;
        let etype = datatypes::decode(self.etype)?;
        let filetype = datatypes::decode(self.filetype)?;
        // SAFETY: the program's promises are those of the standard.
        let name = unsafe { memory::text(self.datarep, "the data representation") };
        let name = name.map_err(|failure| {
            engine::Error::new(ErrorKind::UnsupportedRepresentation, failure.to_string())
        })?;
        let representation = standard_name(name);
        if representation != "native" {
            conversion::expect();
        }
        Ok(View::new(0, &etype, &filetype)
            .at(displacement)
            .representation(representation))
    }
}

/// ROMIO and OMPIO also accept the standard's names in upper case.
fn standard_name(name: &str) -> &str {
    match name {
        "NATIVE" => "native",
        "INTERNAL" => "internal",
        "EXTERNAL32" => "external32",
        other => other,
    }
}

fn set_view(open: &OpenFile, arguments: Arguments, hints: Raw) -> Outcome {
    let host = call::host()?;
    // A hint, even an invalid info object, is never a reason to fail.
    let hints = info::read(host, hints).unwrap_or_default();
    let view = match arguments.view(host) {
        Ok(view) => view,
        Err(error) => return Err(open.file.fail_collectively("set_view", error).into()),
    };
    open.file.set_view_with(&view, &hints)?;
    let flavour = host.flavour();
    let etype = Datatype(flavour.from_register(arguments.etype));
    let filetype = Datatype(flavour.from_register(arguments.filetype));
    let is_derived = !is_named(host, filetype)?;
    // A view that is only moved keeps its handles: a duplicate would cost as much as the rest
    // of the call.
    let kept = open.types().clone();
    if is_derived && kept.etype == etype && kept.duplicated.as_ref() == Some(view.filetype()) {
        return Ok(());
    }
    open.free_types(host);
    let etype = copy(host, etype)?;
    *open.types() = ViewTypes {
        filetype: copy(host, filetype).inspect_err(|_| free(host, etype))?,
        etype,
        duplicated: is_derived.then(|| view.filetype().clone()),
    };
    Ok(())
}

/// A handle that stays valid: that of a named type, or a duplicate of a derived one.
fn copy(host: &Host, datatype: Datatype) -> Result<Datatype, MpiError> {
    match is_named(host, datatype)? {
        true => Ok(datatype),
        false => host.type_dup(datatype),
    }
}

/// Frees a handle that [`copy`] returned.
fn free(host: &Host, datatype: Datatype) {
    // An error cannot be handled: the duplicate leaks.
    if let Ok(false) = is_named(host, datatype) {
        let _ = host.type_free(datatype);
    }
}

fn is_named(host: &Host, datatype: Datatype) -> Result<bool, MpiError> {
    Ok(host.type_envelope(datatype)?.combiner == Some(Combiner::Named))
}

impl OpenFile {
    fn types(&self) -> MutexGuard<'_, ViewTypes> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the duplicates of the view's types.
    pub(crate) fn free_types(&self, host: &Host) {
        let none = ViewTypes::named(host.predefined().byte);
        let old = std::mem::replace(&mut *self.types(), none);
        free(host, old.etype);
        free(host, old.filetype);
    }
}

file_functions! {
    "File_set_view" fn set_view_(fh, displacement: Offset, etype: Raw, filetype: Raw, datarep: *const c_char, hints: Raw) |open| {
        set_view(open, Arguments { displacement, etype, filetype, datarep }, hints)
    }

    "File_get_view" fn get_view(fh, displacement: *mut Offset, etype: HandlePointer, filetype: HandlePointer, datarep: *mut c_char) |open| {
        let host = call::host()?;
        let view = open.file.view();
        let start = match view.displacement() {
            Displacement::Bytes(bytes) => Offset::try_from(bytes).unwrap_or(Offset::MAX),
            Displacement::Current => host.constants().displacement_current,
        };
        let types = open.types().clone();
        // SAFETY: the program's promises are those of the standard.
        unsafe {
            memory::put(displacement, start, "the displacement")?;
            memory::put_handle(host, etype, copy(host, types.etype)?.0, "the etype")?;
            memory::put_handle(host, filetype, copy(host, types.filetype)?.0, "the filetype")?;
            if !datarep.is_null() {
                memory::put_text(datarep, DATAREP_BYTES, view.representation_name());
            }
        }
        Ok(())
    }
}
