//! Setting and asking for the view.

use std::sync::{Arc, PoisonError};

use pario_transport::Rank;

use super::{File, Inner};
use crate::{
    Error, ErrorKind, Mode, Result, agree,
    view::{Displacement, Lowered, Sameness, Use, View},
};

impl File {
    /// Sets what this rank sees of the file and moves both pointers to its
    /// start. *Collective*; the data representation and the extent of the
    /// etype must be the same on all ranks.
    pub fn set_view(&self, view: &View) -> Result<()> {
        let inner = &self.inner;
        inner
            .set_view(view)
            .map_err(|error| inner.name_error(error, "set_view"))
    }

    /// The view in force. Its displacement is always in bytes.
    pub fn view(&self) -> View {
        self.inner.view().view().clone()
    }
}

/// What must be equal on all ranks, ahead of what may differ.
const EXTENT_BYTES: usize = 8;
const FINGERPRINT_BYTES: usize = 24;

impl Inner {
    fn set_view(&self, view: &View) -> Result<()> {
        if view.displacement() == Displacement::Current {
            return self.set_view_at_pointer(view);
        }
        let mine = self.check_view(view).and_then(|()| {
            let lowered = Lowered::new(view, 0, self.usage())?;
            self.prepare_turn()?;
            Ok(lowered)
        });
        self.adopt(mine)
    }

    /// A sequential file's view starts where the shared pointer stands once
    /// all ranks have arrived, so they meet once more.
    fn set_view_at_pointer(&self, view: &View) -> Result<()> {
        agree::agree(&*self.comm, self.check_view(view))?;
        let mine = self.shared_pointer.load().and_then(|position| {
            let current = self.view().file_byte(position)?;
            let lowered = Lowered::new(view, current, self.usage())?;
            self.prepare_turn()?;
            Ok(lowered)
        });
        self.adopt(mine)
    }

    fn check_view(&self, view: &View) -> Result<()> {
        self.check_open()?;
        self.check_idle()?;
        let sequential = self.mode.contains(Mode::SEQUENTIAL);
        match (sequential, view.displacement()) {
            (true, Displacement::Bytes(_)) => Err(Error::new(
                ErrorKind::UnsupportedOperation,
                "a file opened SEQUENTIAL allows only views with Displacement::Current",
            )),
            (false, Displacement::Current) => Err(Error::argument(
                "Displacement::Current is allowed only in files opened SEQUENTIAL",
            )),
            _ => Ok(()),
        }
    }

    fn usage(&self) -> Use {
        if self.mode.can_write() {
            Use::Writable
        } else {
            Use::ReadOnly
        }
    }

    fn prepare_turn(&self) -> Result<()> {
        match self.comm.rank() {
            Rank(0) => self.shared_pointer.prepare_turn(0),
            _ => Ok(()),
        }
    }

    /// The ranks meet, compare, and take their views.
    fn adopt(&self, mine: Result<Lowered>) -> Result<()> {
        let said = match &mine {
            Ok(lowered) => Ok(description(lowered)),
            Err(error) => Err(error.clone()),
        };
        let all = agree::gather(&*self.comm, said)?;
        for (rank, message) in all.iter().enumerate() {
            if message[..EXTENT_BYTES] != all[0][..EXTENT_BYTES] {
                return Err(agree::differs("the extent of the etype", rank));
            }
            let name = EXTENT_BYTES + FINGERPRINT_BYTES;
            if message[name..] != all[0][name..] {
                return Err(agree::differs("the data representation", rank));
            }
        }
        let sameness = match all.iter().all(|message| *message == all[0]) {
            true => Sameness::Same,
            false => Sameness::Different,
        };
        let view = Arc::new(mine?.with_sameness(sameness));
        let mut pointer = self.pointer();
        *self
            .state
            .view
            .write()
            .unwrap_or_else(PoisonError::into_inner) = view;
        *pointer = 0;
        self.shared_pointer.turn();
        Ok(())
    }
}

fn description(lowered: &Lowered) -> Vec<u8> {
    let view = lowered.view();
    let mut message = view.etype().extent().to_le_bytes().to_vec();
    message.extend(lowered.fingerprint());
    message.extend(view.representation_name().as_bytes());
    message
}
