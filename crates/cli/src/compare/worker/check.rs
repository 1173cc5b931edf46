//! Whether files and memory hold what they should, by the formula of the pieces.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::bench::content;
use crate::failure::Failure;
use crate::workload::{Job, Piece};

/// Bytes of a file that are read at once.
const WINDOW: u64 = 1 << 20;

/// What a rank moves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) bytes: u64,
    pub(super) pieces: u64,
    /// Where the file ends as far as this rank knows.
    pub(super) end: u64,
}

impl Extent {
    pub(super) fn of(job: &dyn Job, rank: u32) -> Extent {
        let mut extent = Extent::default();
        for call in 0..job.calls() {
            job.pieces(rank, call, &mut |piece| {
                extent.bytes += piece.bytes;
                extent.pieces += 1;
                extent.end = extent.end.max(piece.file + piece.bytes);
            });
        }
        extent
    }
}

/// What is wrong with a rank's pieces of a file that should end at `end`.
pub(super) fn file_fault(
    job: &dyn Job,
    rank: u32,
    path: &Path,
    end: u64,
    round: u64,
) -> Result<Option<String>, Failure> {
    let check = || {
        let mut reader = Reader::open(path)?;
        let length = reader.file.metadata()?.len();
        if length != end {
            return Ok(Some(format!(
                "the file has {length} bytes instead of {end}"
            )));
        }
        let mut outcome = Ok(None);
        for call in 0..job.calls() {
            job.pieces(rank, call, &mut |piece| {
                if matches!(outcome, Ok(None)) {
                    outcome = reader.fault(piece, round);
                }
            });
        }
        outcome
    };
    check().map_err(|source: io::Error| Failure::Storage {
        action: "check",
        path: path.to_owned(),
        source,
    })
}

/// What is wrong with the memory of each call after a read: bytes that differ, or bytes between
/// pieces that are no longer what they were.
pub(super) fn memory_fault<'a>(
    job: &dyn Job,
    rank: u32,
    buffers: impl Iterator<Item = &'a [u8]>,
    before: u8,
    round: u64,
) -> Option<String> {
    for (call, bytes) in buffers.enumerate() {
        let mut fault = None;
        let mut at = 0;
        let gap = |from: usize, to: usize| {
            let gap = bytes.get(from..to).unwrap_or_default();
            let changed = gap.iter().position(|byte| *byte != before)?;
            let at = from + changed;
            Some(format!(
                "byte {at} of memory is not part of the data and was changed"
            ))
        };
        job.pieces(rank, call as u64, &mut |piece| {
            if fault.is_some() {
                return;
            }
            let (start, length) = (piece.memory as usize, piece.bytes as usize);
            let data = &bytes[start..start + length];
            let wrong = content::first_wrong(data, piece.file, round);
            fault = gap(at, start).or_else(|| wrong.map(words));
            at = start + length;
        });
        let fault = fault.or_else(|| gap(at, bytes.len()));
        if let Some(fault) = fault {
            return Some(format!("call {call}: {fault}"));
        }
    }
    None
}

fn words(wrong: content::WrongByte) -> String {
    let content::WrongByte {
        offset,
        expected,
        found,
    } = wrong;
    format!("byte {offset} of the file is {found} instead of {expected}")
}

/// Reads a file in large parts, however small the pieces.
struct Reader {
    file: File,
    window: Vec<u8>,
    start: u64,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Reader> {
        Ok(Reader {
            file: File::open(path)?,
            window: Vec::new(),
            start: 0,
        })
    }

    /// What is wrong with a piece that the file is long enough for.
    fn fault(&mut self, piece: Piece, round: u64) -> io::Result<Option<String>> {
        let (mut at, end) = (piece.file, piece.file + piece.bytes);
        while at < end {
            let part = self.part(at, end)?;
            if part.is_empty() {
                return Ok(Some(format!("the file ends at byte {at}")));
            }
            let length = part.len() as u64;
            if let Some(wrong) = content::first_wrong(part, at, round) {
                return Ok(Some(words(wrong)));
            }
            at += length;
        }
        Ok(None)
    }

    /// The bytes from `at` on that one window has, up to `end`.
    fn part(&mut self, at: u64, end: u64) -> io::Result<&[u8]> {
        let window_end = self.start + self.window.len() as u64;
        if !(self.start..window_end).contains(&at) {
            self.fill(at / WINDOW * WINDOW)?;
        }
        let from = ((at - self.start) as usize).min(self.window.len());
        let to = ((end - self.start) as usize).min(self.window.len());
        Ok(&self.window[from..to])
    }

    fn fill(&mut self, start: u64) -> io::Result<()> {
        self.window.resize(WINDOW as usize, 0);
        let mut length = 0;
        while length < self.window.len() {
            match self
                .file
                .read_at(&mut self.window[length..], start + length as u64)
            {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.window.truncate(length);
        self.start = start;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::patterns;

    const SCALE: f64 = 0.002;
    const RANKS: u32 = 2;

    /// A file as a pattern leaves it, after `spoil`.
    fn fault_of(name: &str, spoil: impl Fn(&mut Vec<u8>)) -> Option<String> {
        let job = patterns::named(&[name.to_owned()]).unwrap()[0]
            .job(RANKS, SCALE)
            .unwrap();
        let extents = [0, 1].map(|rank| Extent::of(&*job, rank));
        let end = extents.iter().map(|it| it.end).max().unwrap();
        let mut bytes = vec![0; end as usize];
        for rank in 0..RANKS {
            for call in 0..job.calls() {
                job.pieces(rank, call, &mut |piece| {
                    let part = &mut bytes[piece.file as usize..][..piece.bytes as usize];
                    content::fill(part, piece.file, 5);
                });
            }
        }
        spoil(&mut bytes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        (0..RANKS).find_map(|rank| file_fault(&*job, rank, &path, end, 5).unwrap())
    }

    #[test]
    fn right_files_pass_and_wrong_ones_are_told() {
        for name in ["hpio", "btio", "cyclic", "indexed", "small"] {
            assert_eq!(fault_of(name, |_| ()), None, "{name}");
            let spoilt = fault_of(name, |bytes| bytes[256] ^= 1);
            // Byte 256 of hpio lies between two regions.
            let expected = (name != "hpio").then_some("byte 256 of the file is");
            assert_eq!(spoilt.is_some(), expected.is_some(), "{name}: {spoilt:?}");
            let short = fault_of(name, |bytes| bytes.truncate(bytes.len() - 1));
            assert!(short.unwrap().contains("instead of"), "{name}");
        }
    }

    #[test]
    fn memory_between_pieces_must_stay() {
        let job = patterns::named(&["hpio".to_owned()]).unwrap()[0]
            .job(RANKS, SCALE)
            .unwrap();
        let step = job.step(1, 0).unwrap();
        let mut memory = vec![7; step.memory_bytes as usize];
        job.pieces(1, 0, &mut |piece| {
            let part = &mut memory[piece.memory as usize..][..piece.bytes as usize];
            content::fill(part, piece.file, 3);
        });
        let fault = |memory: &[u8]| memory_fault(&*job, 1, [memory].into_iter(), 7, 3);
        assert_eq!(fault(&memory), None);
        memory[300] ^= 1;
        assert!(fault(&memory).unwrap().contains("was changed"));
        memory[300] ^= 1;
        memory[10] ^= 1;
        assert!(fault(&memory).unwrap().contains("of the file is"));
        memory[10] ^= 1;
        *memory.last_mut().unwrap() ^= 1;
        assert!(fault(&memory).unwrap().contains("was changed"));
    }
}
