//! Size, storage, durability, hints and atomicity.

use std::sync::Arc;

use pario_driver::{Facts, Handle};
use pario_hints::Info;
use pario_layout::Datatype;
use pario_transport::Rank;

use super::{Atomicity, File, Inner, open::advise};
use crate::{Error, ErrorKind, Result, agree, view::flatten};

impl File {
    /// The size in bytes.
    pub fn size(&self) -> Result<u64> {
        let size = self
            .inner
            .check_open()
            .and_then(|()| Ok(self.inner.handle.size()?));
        size.map_err(|error| self.inner.name_error(error, "size"))
    }

    /// Truncates or extends the file. *Collective*, with the same size on all
    /// ranks.
    pub fn set_size(&self, bytes: u64) -> Result<()> {
        self.inner
            .resize("set_size", bytes, |handle| handle.set_size(bytes))
    }

    /// Reserves storage for the first bytes of the file, and extends it if it
    /// is shorter. Data that is there stays. *Collective*, with the same size
    /// on all ranks.
    pub fn preallocate(&self, bytes: u64) -> Result<()> {
        self.inner
            .resize("preallocate", bytes, |handle| handle.preallocate(bytes))
    }

    /// Makes all that was written durable, and visible to whoever reads after
    /// its own `sync`. *Collective*.
    pub fn sync(&self) -> Result<()> {
        let inner = &self.inner;
        let synced = inner
            .check_open()
            .and_then(|()| inner.check_idle())
            .and_then(|()| match inner.mode.can_write() {
                true => Ok(inner.handle.sync()?),
                false => Ok(()),
            })
            .and_then(|()| inner.unreported.take());
        inner.agree("sync", synced)
    }

    /// Sets what concurrent accesses see of each other. *Collective*, with the
    /// same value on all ranks.
    pub fn set_atomicity(&self, atomicity: Atomicity) -> Result<()> {
        let inner = &self.inner;
        let mine = inner.check_open().and_then(|()| {
            if atomicity == Atomicity::Atomic && !inner.driver.capabilities().locks {
                return Err(Error::new(
                    ErrorKind::UnsupportedOperation,
                    format!(
                        "atomic mode needs locks, which the driver {} lacks",
                        inner.driver.name()
                    ),
                ));
            }
            Ok(vec![atomicity as u8])
        });
        agree::gather(&*inner.comm, mine)
            .and_then(|all| agree::same(&all, "the atomicity"))
            .map_err(|error| inner.name_error(error, "set_atomicity"))?;
        inner.state.settings.change(|it| it.atomicity = atomicity);
        Ok(())
    }

    /// What concurrent accesses see of each other.
    pub fn atomicity(&self) -> Atomicity {
        self.inner.atomicity()
    }

    /// The hints in force.
    pub fn info(&self) -> Info {
        let inner = &self.inner;
        let in_force = inner.hints();
        let mut info = in_force.to_info();
        super::hints::publish(&mut info, &*inner.comm, &in_force, inner.handle.facts());
        // A name longer than an info value may be is left out.
        let _ = info.set("filename", &inner.path.to_string_lossy());
        // ROMIO tells its driver under this name, and scripts ask for it. Some
        // programs open the next file with what they were told, so it is a
        // value that open takes.
        let _ = info.set("romio_filesystem_type", &romio_name(inner.driver.name()));
        info
    }

    /// Changes hints that can change while a file is open. *Collective*; of
    /// differing values, rank 0's count.
    pub fn set_info(&self, info: &Info) -> Result<()> {
        let inner = &self.inner;
        let mut hints = (*inner.hints()).clone();
        let warnings = hints.update(info);
        let mine = inner.check_open().map(|()| hints.to_wire());
        let all = agree::gather(&*inner.comm, mine)
            .map_err(|error| inner.name_error(error, "set_info"))?;
        super::hints::report(&*inner.comm, &warnings, all.iter().map(Vec::as_slice));
        if let Ok(theirs) = pario_hints::Hints::from_wire(&all[0]) {
            hints.agree(&theirs);
        }
        super::hints::locate_hosts(&*inner.comm, &mut hints)
            .map_err(|error| inner.name_error(error, "set_info"))?;
        inner.buffers.set_bound(hints.pario_inflight_bytes);
        advise(&*inner.handle, &hints);
        let hints = Arc::new(hints);
        inner.state.settings.change(|it| it.hints = hints);
        Ok(())
    }

    /// Takes part in a collective call other than a data access with an error
    /// in its arguments, so that all ranks get it and none waits for this one.
    /// *Collective*, with the ranks that make the call. Data accesses take
    /// [failed](crate::Source::failed) memory instead.
    pub fn fail_collectively(&self, operation: &'static str, error: Error) -> Error {
        match self.inner.agree::<()>(operation, Err(error)) {
            Err(error) => error,
            Ok(()) => unreachable!("this rank's own failure is among those agreed on"),
        }
    }

    /// The extent of a datatype in this file's data representation.
    pub fn type_extent(&self, datatype: &Datatype) -> Result<i64> {
        let view = self.inner.view();
        let representation = view.representation();
        if representation.is_identity() {
            return Ok(datatype.extent());
        }
        flatten(datatype, &**representation)
            .map(|layout| layout.extent())
            .map_err(|error| self.inner.name_error(error, "type_extent"))
    }

    /// What is known about the file's file system.
    pub fn facts(&self) -> &Facts {
        self.inner.handle.facts()
    }

    /// How the last blocking collective access was carried out, and why;
    /// nothing before the first.
    pub fn explain_last_all(&self) -> Option<String> {
        self.inner.context.explain()
    }

    /// Which driver, shared pointer and hints are in force, and why.
    pub fn explain_open(&self) -> String {
        let inner = &self.inner;
        let facts = inner.handle.facts();
        let mount = facts.mount_point.as_ref();
        let mount = mount.map_or_else(String::new, |at| format!(", mounted at {}", at.display()));
        format!(
            "driver {}: {}\nfile system: {}{mount}\nshared pointer: {}\n{}",
            inner.driver.name(),
            inner.driver_reason,
            facts.file_system,
            inner.shared_pointer.explain(),
            inner.hints().explain()
        )
    }
}

impl Inner {
    /// Rank 0 changes the size, once all ranks asked for the same one.
    fn resize(
        &self,
        operation: &'static str,
        bytes: u64,
        change: impl FnOnce(&dyn Handle) -> std::io::Result<()>,
    ) -> Result<()> {
        let mine = self
            .check_resize(bytes)
            .map(|()| bytes.to_le_bytes().to_vec());
        agree::gather(&*self.comm, mine)
            .and_then(|all| agree::same(&all, "the size"))
            .map_err(|error| self.name_error(error, operation))?;
        let changed = match self.comm.rank() {
            Rank(0) => change(&*self.handle).map_err(Error::from),
            _ => Ok(()),
        };
        self.agree(operation, changed)
    }

    fn check_resize(&self, bytes: u64) -> Result<()> {
        self.check_open()?;
        self.check_idle()?;
        self.check_not_sequential()?;
        if !self.mode.can_write() {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                "the file was opened READ_ONLY: its size cannot be changed",
            ));
        }
        if bytes > i64::MAX as u64 {
            return Err(Error::argument(format!(
                "a file cannot have {bytes} bytes: the most is 2^63 - 1"
            )));
        }
        Ok(())
    }
}

/// A driver as ROMIO names its own: a word that is also a prefix of file names, a
/// colon, and what it is.
fn romio_name(driver: &str) -> String {
    let word = match driver {
        "posix" => "UFS".to_owned(),
        other => other.to_uppercase(),
    };
    format!("{word}: pario's driver {driver}")
}
