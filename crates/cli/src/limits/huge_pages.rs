//! Huge pages: the kernel's settings and counts.

use std::fs;
use std::io;

/// The kernel's settings for huge pages.
const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Counts of a mapping's memory in huge pages, in kB; which one is used depends on the file system.
const COUNTS: [&str; 3] = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"];

/// Bytes of mapped memory that are in huge pages.
pub(super) fn of(memory: &[u8]) -> io::Result<u64> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    Ok(counted(&maps, memory.as_ptr().addr()))
}

/// The kernel's settings for huge pages, in its own words.
pub(super) fn setting() -> Option<String> {
    let chosen = |name: &str| {
        let text = fs::read_to_string(format!("{SETTINGS}/{name}")).ok()?;
        Some(selected(&text)?.to_owned())
    };
    Some(format!(
        "{} for memory, {} for tmpfs",
        chosen("enabled")?,
        chosen("shmem_enabled")?
    ))
}

/// The word in brackets.
fn selected(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

/// Sums the counts of the mapping that starts at an address.
fn counted(maps: &str, address: usize) -> u64 {
    let start = format!("{address:x}-");
    let lines = maps.lines().skip_while(|line| !line.starts_with(&start));
    // Every mapping begins with its addresses; other lines begin with a word and a colon.
    let fields = lines
        .skip(1)
        .map_while(|line| line.split_once(':').filter(|(name, _)| !name.contains(' ')));
    fields
        .filter(|(name, _)| COUNTS.contains(name))
        .filter_map(|(_, value)| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .sum::<u64>()
        * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f0000000000-7f0000400000 rw-s 00000000 00:19 5 /shm/one
Size:               4096 kB
AnonHugePages:         0 kB
ShmemPmdMapped:     2048 kB
FilePmdMapped:         0 kB
VmFlags: rd wr sh
7f0000400000-7f0000800000 rw-s 00000000 00:19 6 /shm/two
Size:               4096 kB
ShmemPmdMapped:     4096 kB
";

    #[test]
    fn counts_are_those_of_one_mapping() {
        assert_eq!(counted(MAPS, 0x7f00_0000_0000), 2 << 20);
        assert_eq!(counted(MAPS, 0x7f00_0040_0000), 4 << 20);
        assert_eq!(counted(MAPS, 0x1000), 0);
    }

    #[test]
    fn the_word_in_brackets_is_the_setting() {
        assert_eq!(selected("always [madvise] never\n"), Some("madvise"));
        assert_eq!(selected("odd"), None);
    }
}
