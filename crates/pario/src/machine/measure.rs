//! The measurements: calls and copies of a file in memory.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    time::Duration,
};

use pario_driver::time;
use rustix::fs::{MemfdFlags, memfd_create};

use super::{AliasedCopies, COPY_BYTES, MachineProfile};

const PAGE_BYTES: usize = 4096;
/// Where large blocks of `malloc` start in a page: a copy from the start of a page of the file
/// to there is subject to aliasing.
const MALLOC_PHASE: usize = 16;
/// Where staging buffers start.
const STAGE_PHASE: usize = PAGE_BYTES / 4;

/// The shortest of so many measurements counts: other processes only ever lengthen one.
const REPEATS: usize = 4;
/// Calls per measurement, each to another page, and the bytes of each.
const CALLS: u32 = 16;
const CALL_BYTES: usize = 8;

/// Measures what plans depend on, which takes about 100 us.
pub(super) fn profile() -> io::Result<MachineProfile> {
    let mut memory = Phased::new(STAGE_PHASE);
    let file = file_with(memory.bytes())?;
    let [mut calls, mut copy] = [Duration::MAX; 2];
    for _ in 0..REPEATS {
        let small = &mut memory.bytes()[..CALL_BYTES];
        calls = calls.min(time(|| {
            let mut pages = (0..COPY_BYTES as u64).step_by(PAGE_BYTES).cycle();
            let mut page = || pages.next().expect("a cycle does not end");
            (0..CALLS).try_for_each(|_| file.read_exact_at(small, page()))
        })?);
        copy = copy.min(time(|| file.read_exact_at(memory.bytes(), 0))?);
    }
    let call = calls / CALLS;
    Ok(MachineProfile {
        call_ns: nanos(call),
        copy_ns: nanos(copy.saturating_sub(call)),
        cache_bytes: cache_bytes().unwrap_or(0),
    })
}

/// Measures copies to memory that aliases the pages of a file.
pub(super) fn aliased_copies() -> io::Result<AliasedCopies> {
    let (mut target, mut stage) = (Phased::new(MALLOC_PHASE), Phased::new(STAGE_PHASE));
    let file = file_with(target.bytes())?;
    let [mut aliased, mut staged] = [Duration::MAX; 2];
    for _ in 0..REPEATS {
        aliased = aliased.min(time(|| file.read_exact_at(target.bytes(), 0))?);
        staged = staged.min(time(|| {
            file.read_exact_at(stage.bytes(), 0)?;
            target.bytes().copy_from_slice(stage.bytes());
            Ok(())
        })?);
    }
    Ok(AliasedCopies {
        aliased_ns: nanos(aliased),
        staged_ns: nanos(staged),
    })
}

/// A file in memory with this data.
fn file_with(data: &[u8]) -> io::Result<File> {
    let file = File::from(memfd_create("pario-machine", MemfdFlags::CLOEXEC)?);
    file.write_all_at(data, 0)?;
    Ok(file)
}

/// At least 1: 0 means that nothing was measured.
fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX).max(1)
}

/// The size of the level 2 cache, as the kernel reports it.
fn cache_bytes() -> Option<u32> {
    let read = |index: u32, name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
        fs::read_to_string(path).ok()
    };
    // Usually number 2, after those of level 1 for data and for instructions.
    let index = [2, 1, 3, 0]
        .into_iter()
        .find(|index| read(*index, "level").is_some_and(|it| it.trim() == "2"))?;
    parse_kibibytes(&read(index, "size")?)
}

fn parse_kibibytes(text: &str) -> Option<u32> {
    let kibibytes: u32 = text.trim().strip_suffix('K')?.parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// Memory for one copy that starts so many bytes past a page boundary.
struct Phased {
    memory: Vec<u8>,
    start: usize,
}

impl Phased {
    fn new(phase: usize) -> Phased {
        let memory = vec![1; COPY_BYTES + 2 * PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES) + phase;
        Phased { memory, start }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + COPY_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_kibibytes() {
        assert_eq!(parse_kibibytes("512K\n"), Some(512 << 10));
        for odd in ["", "512", "K", "-1K", "99999999K"] {
            assert_eq!(parse_kibibytes(odd), None, "{odd}");
        }
    }

    #[test]
    fn everything_is_measured() {
        let profile = profile().unwrap();
        assert!(profile.call_ns > 1);
        // Without the call, which may have been disturbed in all measurements.
        assert!(profile.copy_ns >= 1);
    }
}
