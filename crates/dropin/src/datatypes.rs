//! Datatypes of the host, decoded.

use std::borrow::Cow;

use engine::{Datatype, ErrorKind};
use pario_mpi::{Host, HostError};

use crate::conversion;
use crate::entry::Raw;

/// Decodes a datatype, which must be committed. That is done once; the result is kept with the
/// datatype. Predefined types are borrowed, since most short calls use them.
#[inline]
pub(crate) fn decode(raw: Raw) -> engine::Result<Cow<'static, Datatype>> {
    let host = Host::current().map_err(no_host)?;
    let datatype = pario_mpi::Datatype(host.flavour().from_register(raw));
    let decoded = match host.decoded_predefined(datatype) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(decode_other(host, datatype)?),
    };
    let noted = conversion::note(host, datatype, &decoded);
    noted.map_err(|error| wrong(error.to_string()))?;
    Ok(decoded)
}

/// Decodes a derived datatype, or a predefined one that is used for the first time.
fn decode_other(host: &Host, datatype: pario_mpi::Datatype) -> engine::Result<Datatype> {
    if datatype == host.predefined().datatype_null {
        return Err(wrong("the datatype is MPI_DATATYPE_NULL".to_owned()));
    }
    let decoded = host.decode_committed(datatype);
    decoded.map_err(|error| wrong(error.to_string()))
}

#[cold]
fn no_host(error: HostError) -> engine::Error {
    wrong(error.to_string())
}

fn wrong(message: String) -> engine::Error {
    engine::Error::new(ErrorKind::Type, message)
}
