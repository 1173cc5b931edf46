//! Opening and deleting files.

mod arguments;
mod everywhere;
mod length_prefixed;
mod resolve;

pub(super) use arguments::Names;

use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use pario_driver::{
    Advice, AsyncMethod, Create, Driver, Handle, IoMode, MountView, OpenHow, Resolved,
    ScatteredWrites,
};
use pario_hints::{Hints, Info, Sources};
use pario_transport::{Rank, Transport};

use self::{
    arguments::{Arguments, agree_on_arguments},
    everywhere::{Opened, open_everywhere},
    resolve::{check_reachable, lasting, resolve},
};
use super::{
    File, Inner,
    deferral::Deferral,
    hints,
    inner::State,
    lock_probe,
    settings::CurrentSettings,
    sharing::FileSharing,
    usable::{usable, usable_alone, usable_with},
    write_protocol::Writers,
};
use crate::{
    Comm, Error, Mode, Result,
    access::Buffers,
    agree,
    collective::{Background, CollectiveContext},
    operation::agree_on_group,
    shared_pointer::{Beside, Preference, SharedPointer},
    unreported::Unreported,
    view::FlattenedView,
    writer_lock::{Pending, WriterLock},
};

pub(super) const ROOT: Rank = Rank(0);

impl File {
    /// Opens a file. *Collective*: the mode must be the same on all ranks; names may differ if
    /// they lead to the same file; if hints differ, those of rank 0 are used.
    ///
    /// A prefix of the name (`ufs:`, `mem:`, …) selects the driver; without one, it follows from
    /// the file system.
    ///
    /// ```
    /// use pario::{File, Info, Mode, threads};
    ///
    /// threads::run(2, |comm| {
    ///     let mode = Mode::CREATE | Mode::READ_WRITE;
    ///     let file = File::open(&comm, "mem:new", mode, &Info::new())?;
    ///     file.close()?;
    ///
    ///     // Errors name the call, the file, the rank and the cause.
    ///     let error = File::open(&comm, "mem:missing", Mode::READ_ONLY, &Info::new()).unwrap_err();
    ///     assert_eq!(error.kind(), pario::ErrorKind::NoSuchFile);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), pario::Error>(())
    /// ```
    pub fn open(
        comm: impl Into<Comm>,
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
    ) -> Result<File> {
        Self::open_private(private(comm.into().transport())?, path, mode, info, None)
    }

    /// As [`File::open`], on two transports between the same ranks that nothing else uses: one for
    /// blocking calls, one for calls in the background. `seen` is how this rank sees the file system of
    /// the file, if it has looked just now.
    #[doc(hidden)]
    pub fn open_private(
        comms: [Arc<dyn Transport>; 2],
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
        seen: Option<MountView>,
    ) -> Result<File> {
        open(comms, path.as_ref(), mode, info, seen, resolve)
    }

    /// Opens a file through a given driver of the crate `pario-driver`: for wrappers (faults,
    /// throttling, traces) and for file systems that have no driver there. *Collective*.
    pub fn open_with(
        comm: impl Into<Comm>,
        driver: Arc<dyn Driver>,
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
    ) -> Result<File> {
        let path = path.as_ref();
        let given = |path: &Path, _: &Hints, _: &FileSharing| {
            let reason = format!("the program passed the driver {}", driver.name());
            Ok(Resolved {
                driver: driver.clone(),
                path: path.to_owned(),
                reason,
            })
        };
        let comms = private(comm.into().transport())?;
        open(comms, path, mode, info, None, given)
    }

    /// Deletes a file. If several ranks share it, one of them makes the call.
    pub fn delete(path: impl AsRef<Path>, info: &Info) -> Result<()> {
        let path = path.as_ref();
        let hints = usable_alone(Hints::resolve(info, &Sources::from_environment()).hints);
        resolve(path, &hints, &FileSharing::alone())
            .and_then(|resolved| Ok(resolved.driver.delete(&resolved.path)?))
            .map_err(|error| error.in_operation("delete").on_path(path))
    }
}

/// The private transports of a file.
fn private(comm: &Arc<dyn Transport>) -> Result<[Arc<dyn Transport>; 2]> {
    let duplicates = comm.duplicates(2).map_err(Error::from)?;
    Ok(<[_; 2]>::try_from(duplicates).expect("as many duplicates as requested"))
}

fn open(
    comms: [Arc<dyn Transport>; 2],
    path: &Path,
    mode: Mode,
    info: &Info,
    seen: Option<MountView>,
    resolve: impl Fn(&Path, &Hints, &FileSharing) -> Result<Resolved>,
) -> Result<File> {
    let rank = comms[0].rank();
    open_together(comms, path, mode, info, seen, resolve)
        .map_err(|error| error.in_operation("open").on_path(path).on_rank(rank))
}

fn open_together(
    [comm, background]: [Arc<dyn Transport>; 2],
    path: &Path,
    mode: Mode,
    info: &Info,
    seen: Option<MountView>,
    resolve: impl Fn(&Path, &Hints, &FileSharing) -> Result<Resolved>,
) -> Result<File> {
    let see_file_system = |hints: &Hints| {
        let Resolved { driver, path, .. } = resolve(path, hints, &FileSharing::alone()).ok()?;
        driver.file_system(&path).ok()
    };
    let Arguments {
        hints,
        names,
        sharing: expected,
        choice,
    } = agree_on_arguments(&*comm, path, mode, info, seen, see_file_system)?;
    let hints = usable(hints, mode, &*comm);
    let resolved = resolve(path, &hints, &expected).and_then(|resolved| {
        check_reachable(&*comm, &resolved)?;
        if resolved.driver.is_mounted() {
            expected.check(mode, &*comm, path)?;
        }
        Ok(resolved)
    });
    // The same name usually leads to the same driver on all ranks; then an error is reported
    // together with the result of opening. If names differ, each must be valid before a file is
    // created.
    let resolved = match names {
        Names::Equal => resolved,
        Names::Different => Ok(agree::agree(&*comm, resolved)?),
    };
    let mut deferral = match names {
        Names::Equal if expected.is_coherent() => Deferral::new(&*comm, &hints, choice),
        Names::Equal => Deferral::of_several_caches(),
        Names::Different => Deferral::of_different_names(),
    };
    let how = open_how(mode, &hints).striping(hints::striping_request(&*comm, mode, &hints));
    let Opened {
        handle,
        late,
        sharing,
    } = open_everywhere(&*comm, &resolved, &how, names, &mut deferral)?;
    let hints = usable_with(hints, mode, &*handle, &sharing, &*comm);
    let Resolved {
        driver,
        path: driver_path,
        reason,
    } = resolved?;
    let driver_path = lasting(driver_path, &*driver);
    advise(&*handle, &hints);
    hints::report_striping(&*comm, mode, &hints, &*handle);
    let checked = match sharing.sharing == expected.sharing {
        true => Ok(()),
        false => sharing.check(mode, &*comm, path),
    };
    let ready = checked.and_then(|()| {
        let beside = Beside {
            driver: &driver,
            path: &driver_path,
            sharing: &sharing,
        };
        let prepared = prepare(&comm, mode, &hints, &*handle, beside, &deferral)?;
        let writers = Writers::meet(&*comm, &*handle, mode, &sharing, &hints)?;
        let group = agree_on_group(&*comm, &*handle, mode, &hints)?;
        Ok((prepared, writers, group))
    });
    let ((shared_pointer, view, start), (writers, protocol), group) = match ready {
        Ok(ready) => ready,
        Err(error) => {
            let _ = handle.close();
            return Err(error);
        }
    };
    let context = CollectiveContext::new(comm.clone());
    Ok(File {
        inner: Arc::new(Inner {
            background: Background::new(context.in_background(background)),
            split: Arc::default(),
            context,
            comm,
            path: path.to_owned(),
            driver_path,
            mode,
            driver,
            driver_reason: reason,
            opened_by: deferral.into_explanation(),
            late,
            handle,
            sharing,
            shared_pointer,
            writers,
            buffers: Buffers::new(hints.pario_inflight_bytes),
            writer_lock: Arc::new(WriterLock::default()),
            group,
            pending: Pending::default(),
            unreported: Unreported::default(),
            state: State {
                settings: CurrentSettings::new(view, hints, protocol),
                pointer: Mutex::new(start),
                closed: AtomicBool::new(false),
            },
        }),
    })
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
        .read_back(!mode.can_read())
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
        })
        .stored_pieces(hints.pario_stored_pieces);
    match hints.file_perm {
        Some(permissions) => how.permissions(permissions),
        None => how,
    }
}

/// Passes the hint `access_style` to the driver.
pub(super) fn advise(handle: &dyn Handle, hints: &Hints) {
    for advice in hints.access_style.advice() {
        handle.advise(match advice {
            pario_hints::Advice::Sequential => Advice::Sequential,
            pario_hints::Advice::Random => Advice::Random,
            pario_hints::Advice::NoReuse => Advice::NoReuse,
        });
    }
}

/// The shared pointer, the initial view and the initial position of the pointers.
fn prepare(
    comm: &Arc<dyn Transport>,
    mode: Mode,
    hints: &Hints,
    handle: &dyn Handle,
    beside: Beside<'_>,
    deferral: &Deferral,
) -> Result<(SharedPointer, FlattenedView, u64)> {
    let preference = match hints.pario_shared_pointer {
        pario_hints::SharedPointer::Automatic => Preference::Automatic,
        pario_hints::SharedPointer::Memory => Preference::Memory,
        pario_hints::SharedPointer::File => Preference::SideFile,
        pario_hints::SharedPointer::Owner => Preference::Owner,
        pario_hints::SharedPointer::Logs if mode.can_read() => Preference::Automatic,
        pario_hints::SharedPointer::Logs => Preference::Logs,
    };
    let mut shared_pointer = SharedPointer::new(&**comm, preference, beside)?;
    // The side file is created at its first use, which need not be collective, so locks are
    // tried only for files that are sure to use it.
    let is_sure = mode.contains(Mode::SEQUENTIAL) || preference == Preference::SideFile;
    if is_sure && mode.can_write() {
        let what = "the shared pointer";
        shared_pointer.require(|| lock_probe::run(&**comm, handle, beside.sharing, what))?;
    }
    let view = FlattenedView::bytes(comm.size())?;
    if !mode.contains(Mode::APPEND) {
        return Ok((shared_pointer, view, 0));
    }
    // All ranks start at the same position, even if one of them has already written.
    // Ranks that open the file later do not open it for this.
    let end = match deferral.opener(comm.rank()) == comm.rank() {
        true => handle.size().map_err(Error::from),
        false => Ok(0),
    };
    let all = agree::gather(&**comm, end.map(|end| end.to_le_bytes().to_vec()))?;
    let end = all[0].as_slice().try_into().map_or(0, u64::from_le_bytes);
    agree::agree(&**comm, shared_pointer.start_at(comm.rank(), end))?;
    Ok((shared_pointer, view, end))
}
