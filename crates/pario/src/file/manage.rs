//! Size, storage, durability, atomicity and hints.

use std::sync::{Arc, atomic::Ordering};

use pario_driver::{Creation, Facts, Handle};
use pario_hints::Info;
use pario_layout::Datatype;
use pario_transport::Rank;

use super::{Atomicity, File, Inner, lock_probe, open::advise};
use crate::{
    Error, ErrorKind, Overlap, Result, agree, collective_call::CollectiveCall, view::flatten,
};

/// # Size, consistency and hints
///
/// ```
/// # use pario::{File, Info, Mode, threads};
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// file.set_size(1 << 20)?;
/// assert_eq!(file.size()?, 1 << 20);
///
/// // What rank 0 writes, the others read after the barrier: sync, barrier, sync.
/// if comm.rank() == 0 {
///     file.write_at(0, &[1u8; 100])?;
/// }
/// file.sync()?;
/// comm.barrier()?;
/// file.sync()?;
/// let mut read = [0u8; 100];
/// file.read_at(0, &mut read)?;
/// assert_eq!(read, [1; 100]);
///
/// let hints = Info::from_pairs([("cb_buffer_size", "1048576")])?;
/// file.set_info(&hints)?;
/// assert_eq!(file.info().get("cb_buffer_size"), Some("1048576"));
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
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
        self.inner.resize(CollectiveCall::SetSize, bytes, |handle| {
            handle.set_size(bytes)
        })
    }

    /// Reserves storage for the first `bytes` bytes of the file, and extends it if it is shorter.
    /// Existing data is kept. *Collective*, with the same size on all ranks.
    pub fn preallocate(&self, bytes: u64) -> Result<()> {
        self.inner
            .resize(CollectiveCall::Preallocate, bytes, |handle| {
                handle.preallocate(bytes)
            })
    }

    /// Makes written data durable, and visible to every rank that reads after its own `sync`.
    /// *Collective*.
    pub fn sync(&self) -> Result<()> {
        let inner = &self.inner;
        inner.merge_logs(CollectiveCall::Sync)?;
        let synced = inner
            .check_open()
            .and_then(|()| inner.check_idle())
            .and_then(|()| match inner.mode.can_write() {
                true => Ok(inner.handle.sync()?),
                false => Ok(()),
            })
            .and_then(|()| inner.unreported.take());
        inner
            .collectively(CollectiveCall::Sync, || {
                inner.begin(CollectiveCall::Sync, synced)
            })
            .map_err(|error| inner.name_error(error, "sync"))
    }

    /// Sets how concurrent overlapping accesses behave. *Collective*, with the same value on all
    /// ranks.
    pub fn set_atomicity(&self, atomicity: Atomicity) -> Result<()> {
        let inner = &self.inner;
        inner.merge_logs(CollectiveCall::SetAtomicity)?;
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
            if atomicity == Atomicity::Atomic {
                inner.sharing.require_locks("atomic mode")?;
            }
            Ok(vec![atomicity as u8])
        });
        let call = CollectiveCall::SetAtomicity;
        inner
            .collectively(call, || inner.begin_with(call, mine))
            .and_then(|all| agree::same(&all, "the atomicity"))
            .and_then(
                |()| match atomicity == Atomicity::Atomic && inner.mode.can_write() {
                    true => {
                        lock_probe::run(&*inner.comm, &*inner.handle, &inner.sharing, "atomic mode")
                    }
                    false => Ok(()),
                },
            )
            .map_err(|error| inner.name_error(error, "set_atomicity"))?;
        inner.state.settings.change(|it| it.atomicity = atomicity);
        if atomicity == Atomicity::Atomic {
            // The locks of atomic accesses need a description per rank.
            let has_tried = &inner.writers.has_tried_sharing;
            has_tried.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How concurrent overlapping accesses behave.
    pub fn atomicity(&self) -> Atomicity {
        self.inner.atomicity()
    }

    /// The current hints, and what pario reports about the file.
    pub fn info(&self) -> Info {
        let inner = &self.inner;
        let in_force = inner.hints();
        let mut info = in_force.to_info();
        let mut facts = inner.handle.facts().clone();
        facts.placement = inner.reported_placement();
        facts.striping = match &facts.placement {
            Some(placement) => Some(placement.striping()),
            None => facts.striping,
        };
        super::hints::publish(&mut info, &*inner.comm, &in_force, &facts);
        // A name longer than an info value may be is left out.
        let _ = info.set("filename", &inner.path.to_string_lossy());
        // ROMIO reports its driver under this name, and scripts look for it. Some programs open the
        // next file with the hints of this one, so the value is one that `open` accepts.
        let _ = info.set("romio_filesystem_type", &romio_name(inner.driver.name()));
        info
    }

    /// Changes hints that can change while a file is open. *Collective*; if hints differ, those of
    /// rank 0 are used.
    pub fn set_info(&self, info: &Info) -> Result<()> {
        let inner = &self.inner;
        let mut hints = (*inner.hints()).clone();
        let warnings = hints.update(info);
        let mine = inner.check_open().map(|()| hints.to_wire());
        let call = CollectiveCall::SetInfo;
        let all = inner
            .collectively(call, || inner.begin_with(call, mine))
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

    /// Takes part in a collective call, other than a data access, whose arguments are invalid on
    /// this rank, so that all ranks get the error and none waits for this one. *Collective*, with
    /// the ranks that make the call. Data accesses take [failed](crate::Source::failed) memory
    /// instead.
    #[doc(hidden)]
    pub fn fail_collectively(&self, operation: &'static str, error: Error) -> Error {
        let inner = &self.inner;
        let agreed = match CollectiveCall::named(operation) {
            Some(call) => inner.collectively(call, || inner.begin::<()>(call, Err(error))),
            None => inner.agree(operation, Err(error)),
        };
        match agreed {
            Err(error) => inner.name_error(error, operation),
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

    /// What is known about the file system that holds the file.
    pub fn facts(&self) -> &Facts {
        self.inner.handle.facts()
    }

    /// How the last blocking collective access was carried out, and why; `None` before the first.
    pub fn explain_last_all(&self) -> Option<String> {
        self.inner.context.explain()
    }

    /// What this rank exchanged with other nodes in the last blocking collective access, and how
    /// much of it during file transfers.
    pub fn overlap_last_all(&self) -> Overlap {
        self.inner.context.overlap()
    }

    /// The driver, the storage of the shared pointer and the hints in use, and why.
    pub fn explain_open(&self) -> String {
        let inner = &self.inner;
        let facts = inner.handle.facts();
        let mount = facts.mount_point.as_ref();
        let mount = mount.map_or_else(String::new, |at| format!(", mounted at {}", at.display()));
        format!(
            "driver {}: {}\nfile system: {}{mount}\nplacement: {}{}\nopened: {}\nshared pointer: {}\n{}",
            inner.driver.name(),
            inner.driver_reason,
            facts.file_system,
            self.explain_placement(),
            explain_creation(inner.handle.creation()),
            inner.opened_by,
            inner.shared_pointer.explain(),
            inner.hints().explain()
        )
    }
}

impl Inner {
    /// Rank 0 changes the size once all ranks have requested the same one.
    fn resize(
        self: &Arc<Self>,
        call: CollectiveCall,
        bytes: u64,
        change: impl FnOnce(&dyn Handle) -> std::io::Result<()>,
    ) -> Result<()> {
        self.merge_logs(call)?;
        let mine = self
            .check_resize(bytes)
            .map(|()| bytes.to_le_bytes().to_vec());
        self.collectively(call, || self.begin_with(call, mine))
            .and_then(|all| agree::same(&all, "the size"))
            .map_err(|error| self.name_error(error, call.name()))?;
        let changed = match self.comm.rank() {
            Rank(0) => change(&*self.handle).map_err(Error::from),
            _ => Ok(()),
        };
        self.agree(call.name(), changed)?;
        if self.handle.bypasses_cache() && self.comm.rank() != Rank(0) {
            // This node learns of the new size. If that fails, reads near the end will, too.
            let _ = self.handle.size();
        }
        Ok(())
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

/// A line on the placement of a file that this rank created.
fn explain_creation(creation: Option<&Creation>) -> String {
    match creation {
        None => String::new(),
        Some(Creation::Set { reason }) => format!("\ncreated with {reason}"),
        Some(Creation::Default { reason }) => {
            format!("\ncreated with the file system's default: {reason}")
        }
        Some(Creation::Refused { reason }) => {
            format!("\ncreated with the file system's default, since it refused {reason}")
        }
    }
}

/// The name of a driver in ROMIO's form: a word that is also a prefix of file names, a colon, and a
/// description.
fn romio_name(driver: &str) -> String {
    let word = match driver {
        "posix" => "UFS".to_owned(),
        other => other.to_uppercase(),
    };
    format!("{word}: pario's driver {driver}")
}
