//! Runs a scenario with the library and compares every result.

use std::{fmt::Debug, path::Path, sync::Arc};

use fastrand::Rng;
use pario::{
    Datatype, Displacement, File, Info, Owned, Request, ScopedRequest, Source, Status, Target,
    Transport, View,
    driver::{Access as DriverAccess, Batch, Create, Driver, Memory, OpenHow},
};

use crate::{
    model::{Expected, Model, Outcome},
    scenario::{
        Access, Action, Carrier, Direction, Manner, Opening, Place, Plan, Scenario, Step, ViewSpec,
    },
};

/// What went wrong, in words.
pub(crate) type Check = Result<(), String>;

fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Check {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what} is {got:?} instead of {expected:?}"))
}

fn same_bytes(what: &str, got: &[u8], expected: &[u8]) -> Check {
    same(&format!("the length of {what}"), got.len(), expected.len())?;
    let Some(first) = (0..got.len()).find(|index| got[*index] != expected[*index]) else {
        return Ok(());
    };
    let count = (0..got.len())
        .filter(|index| got[*index] != expected[*index])
        .count();
    let around = first..(first + 8).min(got.len());
    Err(format!(
        "{count} bytes of {what} differ, the first at {first}: {:?} instead of {:?}",
        &got[around.clone()],
        &expected[around]
    ))
}

/// A scenario with what it must give.
pub(crate) struct Trial<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) last: Model,
    pub(crate) path: &'a Path,
}

impl Trial<'_> {
    /// Runs it: `world` lets all ranks live one life, and says what came of
    /// each.
    pub(crate) fn run(&self, world: impl FnOnce(u32, &Trial<'_>) -> Vec<Check>) -> Check {
        self.prepare();
        let failures: Vec<String> = world(self.scenario.ranks, self)
            .into_iter()
            .enumerate()
            .filter_map(|(rank, check)| Some(format!("rank {rank}: {}", check.err()?)))
            .collect();
        let checked = match failures.is_empty() {
            true => self.check_remains(),
            false => Err(causes(failures)),
        };
        let _ = std::fs::remove_file(self.path);
        let _ = Memory::new().delete(self.path);
        checked
    }

    fn in_memory(&self) -> bool {
        self.scenario.opening.carrier == Carrier::Memory
    }

    fn prepare(&self) {
        let Some(bytes) = &self.scenario.before else {
            return;
        };
        if self.in_memory() {
            let how = OpenHow::new(DriverAccess::Write).create(Create::IfMissing);
            let file = Memory::new().open(self.path, &how).expect("memory opens");
            let written = file.transfer(&Batch::write(0, bytes)).into_result();
            assert_eq!(written.expect("memory can be written"), bytes.len() as u64);
        } else {
            std::fs::write(self.path, bytes).expect("the folder can be written");
        }
    }

    fn contents(&self) -> std::io::Result<Vec<u8>> {
        if !self.in_memory() {
            return std::fs::read(self.path);
        }
        let file = Memory::new().open(self.path, &OpenHow::new(DriverAccess::Read))?;
        let mut bytes = vec![0; file.size()? as usize];
        file.transfer(&Batch::read(0, &mut bytes)).into_result()?;
        Ok(bytes)
    }

    fn check_remains(&self) -> Check {
        if !self.last.is_deleted_at_close() {
            let bytes = self.contents().map_err(|error| error.to_string())?;
            return same_bytes("the file", &bytes, &self.last.file);
        }
        same("the file's existence", self.contents().is_ok(), false)
    }

    /// What one rank does and checks.
    pub(crate) fn live(&self, comm: &Arc<dyn Transport>) -> Check {
        let mut rank = Rank {
            index: comm.rank().index(),
            path: self.path,
            comm,
            file: open(comm, &self.scenario.opening, self.path)?,
        };
        for (index, (step, outcome)) in self.scenario.steps.iter().zip(&self.outcomes).enumerate() {
            rank.take(step, outcome)
                .map_err(|why| format!("step {index}: {why}"))?;
        }
        rank.meet()?;
        if rank.index == 0 {
            let bytes = self.contents().map_err(|error| error.to_string())?;
            same_bytes("the open file", &bytes, &self.last.file)?;
        }
        rank.meet()?;
        rank.file.close().map_err(|error| error.to_string())
    }
}

/// Without the ranks that only saw another one give up, unless all did.
fn causes(failures: Vec<String>) -> String {
    let consequence = |failure: &&String| failure.ends_with("is lost: it has returned");
    let (_, causes): (Vec<_>, Vec<_>) = failures.iter().partition(consequence);
    match causes.is_empty() {
        true => failures.join("\n"),
        false => causes.into_iter().cloned().collect::<Vec<_>>().join("\n"),
    }
}

fn info(hints: &[(&'static str, String)]) -> Info {
    let pairs = hints.iter().map(|(name, value)| (*name, value.as_str()));
    Info::from_pairs(pairs).expect("hints are well formed")
}

fn open(comm: &Arc<dyn Transport>, opening: &Opening, path: &Path) -> Result<File, String> {
    let prefix = match opening.carrier {
        Carrier::Posix => "",
        Carrier::Uring => "uring:",
        Carrier::Memory => "mem:",
    };
    let name = format!("{prefix}{}", path.display());
    File::open(comm, name, opening.mode, &info(&opening.hints)).map_err(|error| error.to_string())
}

fn view(spec: &ViewSpec) -> View {
    let displacement = match spec.displacement {
        Some(bytes) => Displacement::Bytes(bytes),
        None => Displacement::Current,
    };
    View::new(0, &spec.etype.build(), &spec.filetype.build())
        .at(displacement)
        .representation(spec.stored.name())
}

struct Rank<'a> {
    index: usize,
    path: &'a Path,
    comm: &'a Arc<dyn Transport>,
    file: File,
}

impl Rank<'_> {
    fn meet(&self) -> Check {
        self.comm.barrier().map_err(|error| error.to_string())
    }

    fn take(&mut self, step: &Step, outcome: &Outcome) -> Check {
        let file = &self.file;
        let result = match step {
            Step::Each(plans) => {
                run_plan(file, &plans[self.index], &outcome.ranks[self.index])?;
                Ok(())
            }
            Step::Together(accesses) => {
                let expected = &outcome.ranks[self.index][0];
                let (result, buffer) = collective(file, &accesses[self.index], expected);
                compare(
                    "the access",
                    &result,
                    &buffer,
                    expected,
                    &accesses[self.index],
                )?;
                same_pointer(file, expected)?;
                Ok(())
            }
            Step::Race(access) => {
                let plan = Plan {
                    actions: vec![Action::Access(access.clone())],
                    wait_seed: 0,
                };
                run_plan(file, &plan, &outcome.ranks[self.index])?;
                Ok(())
            }
            Step::SetView(specs) => file.set_view(&view(&specs[self.index])),
            Step::SetSize(bytes) => file.set_size(*bytes),
            Step::Preallocate(bytes) => file.preallocate(*bytes),
            Step::Sync => file.sync(),
            Step::SetAtomicity(atomicity) => file.set_atomicity(*atomicity),
            Step::SeekShared(offset, from) => file.seek_shared(*offset, *from),
            Step::SetInfo(hints) => file.set_info(&info(hints)),
            Step::Reopen(opening) => {
                file.close().map_err(|error| error.to_string())?;
                self.file = open(self.comm, opening, self.path)?;
                Ok(())
            }
        };
        let expected = outcome.result.unwrap_or(Ok(()));
        same_result("the call", &result, expected)?;
        self.meet()?;
        self.check_state(outcome)?;
        self.meet()
    }

    fn check_state(&self, outcome: &Outcome) -> Check {
        let size = self.file.size().map_err(|error| error.to_string())?;
        same("the size", size, outcome.size)?;
        match self.file.mode().contains(pario::Mode::SEQUENTIAL) {
            true => Ok(()),
            false => {
                let shared = self.file.position_shared();
                let shared = shared.map_err(|error| error.to_string())?;
                same("the shared pointer", shared, outcome.shared)
            }
        }
    }
}

fn same_result<T: PartialEq + Debug>(
    what: &str,
    got: &pario::Result<T>,
    expected: Result<T, pario::ErrorKind>,
) -> Check {
    match (got, expected) {
        (Ok(got), Ok(expected)) => same(&format!("the result of {what}"), got, &expected),
        (Err(error), Err(kind)) if error.kind() == kind => Ok(()),
        (Err(error), expected) => Err(format!("{what} failed: {error}, instead of {expected:?}")),
        (Ok(got), expected) => Err(format!("{what} gave {got:?} instead of {expected:?}")),
    }
}

fn same_pointer(file: &File, expected: &Expected) -> Check {
    if file.mode().contains(pario::Mode::SEQUENTIAL) {
        return Ok(());
    }
    let position = file.position().map_err(|error| error.to_string())?;
    same("the individual pointer", position, expected.pointer)
}

fn compare(
    what: &str,
    result: &pario::Result<Status>,
    buffer: &[u8],
    expected: &Expected,
    access: &Access,
) -> Check {
    let bytes = result.clone().map(Status::bytes);
    same_result(what, &bytes, expected.result)?;
    if let Ok(status) = result {
        let datatype = access.memory.spec.build();
        let count = match (status.bytes(), datatype.size()) {
            (0, _) => Some(0),
            (bytes, size) => (bytes % size == 0).then(|| bytes / size),
        };
        same("the count", status.count(&datatype), count)?;
    }
    same_bytes(&format!("the buffer of {what}"), buffer, &expected.buffer)
}

/// The buffer as it is before the access, and where its origin is.
fn buffer_before(access: &Access, expected: &Expected) -> (Vec<u8>, usize) {
    let buffer = access.memory.buffer();
    match access.direction {
        // The model made its elements ones that can be stored.
        Direction::Write => (expected.buffer.clone(), buffer.origin),
        Direction::Read => (buffer.bytes, buffer.origin),
    }
}

fn collective(
    file: &File,
    access: &Access,
    expected: &Expected,
) -> (pario::Result<Status>, Vec<u8>) {
    let (mut buffer, origin) = buffer_before(access, expected);
    let (count, datatype) = (access.memory.count, access.memory.spec.build());
    let result = match access.direction {
        Direction::Read => {
            Target::typed_at(&mut buffer, origin, count, &datatype).and_then(|target| match access
                .place
            {
                Place::At(offset) => file.read_at_all(offset, target),
                Place::Individual => file.read_all(target),
                Place::Shared | Place::Ordered => file.read_ordered(target),
            })
        }
        Direction::Write => {
            Source::typed_at(&buffer, origin, count, &datatype).and_then(|source| {
                match access.place {
                    Place::At(offset) => file.write_at_all(offset, source),
                    Place::Individual => file.write_all(source),
                    Place::Shared | Place::Ordered => file.write_ordered(source),
                }
            })
        }
    };
    (result, buffer)
}

/// An access with its datatype built.
struct Prepared<'a> {
    access: &'a Access,
    datatype: Datatype,
    origin: usize,
}

impl Prepared<'_> {
    fn target<'b>(&self, buffer: &'b mut [u8]) -> pario::Result<Target<'b>> {
        Target::typed_at(
            buffer,
            self.origin,
            self.access.memory.count,
            &self.datatype,
        )
    }

    fn source<'b>(&self, buffer: &'b [u8]) -> pario::Result<Source<'b>> {
        Source::typed_at(
            buffer,
            self.origin,
            self.access.memory.count,
            &self.datatype,
        )
    }

    fn blocking(&self, file: &File, buffer: &mut [u8]) -> pario::Result<Status> {
        match (self.access.direction, self.access.place) {
            (Direction::Read, Place::At(offset)) => file.read_at(offset, self.target(buffer)?),
            (Direction::Read, Place::Individual) => file.read(self.target(buffer)?),
            (Direction::Read, _) => file.read_shared(self.target(buffer)?),
            (Direction::Write, Place::At(offset)) => file.write_at(offset, self.source(buffer)?),
            (Direction::Write, Place::Individual) => file.write(self.source(buffer)?),
            (Direction::Write, _) => file.write_shared(self.source(buffer)?),
        }
    }

    fn owned(&self, file: &File, buffer: Vec<u8>) -> pario::Result<Request<u8>> {
        let count = self.access.memory.count;
        let owned = Owned::typed_at(buffer, self.origin, count, &self.datatype)?;
        match (self.access.direction, self.access.place) {
            (Direction::Read, Place::At(offset)) => file.iread_at(offset, owned),
            (Direction::Read, Place::Individual) => file.iread(owned),
            (Direction::Read, _) => file.iread_shared(owned),
            (Direction::Write, Place::At(offset)) => file.iwrite_at(offset, owned),
            (Direction::Write, Place::Individual) => file.iwrite(owned),
            (Direction::Write, _) => file.iwrite_shared(owned),
        }
    }

    fn scoped<'scope>(
        &self,
        scope: &'scope pario::Scope<'scope, '_>,
        file: &File,
        buffer: &'scope mut [u8],
    ) -> pario::Result<ScopedRequest<'scope>> {
        match (self.access.direction, self.access.place) {
            (Direction::Read, Place::At(offset)) => {
                scope.iread_at(file, offset, self.target(buffer)?)
            }
            (Direction::Read, Place::Individual) => scope.iread(file, self.target(buffer)?),
            (Direction::Read, _) => scope.iread_shared(file, self.target(buffer)?),
            (Direction::Write, Place::At(offset)) => {
                scope.iwrite_at(file, offset, self.source(buffer)?)
            }
            (Direction::Write, Place::Individual) => scope.iwrite(file, self.source(buffer)?),
            (Direction::Write, _) => scope.iwrite_shared(file, self.source(buffer)?),
        }
    }
}

/// A request under way.
enum Waiting<'scope> {
    Owned(Request<u8>),
    Scoped(ScopedRequest<'scope>),
}

/// Does what one rank does in a step, then compares.
fn run_plan(file: &File, plan: &Plan, expected: &[Expected]) -> Check {
    let before = plan
        .actions
        .iter()
        .zip(expected)
        .map(|(action, expected)| match action {
            Action::Access(access) => {
                let (buffer, origin) = buffer_before(access, expected);
                let datatype = access.memory.spec.build();
                (
                    buffer,
                    Some(Prepared {
                        access,
                        datatype,
                        origin,
                    }),
                )
            }
            _ => (Vec::new(), None),
        });
    let (mut buffers, prepared): (Vec<Vec<u8>>, Vec<_>) = before.unzip();
    let mut results: Vec<Option<pario::Result<Status>>> =
        plan.actions.iter().map(|_| None).collect();
    let mut returned = Vec::new();
    pario::scope(|scope| {
        let mut waiting = Vec::new();
        for (index, buffer) in buffers.iter_mut().enumerate() {
            match &prepared[index] {
                None => run_action(file, &plan.actions[index], &expected[index])?,
                Some(prepared) => match prepared.access.manner {
                    Manner::Blocking => results[index] = Some(prepared.blocking(file, buffer)),
                    Manner::Owned => match prepared.owned(file, buffer.clone()) {
                        Ok(request) => waiting.push((index, Waiting::Owned(request))),
                        Err(error) => results[index] = Some(Err(error)),
                    },
                    Manner::Scoped => match prepared.scoped(scope, file, buffer) {
                        Ok(request) => waiting.push((index, Waiting::Scoped(request))),
                        Err(error) => results[index] = Some(Err(error)),
                    },
                },
            }
            same_pointer(file, &expected[index]).map_err(|why| format!("action {index}: {why}"))?;
        }
        Rng::with_seed(plan.wait_seed).shuffle(&mut waiting);
        for (index, request) in waiting {
            results[index] = Some(match request {
                Waiting::Scoped(request) => request.wait(),
                Waiting::Owned(request) => {
                    let (result, buffer) = request.wait_with_buffer();
                    returned.push((index, buffer));
                    result
                }
            });
        }
        Ok::<(), String>(())
    })?;
    for (index, buffer) in returned {
        buffers[index] = buffer;
    }
    let all = results.iter().zip(&buffers).zip(expected).zip(&prepared);
    for (index, (((result, buffer), expected), prepared)) in all.enumerate() {
        if let (Some(result), Some(prepared)) = (result, prepared) {
            let what = format!("action {index}");
            compare(&what, result, buffer, expected, prepared.access)?;
        }
    }
    Ok(())
}

fn run_action(file: &File, action: &Action, expected: &Expected) -> Check {
    match action {
        Action::Seek(offset, from) => {
            let sought = file.seek(*offset, *from);
            same_result("seek", &sought, expected.result.map(|_| ()))
        }
        Action::ByteOffset(etypes) => {
            same_result("byte_offset", &file.byte_offset(*etypes), expected.result)
        }
        Action::Access(_) => unreachable!("accesses are prepared"),
    }
}
