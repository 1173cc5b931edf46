//! Datatypes of the host, decoded.

use std::borrow::Cow;

use engine::{Datatype, ErrorKind};
use pario_layout::Basic;
use pario_mpi::{DataLayout, Host, HostError};

use crate::conversion;
use crate::entry::Raw;

/// Decodes a datatype, which must be committed. That is done once; the result is kept with the
/// datatype.
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

/// Items of data: the datatype of one, or bytes of which `factor` make one.
pub(crate) struct Items {
    pub(crate) datatype: Cow<'static, Datatype>,
    pub(crate) factor: u64,
}

/// Decodes the datatype of data in memory. As long as no file has another representation than the
/// native one, only the bytes matter.
#[inline]
pub(crate) fn decode_data(raw: Raw) -> engine::Result<Items> {
    let host = Host::current().map_err(no_host)?;
    let datatype = pario_mpi::Datatype(host.flavour().from_register(raw));
    if let Some(known) = host.decoded_predefined(datatype)
        && conversion::never_happens()
    {
        let datatype = Cow::Borrowed(known);
        return Ok(Items {
            datatype,
            factor: 1,
        });
    }
    decode_derived_data(host, datatype, raw)
}

fn decode_derived_data(
    host: &Host,
    datatype: pario_mpi::Datatype,
    raw: Raw,
) -> engine::Result<Items> {
    if !conversion::never_happens() {
        let datatype = decode(raw)?;
        return Ok(Items {
            datatype,
            factor: 1,
        });
    }
    if datatype == host.predefined().datatype_null {
        return Err(wrong("the datatype is MPI_DATATYPE_NULL".to_owned()));
    }
    let decoded = host.decode_data(datatype);
    Ok(match decoded.map_err(|error| wrong(error.to_string()))? {
        DataLayout::Contiguous(factor) => Items {
            datatype: Cow::Borrowed(Datatype::basic_ref(Basic::Byte)),
            factor,
        },
        DataLayout::Other(other) => Items {
            datatype: Cow::Owned(other),
            factor: 1,
        },
    })
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
