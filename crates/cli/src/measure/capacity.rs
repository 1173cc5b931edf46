//! Whether memory and directory suffice for a run. Memory that runs out makes the kernel kill this
//! program or another, and a mapping that finds no space raises a fatal signal: so both are
//! compared with the free amounts before anything is allocated.

use std::path::Path;

use pario_driver::FileSystem;

use super::{Memory, PAGE, Scratch, accesses};
use crate::failure::Failure;
use crate::machine;
use crate::workload::Step;

/// Where the files' bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// On storage; the page cache gives way to programs.
    OnStorage,
    /// In the machine's memory.
    InMemory,
}

impl Kept {
    pub(crate) fn of(scratch: &Scratch) -> Kept {
        match scratch.facts().file_system {
            FileSystem::Tmpfs | FileSystem::Memory => Kept::InMemory,
            _ => Kept::OnStorage,
        }
    }
}

/// What a run needs on this machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Memory of the processes.
    pub(crate) memory: u64,
    /// Space for the files that exist at the same time.
    pub(crate) files: u64,
    pub(crate) kept: Kept,
    /// The option that makes runs smaller.
    pub(crate) size_option: &'static str,
}

impl Need {
    /// Fails unless a directory has space for the files, and the machine for all that stays in
    /// memory.
    pub(crate) fn check(&self, directory: &Path) -> Result<(), Failure> {
        self.check_space(machine::free_space(directory)?, directory)?;
        self.check_memory(pario_transport::available_memory())
    }

    /// The same for a directory that may not be mounted, whose servers are not asked for their free space.
    pub(crate) fn check_in(&self, scratch: &Scratch) -> Result<(), Failure> {
        match scratch.is_mounted() {
            true => self.check(scratch.path()),
            false => self.check_memory(pario_transport::available_memory()),
        }
    }

    fn check_space(&self, free: Option<u64>, directory: &Path) -> Result<(), Failure> {
        match free {
            Some(free) if self.files > free => Err(Failure::Arguments(format!(
                "the files need {} MiB, but {} has {} MiB free: choose a smaller {} or another \
                 --dir",
                mebibytes(self.files),
                directory.display(),
                free >> 20,
                self.size_option,
            ))),
            _ => Ok(()),
        }
    }

    fn check_memory(&self, free: Option<u64>) -> Result<(), Failure> {
        let (all, files) = match self.kept {
            Kept::OnStorage => (self.memory, String::new()),
            Kept::InMemory => (
                self.memory.saturating_add(self.files),
                format!(", {} MiB of it for files", mebibytes(self.files)),
            ),
        };
        match free {
            Some(free) if all > free => Err(Failure::Arguments(format!(
                "the run needs {} MiB of memory{files}, but the machine has {} MiB available: \
                 choose a smaller {}",
                mebibytes(all),
                free >> 20,
                self.size_option,
            ))),
            _ => Ok(()),
        }
    }
}

/// Approximate space of a file that these ranks write: up to its end, or the pages that
/// the pieces touch, one more per piece than its bytes fill, whichever is less.
pub(crate) fn file_space(memories: &[Memory]) -> u64 {
    let steps: Vec<&[Step]> = memories.iter().map(|it| it.steps.as_slice()).collect();
    let calls = steps.first().map_or(0, |steps| steps.len());
    let (mut end, mut touched) = (0, 0_u64);
    let calls = (0..calls).filter_map(|call| accesses(&steps, call));
    for access in calls.flatten() {
        let stats = access.stats();
        let pages = stats.pieces.saturating_mul(PAGE as u64);
        touched = touched.saturating_add(stats.bytes).saturating_add(pages);
        end = access.span().end.max(end);
    }
    end.min(touched)
}

fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    fn space(workload: &str) -> u64 {
        let job = workload::test_job(workload, 2, 1.0);
        let memories = (0..2).map(|rank| Memory::new(&*job, rank, 0).unwrap());
        file_space(&memories.collect::<Vec<_>>())
    }

    #[test]
    fn dense_files_need_their_bytes() {
        assert_eq!(space("ior:segment=1M"), 16 << 20);
    }

    #[test]
    fn holes_smaller_than_a_page_take_space_and_others_do_not() {
        let near = space("hpio:region=256,spacing=256,count=1000");
        assert_eq!(near, 2 * 1000 * 512 - 256);
        let far = space("hpio:region=256,spacing=1M,count=1000");
        assert_eq!(far, 2 * 1000 * (256 + 4096));
    }

    #[test]
    fn too_little_is_rejected_with_both_numbers() {
        let on_storage = Need {
            memory: 3 << 20,
            files: (2 << 20) - 1,
            kept: Kept::OnStorage,
            size_option: "--scale",
        };
        let in_memory = Need {
            kept: Kept::InMemory,
            ..on_storage
        };
        let message = |checked: Result<(), Failure>| checked.unwrap_err().to_string();
        let directory = Path::new("/data");
        assert!(on_storage.check_space(None, directory).is_ok());
        assert!(on_storage.check_space(Some(2 << 20), directory).is_ok());
        assert_eq!(
            message(on_storage.check_space(Some(1 << 20), directory)),
            "the files need 2 MiB, but /data has 1 MiB free: choose a smaller --scale or another \
             --dir"
        );
        assert!(in_memory.check_memory(None).is_ok());
        assert!(on_storage.check_memory(Some(3 << 20)).is_ok());
        assert!(in_memory.check_memory(Some(5 << 20)).is_ok());
        assert_eq!(
            message(on_storage.check_memory(Some(1 << 20))),
            "the run needs 3 MiB of memory, but the machine has 1 MiB available: choose a smaller \
             --scale"
        );
        assert_eq!(
            message(in_memory.check_memory(Some(4 << 20))),
            "the run needs 5 MiB of memory, 2 MiB of it for files, but the machine has 4 MiB \
             available: choose a smaller --scale"
        );
    }

    #[test]
    fn the_machine_is_asked() {
        let directory = tempfile::tempdir().unwrap();
        let little = Need {
            memory: 1,
            files: 1,
            kept: Kept::InMemory,
            size_option: "--size",
        };
        little.check(directory.path()).unwrap();
        let much = Need {
            memory: u64::MAX,
            ..little
        };
        assert!(much.check(directory.path()).is_err());
    }
}
