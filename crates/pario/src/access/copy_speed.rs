//! Which copy between a file and aliasing memory is faster on this machine.
//!
//! How much aliasing ([`page_aliasing`](super::page_aliasing)) costs depends on the processor and
//! on the kernel's copy, so it is measured, once per process: reads from a file in memory to an
//! address 16 bytes past a page boundary, and the same through a buffer that does not alias.

use std::{
    fmt,
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::OnceLock,
    time::{Duration, Instant},
};

use pario_hints::{Hints, StagedCopies};
use rustix::fs::{MemfdFlags, memfd_create};

use super::page_aliasing::PAGE_BYTES;

/// The data of one copy: what is staged at once.
const COPY_BYTES: usize = 64 << 10;
/// The shortest of so many counts. All of them together take some 200 us.
const REPEATS: usize = 5;
/// Where large blocks of `malloc` start in a page.
const MALLOC_PHASE: usize = 16;
/// Where staging buffers start.
const STAGE_PHASE: usize = PAGE_BYTES / 4;
/// A second copy must save at least this share of the time: it also takes space in the cache.
const GAIN_PERCENT_MIN: u32 = 10;

/// How long each copy takes.
#[derive(Clone, Copy, Debug)]
pub struct CopySpeed {
    direct: Duration,
    staged: Duration,
}

impl CopySpeed {
    /// The measurement of this process, made when it is first asked for; `None` if it was not
    /// possible.
    pub fn of_machine() -> Option<CopySpeed> {
        static MEASURED: OnceLock<Option<CopySpeed>> = OnceLock::new();
        *MEASURED.get_or_init(|| measure().ok())
    }

    /// Whether copying through a buffer is faster.
    pub fn is_staged_faster(&self) -> bool {
        self.staged * 100 < self.direct * (100 - GAIN_PERCENT_MIN)
    }
}

impl fmt::Display for CopySpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        write!(
            f,
            "64 KiB take {:.1} us directly, {:.1} us through a buffer",
            micros(self.direct),
            micros(self.staged)
        )
    }
}

/// Whether data that aliases is copied through a buffer.
pub(super) fn stages_aliases(hints: &Hints) -> bool {
    match hints.pario_staged_copies {
        StagedCopies::Enable => true,
        StagedCopies::Disable => false,
        StagedCopies::Automatic => {
            CopySpeed::of_machine().is_some_and(|speed| speed.is_staged_faster())
        }
    }
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

fn measure() -> io::Result<CopySpeed> {
    let file = File::from(memfd_create("pario-copy", MemfdFlags::CLOEXEC)?);
    let (mut target, mut stage) = (Phased::new(MALLOC_PHASE), Phased::new(STAGE_PHASE));
    file.write_all_at(target.bytes(), 0)?;
    let (mut direct, mut staged) = (Duration::MAX, Duration::MAX);
    for _ in 0..REPEATS {
        let start = Instant::now();
        file.read_exact_at(target.bytes(), 0)?;
        direct = direct.min(start.elapsed());
        let start = Instant::now();
        file.read_exact_at(stage.bytes(), 0)?;
        target.bytes().copy_from_slice(stage.bytes());
        staged = staged.min(start.elapsed());
    }
    Ok(CopySpeed { direct, staged })
}

#[cfg(test)]
mod tests {
    use pario_hints::Info;

    use super::*;

    #[test]
    fn a_second_copy_must_pay() {
        let speed = |direct, staged| CopySpeed {
            direct: Duration::from_nanos(direct),
            staged: Duration::from_nanos(staged),
        };
        assert!(speed(20_000, 12_000).is_staged_faster());
        assert!(!speed(20_000, 19_000).is_staged_faster());
        assert!(!speed(12_000, 20_000).is_staged_faster());
        let text = speed(20_000, 12_340).to_string();
        assert_eq!(
            text,
            "64 KiB take 20.0 us directly, 12.3 us through a buffer"
        );
    }

    #[test]
    fn the_measurement_is_made_once_and_a_hint_overrides_it() {
        let first = CopySpeed::of_machine().expect("a file in memory");
        let second = CopySpeed::of_machine().expect("a file in memory");
        assert_eq!((first.direct, first.staged), (second.direct, second.staged));
        let expected = [
            ("automatic", first.is_staged_faster()),
            ("enable", true),
            ("disable", false),
        ];
        for (value, stages) in expected {
            let mut hints = Hints::default();
            hints.update(&Info::from_pairs([("pario_staged_copies", value)]).unwrap());
            assert_eq!(stages_aliases(&hints), stages, "{value}");
        }
    }
}
