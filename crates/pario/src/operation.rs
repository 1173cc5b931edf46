//! One access of one rank, from its arguments to its status. Explicit offsets and file pointers
//! become an offset when the access is prepared; blocking and nonblocking calls differ only in
//! who runs it.

mod checks;
mod exclusion;
mod group_lock;
mod lock_ahead;
mod start;

pub(crate) use checks::{check_agreed, check_allowed};
pub(crate) use group_lock::agree_on_group;

use std::{io, ops::Range, sync::Arc};

use pario_datarep::Converter;
use pario_driver::{
    Batch, Direction, Handle, LockMode, Outcome, Placement as FilePlacement, RangeLock,
};
use pario_hints::Hints;

use self::exclusion::Plan;
use crate::{
    Mode, Result, Status,
    access::{
        AccessMethod, Buffers, Locking, MemoryData, Moved, ReadModifyWrite, ResolvedAccess,
        Selection, Transfer, sieve_extent,
    },
    buffer::Memory,
    file::{Atomicity, CallSettings, Inner, LateHandle},
    shared_pointer::Log,
    unreported::Unreported,
    view::FlattenedView,
    writer_lock::WriterLock,
};

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

    /// Whether each piece of a write is a request to a server.
    pub(crate) fn writes_by_requests(&self) -> bool {
        self.file.sharing.writes_by_requests(self.handle().facts())
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
}
