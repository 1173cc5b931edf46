//! The amount of memory that may be requested.
//!
//! The file system behind an unnamed file has no limit: a request for more than
//! the machine has takes all of it, and the kernel starts to kill processes.
//! Hence the check before the request.

use std::fs;

/// A segment may take this fraction of the available memory: one half.
const SHARE: u64 = 2;

/// Segments up to this length are not worth the check.
const SMALL_BYTES: usize = 1 << 20;

/// Whether a segment of that many bytes leaves enough for everything else.
pub(super) fn suffices_for(bytes: usize) -> bool {
    if bytes <= SMALL_BYTES {
        return true;
    }
    let limits = groups().into_iter().chain([available_memory()]);
    let available = limits.flatten().min();
    available.is_none_or(|available| bytes as u64 <= available / SHARE)
}

/// The bytes of memory available on this machine without swapping; `None` if
/// the kernel does not report them. Limits of control groups are not considered.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// What control groups leave, version 2 and 1.
fn groups() -> [Option<u64>; 2] {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = |mark| text.lines().find_map(|line| Some(line.split_once(mark)?.1));
    let new = path("0::").and_then(|path| {
        let directory = format!("/sys/fs/cgroup{path}");
        difference(&directory, "memory.max", "memory.current")
    });
    let old = path(":memory:").and_then(|path| {
        let directory = format!("/sys/fs/cgroup/memory{path}");
        difference(&directory, "memory.limit_in_bytes", "memory.usage_in_bytes")
    });
    [new, old]
}

/// Limit minus usage; `None` if there is no limit.
fn difference(directory: &str, limit: &str, usage: &str) -> Option<u64> {
    let number = |name| {
        let text = fs::read_to_string(format!("{directory}/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(number(limit)?.saturating_sub(number(usage)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_available_but_not_everything() {
        assert!(available_memory().is_some_and(|available| available > 0));
        assert!(suffices_for(4096) && suffices_for(SMALL_BYTES + 1));
        for bytes in [usize::MAX, 1 << 60, 1 << 46] {
            assert!(!suffices_for(bytes), "{bytes} bytes");
        }
    }
}
