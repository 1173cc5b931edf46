//! Datatypes of the host, decoded.

use engine::{Datatype, ErrorKind};
use pario_mpi::Host;

use crate::conversion;
use crate::entry::Raw;

/// Decodes a datatype, which must be committed. That is done once; the result is kept with the
/// datatype.
pub(crate) fn decode(raw: Raw) -> engine::Result<Datatype> {
    let wrong = |message| engine::Error::new(ErrorKind::Type, message);
    let host = Host::current().map_err(|error| wrong(error.to_string()))?;
    let datatype = pario_mpi::Datatype(host.flavour().from_register(raw));
    if datatype == host.predefined().datatype_null {
        return Err(wrong("the datatype is MPI_DATATYPE_NULL".to_owned()));
    }
    let decoded = host.decode_committed(datatype);
    let decoded = decoded.map_err(|error| wrong(error.to_string()))?;
    conversion::note(host, datatype, &decoded).map_err(|error| wrong(error.to_string()))?;
    Ok(decoded)
}
