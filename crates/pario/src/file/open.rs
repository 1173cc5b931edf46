//! Opening, closing and deleting: collective, agreed, one creator.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use pario_driver::{
    Advice, AsyncMethod, Create, Driver, Handle, IoMode, OpenHow, Resolved, ScatteredWrites,
};
use pario_hints::{Hints, Info, Sources};
use pario_transport::{Rank, Transport};

use super::{
    File, Inner, hints,
    inner::State,
    same_file,
    settings::CurrentSettings,
    usable::{usable, usable_alone},
};
use crate::{
    Error, ErrorKind, Mode, Result, Unreported,
    access::Buffers,
    agree,
    collective::{Background, CollectiveContext},
    shared_pointer::{Preference, SharedPointer},
    view::FlattenedView,
    writer_lock::{Pending, WriterLock},
};

const ROOT: Rank = Rank(0);

impl File {
    /// Opens a file. *Collective*: the mode must be the same on all ranks; names may
    /// differ if they name the same file; of differing hints, rank 0's count.
    ///
    /// A prefix of the name (`ufs:`, `mem:`, …) chooses the driver; without
    /// one, the file system that holds the file does.
    pub fn open(
        comm: &Arc<dyn Transport>,
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
    ) -> Result<File> {
        Self::open_private(private(comm)?, path, mode, info)
    }

    /// As [`File::open`], on two transports between the same ranks that nobody
    /// else uses: for blocking calls, and for those in the background.
    pub fn open_private(
        comms: [Arc<dyn Transport>; 2],
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
    ) -> Result<File> {
        open(comms, path.as_ref(), mode, info, resolve)
    }

    /// Opens a file through a given driver: for wrappers (faults, throttling,
    /// traces) and for file systems that this crate does not know.
    /// *Collective*.
    pub fn open_with(
        comm: &Arc<dyn Transport>,
        driver: Arc<dyn Driver>,
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
    ) -> Result<File> {
        let path = path.as_ref();
        let given = |path: &Path, _: &Hints| {
            let reason = format!("the program gave the driver {}", driver.name());
            Ok(Resolved {
                driver,
                path: path.to_owned(),
                reason,
            })
        };
        open(private(comm)?, path, mode, info, given)
    }

    /// Deletes a file. Of several ranks, one does this.
    pub fn delete(path: impl AsRef<Path>, info: &Info) -> Result<()> {
        let path = path.as_ref();
        let hints = usable_alone(Hints::resolve(info, &Sources::from_environment()).hints);
        resolve(path, &hints)
            .and_then(|resolved| Ok(resolved.driver.delete(&resolved.path)?))
            .map_err(|error| error.in_operation("delete").on_path(path))
    }

    /// Closes the file: what was written is published, errors of the file
    /// system are reported on all ranks, and nothing is left behind.
    /// *Collective*. It does not make data durable: [`File::sync`] and the hint
    /// `pario_sync_on_close` do.
    ///
    /// An operation whose request is still pending is an error on all ranks,
    /// and the file stays open; those whose requests were dropped are waited
    /// for. After any other result it is closed.
    pub fn close(&self) -> Result<()> {
        let inner = &self.inner;
        let ready = inner.check_not_closed().and_then(|()| inner.check_idle());
        inner.agree("close", ready)?;
        inner.close_together()
    }

    /// Closes on this rank alone, without the others and without a result: for
    /// programs that end with open files. Rank 0 deletes a file that is to be
    /// deleted on close.
    pub fn close_alone(&self) {
        let inner = &self.inner;
        let deletes = inner.mode.contains(Mode::DELETE_ON_CLOSE) && inner.comm.rank() == ROOT;
        if inner.close_locally() && deletes {
            // Nobody is left to hear of an error.
            let _ = inner.driver.delete(&inner.driver_path);
        }
    }
}

impl Inner {
    fn close_together(&self) -> Result<()> {
        self.state.closed.store(true, Ordering::Release);
        let synced = match self.hints().pario_sync_on_close && self.mode.can_write() {
            true => self.handle.sync(),
            false => Ok(()),
        };
        let closed = self.handle.close();
        let closed = synced.and(closed).map_err(Error::from);
        let closed = self.agree("close", self.unreported.take().and(closed));
        if !self.mode.contains(Mode::DELETE_ON_CLOSE) {
            return closed;
        }
        // Whatever became of closing: the file is not to stay.
        let deleted = match self.comm.rank() {
            ROOT => self.driver.delete(&self.driver_path),
            _ => Ok(()),
        };
        let deleted = self.agree("close", deleted.map_err(Error::from));
        closed.and(deleted)
    }
}

fn resolve(path: &Path, hints: &Hints) -> Result<Resolved> {
    let resolved = pario_driver::resolve(path.as_os_str(), hints.pario_driver.as_deref());
    resolved.map_err(|error| Error::new(ErrorKind::BadFile, "no driver for it").with_source(error))
}

/// The transports of a file.
fn private(comm: &Arc<dyn Transport>) -> Result<[Arc<dyn Transport>; 2]> {
    let duplicates = comm.duplicates(2).map_err(Error::from)?;
    Ok(<[_; 2]>::try_from(duplicates).expect("as many duplicates as were asked for"))
}

fn open(
    comms: [Arc<dyn Transport>; 2],
    path: &Path,
    mode: Mode,
    info: &Info,
    resolve: impl FnOnce(&Path, &Hints) -> Result<Resolved>,
) -> Result<File> {
    let rank = comms[0].rank();
    open_together(comms, path, mode, info, resolve)
        .map_err(|error| error.in_operation("open").on_path(path).on_rank(rank))
}

fn open_together(
    [comm, background]: [Arc<dyn Transport>; 2],
    path: &Path,
    mode: Mode,
    info: &Info,
    resolve: impl FnOnce(&Path, &Hints) -> Result<Resolved>,
) -> Result<File> {
    let (hints, names) = agree_on_arguments(&*comm, path, mode, info)?;
    let hints = usable(hints, mode, &*comm);
    let resolved = resolve(path, &hints).and_then(|resolved| {
        check_reachable(&*comm, &resolved)?;
        Ok(resolved)
    });
    // One name mostly leads to one driver on all ranks: then an error is told
    // with what becomes of opening. Of several names, each has to lead somewhere
    // before a file is created.
    let resolved = match names {
        Names::Equal => resolved,
        Names::Different => Ok(agree::agree(&*comm, resolved)?),
    };
    let how = open_how(mode, &hints);
    let handle = open_everywhere(&*comm, &resolved, &how, names)?;
    let Resolved {
        driver,
        path: driver_path,
        reason,
    } = resolved?;
    advise(&*handle, &hints);
    hints::report_striping(&*comm, mode, &hints, handle.facts());
    let ready = prepare(&comm, mode, &hints, &*handle, &driver_path);
    let (shared_pointer, view, start) = match ready {
        Ok(ready) => ready,
        Err(error) => {
            let _ = handle.close();
            return Err(error);
        }
    };
    Ok(File {
        inner: Arc::new(Inner {
            background: Background::new(CollectiveContext::new(background)),
            split: Arc::default(),
            context: CollectiveContext::new(comm.clone()),
            comm,
            path: path.to_owned(),
            driver_path,
            mode,
            driver,
            driver_reason: reason,
            handle,
            shared_pointer,
            buffers: Buffers::new(hints.pario_inflight_bytes),
            writer_lock: Arc::new(WriterLock::default()),
            pending: Pending::default(),
            unreported: Unreported::default(),
            state: State {
                settings: CurrentSettings::new(view, hints),
                pointer: Mutex::new(start),
                closed: AtomicBool::new(false),
            },
        }),
    })
}

/// Whether the ranks gave the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    Equal,
    Different,
}

/// One exchange: the modes must be equal, rank 0's hints count.
fn agree_on_arguments(
    comm: &dyn Transport,
    path: &Path,
    mode: Mode,
    info: &Info,
) -> Result<(Hints, Names)> {
    let mut resolved = Hints::resolve(info, &Sources::from_environment());
    let mine = mode.validate().map(|()| {
        let hints = resolved.hints.to_wire();
        let hints_len = (hints.len() as u32).to_le_bytes();
        [
            &mode.bits().to_le_bytes(),
            &hints_len[..],
            &hints,
            path.as_os_str().as_encoded_bytes(),
        ]
        .concat()
    });
    let all = agree::gather(comm, mine)?;
    let modes: Vec<Vec<u8>> = all.iter().map(|message| message[..4].to_vec()).collect();
    agree::same(&modes, "the access mode")?;
    let parts: Vec<_> = all.iter().map(|message| hints_and_name(message)).collect();
    let names = match parts.iter().all(|(_, name)| *name == parts[0].1) {
        true => Names::Equal,
        false => Names::Different,
    };
    hints::report(
        comm,
        &resolved.warnings,
        parts.iter().map(|(wire, _)| *wire),
    );
    if parts[0].0 != parts[comm.rank().index()].0 {
        let theirs = Hints::from_wire(parts[0].0).map_err(|error| {
            Error::new(ErrorKind::Io, "rank 0 sent hints that cannot be read").with_source(error)
        })?;
        resolved.hints.agree(&theirs);
    }
    hints::locate_hosts(comm, &mut resolved.hints)?;
    Ok((resolved.hints, names))
}

/// Takes the rest of a message apart: it was put together just above.
fn hints_and_name(message: &[u8]) -> (&[u8], &[u8]) {
    let len = message[4..8].try_into().map_or(0, u32::from_le_bytes) as usize;
    message[8..].split_at(len)
}

fn check_reachable(comm: &dyn Transport, resolved: &Resolved) -> Result<()> {
    if comm.spans_processes() && !resolved.driver.capabilities().between_processes {
        return Err(Error::new(
            ErrorKind::UnsupportedOperation,
            format!(
                "the driver {} keeps files inside one process, but the ranks are several processes",
                resolved.driver.name()
            ),
        ));
    }
    Ok(())
}

fn open_how(mode: Mode, hints: &Hints) -> OpenHow {
    let io_mode = |direct| {
        if direct {
            IoMode::Direct
        } else {
            IoMode::Buffered
        }
    };
    let create = if !mode.contains(Mode::CREATE) {
        Create::Never
    } else if mode.contains(Mode::EXCLUSIVE) {
        Create::Exclusive
    } else {
        Create::IfMissing
    };
    let how = OpenHow::new(mode.access())
        .create(create)
        .reads(io_mode(hints.direct_read))
        .writes(io_mode(hints.direct_write))
        .asynchronous(match hints.pario_async {
            pario_hints::AsyncMethod::Automatic => AsyncMethod::Automatic,
            pario_hints::AsyncMethod::Uring => AsyncMethod::Uring,
            pario_hints::AsyncMethod::Pool => AsyncMethod::Pool,
        })
        .scattered(match hints.pario_scattered_writes {
            pario_hints::ScatteredWrites::Automatic => ScatteredWrites::Automatic,
            pario_hints::ScatteredWrites::Calls => ScatteredWrites::Calls,
        });
    match hints.file_perm {
        Some(permissions) => how.permissions(permissions),
        None => how,
    }
}

/// Rank 0 creates the file, then the others open it: one create, no race. Where no
/// file is to be created, all open it at once.
fn open_everywhere(
    comm: &dyn Transport,
    resolved: &Result<Resolved>,
    how: &OpenHow,
    names: Names,
) -> Result<Arc<dyn Handle>> {
    let open = |how: &OpenHow| {
        let Resolved { driver, path, .. } = resolved.as_ref().map_err(Error::clone)?;
        Ok(driver.open(path, how)?)
    };
    let opened: Result<Arc<dyn Handle>> = match (how.create, comm.rank()) {
        (Create::Never, _) => open(how),
        (_, ROOT) => {
            let opened = open(how);
            let told = opened.as_ref().map(|_| Vec::new()).map_err(Error::clone);
            agree::told_by(comm, ROOT, || told)?;
            opened
        }
        _ => {
            agree::told_by(comm, ROOT, || Ok(Vec::new()))?;
            open(&how.clone().create(Create::Never))
        }
    };
    let described = match (&opened, resolved) {
        (Ok(handle), Ok(resolved)) if comm.size() > 1 => {
            same_file::describe(&**handle, &resolved.path)
        }
        (Err(error), _) => Err(error.clone()),
        _ => Ok(Vec::new()),
    };
    let agreed = match (agree::gather(comm, described), &opened, resolved) {
        (Ok(all), Ok(handle), Ok(resolved)) if comm.size() > 1 => same_file::Check {
            comm,
            handle: &**handle,
            names,
            access: how.access,
            path: &resolved.path,
        }
        .run(&all),
        (gathered, ..) => gathered.map(drop),
    };
    match (agreed, opened) {
        (Ok(()), opened) => opened,
        (Err(error), opened) => {
            if let Ok(handle) = opened {
                let _ = handle.close();
            }
            Err(error)
        }
    }
}

/// Passes the hint `access_style` on.
pub(super) fn advise(handle: &dyn Handle, hints: &Hints) {
    for advice in hints.access_style.advice() {
        handle.advise(match advice {
            pario_hints::Advice::Sequential => Advice::Sequential,
            pario_hints::Advice::Random => Advice::Random,
            pario_hints::Advice::NoReuse => Advice::NoReuse,
        });
    }
}

/// What follows once the file is open: the shared pointer, the view of all
/// bytes, and where the pointers start.
fn prepare(
    comm: &Arc<dyn Transport>,
    mode: Mode,
    hints: &Hints,
    handle: &dyn Handle,
    path: &Path,
) -> Result<(SharedPointer, FlattenedView, u64)> {
    let preference = match hints.pario_shared_pointer {
        pario_hints::SharedPointer::Automatic => Preference::Automatic,
        pario_hints::SharedPointer::Memory => Preference::Memory,
        pario_hints::SharedPointer::File => Preference::SideFile,
    };
    let shared_pointer = SharedPointer::new(&**comm, preference, path)?;
    let view = FlattenedView::bytes(comm.size())?;
    if !mode.contains(Mode::APPEND) {
        return Ok((shared_pointer, view, 0));
    }
    // All ranks start at the same end, though some may be late.
    let end = handle.size().map_err(Error::from);
    let all = agree::gather(&**comm, end.map(|end| end.to_le_bytes().to_vec()))?;
    let end = all[0].as_slice().try_into().map_or(0, u64::from_le_bytes);
    let stored = match comm.rank() {
        ROOT => shared_pointer.store(end),
        _ => Ok(()),
    };
    agree::agree(&**comm, stored)?;
    Ok((shared_pointer, view, end))
}
