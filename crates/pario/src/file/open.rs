//! Opening, closing and deleting files.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use pario_driver::{
    Advice, AsyncMethod, CephFs, Create, Driver, Facts, FileSystem, Handle, IoMode, OpenHow,
    Resolved, ScatteredWrites,
};
use pario_hints::{Hints, Info, Sources};
use pario_transport::{Rank, Transport};

use super::{
    File, Inner, common_facts,
    deferral::{self, Deferral},
    hints,
    inner::State,
    late_handle::{LateHandle, Opening},
    lock_probe, placement_wire, same_file,
    settings::CurrentSettings,
    sharing::{self, FileSharing},
    usable::{usable, usable_alone, usable_with},
    write_protocol::Writers,
};
use crate::{
    Comm, Error, ErrorKind, Mode, Result,
    access::Buffers,
    agree,
    collective::{Background, CollectiveContext},
    collective_call::CollectiveCall,
    operation::agree_on_group,
    shared_pointer::{Beside, Preference, SharedPointer},
    unreported::Unreported,
    view::FlattenedView,
    writer_lock::{Pending, WriterLock},
};

const ROOT: Rank = Rank(0);

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
        Self::open_private(private(comm.into().transport())?, path, mode, info)
    }

    /// As [`File::open`], on two transports between the same ranks that nothing else uses: one for
    /// blocking calls, one for calls in the background.
    #[doc(hidden)]
    pub fn open_private(
        comms: [Arc<dyn Transport>; 2],
        path: impl AsRef<Path>,
        mode: Mode,
        info: &Info,
    ) -> Result<File> {
        open(comms, path.as_ref(), mode, info, resolve)
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
        open(private(comm.into().transport())?, path, mode, info, given)
    }

    /// Deletes a file. If several ranks share it, one of them makes the call.
    pub fn delete(path: impl AsRef<Path>, info: &Info) -> Result<()> {
        let path = path.as_ref();
        let hints = usable_alone(Hints::resolve(info, &Sources::from_environment()).hints);
        resolve(path, &hints, &FileSharing::alone())
            .and_then(|resolved| Ok(resolved.driver.delete(&resolved.path)?))
            .map_err(|error| error.in_operation("delete").on_path(path))
    }

    /// Closes the file. *Collective*. Written data becomes visible to other processes, and errors
    /// of the file system are reported on all ranks. Data does not become durable:
    /// [`File::sync`] and the hint `pario_sync_on_close` do that.
    ///
    /// Fails on all ranks if a request is still pending, or if the ranks make different calls;
    /// then the file stays open. After any other result it is closed. Operations whose requests
    /// were dropped are waited for.
    pub fn close(&self) -> Result<()> {
        let inner = &self.inner;
        let merged = inner.merge_logs(CollectiveCall::Close);
        let ready = inner.check_not_closed().and_then(|()| inner.check_idle());
        inner.collectively(CollectiveCall::Close, || {
            inner
                .begin(CollectiveCall::Close, ready)
                .map_err(|error| inner.name_error(error, "close"))?;
            inner.close_together().and(merged)
        })
    }

    /// Closes the file on this rank only and ignores errors: for programs that end with open
    /// files. Rank 0 deletes a file that is to be deleted on close.
    #[doc(hidden)]
    pub fn close_alone(&self) {
        let inner = &self.inner;
        let deletes = inner.mode.contains(Mode::DELETE_ON_CLOSE) && inner.comm.rank() == ROOT;
        if !inner.close_locally() {
            return;
        }
        // There is nowhere to report an error.
        if inner.shared_pointer.is_used() {
            let _ = inner.shared_pointer.remove();
        }
        if deletes {
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
        self.writers.leave();
        let closed = self.handle.close();
        let closed = synced.and(closed).map_err(Error::from);
        let closed = self.unreported.take().and(closed);
        let is_used = closed.map(|()| vec![u8::from(self.shared_pointer.is_used())]);
        let closed = agree::gather(&*self.comm, is_used);
        let is_used = match &closed {
            Ok(all) => all.iter().any(|used| used.as_slice() == [1]),
            Err(_) => true,
        };
        let closed = closed
            .map(drop)
            .map_err(|error| self.name_error(error, "close"));
        let removed = match (is_used, self.comm.rank()) {
            (false, _) => Ok(()),
            (true, ROOT) => self.agree("close", self.shared_pointer.remove()),
            (true, _) => self.agree("close", Ok(())),
        };
        let closed = closed.and(removed);
        if !self.mode.contains(Mode::DELETE_ON_CLOSE) {
            return closed;
        }
        // The file is deleted even if closing failed.
        let deleted = match self.comm.rank() {
            ROOT => self.driver.delete(&self.driver_path),
            _ => Ok(()),
        };
        let deleted = self.agree("close", deleted.map_err(Error::from));
        closed.and(deleted)
    }
}

/// The name of the driver that hints can give another account.
const CEPHFS: &str = "cephfs";

fn resolve(path: &Path, hints: &Hints, sharing: &FileSharing) -> Result<Resolved> {
    let resolved = pario_driver::resolve(path.as_os_str(), hints.pario_driver.as_deref());
    let resolved = resolved.map_err(|error| {
        Error::new(ErrorKind::BadFile, "no driver for the file").with_source(error)
    })?;
    Ok(sharing.select(with_ceph_access(resolved, hints)?))
}

/// The same driver with the configuration and the user that hints name, if it is CephFS's library.
fn with_ceph_access(resolved: Resolved, hints: &Hints) -> Result<Resolved> {
    let (configuration, user) = (&hints.pario_ceph_conf, &hints.pario_ceph_user);
    if resolved.driver.name() != CEPHFS || configuration.is_none() && user.is_none() {
        return Ok(resolved);
    }
    let driver = CephFs::with_access(configuration.as_deref(), user.as_deref());
    Ok(Resolved {
        driver: Arc::new(driver.map_err(Error::from)?),
        ..resolved
    })
}

/// The name under which the file can be found until it is closed: the program may
/// change its directory.
fn lasting(path: PathBuf, driver: &dyn Driver) -> PathBuf {
    match driver.is_mounted() {
        true => std::path::absolute(&path).unwrap_or(path),
        false => path,
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
    resolve: impl Fn(&Path, &Hints, &FileSharing) -> Result<Resolved>,
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
    } = agree_on_arguments(&*comm, path, mode, info, see_file_system)?;
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

/// Whether all ranks passed the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    Equal,
    Different,
}

/// What the ranks agree on before they open the file.
struct Arguments {
    hints: Hints,
    names: Names,
    sharing: FileSharing,
    choice: deferral::Choice,
}

/// One exchange: the modes must be equal, and rank 0's hints are used.
fn agree_on_arguments(
    comm: &dyn Transport,
    path: &Path,
    mode: Mode,
    info: &Info,
    see_file_system: impl FnOnce(&Hints) -> Option<FileSystem>,
) -> Result<Arguments> {
    let mut resolved = Hints::resolve(info, &Sources::from_environment());
    let mine = mode.validate().map(|()| {
        let hints = &resolved.hints;
        let choice = match comm.rank() {
            ROOT => deferral::Choice::new(hints, comm, || see_file_system(hints)).code(),
            _ => 0,
        };
        let mount = match comm.size() {
            1 => Vec::new(),
            _ => sharing::describe_name(path, hints),
        };
        [
            &mode.bits().to_le_bytes(),
            &[choice][..],
            &with_length(&hints.to_wire())[..],
            &with_length(&mount),
            path.as_os_str().as_encoded_bytes(),
        ]
        .concat()
    });
    let all = agree::gather_in(CollectiveCall::Open, comm, mine)?;
    let modes: Vec<Vec<u8>> = all.iter().map(|message| message[..4].to_vec()).collect();
    agree::same(&modes, "the access mode")?;
    let parts: Vec<_> = all.iter().map(|message| taken_apart(message)).collect();
    let names = match parts.iter().all(|[.., name]| *name == parts[0][2]) {
        true => Names::Equal,
        false => Names::Different,
    };
    hints::report(
        comm,
        &resolved.warnings,
        parts.iter().map(|[wire, ..]| *wire),
    );
    if parts[0][0] != parts[comm.rank().index()][0] {
        let theirs = Hints::from_wire(parts[0][0]).map_err(|error| {
            Error::new(ErrorKind::Io, "rank 0 sent hints that cannot be read").with_source(error)
        })?;
        resolved.hints.agree(&theirs);
    }
    hints::locate_hosts(comm, &mut resolved.hints)?;
    Ok(Arguments {
        hints: resolved.hints,
        names,
        sharing: FileSharing::of(parts.iter().map(|[_, mount, _]| *mount)),
        choice: deferral::Choice::from_code(all[ROOT.index()][4]),
    })
}

/// The hints, the mount and the name of a message that was assembled above.
fn taken_apart(message: &[u8]) -> [&[u8]; 3] {
    let (hints, rest) = split_at_length(&message[5..]);
    let (mount, name) = split_at_length(rest);
    [hints, mount, name]
}

/// Bytes after their number.
fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

/// The bytes whose number comes first, and those after them.
fn split_at_length(message: &[u8]) -> (&[u8], &[u8]) {
    let len = message[..4].try_into().map_or(0, u32::from_le_bytes) as usize;
    message[4..].split_at(len)
}

/// What a rank tells of the file that it opened: facts and placement, how it sees the file and how other ranks
/// of its node reach it, then which file it is.
fn describe(handle: &dyn Handle, path: &Path, deferral: &Deferral) -> Result<Vec<u8>> {
    let facts = common_facts::to_wire(handle.facts());
    let node_path = match deferral.is_used() {
        true => handle.node_path().unwrap_or_default(),
        false => PathBuf::new(),
    };
    let node_path = node_path.as_os_str().as_encoded_bytes();
    let placement = handle.facts().placement.as_ref();
    let placement = placement.filter(|_| deferral.is_used());
    let placement = placement.map_or_else(Vec::new, placement_wire::to_wire);
    let mount = sharing::describe_handle(handle)?;
    let file = same_file::describe(handle, path)?;
    let parts = [&facts[..], &placement, &mount, node_path].map(with_length);
    Ok([&parts.concat()[..], &file].concat())
}

/// A message that was assembled above.
#[derive(Clone, Copy)]
struct Described<'a> {
    facts: &'a [u8],
    placement: &'a [u8],
    mount: &'a [u8],
    node_path: &'a [u8],
    file: &'a [u8],
}

impl<'a> Described<'a> {
    fn new(message: &'a [u8]) -> Described<'a> {
        let (facts, rest) = split_at_length(message);
        let (placement, rest) = split_at_length(rest);
        let (mount, rest) = split_at_length(rest);
        let (node_path, file) = split_at_length(rest);
        Described {
            facts,
            placement,
            mount,
            node_path,
            file,
        }
    }

    /// The facts, as a rank that has not opened the file knows them.
    fn facts(&self) -> Facts {
        common_facts::from_wire(self.facts, placement_wire::from_wire(self.placement))
    }

    /// How a rank opens this file later.
    fn opening(&self, resolved: &Resolved, how: &OpenHow) -> Opening {
        let node_path = OsStr::from_bytes(self.node_path);
        Opening {
            driver: resolved.driver.clone(),
            path: lasting(resolved.path.clone(), &*resolved.driver),
            node_path: (!node_path.is_empty()).then(|| node_path.into()),
            how: how.clone(),
            identity: same_file::identity(self.file),
        }
    }
}

fn check_reachable(comm: &dyn Transport, resolved: &Resolved) -> Result<()> {
    if comm.spans_processes() && !resolved.driver.capabilities().between_processes {
        return Err(Error::new(
            ErrorKind::UnsupportedOperation,
            format!(
                "the driver {} keeps files inside one process, but the ranks are in several processes",
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
        });
    match hints.file_perm {
        Some(permissions) => how.permissions(permissions),
        None => how,
    }
}

/// What opening a file has brought.
struct Opened {
    handle: Arc<dyn Handle>,
    /// The handle, if open was deferred.
    late: Option<LateHandle>,
    sharing: FileSharing,
}

/// Rank 0 creates the file, then the others open it, so that there is one create and no race.
/// If no file is to be created, all ranks open it at once, except those that do so later: they
/// have a late handle.
fn open_everywhere(
    comm: &dyn Transport,
    resolved: &Result<Resolved>,
    how: &OpenHow,
    names: Names,
    deferral: &mut Deferral,
) -> Result<Opened> {
    let is_opener = deferral.opener(comm.rank()) == comm.rank();
    let open = |how: &OpenHow| {
        let Resolved { driver, path, .. } = resolved.as_ref().map_err(Error::clone)?;
        Ok(match is_opener {
            true => Some(driver.open(path, how)?),
            false => None,
        })
    };
    let opened: Result<Option<Arc<dyn Handle>>> = match (how.create, comm.rank()) {
        (Create::Never, _) => open(how),
        (_, ROOT) => {
            let opened = open(how);
            let created = opened.as_ref().map(|_| Vec::new()).map_err(Error::clone);
            agree::broadcast(comm, ROOT, || created)?;
            opened
        }
        _ => {
            agree::broadcast(comm, ROOT, || Ok(Vec::new()))?;
            open(&how.clone().create(Create::Never))
        }
    };
    let described = match (&opened, resolved) {
        (Ok(Some(handle)), Ok(resolved)) if comm.size() > 1 => {
            describe(&**handle, &resolved.path, deferral)
        }
        (Err(error), _) => Err(error.clone()),
        _ => Ok(Vec::new()),
    };
    let gathered = agree::gather(comm, described);
    let close = |handle: &Result<Option<Arc<dyn Handle>>>| {
        if let Ok(Some(handle)) = handle {
            let _ = handle.close();
        }
    };
    let all = match gathered {
        Ok(all) => all,
        Err(error) => {
            close(&opened);
            return Err(error);
        }
    };
    let (opened, resolved) = (opened?, resolved.as_ref().map_err(Error::clone)?);
    if let (Some(handle), 1) = (&opened, comm.size()) {
        return Ok(Opened {
            handle: handle.clone(),
            late: None,
            sharing: FileSharing::alone(),
        });
    }
    let described = |rank| Described::new(&all[deferral.opener(Rank(rank)).index()]);
    let mine = described(comm.rank().0);
    let late = deferral.is_used().then(|| {
        let opening = mine.opening(resolved, how);
        match &opened {
            Some(handle) => LateHandle::opened(opening, handle.clone()),
            None => LateHandle::new(opening, mine.facts()),
        }
    });
    let handle: Arc<dyn Handle> = match (&late, opened) {
        (Some(late), _) => Arc::new(late.clone()),
        (None, Some(handle)) => handle,
        (None, None) => unreachable!("a rank that opens the file later has a late handle"),
    };
    let seen: Vec<_> = (0..comm.size()).map(described).collect();
    let facts: Vec<_> = seen.iter().map(|it| it.facts).collect();
    let files: Vec<_> = seen.iter().map(|it| it.file).collect();
    let mounts: Vec<_> = seen.iter().map(|it| it.mount).collect();
    let sharing = sharing::of_handles(&mounts);
    let check = same_file::Check {
        comm,
        handle: &*handle,
        names,
        access: how.access,
        path: &resolved.path,
    };
    let shared = check.run(&files).and_then(|()| {
        sharing.check_handles()?;
        let shared = common_facts::share(handle.clone(), &facts);
        if let Some(late) = &late {
            deferral.settle(comm, late, &*shared)?;
        }
        Ok(shared)
    });
    match shared {
        Ok(shared) => Ok(Opened {
            handle: shared,
            late,
            sharing,
        }),
        Err(error) => {
            let _ = handle.close();
            Err(error)
        }
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
