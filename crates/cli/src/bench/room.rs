//! Whether memory and folder have room for a job. Memory that runs out ends this program or another
//! without a word, so it is asked for before it is taken.

use std::path::Path;

use pario_driver::FileSystem;

use super::buffer::PAGE;
use super::fitness::accesses;
use super::folder::Folder;
use super::memory::Memory;
use super::method::Method;
use super::stored::PART;
use super::world::{Kind, World};
use crate::failure::Failure;
use crate::free;
use crate::workload::Step;

/// Where the file's bytes stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// On storage; the kernel's cache gives way to programs.
    OnStorage,
    /// In the machine's memory.
    InMemory,
}

impl Kept {
    /// Where the files of methods in a folder stay.
    pub(crate) fn of(folder: &Folder, methods: &[Method], world: &World) -> Kept {
        let is_tmpfs = folder.facts().file_system == FileSystem::Tmpfs;
        let is_own = |method: &Method| method.driver == "mem" && world.kind() == Kind::Threads;
        match is_tmpfs || methods.iter().any(is_own) {
            true => Kept::InMemory,
            false => Kept::OnStorage,
        }
    }
}

/// What a job takes on this machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Memory of the ranks that live here, and of the comparison.
    memory: u64,
    /// Space of the file. Pages without data take none, but where methods fill them.
    file: u64,
}

impl Need {
    /// Of all ranks' memories.
    pub(crate) fn new(memories: &[Memory], world: &World) -> Need {
        let steps: Vec<_> = memories.iter().map(|it| it.steps.as_slice()).collect();
        let file = file_space(&steps);
        let ranks = (0..).zip(memories);
        let here = ranks.filter(|(rank, _)| world.is_here(*rank));
        let memory = here.map(|(_, memory)| memory.footprint());
        Need {
            memory: memory.fold(file.min(PART), u64::saturating_add),
            file,
        }
    }

    /// Fails unless a folder has room for the file, and the machine for all that stays in memory.
    pub(crate) fn check(&self, folder: &Path, kept: Kept) -> Result<(), Failure> {
        self.check_space(free::space(folder)?, folder)?;
        self.check_memory(free::memory(), kept)
    }

    fn check_space(&self, free: Option<u64>, folder: &Path) -> Result<(), Failure> {
        match free {
            Some(free) if self.file > free => Err(Failure::Arguments(format!(
                "the job's file takes {} MiB, and {} has {} MiB free: choose a smaller --scale, \
                 smaller sizes or another --dir",
                mebibytes(self.file),
                folder.display(),
                free >> 20,
            ))),
            _ => Ok(()),
        }
    }

    fn check_memory(&self, free: Option<u64>, kept: Kept) -> Result<(), Failure> {
        let (all, file) = match kept {
            Kept::OnStorage => (self.memory, String::new()),
            Kept::InMemory => (
                self.memory.saturating_add(self.file),
                format!(", {} of them for its file", mebibytes(self.file)),
            ),
        };
        match free {
            Some(free) if all > free => Err(Failure::Arguments(format!(
                "the job takes {} MiB of memory{file}, and the machine has {} MiB free: choose a \
                 smaller --scale or smaller sizes",
                mebibytes(all),
                free >> 20,
            ))),
            _ => Ok(()),
        }
    }
}

/// Space that a file takes, about: up to its end, or the pages that the pieces touch, a page more
/// than their bytes each, if those are fewer.
fn file_space(steps: &[&[Step]]) -> u64 {
    let calls = steps.first().map_or(0, |steps| steps.len());
    let (mut end, mut touched) = (0, 0_u64);
    let calls = (0..calls).filter_map(|call| accesses(steps, call));
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
    use super::super::buffer::Buffer;
    use super::*;
    use crate::workload::{Parameters, Setting, by_name};

    const RANKS: u32 = 2;

    fn need(workload: &str, parameters: &str) -> Need {
        let workload = by_name(workload).unwrap();
        let setting = Setting {
            ranks: RANKS,
            scale: 1.0,
            parameters: Parameters::parse(parameters, workload.parameters()).unwrap(),
        };
        let job = workload.job(&setting).unwrap();
        let memories = (0..RANKS).map(|rank| Memory::new(&*job, rank, 0).unwrap());
        let world = World::new(Kind::Threads, RANKS, RANKS).unwrap();
        Need::new(&memories.collect::<Vec<_>>(), &world)
    }

    #[test]
    fn dense_files_take_their_bytes() {
        let need = need("ior", "segment=1M");
        assert_eq!(need.file, 16 << 20);
        let buffers = 16 * Buffer::footprint(1 << 20);
        assert!(need.memory >= buffers + PART.min(need.file));
    }

    #[test]
    fn holes_smaller_than_a_page_take_space_and_others_do_not() {
        let near = need("hpio", "region=256,spacing=256,count=1000");
        assert_eq!(near.file, 2 * 1000 * 512 - 256);
        let far = need("hpio", "region=256,spacing=1M,count=1000");
        assert_eq!(far.file, 2 * 1000 * (256 + 4096));
    }

    #[test]
    fn too_little_is_refused_with_both_numbers() {
        let need = Need {
            memory: 3 << 20,
            file: (2 << 20) - 1,
        };
        let said = |checked: Result<(), Failure>| checked.unwrap_err().to_string();
        let folder = Path::new("/data");
        assert!(need.check_space(None, folder).is_ok());
        assert!(need.check_space(Some(2 << 20), folder).is_ok());
        assert_eq!(
            said(need.check_space(Some(1 << 20), folder)),
            "the job's file takes 2 MiB, and /data has 1 MiB free: choose a smaller --scale, \
             smaller sizes or another --dir"
        );
        assert!(need.check_memory(None, Kept::InMemory).is_ok());
        assert!(need.check_memory(Some(3 << 20), Kept::OnStorage).is_ok());
        assert!(need.check_memory(Some(5 << 20), Kept::InMemory).is_ok());
        assert_eq!(
            said(need.check_memory(Some(1 << 20), Kept::OnStorage)),
            "the job takes 3 MiB of memory, and the machine has 1 MiB free: choose a smaller \
             --scale or smaller sizes"
        );
        assert_eq!(
            said(need.check_memory(Some(4 << 20), Kept::InMemory)),
            "the job takes 5 MiB of memory, 2 of them for its file, and the machine has 4 MiB \
             free: choose a smaller --scale or smaller sizes"
        );
    }

    #[test]
    fn the_machine_tells_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let little = Need { memory: 1, file: 1 };
        little.check(folder.path(), Kept::InMemory).unwrap();
        let much = Need {
            memory: u64::MAX,
            ..little
        };
        assert!(much.check(folder.path(), Kept::InMemory).is_err());
    }
}
