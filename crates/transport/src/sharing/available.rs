//! How much memory may be asked for.
//!
//! The file system behind a nameless file has no limit of its own: asked for
//! more than the machine has, it takes all there is, and the kernel starts to
//! kill processes. So the question comes first.

use std::fs;

/// The part of the free memory that a segment may take.
const SHARE: u64 = 2;

/// Segments up to this length are not worth the question.
const SMALL_BYTES: usize = 1 << 20;

/// Whether a segment of that many bytes leaves enough for everything else.
pub(super) fn suffices_for(bytes: usize) -> bool {
    if bytes <= SMALL_BYTES {
        return true;
    }
    let limits = groups().into_iter().chain([machine()]);
    let available = limits.flatten().min();
    available.is_none_or(|available| bytes as u64 <= available / SHARE)
}

/// What the kernel could give without swapping.
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// What the control group leaves, version 2 and 1.
fn groups() -> [Option<u64>; 2] {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = |mark| text.lines().find_map(|line| Some(line.split_once(mark)?.1));
    let new = path("0::").and_then(|path| {
        let folder = format!("/sys/fs/cgroup{path}");
        difference(&folder, "memory.max", "memory.current")
    });
    let old = path(":memory:").and_then(|path| {
        let folder = format!("/sys/fs/cgroup/memory{path}");
        difference(&folder, "memory.limit_in_bytes", "memory.usage_in_bytes")
    });
    [new, old]
}

/// Limit minus usage; `None` where there is no limit.
fn difference(folder: &str, limit: &str, usage: &str) -> Option<u64> {
    let number = |name| {
        let text = fs::read_to_string(format!("{folder}/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(number(limit)?.saturating_sub(number(usage)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_room_for_a_page_but_not_for_everything() {
        assert!(machine().is_some_and(|available| available > 0));
        assert!(suffices_for(4096) && suffices_for(SMALL_BYTES + 1));
        for bytes in [usize::MAX, 1 << 60, 1 << 46] {
            assert!(!suffices_for(bytes), "{bytes} bytes");
        }
    }
}
