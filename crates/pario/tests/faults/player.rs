//! A rank that plays a scenario and holds every result against the model.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use pario::{
    Atomicity, ErrorKind, File, Info, Owned, Request, Result, Seek, Source, Split, Status, Target,
};
use pario_driver::{Direction, Driver};
use pario_transport::Transport;

use crate::{
    lens::{Lens, UNTOUCHED, collected, items, laid_out},
    model::Model,
    scenario::{How, Lie, Scenario, Step},
};

/// Requests in flight of one nonblocking step.
const REQUESTS: usize = 4;

/// A scenario about to be played by some ranks.
pub(crate) struct Case<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) path: &'a std::path::Path,
    pub(crate) model: Mutex<Model>,
    /// The errors that there may be.
    pub(crate) errors: Vec<ErrorKind>,
    /// How many calls failed.
    pub(crate) failures: AtomicU64,
}

impl Case<'_> {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    /// Counts a failure, which must be of the kind that was provoked.
    fn note<T>(&self, what: &str, result: &Result<T>) {
        if let Err(error) = result {
            self.failures.fetch_add(1, Ordering::Relaxed);
            assert!(self.errors.contains(&error.kind()), "{what}: {error}");
        }
    }

    /// Plays one rank.
    pub(crate) fn play(&self, comm: &Arc<dyn Transport>) {
        let Scenario { mode, hints, .. } = self.scenario;
        let info = Info::from_pairs(hints.iter().copied()).unwrap();
        let opened = File::open_with(comm, self.driver.clone(), self.path, *mode, &info);
        self.note("open", &opened);
        agreed(comm, "open", &opened);
        let Ok(file) = opened else { return };
        let mut player = Player {
            case: self,
            comm,
            file,
            lens: Lens::bytes(),
            pointer: 0,
            shared: 0,
        };
        for (number, step) in self.scenario.steps.iter().enumerate() {
            player.step(number, *step);
            // The model is up to date before anyone goes on.
            comm.barrier().unwrap();
        }
        let closed = player.file.close();
        self.note("close", &closed);
        agreed(comm, "close", &closed);
    }
}

/// A collective call ends in the same way on all ranks.
fn agreed<T>(comm: &Arc<dyn Transport>, what: &str, result: &Result<T>) {
    let mine = format!("{:?}", result.as_ref().err().map(pario::Error::kind));
    for other in comm.all_gather(mine.as_bytes()).unwrap() {
        assert_eq!(String::from_utf8_lossy(&other), mine, "{what}");
    }
}

struct Player<'a> {
    case: &'a Case<'a>,
    comm: &'a Arc<dyn Transport>,
    file: File,
    lens: Lens,
    /// The pointers, in elements.
    pointer: usize,
    shared: usize,
}

/// Elements `first..first + count` of the view.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: usize,
    count: usize,
}

/// An access that is done or not.
enum Started {
    Done(Result<Status>, Vec<u8>),
    InFlight(Request<u8>),
    Begun(Split<u8>),
}

impl Started {
    /// The result, and the buffer if it was given back.
    fn finish(self) -> (Result<Status>, Option<Vec<u8>>) {
        match self {
            Started::Done(result, buffer) => (result, Some(buffer)),
            Started::InFlight(request) => {
                let (result, buffer) = request.wait_with_buffer();
                (result, Some(buffer))
            }
            Started::Begun(split) => match split.end() {
                Ok((status, buffer)) => (Ok(status), Some(buffer)),
                Err(error) => (Err(error), None),
            },
        }
    }
}

fn start_nonblocking(
    file: &File,
    direction: Direction,
    how: How,
    at: u64,
    owned: Owned<u8>,
) -> Result<Request<u8>> {
    match (direction, how) {
        (Direction::Write, How::Nonblocking) => file.iwrite_at(at, owned),
        (Direction::Write, How::NonblockingAtAll) => file.iwrite_at_all(at, owned),
        (Direction::Write, _) => file.iwrite_shared(owned),
        (Direction::Read, How::Nonblocking) => file.iread_at(at, owned),
        (Direction::Read, How::NonblockingAtAll) => file.iread_at_all(at, owned),
        (Direction::Read, _) => file.iread_shared(owned),
    }
}

fn begin(
    file: &File,
    direction: Direction,
    how: How,
    at: u64,
    owned: Owned<u8>,
) -> Result<Split<u8>> {
    match (direction, how) {
        (Direction::Write, How::SplitAtAll) => file.write_at_all_begin(at, owned),
        (Direction::Write, How::SplitAll) => file.write_all_begin(owned),
        (Direction::Write, _) => file.write_ordered_begin(owned),
        (Direction::Read, How::SplitAtAll) => file.read_at_all_begin(at, owned),
        (Direction::Read, How::SplitAll) => file.read_all_begin(owned),
        (Direction::Read, _) => file.read_ordered_begin(owned),
    }
}

impl Player<'_> {
    fn rank(&self) -> usize {
        self.comm.rank().index()
    }

    fn ranks(&self) -> usize {
        self.comm.size() as usize
    }

    fn step(&mut self, number: usize, step: Step) {
        match step {
            Step::View(pattern) => {
                let lens = Lens::new(pattern, self.rank(), self.ranks());
                let set = self.file.set_view(&lens.view().unwrap());
                self.collective("set_view", &set);
                if set.is_ok() {
                    (self.lens, self.pointer, self.shared) = (lens, 0, 0);
                }
            }
            Step::Write(how, lie) => self.access(number, Direction::Write, how, lie),
            Step::Read(how, lie) => self.access(number, Direction::Read, how, lie),
            Step::RewindShared => {
                self.collective("seek_shared", &self.file.seek_shared(0, Seek::Set));
                self.shared = 0;
            }
            Step::Size => {
                let size = self.file.size();
                self.case.note("size", &size);
                if let Ok(size) = size {
                    assert_eq!(self.case.model().wrong_size(size), None);
                }
            }
            Step::SetSize(size) => self.resize(step, self.file.set_size(size as u64)),
            Step::Preallocate(size) => self.resize(step, self.file.preallocate(size as u64)),
            Step::Sync => self.collective("sync", &self.file.sync()),
            Step::Atomic => {
                let set = self.file.set_atomicity(Atomicity::Atomic);
                self.collective("set_atomicity", &set);
            }
        }
    }

    fn collective<T>(&self, what: &str, result: &Result<T>) {
        self.case.note(what, result);
        agreed(self.comm, what, result);
    }

    fn resize(&self, step: Step, result: Result<()>) {
        self.collective("resizing", &result);
        let mut model = self.case.model();
        match (step, result) {
            (Step::SetSize(size), Ok(())) => model.set_size(size),
            (Step::Preallocate(size), Ok(())) => model.extend(size),
            (Step::SetSize(size) | Step::Preallocate(size), Err(_)) => model.extend_perhaps(size),
            _ => unreachable!("only these resize"),
        }
    }

    fn access(&mut self, number: usize, direction: Direction, how: How, lie: Lie) {
        let count = self.lens.count;
        let whole = |first| vec![Part { first, count }];
        match how {
            How::At | How::AtAll | How::SplitAtAll => {
                self.parts(number, direction, how, lie, &whole(0))
            }
            How::Individual | How::All | How::SplitAll => {
                let first = self.pointer;
                self.pointer += count;
                self.parts(number, direction, how, lie, &whole(first));
            }
            How::Nonblocking | How::NonblockingAtAll => {
                let count = count / REQUESTS;
                let part = |index| Part {
                    first: index * count,
                    count,
                };
                let parts: Vec<_> = (0..REQUESTS).map(part).collect();
                self.parts(number, direction, how, lie, &parts);
            }
            How::Ordered | How::SplitOrdered => {
                let first = self.shared + self.rank() * count;
                self.parts(number, direction, how, lie, &whole(first));
                self.shared += self.ranks() * count;
            }
            // One rank after the other, so that the places are known.
            How::Shared | How::NonblockingShared => {
                for turn in 0..self.ranks() {
                    if turn == self.rank() {
                        self.parts(number, direction, how, lie, &whole(self.shared));
                    }
                    self.shared += count;
                    self.comm.barrier().unwrap();
                }
            }
        }
    }

    /// Makes the calls of a step and checks each; those that are nonblocking
    /// are in flight together and waited for in the opposite order.
    fn parts(&self, number: usize, direction: Direction, how: How, lie: Lie, parts: &[Part]) {
        let started: Vec<_> = parts
            .iter()
            .map(|part| self.start(number, direction, how, lie, *part))
            .collect();
        for (part, started) in parts.iter().zip(started).rev() {
            let (result, buffer) = started.finish();
            self.case.note("access", &result);
            if how.is_collective() {
                agreed(self.comm, "access", &result);
            }
            match (direction, buffer) {
                (Direction::Write, _) => self.check_write(number, *part, &result),
                (Direction::Read, Some(buffer)) => {
                    self.check_read(lie, *part, &result, &buffer);
                }
                (Direction::Read, None) => assert!(result.is_err(), "the buffer is lost"),
            }
        }
    }

    fn start(
        &self,
        number: usize,
        direction: Direction,
        how: How,
        lie: Lie,
        part: Part,
    ) -> Started {
        let element = self.lens.element;
        let data = match direction {
            Direction::Write => element.data(number, self.rank(), part.first, part.count),
            Direction::Read => vec![UNTOUCHED; part.count * element.memory_bytes()],
        };
        let mut buffer = laid_out(element, lie, &data);
        let (datatype, count) = items(element, lie, part.count).unwrap();
        let (file, at) = (&self.file, part.first as u64);
        let own = |buffer| Owned::typed(buffer, count, &datatype).unwrap();
        match how {
            How::Nonblocking | How::NonblockingShared | How::NonblockingAtAll => {
                let request = start_nonblocking(file, direction, how, at, own(buffer));
                return Started::InFlight(request.expect("faults come later"));
            }
            How::SplitAtAll | How::SplitAll | How::SplitOrdered => {
                let split = begin(file, direction, how, at, own(buffer));
                return Started::Begun(split.expect("faults come later"));
            }
            _ => {}
        }
        let result = match direction {
            Direction::Write => {
                let source = Source::typed(&buffer, count, &datatype).unwrap();
                match how {
                    How::At => file.write_at(at, source),
                    How::AtAll => file.write_at_all(at, source),
                    How::Individual => file.write(source),
                    How::All => file.write_all(source),
                    How::Shared => file.write_shared(source),
                    _ => file.write_ordered(source),
                }
            }
            Direction::Read => {
                let target = Target::typed(&mut buffer, count, &datatype).unwrap();
                match how {
                    How::At => file.read_at(at, target),
                    How::AtAll => file.read_at_all(at, target),
                    How::Individual => file.read(target),
                    How::All => file.read_all(target),
                    How::Shared => file.read_shared(target),
                    _ => file.read_ordered(target),
                }
            }
        };
        Started::Done(result, buffer)
    }

    /// Elements that a call says it moved.
    fn moved(&self, part: Part, result: &Result<Status>) -> usize {
        let bytes = match result {
            Ok(status) => status.bytes(),
            Err(error) => error.transferred(),
        };
        let size = self.lens.element.memory_bytes() as u64;
        assert!(bytes.is_multiple_of(size), "{bytes} are not whole elements");
        let elements = (bytes / size) as usize;
        assert!(
            elements <= part.count,
            "more than was asked for: {elements}"
        );
        elements
    }

    fn check_write(&self, number: usize, part: Part, result: &Result<Status>) {
        let element = self.lens.element;
        let moved = self.moved(part, result);
        assert!(result.is_err() || moved == part.count, "a short write");
        let data = element.data(number, self.rank(), part.first, part.count);
        let places = self.lens.places(part.first, part.count);
        let sure = moved * element.file_bytes();
        let mut model = self.case.model();
        model.write(&places, &element.to_file(&data), sure);
    }

    fn check_read(&self, lie: Lie, part: Part, result: &Result<Status>, buffer: &[u8]) {
        let element = self.lens.element;
        let moved = self.moved(part, result);
        let data = collected(element, lie, buffer);
        let (got, rest) = data.split_at(moved * element.memory_bytes());
        let places = self.lens.places(part.first, part.count);
        let model = self.case.model();
        let found = element.to_file(got);
        assert_eq!(model.wrong_bytes(places.iter().copied(), &found), None);
        if result.is_ok() {
            assert_eq!(model.wrong_count(&places, found.len()), None);
            let untouched = rest.iter().all(|byte| *byte == UNTOUCHED);
            assert!(untouched, "memory past the end of the file was touched");
        }
    }
}
