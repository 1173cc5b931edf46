//! Whether a datatype is committed. The MPI has no function for that, but functions that use a
//! datatype reject one that is not: packing zero elements of it has no other effect.

use crate::ErrorClass;
use crate::error::MpiError;
use crate::handles::Datatype;
use crate::host::Host;

impl Host {
    /// Whether a datatype is committed, as far as the MPI checks. Programs that use only
    /// sessions are trusted: they have no communicator for the check.
    pub(super) fn type_is_committed(&self, datatype: Datatype) -> Result<bool, MpiError> {
        let comm = match self.made_own_comm() {
            Some(comm) => comm,
            None if !self.has_world() => return Ok(true),
            None => self.own_comm()?,
        };
        match self.pack_nothing(datatype, comm) {
            Err(error) if error.class == Some(ErrorClass::Type) => Ok(false),
            _ => Ok(true),
        }
    }
}
