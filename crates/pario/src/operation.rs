//! One access of one rank, from its arguments to its status. Explicit offsets and file pointers
//! become an offset when the access is prepared; blocking and nonblocking calls differ only in
//! who runs it.

mod group_lock;
mod lock_ahead;

pub(crate) use group_lock::agree_on_group;

use std::{
    io,
    ops::Range,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

use pario_datarep::Converter;
use pario_driver::{
    Batch, Direction, Handle, Latency, Lease, LockMode, Outcome, Placement as FilePlacement,
    RangeLock,
};
use pario_hints::{Hints, Rmw};

use crate::{
    Error, ErrorKind, Mode, Result, Status,
    access::{
        AccessMethod, Buffers, Locking, MemoryData, Moved, ReadModifyWrite, ResolvedAccess,
        Selection, Transfer, sieve_extent,
    },
    buffer::Memory,
    file::{Atomicity, CallSettings, Inner, LateHandle},
    request::{Completion, InFlight, KeepAlive, Placement},
    shared_pointer::Log,
    unreported::Unreported,
    view::{FlattenedView, ViewsEqual},
    writer_lock::{WriteGuard, WriterLock},
};

/// An access with more pieces than this needs as many system calls and is not considered short.
const SHORT_PIECES_MAX: u64 = 16;

/// Where an access starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// At an offset of the view, in etypes.
    At(u64),
    /// At the individual pointer, which the call advances.
    Individual,
    /// At the shared pointer, which the call advances.
    Shared,
    /// At an offset that a collective call derived from the shared pointer.
    Ordered(u64),
}

/// What the other ranks of an atomic collective write do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Write,
    Wait,
}

/// The arguments of a call, other than its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) direction: Direction,
    pub(crate) position: Position,
}

impl Call {
    pub(crate) fn read(name: &'static str, position: Position) -> Call {
        Call {
            name,
            direction: Direction::Read,
            position,
        }
    }

    pub(crate) fn write(name: &'static str, position: Position) -> Call {
        Call {
            name,
            direction: Direction::Write,
            position,
        }
    }

    /// Where the error goes if nothing waits for the operation. The error of a read concerns no
    /// later call.
    pub(crate) fn unreported(&self, file: &Inner) -> Option<Unreported> {
        match self.direction {
            Direction::Read => None,
            Direction::Write => Some(file.unreported.clone()),
        }
    }
}

/// An access that has passed all checks.
#[derive(Debug)]
pub(crate) struct Operation {
    file: Arc<Inner>,
    call: Call,
    access: ResolvedAccess,
    settings: Arc<CallSettings>,
    /// The log that the data goes to instead of the file.
    log: Option<Arc<dyn Handle>>,
}

impl Operation {
    /// Checks the arguments, determines the offset and advances the pointer by the amount
    /// requested.
    pub(crate) fn prepare(file: &Arc<Inner>, call: Call, memory: Memory) -> Result<Operation> {
        Self::prepare_on(&file.settings(), file, call, memory)
    }

    /// As [`Operation::prepare`], for a call with these settings.
    pub(crate) fn prepare_on(
        settings: &Arc<CallSettings>,
        file: &Arc<Inner>,
        call: Call,
        memory: Memory,
    ) -> Result<Operation> {
        let view = &settings.view;
        check_allowed(file, view, call)?;
        if let Some(log) = Self::log_of(settings, file, call) {
            return Self::prepare_logged(log, settings, file, call, memory);
        }
        let data = MemoryData::new(view, memory)?;
        let etypes = view.whole_etypes(data.file_bytes())?;
        let resolve = |offset| ResolvedAccess::new(call.direction, view.clone(), data, offset);
        let access = match call.position {
            Position::At(offset) | Position::Ordered(offset) => resolve(offset)?,
            Position::Individual => {
                let mut pointer = file.pointer();
                let access = resolve(*pointer)?;
                *pointer += etypes;
                access
            }
            Position::Shared => resolve(file.shared_pointer.advance(etypes)?)?,
        };
        Ok(Operation {
            file: file.clone(),
            call,
            access,
            settings: settings.clone(),
            log: None,
        })
    }

    /// The log that a write at the shared pointer goes to, if there is one. Atomic ones have to be
    /// in the file when they return.
    fn log_of<'f>(settings: &CallSettings, file: &'f Inner, call: Call) -> Option<&'f Log> {
        let is_logged = call.position == Position::Shared
            && call.direction == Direction::Write
            && settings.atomicity == Atomicity::NonAtomic;
        file.shared_pointer.log().filter(|_| is_logged)
    }

    /// A write to the end of this rank's log.
    fn prepare_logged(
        log: &Log,
        settings: &Arc<CallSettings>,
        file: &Arc<Inner>,
        call: Call,
        memory: Memory,
    ) -> Result<Operation> {
        let view = log.view(&settings.view)?;
        let data = MemoryData::new(&view, memory)?;
        settings.view.whole_etypes(data.file_bytes())?;
        let handle = log.handle()?.clone();
        let start = log.append(data.file_bytes());
        Ok(Operation {
            file: file.clone(),
            call,
            access: ResolvedAccess::new(call.direction, view, data, start)?,
            settings: settings.clone(),
            log: Some(handle),
        })
    }

    /// Moves the data.
    pub(crate) fn run(&self) -> Result<Status> {
        let result = match self.group() {
            Some(_) => self.run_in_group(),
            None => self.run_alone(),
        };
        result.map_err(|error| self.file.name_error(error, self.call.name))
    }

    /// Moves the data without the other ranks' help.
    fn run_alone(&self) -> Result<Status> {
        self.lock_ahead();
        let (plan, exclusion) = self.plan();
        let transfer = Transfer {
            lease: exclusion.lease(),
            ..self.transfer(plan)
        };
        self.result(transfer.run())
    }

    /// Moves the data under a lock that one rank holds for all. The lock does not exclude the
    /// ranks from each other: if they write at the same time, none may write back bytes that it
    /// only read.
    pub(crate) fn run_unlocked(&self, others: Others) -> Result<Status> {
        let (plan, exclusion) = self.plan();
        let mut transfer = Transfer {
            lease: exclusion.lease(),
            locking: Locking::None,
            ..self.transfer(plan)
        };
        if self.file.comm.size() > 1 && (others == Others::Write || !self.rewrites_in_turn()) {
            transfer.read_modify_write =
                ReadModifyWrite::Forbidden("other ranks write under the same lock");
        }
        self.result(transfer.run())
    }

    pub(crate) fn is_atomic(&self) -> bool {
        self.settings.atomicity == Atomicity::Atomic
    }

    fn result(&self, moved: Moved) -> Result<Status> {
        match moved.error {
            None => Ok(Status::new(moved.bytes)),
            Some(error) => Err(self
                .file
                .name_error(error.after(moved.bytes), self.call.name)),
        }
    }

    /// Reads the data through a buffer of this size, whatever the pattern.
    pub(crate) fn run_sieved(&self, buffer_bytes: u64) -> Result<Status> {
        let mut hints = (*self.settings.hints).clone();
        hints.pario_read_method = Some(AccessMethod::Sieve);
        hints.ind_rd_buffer_size = buffer_bytes;
        let (plan, _exclusion) = self.plan();
        let transfer = Transfer {
            hints: &hints,
            ..self.transfer(plan)
        };
        self.result(transfer.run())
    }

    /// Whether bytes go between memory and file unconverted, each to its own place in the file,
    /// and the access need not be atomic.
    pub(crate) fn is_plain(&self) -> bool {
        self.settings.atomicity == Atomicity::NonAtomic
            && self.access.converter.is_none()
            && (self.call.direction == Direction::Read
                || self.access.memory.bytes() == 0
                || (self.access.view.layout().size() > 0
                    && !self
                        .access
                        .view
                        .overlaps_itself(self.access.first, self.access.file_bytes)))
    }

    /// The size of the data in the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.access.file_bytes
    }

    pub(crate) fn first(&self) -> u64 {
        self.access.first
    }

    pub(crate) fn direction(&self) -> Direction {
        self.call.direction
    }

    pub(crate) fn view(&self) -> &FlattenedView {
        &self.access.view
    }

    pub(crate) fn hints(&self) -> &Arc<Hints> {
        &self.settings.hints
    }

    /// Where the bytes of the file are: as the program says, else as the file system does.
    pub(crate) fn placement(&self) -> Option<&FilePlacement> {
        let settings = &self.settings;
        let set = settings.placement.as_ref();
        set.or(settings.reported_placement.as_ref())
            .or(self.file.handle.facts().placement.as_ref())
    }

    /// Whether a write may read what it writes back.
    pub(crate) fn can_read_back(&self) -> bool {
        self.file.can_read_back()
    }

    /// Whether writes may write back what they have read under their lock.
    pub(crate) fn rewrites_locked(&self) -> bool {
        self.settings.rewrites_locked()
    }

    /// Whether ranks under one lock write one after the other, so that each can rewrite gaps:
    /// where every piece would be a request to the server, that is faster. The same on all ranks.
    pub(crate) fn rewrites_in_turn(&self) -> bool {
        self.rewrites_locked() && self.file.sharing.bypasses_caches
    }

    /// The length up to which a piece with the gap after it is moved as a whole.
    pub(crate) fn sieve_extent(&self) -> u64 {
        sieve_extent(&*self.file.handle, self.call.direction, self.hints())
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.access.memory
    }

    /// The converter of an access whose data in the file has at most so many bytes, if it has
    /// one. The operation has none afterwards.
    pub(crate) fn take_converter(&mut self, limit: u64) -> Option<Converter> {
        let is_small = self.access.file_bytes <= limit;
        self.access.converter.take_if(|_| is_small)
    }

    /// Sets memory that has the data as the file does.
    pub(crate) fn set_memory(&mut self, memory: Memory) {
        debug_assert_eq!(memory.bytes(), self.access.file_bytes);
        self.access.memory = memory;
    }

    /// The lock of the handle's writers.
    pub(crate) fn writer_lock(&self) -> &Arc<WriterLock> {
        &self.file.writer_lock
    }

    pub(crate) fn mode(&self) -> Mode {
        self.file.mode
    }

    pub(crate) fn handle(&self) -> &dyn Handle {
        &**self.shared_handle()
    }

    /// Whether every write on the handle locks its range, because others may read-modify-write
    /// (semantics rule 1).
    pub(crate) fn locks_writes(&self) -> bool {
        self.call.direction == Direction::Write && self.settings.locks_writes()
    }

    /// The lock that moving data of a range needs, if any.
    pub(crate) fn lock_range(&self, range: Range<u64>) -> io::Result<Option<RangeLock>> {
        match self.locks_writes() {
            true => self.handle().lock(range, LockMode::Exclusive).map(Some),
            false => Ok(None),
        }
    }

    /// Moves a list in the order of the file, under the lock that it needs.
    pub(crate) fn transfer_list(&self, batch: &Batch<'_>) -> Outcome {
        let pieces = batch.pieces();
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            return Outcome::moved(0);
        };
        // Pieces of several ranks may overlap, and a longer one may end after the last.
        let ends = pieces.iter().map(|piece| piece.offset + piece.len as u64);
        let end = ends.max().unwrap_or(last.offset);
        match self.lock_range(first.offset..end) {
            Ok(_lock) => self.handle().transfer(batch),
            Err(error) => Outcome::failed(0, error),
        }
    }

    pub(crate) fn shared_handle(&self) -> &Arc<dyn Handle> {
        self.log.as_ref().unwrap_or(&self.file.handle)
    }

    /// Whether this rank has the file open, so that it can move data of other ranks at no cost.
    pub(crate) fn has_opened(&self) -> bool {
        self.file.late.as_ref().is_none_or(LateHandle::is_open)
    }

    pub(crate) fn buffers(&self) -> &Buffers {
        &self.file.buffers
    }

    /// Moves the data in the background, or at once if that takes no longer than handing it
    /// over.
    pub(crate) fn start(self, keep: KeepAlive) -> InFlight {
        if let Some(result) = self.can_run_inline() {
            let unreported = self.call.unreported(&self.file);
            return InFlight::complete(self.file.pending.request(), result, unreported);
        }
        let completion = Arc::new(Completion::default());
        let (request, under_way) = self.file.pending.start();
        let in_flight = InFlight {
            completion: completion.clone(),
            _pending: request,
            carried_out: Placement::InBackground,
            unreported: self.call.unreported(&self.file),
        };
        let finish = move |result: Result<Status>| {
            // By the time the result is available, the owner of the request gets its buffer
            // back and the operation is no longer pending.
            drop(keep);
            completion.complete(result, || drop(under_way));
        };
        match self.submission() {
            Some((batch, plan, guard)) => {
                self.lock_ahead();
                let handle = self.shared_handle().clone();
                let done = move |outcome| {
                    let moved = self.transfer(plan).moved(outcome);
                    drop(guard);
                    finish(self.result(moved));
                };
                handle.submit(batch, Box::new(done));
            }
            None => pario_driver::spawn(Box::new(move || {
                // A conversion function of the program may panic.
                let result = panic::catch_unwind(AssertUnwindSafe(|| self.run()));
                finish(result.unwrap_or_else(|_| {
                    let error = Error::new(ErrorKind::Io, "the operation panicked");
                    Err(self.file.name_error(error, self.call.name))
                }));
            })),
        }
        in_flight
    }

    /// The result of a short operation that occupies the calling thread no longer than copying
    /// its data would: it waits for no lock, staging memory, conversion function or storage.
    pub(crate) fn can_run_inline(&self) -> Option<Result<Status>> {
        if !self.is_short() || self.file.writer_lock.is_closed() {
            return None;
        }
        match self.handle().latency(self.call.direction) {
            Latency::Unknown => None,
            Latency::WhereCached => {
                let (batch, plan, _guard) = self.submission()?;
                let outcome = self.handle().transfer_cached(&batch)?;
                Some(self.result(self.transfer(plan).moved(outcome)))
            }
            Latency::Memory => Some(self.run()),
        }
    }

    fn is_short(&self) -> bool {
        let bytes = self.access.memory.bytes();
        bytes <= self.settings.hints.pario_inline_bytes
            && self.settings.atomicity == Atomicity::NonAtomic
            && !self.settings.locks_writes()
            && !self.settings.hints.pario_lock_ahead
            && self.access.converter.is_none()
            && self.file.buffers.has_room(bytes)
            && (self.access.view.layout().is_dense() || {
                let data = self.access.first..self.access.first + bytes;
                self.access.view.layout().piece_stats(data).pieces <= SHORT_PIECES_MAX
            })
    }

    /// A batch that the driver can carry out by itself: pieces of memory without conversion,
    /// locks or intermediate steps.
    fn submission(&self) -> Option<(Batch<'static>, Plan, Exclusion)> {
        if self.settings.atomicity == Atomicity::Atomic
            || self.file.writer_lock.is_closed()
            || self.group().is_some()
        {
            return None;
        }
        let (plan, guard) = self.plan();
        let batch = self.transfer(plan).as_batch()?;
        Some((batch, plan, guard))
    }

    /// The selected access method and the reason.
    pub(crate) fn explain(&self) -> Selection {
        self.transfer(self.plan().0).explain()
    }

    fn transfer(&self, plan: Plan) -> Transfer<'_> {
        Transfer {
            handle: self.handle(),
            access: &self.access,
            hints: &self.settings.hints,
            read_modify_write: plan.read_modify_write,
            lease: None,
            locking: plan.locking,
            buffers: &self.file.buffers,
        }
    }

    /// The kind of locking: `otherwise`, unless the access is atomic.
    fn locking(&self, otherwise: Locking) -> Locking {
        match self.settings.atomicity {
            Atomicity::Atomic => Locking::Whole,
            Atomicity::NonAtomic => otherwise,
        }
    }

    /// Whether it may read-modify-write and must lock, by semantics rule 1, and what keeps
    /// that true.
    fn plan(&self) -> (Plan, Exclusion) {
        if self.call.direction == Direction::Read {
            let plan = Plan {
                read_modify_write: ReadModifyWrite::Alone,
                locking: self.locking(Locking::None),
            };
            return (
                plan,
                Exclusion {
                    lease: None,
                    _guard: self.reading_guard(),
                },
            );
        }
        let locking = self.locking(match self.locks_writes() {
            true => Locking::EachWrite,
            false => Locking::None,
        });
        let plan = |read_modify_write| Plan {
            read_modify_write,
            locking,
        };
        match self.try_be_alone(plan(ReadModifyWrite::Alone)) {
            Ok(exclusion) => (plan(ReadModifyWrite::Alone), exclusion),
            Err(refusal) => {
                let guard = self.file.writer_lock.shared();
                (plan(refusal), Exclusion::on_handle(guard))
            }
        }
    }

    /// Keeps a read from being made under a group lock, by which it could see old data.
    pub(crate) fn reading_guard(&self) -> Option<WriteGuard> {
        let writer_lock = &self.file.writer_lock;
        self.file.group.map(|_| writer_lock.shared())
    }

    /// What shows that nobody else writes to the file, otherwise what may be done instead. An
    /// access that does not need to be alone gets an ordinary guard.
    fn try_be_alone(&self, alone: Plan) -> std::result::Result<Exclusion, ReadModifyWrite> {
        let forbidden = |why| Err(ReadModifyWrite::Forbidden(why));
        let writer_lock = &self.file.writer_lock;
        let rmw = self.settings.hints.pario_rmw;
        let is_unique = self.file.mode.contains(Mode::UNIQUE_OPEN);
        if !self.file.can_read_back() {
            return forbidden("the file was opened WRITE_ONLY");
        }
        if self.settings.rewrites_locked() {
            return Err(ReadModifyWrite::Locked);
        }
        // Locks of atomic accesses are on descriptions that are not shared.
        let group = writer_lock.rewriting_group().filter(|_| !self.is_atomic());
        let has_other_ranks = self.file.comm.size() > 1 && group.is_none();
        if has_other_ranks || !is_unique && rmw == Rmw::Never {
            return forbidden(
                "others may write: the file is not opened by a single rank with UNIQUE_OPEN, the ranks do not have one open description on a local file system, and the hint pario_rmw is not locked",
            );
        }
        let needs_lease = group.is_some() || !is_unique;
        let transfer = self.transfer(alone);
        if transfer.method() != AccessMethod::Sieve {
            return Ok(Exclusion::on_handle(writer_lock.shared()));
        }
        if needs_lease && !transfer.is_worth_lease(group.is_some()) {
            return forbidden(
                "others may write: no single rank has the file open with UNIQUE_OPEN, and a lease on it would take too long",
            );
        }
        let Some(guard) = writer_lock.try_exclusive() else {
            return forbidden("another write on this handle is under way");
        };
        if !needs_lease {
            return Ok(Exclusion::on_handle(guard));
        }
        let lease = match group {
            // The ranks may have agreed otherwise before this one had its guard.
            Some(_) => writer_lock
                .rewriting_group()
                .and_then(|group| group.rewrite()),
            None => self.file.handle.lease(),
        };
        match lease {
            Some(lease) => Ok(Exclusion {
                lease: Some(lease),
                ..Exclusion::on_handle(guard)
            }),
            None => forbidden(
                "others may write: no single rank has the file open with UNIQUE_OPEN, and there is no lease on it",
            ),
        }
    }
}

/// Keeps others from writing while an access is carried out.
#[derive(Debug, Default)]
struct Exclusion {
    /// Excludes everyone. It ends before other writes on the handle go on.
    lease: Option<Box<dyn Lease>>,
    /// Excludes writes on the same handle that would conflict.
    _guard: Option<WriteGuard>,
}

impl Exclusion {
    fn on_handle(guard: WriteGuard) -> Exclusion {
        Exclusion {
            lease: None,
            _guard: Some(guard),
        }
    }

    fn lease(&self) -> Option<&dyn Lease> {
        self.lease.as_deref()
    }
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    read_modify_write: ReadModifyWrite,
    locking: Locking,
}

fn check_same_views(view: &FlattenedView) -> Result<()> {
    match view.equality() {
        ViewsEqual::Same => Ok(()),
        ViewsEqual::Different => Err(Error::new(
            ErrorKind::NotSame,
            "shared-pointer calls need the same view on all ranks, but the views differ",
        )),
    }
}

/// Whether the file's mode and view allow the call.
pub(crate) fn check_allowed(file: &Inner, view: &FlattenedView, call: Call) -> Result<()> {
    file.check_open()?;
    check_agreed(file, view, call)
}

/// As [`check_allowed`], but only for what the ranks have agreed on: all of them get the same
/// result.
pub(crate) fn check_agreed(file: &Inner, view: &FlattenedView, call: Call) -> Result<()> {
    let shared = matches!(call.position, Position::Shared | Position::Ordered(_));
    if shared {
        check_same_views(view)?;
    }
    if file.mode.contains(Mode::SEQUENTIAL) && !shared {
        return Err(Error::new(
            ErrorKind::UnsupportedOperation,
            "a file opened SEQUENTIAL allows only shared-pointer accesses",
        ));
    }
    match call.direction {
        Direction::Read if !file.mode.can_read() => Err(Error::new(
            ErrorKind::Access,
            "the file was opened WRITE_ONLY: reading is not allowed",
        )),
        Direction::Write if !file.mode.can_write() => Err(Error::new(
            ErrorKind::ReadOnly,
            "the file was opened READ_ONLY: writing is not allowed",
        )),
        _ => Ok(()),
    }
}
