//! The calls of the library that move data, and what they must give.

use fastrand::Rng;
use pario::{Datatype, File, Owned, Request, ScopedRequest, Source, Status, Target};

use crate::{
    compare::{Check, compare, same_pointer, same_result},
    model::Expected,
    scenario::{Access, Action, Direction, Manner, Place, Plan},
};

/// An access with its datatype built.
struct Prepared<'a> {
    access: &'a Access,
    datatype: Datatype,
    origin: usize,
}

impl<'a> Prepared<'a> {
    /// With the buffer as it is before the access.
    fn new(access: &'a Access, expected: &Expected) -> (Vec<u8>, Prepared<'a>) {
        let buffer = access.memory.buffer();
        let bytes = match access.direction {
            // The model made its elements ones that can be stored.
            Direction::Write => expected.buffer.clone(),
            Direction::Read => buffer.bytes,
        };
        let prepared = Prepared {
            access,
            datatype: access.memory.spec.build(),
            origin: buffer.origin,
        };
        (bytes, prepared)
    }

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

    /// A collective access, with the buffer afterwards.
    fn collective(
        &self,
        file: &File,
        mut buffer: Vec<u8>,
    ) -> pario::Result<(pario::Result<Status>, Vec<u8>)> {
        let (direction, place) = (self.access.direction, self.access.place);
        if self.access.manner == Manner::Blocking {
            let result = self.collective_blocking(file, &mut buffer);
            return Ok((result, buffer));
        }
        if self.access.manner == Manner::Owned {
            return Ok(self.collective_owned(file, buffer)?.wait_with_buffer());
        }
        let owned = self.own(buffer)?;
        let split = match (direction, place) {
            (Direction::Read, Place::At(offset)) => file.read_at_all_begin(offset, owned),
            (Direction::Read, Place::Individual) => file.read_all_begin(owned),
            (Direction::Read, _) => file.read_ordered_begin(owned),
            (Direction::Write, Place::At(offset)) => file.write_at_all_begin(offset, owned),
            (Direction::Write, Place::Individual) => file.write_all_begin(owned),
            (Direction::Write, _) => file.write_ordered_begin(owned),
        };
        let (status, buffer) = split?.end()?;
        Ok((Ok(status), buffer))
    }

    fn collective_owned(&self, file: &File, buffer: Vec<u8>) -> pario::Result<Request<u8>> {
        let owned = self.own(buffer)?;
        match (self.access.direction, self.access.place) {
            (Direction::Read, Place::At(offset)) => file.iread_at_all(offset, owned),
            (Direction::Read, _) => file.iread_all(owned),
            (Direction::Write, Place::At(offset)) => file.iwrite_at_all(offset, owned),
            (Direction::Write, _) => file.iwrite_all(owned),
        }
    }

    fn collective_blocking(&self, file: &File, buffer: &mut [u8]) -> pario::Result<Status> {
        match (self.access.direction, self.access.place) {
            (Direction::Read, Place::At(offset)) => file.read_at_all(offset, self.target(buffer)?),
            (Direction::Read, Place::Individual) => file.read_all(self.target(buffer)?),
            (Direction::Read, _) => file.read_ordered(self.target(buffer)?),
            (Direction::Write, Place::At(offset)) => {
                file.write_at_all(offset, self.source(buffer)?)
            }
            (Direction::Write, Place::Individual) => file.write_all(self.source(buffer)?),
            (Direction::Write, _) => file.write_ordered(self.source(buffer)?),
        }
    }

    fn own(&self, buffer: Vec<u8>) -> pario::Result<Owned<u8>> {
        let count = self.access.memory.count;
        Owned::typed_at(buffer, self.origin, count, &self.datatype)
    }

    fn owned(&self, file: &File, buffer: Vec<u8>) -> pario::Result<Request<u8>> {
        let owned = self.own(buffer)?;
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

/// An access that was called.
enum Called<'scope> {
    Done(pario::Result<Status>),
    Started(Waiting<'scope>),
}

impl Prepared<'_> {
    fn call<'scope>(
        &self,
        scope: &'scope pario::Scope<'scope, '_>,
        file: &File,
        buffer: &'scope mut [u8],
    ) -> Called<'scope> {
        let started = match self.access.manner {
            Manner::Blocking => return Called::Done(self.blocking(file, buffer)),
            Manner::Owned => self.owned(file, buffer.to_vec()).map(Waiting::Owned),
            Manner::Scoped => self.scoped(scope, file, buffer).map(Waiting::Scoped),
            Manner::Split => unreachable!("split calls are collective"),
        };
        match started {
            Ok(waiting) => Called::Started(waiting),
            Err(error) => Called::Done(Err(error)),
        }
    }
}

/// Does what one rank does in a step, then compares.
pub(crate) fn run_plan(file: &File, plan: &Plan, expected: &[Expected]) -> Check {
    let before = plan.actions.iter().zip(expected);
    let (mut buffers, prepared): (Vec<_>, Vec<_>) = before
        .map(|(action, expected)| match action {
            Action::Access(access) => {
                let (buffer, prepared) = Prepared::new(access, expected);
                (buffer, Some(prepared))
            }
            _ => (Vec::new(), None),
        })
        .unzip();
    let mut results: Vec<Option<pario::Result<Status>>> = vec![None; plan.actions.len()];
    let mut returned = Vec::new();
    pario::scope(|scope| {
        let mut waiting = Vec::new();
        for (index, buffer) in buffers.iter_mut().enumerate() {
            match &prepared[index] {
                None => run_action(file, &plan.actions[index], &expected[index])?,
                Some(prepared) => match prepared.call(scope, file, buffer) {
                    Called::Done(result) => results[index] = Some(result),
                    Called::Started(request) => waiting.push((index, request)),
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
    for (index, prepared) in prepared.iter().enumerate() {
        if let (Some(result), Some(prepared)) = (&results[index], prepared) {
            let (what, buffer) = (format!("action {index}"), &buffers[index]);
            compare(&what, result, buffer, &expected[index], prepared.access)?;
        }
    }
    Ok(())
}

/// Makes a collective access, then compares.
pub(crate) fn run_collective(file: &File, access: &Access, expected: &Expected) -> Check {
    let (before, prepared) = Prepared::new(access, expected);
    // A call that is rejected keeps the buffer it was given.
    let (result, buffer) = match prepared.collective(file, before.clone()) {
        Ok(done) => done,
        Err(error) => (Err(error), before),
    };
    compare("the access", &result, &buffer, expected, access)?;
    same_pointer(file, expected)
}

/// Makes collective accesses, of which some go on while others are made, then
/// compares.
pub(crate) fn run_in_flight(
    file: &File,
    accesses: &[&Access],
    expected: &[Expected],
    wait_seed: u64,
) -> Check {
    let mut waiting = Vec::new();
    for (index, (access, expected)) in accesses.iter().zip(expected).enumerate() {
        let name = |why| format!("call {index}: {why}");
        if access.manner != Manner::Owned {
            run_collective(file, access, expected).map_err(name)?;
            continue;
        }
        let (before, prepared) = Prepared::new(access, expected);
        match prepared.collective_owned(file, before.clone()) {
            Ok(request) => waiting.push((index, request)),
            Err(error) => {
                compare("the access", &Err(error), &before, expected, access).map_err(name)?;
            }
        }
        same_pointer(file, expected).map_err(name)?;
    }
    Rng::with_seed(wait_seed).shuffle(&mut waiting);
    for (index, request) in waiting {
        let (result, buffer) = request.wait_with_buffer();
        let what = format!("call {index}");
        compare(&what, &result, &buffer, &expected[index], accesses[index])?;
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
