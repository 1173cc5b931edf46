//! Whether the ranks have opened the same file: one name may lead to different files, in
//! directories local to each node, and different names may lead to one file.
//!
//! Usually the file systems' identifiers decide. If they cannot, as between a server's disk and
//! its clients' mounts, rank 0 marks the file by its time of last access, which programs do not
//! depend on, and the others look for the mark.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pario_driver::{Access, FileComparison, FileIdentity, FileSystem, Handle};
use pario_transport::{Rank, Transport};

use super::open::Names;
use crate::{Error, ErrorKind, Result, agree, warning::warn};

const ROOT: Rank = Rank(0);

/// A description of the file that a rank opened: its identity, or else its name.
pub(super) fn describe(handle: &dyn Handle, path: &Path) -> Result<Vec<u8>> {
    let (kind, bytes) = match handle.identity()? {
        Some(identity) => (IDENTITY, identity.to_wire().to_vec()),
        None => (NAME, path.as_os_str().as_encoded_bytes().to_vec()),
    };
    Ok([vec![kind], bytes].concat())
}

/// The first byte of a description: the kind of what follows.
const NAME: u8 = 0;
const IDENTITY: u8 = 1;

/// The identity in a description, if it has one.
pub(super) fn identity(description: &[u8]) -> Option<FileIdentity> {
    match description.split_first() {
        Some((&IDENTITY, wire)) => FileIdentity::from_wire(wire),
        _ => None,
    }
}

/// The comparison of the ranks' files.
pub(super) struct Check<'a> {
    pub(super) comm: &'a dyn Transport,
    pub(super) handle: &'a dyn Handle,
    pub(super) names: Names,
    pub(super) access: Access,
    pub(super) path: &'a Path,
}

/// The result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Same,
    /// This rank has opened another file than rank 0.
    Different(Rank),
    Unknown,
}

impl Check<'_> {
    /// Compares the descriptions of all ranks. *Collective*.
    pub(super) fn run(&self, all: &[&[u8]]) -> Result<()> {
        let finding = match compare(all) {
            Finding::Unknown => self.probe()?,
            finding => finding,
        };
        match (finding, self.names, self.access) {
            (Finding::Same, _, _) => Ok(()),
            // Some programs read copies of a file that each node has.
            (Finding::Different(rank), Names::Equal, Access::Read) => {
                self.warn(&format!(
                    "{:?} is not the same file on rank 0 and on rank {rank}: reads return what \
                     one of them holds",
                    self.path
                ));
                Ok(())
            }
            (Finding::Different(rank), _, _) => Err(Error::new(
                ErrorKind::NotSame,
                format!(
                    "the name leads to different files on rank 0 and rank {rank}: ranks can open a file \
                     together only on a file system that they share"
                ),
            )),
            (Finding::Unknown, Names::Equal, _) => {
                self.warn(&format!(
                    "it cannot be verified that {:?} is the same file on all ranks",
                    self.path
                ));
                Ok(())
            }
            (Finding::Unknown, Names::Different, _) => Err(Error::new(
                ErrorKind::NotSame,
                "the ranks gave different names, and it cannot be verified that they lead to the \
                 same file: give the same name on all ranks",
            )),
        }
    }

    /// Warns once for all ranks.
    fn warn(&self, message: &str) {
        if self.comm.rank() == ROOT {
            warn(message);
        }
    }

    /// Rank 0 marks the file, the others look for the mark. *Collective*.
    fn probe(&self) -> Result<Finding> {
        let before = match self.comm.rank() {
            ROOT => self.handle.access_time().ok(),
            _ => None,
        };
        let marked = before.and_then(|_| self.leave_mark().ok());
        let marks = marked.map_or_else(Vec::new, |mark| mark.to_le_bytes().to_vec());
        let marks = agree::gather(self.comm, Ok(marks))?;
        let mark = marks[ROOT.index()]
            .as_slice()
            .try_into()
            .map(i64::from_le_bytes);
        let Ok(mark) = mark else {
            return Ok(Finding::Unknown);
        };
        let found = match self.handle.access_time() {
            Ok(found) => vec![u8::from(found == mark)],
            Err(_) => Vec::new(),
        };
        let all = agree::gather(self.comm, Ok(found))?;
        if let Some(before) = before {
            // If that fails, the file only has an unusual time of last access.
            let _ = self.handle.set_access_time(before);
        }
        let file_system = &self.handle.facts().file_system;
        Ok(judge(&all, keeps_attributes(file_system)))
    }

    /// A time that no other file has: a random one in the past months, in whole seconds because
    /// some servers store no fractions.
    fn leave_mark(&self) -> io::Result<i64> {
        const SPREAD: u64 = 1 << 24;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let ago = RandomState::new().hash_one(self.path) % SPREAD + 1;
        let mark = i64::try_from(now.saturating_sub(ago)).unwrap_or(0);
        self.handle.set_access_time(mark)?;
        Ok(mark)
    }
}

/// What the ranks' answers mean: whether they found the mark, or nothing if they could not look.
fn judge(found: &[Vec<u8>], may_be_late: bool) -> Finding {
    match found.iter().position(|found| found.as_slice() == [0]) {
        // The file system does not show the mark at all: SMB's client shows no access time before that of the last
        // change.
        Some(0) => Finding::Unknown,
        Some(_) if may_be_late => Finding::Unknown,
        Some(rank) => Finding::Different(Rank(rank as u32)),
        None if found.iter().any(Vec::is_empty) => Finding::Unknown,
        None => Finding::Same,
    }
}

/// Whether a client may return an old access time, whatever the kernel requests: sshfs does for 20 s, 9p with
/// `cache=loose` always.
fn keeps_attributes(file_system: &FileSystem) -> bool {
    match file_system {
        FileSystem::Fuse { subtype } => subtype == "sshfs",
        FileSystem::HostShare => true,
        _ => false,
    }
}

fn compare(all: &[&[u8]]) -> Finding {
    let mut finding = Finding::Same;
    for (other, rank) in all.iter().zip((0..).map(Rank)).skip(1) {
        let first = all[ROOT.index()];
        let comparison = match (identity(first), identity(other)) {
            (Some(first), Some(other)) => first.compare(&other),
            _ if *other == first => FileComparison::Same,
            _ => FileComparison::Different,
        };
        match comparison {
            FileComparison::Same => {}
            FileComparison::Different => return Finding::Different(rank),
            FileComparison::Unknown => finding = Finding::Unknown,
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use pario_driver::{Create, Driver, OpenHow, Posix};
    use pario_transport::threads;

    use super::*;

    /// Ranks open the file of their name and probe it.
    fn probe(names: &'static [&'static str]) -> Vec<(Finding, i64)> {
        probe_on(&Posix::default(), names)
    }

    fn probe_on(driver: &Posix, names: &'static [&'static str]) -> Vec<(Finding, i64)> {
        let directory = tempfile::tempdir().unwrap();
        let results = threads::run(names.len() as u32, |comm| {
            let path = directory.path().join(names[comm.rank().index()]);
            let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
            let handle = driver.open(&path, &how).unwrap();
            handle.set_access_time(1_000_000).unwrap();
            comm.barrier().unwrap();
            let check = Check {
                comm: &*comm,
                handle: &*handle,
                names: Names::Equal,
                access: Access::ReadWrite,
                path: &path,
            };
            let finding = check.probe().unwrap();
            comm.barrier().unwrap();
            (finding, handle.access_time().unwrap())
        });
        results
            .into_iter()
            .map(std::result::Result::unwrap)
            .collect()
    }

    #[test]
    fn a_mark_distinguishes_files_and_leaves_no_trace() {
        let same = (Finding::Same, 1_000_000);
        assert_eq!(probe(&["a", "a", "a"]), [same; 3]);
        let different = (Finding::Different(Rank(2)), 1_000_000);
        assert_eq!(probe(&["a", "a", "b"]), [different; 3]);
        let subtype = "sshfs".to_owned();
        for late in [FileSystem::Fuse { subtype }, FileSystem::HostShare] {
            let late = Posix::new().assuming(late);
            let unknown = (Finding::Unknown, 1_000_000);
            assert_eq!(probe_on(&late, &["a", "b"]), [unknown; 2]);
        }
    }

    /// Ranks on two mounts of SMB got an error that their file was another one on rank 0 and rank 0.
    #[test]
    fn a_mark_that_nobody_sees_proves_nothing() {
        let [seen, unseen] = [vec![1], vec![0]];
        let all = [unseen.clone(), unseen.clone()];
        assert_eq!(judge(&all, false), Finding::Unknown);
        let all = [seen.clone(), unseen];
        assert_eq!(judge(&all, false), Finding::Different(Rank(1)));
        assert_eq!(judge(&[seen.clone(), seen], false), Finding::Same);
    }

    #[test]
    fn a_file_that_cannot_be_marked_is_unknown() {
        let results = threads::run(2, |comm| {
            let driver = pario_driver::Memory::separate();
            let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
            let handle = driver.open(Path::new("file"), &how).unwrap();
            let check = Check {
                comm: &*comm,
                handle: &*handle,
                names: Names::Equal,
                access: Access::ReadWrite,
                path: Path::new("file"),
            };
            check.probe().unwrap()
        });
        for result in results {
            assert_eq!(result.unwrap(), Finding::Unknown);
        }
    }
}
