//! Info objects.

use engine::Info;
use pario_mpi::Host;

use crate::entry::Raw;
use crate::failure::Failure;
use crate::notice;

/// The hints in an info object. Invalid ones are ignored: a hint is never a reason to fail.
pub(crate) fn read(host: &Host, raw: Raw) -> Result<Info, Failure> {
    let info = pario_mpi::Info(host.flavour().from_register(raw));
    let mut hints = Info::new();
    for (key, value) in host.info_pairs(info)? {
        if let Err(error) = hints.set(&key, &value) {
            notice::warn_locally(&format!("the hint {key} is ignored: {error}"));
        }
    }
    Ok(hints)
}

/// A new info object with these hints.
pub(crate) fn write(host: &Host, info: &Info) -> Result<pario_mpi::Info, Failure> {
    Ok(host.info_from_pairs(info.iter())?)
}
