//! The model: a file that is a vector of bytes, and what every call on it
//! must return. One thread, one byte at a time, one obvious way.

use pario::{Atomicity, ErrorKind, Mode, Seek};

use crate::{
    representation::Stored,
    scenario::{
        Access, Action, Buffer, Direction, Filling, Manner, Opening, Place, Plan, Scenario, Step,
        View, ViewSpec,
    },
    traffic::{FILE_BYTES_MAX, Traffic},
};

/// What an access or seek must give.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// The bytes transferred.
    pub(crate) result: Result<u64, ErrorKind>,
    /// The whole buffer afterwards.
    pub(crate) buffer: Vec<u8>,
    /// The individual pointer afterwards.
    pub(crate) pointer: u64,
}

/// What a step must give.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Of each rank's accesses and other actions.
    pub(crate) ranks: Vec<Vec<Expected>>,
    /// Of a collective call without data.
    pub(crate) result: Option<Result<(), ErrorKind>>,
    pub(crate) size: u64,
    pub(crate) shared: u64,
    /// Of each byte of the file, whether someone asked to write it.
    pub(crate) written: Vec<bool>,
}

impl Outcome {
    /// How many bytes of the file were written.
    pub(crate) fn bytes_written(&self) -> usize {
        self.written
            .iter()
            .filter(|is_written| **is_written)
            .count()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) file: Vec<u8>,
    pub(crate) mode: Mode,
    pub(crate) views: Vec<View>,
    pub(crate) pointers: Vec<u64>,
    pub(crate) shared: u64,
    pub(crate) atomicity: Atomicity,
}

impl Model {
    pub(crate) fn new(scenario: &Scenario) -> Model {
        let ranks = scenario.ranks();
        let mut model = Model {
            file: scenario.before.map(Filling::bytes).unwrap_or_default(),
            mode: scenario.opening.mode,
            views: vec![View::new(&ViewSpec::bytes(), 0); ranks],
            pointers: vec![0; ranks],
            shared: 0,
            atomicity: Atomicity::NonAtomic,
        };
        model.open(&scenario.opening);
        model
    }

    /// What every step of a scenario must give, and the file at the end;
    /// `None` if its outcome depends on timing.
    pub(crate) fn run(scenario: &Scenario) -> Option<(Vec<Outcome>, Model)> {
        let mut model = Model::new(scenario);
        let outcomes: Option<Vec<_>> = scenario.steps.iter().map(|step| model.take(step)).collect();
        Some((outcomes?, model))
    }

    fn open(&mut self, opening: &Opening) {
        self.mode = opening.mode;
        self.views.fill(View::new(&ViewSpec::bytes(), 0));
        self.atomicity = Atomicity::NonAtomic;
        let start = match self.mode.contains(Mode::APPEND) {
            true => self.file.len() as u64,
            false => 0,
        };
        self.pointers.fill(start);
        self.shared = start;
    }

    fn reopen(&mut self, opening: &Opening) -> Option<()> {
        let deleted = self.is_deleted_at_close();
        if deleted {
            self.file.clear();
        }
        let fits = match deleted {
            true => opening.mode.contains(Mode::CREATE),
            false => !opening.mode.contains(Mode::EXCLUSIVE),
        };
        self.open(opening);
        fits.then_some(())
    }

    pub(crate) fn is_deleted_at_close(&self) -> bool {
        self.mode.contains(Mode::DELETE_ON_CLOSE)
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.mode.contains(Mode::SEQUENTIAL)
    }

    pub(crate) fn can_write(&self) -> bool {
        !self.mode.contains(Mode::READ_ONLY)
    }

    pub(crate) fn same_views(&self) -> bool {
        self.views
            .iter()
            .all(|view| view.spec == self.views[0].spec)
    }

    /// Takes a step; `None` if its outcome depends on timing, or is not one
    /// that the model knows.
    pub(crate) fn take(&mut self, step: &Step) -> Option<Outcome> {
        let mut outcome = Outcome::default();
        let mut traffic = Traffic::new(self.file.len() as u64);
        match step {
            Step::Each(plans) => outcome.ranks = self.each(plans, &mut traffic)?,
            Step::Together(accesses) => outcome.ranks = self.together(accesses, &mut traffic)?,
            Step::InFlight { calls, .. } => {
                let all: Option<Vec<_>> = calls
                    .iter()
                    .map(|accesses| self.together(accesses, &mut traffic))
                    .collect();
                outcome.ranks = by_rank(all?, self.views.len());
            }
            Step::Race(access) => outcome.ranks = self.race(access, &mut traffic)?,
            Step::SetView(specs) => self.set_view(specs)?,
            Step::SetSize(bytes) => {
                let allowed = self.check_resize();
                if allowed.is_ok() {
                    self.file.resize(*bytes as usize, 0);
                }
                outcome.result = Some(allowed);
            }
            Step::Preallocate(bytes) => {
                let allowed = self.check_resize();
                if allowed.is_ok() {
                    self.grow(*bytes);
                }
                outcome.result = Some(allowed);
            }
            Step::SeekShared(offset, from) => {
                outcome.result = Some(self.seek_shared(*offset, *from)?);
            }
            Step::SetAtomicity(atomicity) => self.atomicity = *atomicity,
            Step::Sync | Step::SetInfo(_) => {}
            Step::Reopen(opening) => self.reopen(opening)?,
        }
        outcome.size = self.file.len() as u64;
        outcome.shared = self.shared;
        outcome.written = traffic.written();
        (outcome.size <= FILE_BYTES_MAX && traffic.is_orderly()).then_some(outcome)
    }

    fn grow(&mut self, size: u64) {
        let size = self.file.len().max(size as usize);
        self.file.resize(size, 0);
    }

    fn check_resize(&self) -> Result<(), ErrorKind> {
        if self.is_sequential() {
            Err(ErrorKind::UnsupportedOperation)
        } else if !self.can_write() {
            Err(ErrorKind::ReadOnly)
        } else {
            Ok(())
        }
    }

    fn set_view(&mut self, specs: &[ViewSpec]) -> Option<()> {
        let current = self.byte_offset(0, self.shared);
        let views: Vec<View> = specs
            .iter()
            .map(|spec| View::new(spec, spec.displacement.unwrap_or(current)))
            .collect();
        // Writing through a view that shows a byte twice is not allowed.
        if self.can_write() && views.iter().any(View::overlaps) {
            return None;
        }
        let displaced = specs.iter().all(|spec| spec.displacement.is_none());
        if displaced != self.is_sequential() {
            return None;
        }
        self.views = views;
        self.pointers.fill(0);
        self.shared = 0;
        Some(())
    }

    pub(crate) fn byte_offset(&self, rank: usize, etypes: u64) -> u64 {
        let view = &self.views[rank];
        match view.is_empty() {
            true => view.displacement,
            false => view.offset(etypes * view.etype_bytes),
        }
    }

    /// The end of the file: the first etype that starts at or behind it.
    fn end(&self, rank: usize) -> Option<u64> {
        let (view, size) = (&self.views[rank], self.file.len() as u64);
        if view.is_empty() {
            return Some(0);
        }
        // Without order, "the first behind the end" has no single meaning.
        let first = || (0..).find(|etypes| self.byte_offset(rank, *etypes) >= size);
        view.is_increasing().then(first).flatten()
    }

    fn seek_target(
        &self,
        rank: usize,
        pointer: u64,
        offset: i64,
        from: Seek,
    ) -> Option<Result<u64, ErrorKind>> {
        let base = match from {
            Seek::Set => 0,
            Seek::Current => pointer,
            Seek::End => self.end(rank)?,
        };
        Some(base.checked_add_signed(offset).ok_or(ErrorKind::Argument))
    }

    fn seek_shared(&mut self, offset: i64, from: Seek) -> Option<Result<(), ErrorKind>> {
        if self.is_sequential() {
            return Some(Err(ErrorKind::UnsupportedOperation));
        }
        // The standard wants equal views here.
        if !self.same_views() {
            return None;
        }
        let target = self.seek_target(0, self.shared, offset, from)?;
        Some(target.map(|position| self.shared = position))
    }

    fn each(&mut self, plans: &[Plan], traffic: &mut Traffic) -> Option<Vec<Vec<Expected>>> {
        let mut shared_users = 0;
        let mut all = Vec::new();
        for (rank, plan) in plans.iter().enumerate() {
            let uses_shared = |action: &Action| matches!(action, Action::Access(access) if access.place == Place::Shared);
            shared_users += u32::from(plan.actions.iter().any(uses_shared));
            let ordered = |action: &Action| match action {
                Action::Access(access) => access.manner == Manner::Blocking,
                _ => true,
            };
            let in_order = plan.actions.iter().all(ordered);
            traffic.next_sequence();
            let mut expected = Vec::new();
            for action in &plan.actions {
                if !in_order {
                    traffic.next_sequence();
                }
                expected.push(self.act(rank, action, traffic)?);
            }
            all.push(expected);
        }
        // Who comes first at the shared pointer depends on timing.
        (shared_users <= 1).then_some(all)
    }

    fn act(&mut self, rank: usize, action: &Action, traffic: &mut Traffic) -> Option<Expected> {
        let result = match action {
            Action::Access(access) => return self.access(rank, access, traffic),
            Action::ByteOffset(etypes) => Ok(self.byte_offset(rank, *etypes)),
            _ if self.is_sequential() => Err(ErrorKind::UnsupportedOperation),
            Action::Seek(offset, from) => {
                if *from == Seek::End {
                    traffic.sees_the_end();
                }
                let target = self.seek_target(rank, self.pointers[rank], *offset, *from)?;
                target.map(|position| {
                    self.pointers[rank] = position;
                    0
                })
            }
        };
        Some(Expected {
            result,
            buffer: Vec::new(),
            pointer: self.pointers[rank],
        })
    }

    fn together(
        &mut self,
        accesses: &[Access],
        traffic: &mut Traffic,
    ) -> Option<Vec<Vec<Expected>>> {
        let mut all = Vec::new();
        for (rank, access) in accesses.iter().enumerate() {
            traffic.next_sequence();
            all.push(vec![self.access(rank, access, traffic)?]);
        }
        // What the others moved when one fails is not the model's to say.
        let kinds: Vec<_> = all.iter().map(|each| each[0].result.err()).collect();
        let agreed = kinds.iter().all(|kind| *kind == kinds[0]);
        agreed.then_some(all)
    }

    fn race(&mut self, access: &Access, traffic: &mut Traffic) -> Option<Vec<Vec<Expected>>> {
        let ranks = self.views.len();
        let mut all = Vec::new();
        for rank in 0..ranks {
            traffic.next_sequence();
            all.push(vec![self.access(rank, access, traffic)?]);
        }
        (access.direction == Direction::Write).then_some(all)
    }

    fn check_allowed(&self, access: &Access) -> Result<(), ErrorKind> {
        let shared = matches!(access.place, Place::Shared | Place::Ordered);
        if shared && !self.same_views() {
            Err(ErrorKind::NotSame)
        } else if self.is_sequential() && !shared {
            Err(ErrorKind::UnsupportedOperation)
        } else if access.direction == Direction::Read && self.mode.contains(Mode::WRITE_ONLY) {
            Err(ErrorKind::Access)
        } else if access.direction == Direction::Write && !self.can_write() {
            Err(ErrorKind::ReadOnly)
        } else {
            Ok(())
        }
    }

    fn access(&mut self, rank: usize, access: &Access, traffic: &mut Traffic) -> Option<Expected> {
        let stored = self.views[rank].spec.stored;
        let mut buffer = access.memory.buffer();
        if access.direction == Direction::Write {
            buffer.tame(stored);
        } else if buffer.overlaps() {
            return None;
        }
        let result = match self.check_allowed(access) {
            Err(kind) => Err(kind),
            Ok(()) => match self.position(rank, access, &buffer) {
                Err(kind) => Err(kind),
                Ok(first) => {
                    let mut transfer = Transfer {
                        view: &self.views[rank],
                        file: &mut self.file,
                        first,
                        traffic,
                    };
                    Ok(match access.direction {
                        Direction::Write => transfer.write(&buffer)?,
                        Direction::Read => transfer.read(&mut buffer)?,
                    })
                }
            },
        };
        Some(Expected {
            result,
            buffer: buffer.bytes,
            pointer: self.pointers[rank],
        })
    }

    /// The data byte at which an access starts; the pointer moves on by what
    /// is asked for.
    fn position(
        &mut self,
        rank: usize,
        access: &Access,
        buffer: &Buffer,
    ) -> Result<u64, ErrorKind> {
        let view = &self.views[rank];
        let size = |(basic, _): &(pario::Basic, usize)| view.spec.stored.size(*basic);
        let bytes: u64 = buffer.elements.iter().map(size).sum();
        let unit = view.etype_bytes.max(1);
        if !bytes.is_multiple_of(unit) {
            return Err(ErrorKind::Argument);
        }
        let pointer = match access.place {
            Place::At(offset) => return Ok(offset * unit),
            Place::Individual => &mut self.pointers[rank],
            Place::Shared | Place::Ordered => &mut self.shared,
        };
        let first = *pointer * unit;
        *pointer += bytes / unit;
        Ok(first)
    }
}

/// From what calls give their ranks to what ranks get of their calls.
fn by_rank(calls: Vec<Vec<Vec<Expected>>>, ranks: usize) -> Vec<Vec<Expected>> {
    let mut all = vec![Vec::new(); ranks];
    for call in calls {
        for (rank, expected) in all.iter_mut().zip(call) {
            rank.extend(expected);
        }
    }
    all
}

struct Transfer<'a> {
    view: &'a View,
    file: &'a mut Vec<u8>,
    first: u64,
    traffic: &'a mut Traffic,
}

impl Transfer<'_> {
    fn stored(&self) -> Stored {
        self.view.spec.stored
    }

    fn write(&mut self, buffer: &Buffer) -> Option<u64> {
        let mut next = self.first;
        let mut native_bytes = 0;
        if self.view.is_empty() && !buffer.elements.is_empty() {
            // No place to write: rejected, but the model does not say how.
            return None;
        }
        for (basic, at) in &buffer.elements {
            let native = &buffer.bytes[*at..at + basic.size() as usize];
            for byte in self.stored().encode(*basic, native)? {
                let offset = self.view.offset(next);
                if offset >= FILE_BYTES_MAX {
                    return None;
                }
                self.traffic.write(offset);
                if offset as usize >= self.file.len() {
                    self.file.resize(offset as usize + 1, 0);
                }
                self.file[offset as usize] = byte;
                next += 1;
            }
            native_bytes += basic.size();
        }
        Some(native_bytes)
    }

    /// Reads up to the first byte that is not in the file.
    fn read(&mut self, buffer: &mut Buffer) -> Option<u64> {
        let stored = self.stored();
        let by_byte = buffer
            .elements
            .iter()
            .all(|(basic, _)| stored.keeps_bytes(*basic));
        let mut next = self.first;
        let mut native_bytes = 0;
        if self.view.is_empty() {
            return Some(0);
        }
        let mut at_end = false;
        for (basic, at) in &buffer.elements {
            let mut file = Vec::new();
            for _ in 0..stored.size(*basic) {
                let offset = self.view.offset(next);
                self.traffic.read(offset);
                if at_end || offset as usize >= self.file.len() {
                    at_end = true;
                } else {
                    file.push(self.file[offset as usize]);
                }
                next += 1;
            }
            let native = match (at_end, by_byte) {
                (false, _) => stored.decode(*basic, &file)?,
                (true, true) => file,
                (true, false) => Vec::new(),
            };
            buffer.bytes[*at..at + native.len()].copy_from_slice(&native);
            native_bytes += native.len() as u64;
        }
        Some(native_bytes)
    }
}
