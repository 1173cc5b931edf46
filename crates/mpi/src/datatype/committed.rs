//! Whether a datatype is committed. No function of the MPI tells, but those that use a datatype
//! refuse one that is not: packing no element of it has no other effect.

use crate::ErrorClass;
use crate::error::MpiError;
use crate::handles::Datatype;
use crate::host::Host;

impl Host {
    /// Whether a datatype is committed, as far as the MPI looks at that. Programs that only have
    /// sessions are believed: they have no communicator to ask on.
    pub(super) fn type_is_committed(&self, datatype: Datatype) -> Result<bool, MpiError> {
        if !self.has_world() {
            return Ok(true);
        }
        let comm = self.own_comm()?;
        match self.pack_nothing(datatype, comm) {
            Err(error) if error.class == Some(ErrorClass::Type) => Ok(false),
            _ => Ok(true),
        }
    }
}
