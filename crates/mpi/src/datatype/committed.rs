//! Whether a datatype is committed. No function of the MPI tells, but those that use a datatype
//! refuse one that is not: packing no element of it has no other effect.

use std::sync::{Mutex, PoisonError};

use crate::ErrorClass;
use crate::error::MpiError;
use crate::handles::{Comm, Datatype};
use crate::host::Host;

/// A communicator of this process alone that returns errors: on others, the answer would go to a
/// handler of the program's. Made at the first question.
#[derive(Debug, Default)]
pub(crate) struct Asking(Mutex<Option<Comm>>);

impl Host {
    /// Whether a datatype is committed, as far as the MPI looks at that. Programs that only have
    /// sessions are believed: they have no communicator to ask on.
    pub(super) fn type_is_committed(&self, datatype: Datatype) -> Result<bool, MpiError> {
        if !self.has_world() {
            return Ok(true);
        }
        // Held while the communicator is made: threads must not do that at the same time.
        let mut comm = self
            .asking()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let comm = match *comm {
            Some(comm) => comm,
            None => *comm.insert(self.comm_of_own()?),
        };
        match self.pack_nothing(datatype, comm) {
            Err(error) if error.class == Some(ErrorClass::Type) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Split off rather than duplicated: a duplicate calls functions of the program's attributes.
    fn comm_of_own(&self) -> Result<Comm, MpiError> {
        let own = self.predefined().comm_self;
        let comm = self.comm_split(own, Some(0), 0)?.unwrap_or(own);
        self.comm_return_errors(comm)?;
        Ok(comm)
    }

    /// Frees what questions about datatypes needed, at the end of the MPI.
    pub fn end_asking(&self) {
        let mut comm = self
            .asking()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(comm) = comm.take() {
            // Nothing to be done about an error: the MPI ends.
            let _ = self.comm_free(comm);
        }
    }
}
