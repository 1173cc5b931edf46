//! Runs: every contender once with its bytes verified, then all of them interleaved, timed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::contenders::{Contender, Kind, State};
use super::method::{Stage, Stop};
use super::verify;
use crate::failure::Failure;
use crate::measure::{Buffer, Fault, PAGE, Place, Samples, alternating, content};

/// The round of the file's bytes; there is only one.
const ROUND: u64 = 1;

/// Bytes cleared at a time.
const CLEARED: usize = 1 << 20;

/// The results of a contender.
pub(super) struct Row {
    pub(super) contender: &'static Contender,
    pub(super) fresh: Samples,
    pub(super) existing: Samples,
    /// Why it has no times.
    pub(super) unavailable: Option<String>,
    pub(super) note: Option<String>,
}

impl Row {
    pub(super) fn new(contender: &'static Contender) -> Self {
        Row {
            contender,
            fresh: Samples::default(),
            existing: Samples::default(),
            unavailable: None,
            note: None,
        }
    }

    /// The times with a kind of file.
    pub(super) fn samples(&self, state: State) -> &Samples {
        match state {
            State::Fresh => &self.fresh,
            State::Existing => &self.existing,
        }
    }
}

/// Memory and files of all contenders.
pub(super) struct Session {
    size: usize,
    source: Buffer,
    target: Buffer,
    /// The file of those that write.
    written: PathBuf,
    /// The file of those that read.
    read: PathBuf,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Check,
    Time,
}

impl Session {
    /// Fills the memory and writes the file to be read.
    pub(super) fn new(size: u64, directory: &Path) -> Result<Self, Failure> {
        let mut source = Buffer::new(size, 0, 0)?;
        content::fill(source.bytes_mut(), 0, ROUND);
        let target = Buffer::new(size.saturating_add(PAGE as u64), 0, 0)?;
        let read = directory.join("read");
        fs::write(&read, source.bytes()).map_err(Failure::storage("write", &read))?;
        Ok(Session {
            size: source.bytes().len(),
            source,
            target,
            written: directory.join("written"),
            read,
        })
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Runs a contender and verifies every byte.
    pub(super) fn check(&mut self, row: &mut Row) -> Result<(), Failure> {
        self.turn(row, Purpose::Check)
    }

    /// Runs every contender once and takes its time.
    pub(super) fn round(
        &mut self,
        round: u32,
        rows: &mut [Row],
        mut done: impl FnMut(),
    ) -> Result<(), Failure> {
        for place in alternating(u64::from(round), rows.len()) {
            self.turn(&mut rows[place], Purpose::Time)?;
            done();
        }
        Ok(())
    }

    /// Runs a contender with each state of the file that it is measured with.
    fn turn(&mut self, row: &mut Row, purpose: Purpose) -> Result<(), Failure> {
        for state in row.contender.kind.states() {
            if row.unavailable.is_none() {
                self.run(row, *state, purpose)?;
            }
        }
        match fs::remove_file(&self.written) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::storage("remove", &self.written)(error))
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, row: &mut Row, state: State, purpose: Purpose) -> Result<(), Failure> {
        let contender = row.contender;
        let path = match contender.kind {
            Kind::Write | Kind::WriteFresh => &self.written,
            Kind::Read | Kind::Memory => {
                self.target.bytes_mut().fill(0);
                &self.read
            }
        };
        let took = (contender.method)(&mut Stage {
            path,
            pattern: contender.pattern,
            source: self.source.bytes(),
            target: self.target.bytes_mut(),
        });
        match (took, purpose) {
            (Err(stop), _) => stopped(stop, row, path),
            (Ok(took), Purpose::Time) => {
                row.note = took.note;
                match state {
                    State::Fresh => row.fresh.push(took.time),
                    State::Existing => row.existing.push(took.time),
                }
                Ok(())
            }
            (Ok(_), Purpose::Check) => match contender.kind {
                Kind::Write | Kind::WriteFresh => self.check_written(contender),
                // They have verified what they read.
                Kind::Read | Kind::Memory => Ok(()),
            },
        }
    }

    /// Verifies the whole written file, then clears it: what one run leaves must not be mistaken
    /// for what the next one writes.
    fn check_written(&mut self, contender: &Contender) -> Result<(), Failure> {
        let path = &self.written;
        let read = File::open(path).and_then(|file| {
            // The target is a page longer than any file should be.
            let longest = self.target.bytes().len() as u64;
            let length = file.metadata()?.len().min(longest) as usize;
            let memory = &mut self.target.bytes_mut()[..length];
            file.read_exact_at(memory, 0)?;
            Ok(length)
        });
        let length = read.map_err(Failure::storage("read", path))?;
        let found = &self.target.bytes()[..length];
        verify::check(found, contender.pattern, self.source.bytes())
            .map_err(|fault| wrong(contender, &fault))?;
        clear(path).map_err(Failure::storage("clear", path))
    }
}

fn stopped(stop: Stop, row: &mut Row, path: &Path) -> Result<(), Failure> {
    match stop {
        Stop::Unavailable(reason) => {
            row.unavailable = Some(reason);
            Ok(())
        }
        Stop::Failed { action, source } => Err(Failure::storage(action, path)(source)),
        Stop::Wrong(byte) => Err(wrong(row.contender, &Place::File.wrong(byte))),
    }
}

fn wrong(contender: &Contender, fault: &Fault) -> Failure {
    Failure::Wrong {
        method: format!("{}: {}", contender.kind.name(), contender.name),
        fault: fault.to_string(),
    }
}

/// Overwrites a whole file with zeroes.
fn clear(path: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let zeroes = vec![0; CLEARED];
    let mut rest = file.metadata()?.len();
    while rest > 0 {
        let part = rest.min(CLEARED as u64);
        rest -= part;
        file.write_all_at(&zeroes[..part as usize], rest)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::contenders::CONTENDERS;
    use super::super::method::{Method, Outcome, Timing};
    use super::*;

    const SIZE: u64 = 8 << 20;

    #[test]
    fn every_contender_moves_the_right_bytes_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut session = Session::new(SIZE, directory.path()).unwrap();
        let mut rows: Vec<_> = CONTENDERS.iter().map(Row::new).collect();
        for row in &mut rows {
            session.check(row).unwrap();
            assert!(!session.written.exists(), "{}", row.contender.name);
        }
        let mut turns = 0;
        for round in 0..2 {
            session.round(round, &mut rows, || turns += 1).unwrap();
        }
        assert_eq!(turns, 2 * rows.len());
        for row in &rows {
            for state in [State::Fresh, State::Existing] {
                let is_for = row.contender.kind.states().contains(&state);
                let expected = if is_for && row.unavailable.is_none() {
                    2
                } else {
                    0
                };
                let samples = row.samples(state).all();
                assert_eq!(samples.len(), expected, "{} {state:?}", row.contender.name);
            }
        }
        assert!(rows[0].unavailable.is_none() && rows[1].unavailable.is_none());
    }

    /// Writes nothing if there is a file, and reports success.
    fn lazy(stage: &mut Stage<'_>) -> Outcome {
        if !stage.path.exists() {
            fs::write(stage.path, stage.source).map_err(Stop::failed("write"))?;
        }
        Ok(Timing::default())
    }

    /// Finds no space.
    fn full(_: &mut Stage<'_>) -> Outcome {
        let error = io::Error::from(io::ErrorKind::StorageFull);
        Err(Stop::failed("write")(error))
    }

    fn failure(method: Method) -> Failure {
        let contender = Box::leak(Box::new(Contender {
            name: "other",
            kind: Kind::Write,
            pattern: CONTENDERS[0].pattern,
            method,
        }));
        let directory = tempfile::tempdir().unwrap();
        let mut session = Session::new(SIZE, directory.path()).unwrap();
        session.check(&mut Row::new(contender)).unwrap_err()
    }

    #[test]
    fn a_way_that_leaves_an_existing_file_unchanged_is_found() {
        let failure = failure(lazy);
        let text = failure.to_string();
        assert!(
            text.starts_with("wrong data: write: other: byte 0 of the file: expected"),
            "{text}"
        );
        assert_eq!(failure.code(), 1);
    }

    #[test]
    fn a_full_file_system_is_named_with_what_to_do() {
        let text = failure(full).to_string();
        assert!(text.starts_with("cannot write /"), "{text}");
        assert!(text.contains("/written: "), "{text}");
        assert!(
            text.ends_with("choose a smaller --scale or --size, or another --dir"),
            "{text}"
        );
    }
}
