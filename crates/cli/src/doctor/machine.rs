//! Limits, io_uring, shared memory, processors.

use std::{path::Path, time::Duration};

use pario::internal::{AliasedCopies, MachineProfile, stages_aliases};
use pario_driver::{Access, Create, Driver, OpenHow, Uring};
use pario_hints::{Hints, SievedAccess, Source, StagedCopies};
use pario_transport::Backoff;
use rustix::process::{Resource, getrlimit};

use super::report::Finding;
use crate::facts;

/// Fewer open files than this are soon exhausted by a program with many files and ranks.
const FILES_FEW: u64 = 1024;

/// Where named shared memory is.
const SHARED_MEMORY: &str = "/dev/shm";

/// Less free shared memory than this makes collective calls work with small windows.
const SHARED_MEMORY_LITTLE: u64 = 64 << 20;

/// Ranks per node whose shared memory is reported.
const RANKS_PER_NODE: [u32; 6] = [4, 16, 32, 128, 256, 1024];

pub(super) fn findings() -> Vec<Finding> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        Finding::good("processors", format!("{count} for this process")),
        open_files(),
        file_size(),
        locked_memory(),
        io_uring(),
        memfd(),
        shared_memory(),
        communicators(),
    ]
    .into_iter()
    .chain(profile())
    .collect()
}

fn words(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let found = format!(
        "{} (at most {})",
        words(limit.current),
        words(limit.maximum)
    );
    match limit.current {
        Some(few) if few < FILES_FEW => Finding::note("open files", found)
            .remark(format!("raise it: `ulimit -n {}`", words(limit.maximum))),
        _ => Finding::good("open files", found),
    }
}

fn file_size() -> Finding {
    match getrlimit(Resource::Fsize).current {
        None => Finding::good("file size", "unlimited"),
        Some(bytes) => Finding::note("file size", format!("at most {bytes} bytes"))
            .remark("writes beyond it fail with MPI_ERR_IO: `ulimit -f unlimited`"),
    }
}

/// Old kernels count the queues of io_uring as locked memory.
fn locked_memory() -> Finding {
    let limit = getrlimit(Resource::Memlock);
    Finding::good("locked memory", format!("{} bytes", words(limit.current)))
}

fn io_uring() -> Finding {
    let tried = || {
        let directory = tempfile::tempdir()?;
        let how = OpenHow::new(Access::ReadWrite).create(Create::Exclusive);
        Uring.open(&directory.path().join("probe"), &how)?.close()
    };
    match tried() {
        Ok(()) => Finding::good("io_uring", "available"),
        Err(error) => Finding::note("io_uring", format!("not available: {error}"))
            .remark("threads perform background transfers instead"),
    }
}

fn memfd() -> Finding {
    match rustix::fs::memfd_create("pario-doctor", rustix::fs::MemfdFlags::CLOEXEC) {
        Ok(_) => Finding::good(
            "memfd",
            "available: ranks of a node share memory through it",
        ),
        Err(error) => Finding::note("memfd", format!("not available: {error}"))
            .remark(format!("ranks of a node share memory in {SHARED_MEMORY}")),
    }
}

/// What was measured about pages.
fn page_costs() -> String {
    let micros = |time: Duration| format!("{:.2} us", time.as_nanos() as f64 / 1e3);
    pario_driver::page_costs().as_ref().map_or_else(
        |error| format!("not measured: {error}"),
        |costs| {
            let stored = micros(costs.stored);
            let (first, next) = (micros(costs.first_call), micros(costs.next_call));
            format!("preparing a new page takes {stored}, writing to one {first}, and {next} again")
        },
    )
}

fn sieve_extents(hints: &Hints) -> String {
    const NAME: &str = "pario_sieve_extent";
    let [reads, writes, storage, other] = [
        SievedAccess::MemoryRead,
        SievedAccess::MemoryWrite,
        SievedAccess::LocalStorage,
        SievedAccess::Other,
    ]
    .map(|access| hints.sieve_extent(access));
    match hints.pario_sieve_extent {
        Some(set) => {
            let source = facts::source(hints, NAME);
            format!("pieces and gaps are sieved up to {set} bytes ({NAME}, {source})")
        }
        None => format!(
            "pieces and gaps are sieved up to {storage} bytes on local file systems, {reads} in reads from tmpfs, \
             {writes} in writes to it, {other} elsewhere ({NAME}, from pario_call_bytes)"
        ),
    }
}

/// What depends on the processor: measured, unless hints in the environment set it.
fn profile() -> Vec<Finding> {
    let profile = MachineProfile::of_node();
    let mut hints = facts::hints(&[]).map_or_else(|_| Hints::default(), |(hints, _)| hints);
    profile.set(&mut hints);
    let source = |name: &str| facts::source(&hints, name);
    let of_machine = |name: &str, is_set: bool, is_measured: bool| match (is_set, is_measured) {
        (true, _) => source(name),
        (false, true) => "measured".to_owned(),
        (false, false) => "default".to_owned(),
    };
    let derived = |name: &str, from: &str| match hints.source(name) {
        None | Some(Source::Default) => from.to_owned(),
        Some(other) => other.to_string(),
    };
    let copies = AliasedCopies::of_process();
    let look = pario_transport::look_time();
    let looks = Backoff::DEFAULT.among(1).looks;
    vec![
        Finding::good(
            "calls and copies",
            format!(
                "a call counts as much as copying {} bytes (pario_call_bytes, {})",
                hints.call_bytes(),
                source("pario_call_bytes"),
            ),
        )
        .remark(profile.calls())
        .remark(sieve_extents(&hints)),
        Finding::good(
            "windows",
            format!(
                "of {} bytes for few ranks (pario_slice_bytes, {})",
                hints
                    .pario_slice_bytes
                    .unwrap_or_else(|| hints.cached_window_bytes()),
                derived(
                    "pario_slice_bytes",
                    "32 times pario_call_bytes, at most half of a core's cache"
                ),
            ),
        )
        .remark(match hints.pario_cache_bytes {
            Some(bytes) => format!(
                "each core has a cache of {bytes} bytes (pario_cache_bytes, {})",
                source("pario_cache_bytes")
            ),
            None => "the kernel does not report the size of a core's cache".to_owned(),
        }),
        Finding::good(
            "stores",
            format!("used instead of calls {}", facts::stored_pieces(&hints)),
        )
        .remark(page_costs()),
        Finding::good(
            "unaligned memory",
            format!(
                "copied {} (pario_staged_copies, {})",
                match stages_aliases(&hints) {
                    true => "through a buffer",
                    false => "directly",
                },
                of_machine(
                    "pario_staged_copies",
                    hints.pario_staged_copies != StagedCopies::Automatic,
                    copies != AliasedCopies::default()
                ),
            ),
        )
        .remark(copies.to_string()),
        Finding::good(
            "waiting",
            format!(
                "{} looks before a yield if every rank has a core (pario_wait_looks, {})",
                hints.pario_wait_looks.unwrap_or_else(|| looks.into()),
                of_machine("pario_wait_looks", hints.pario_wait_looks.is_some(), true),
            ),
        )
        .remark(format!("a look takes {} ns", look.as_nanos())),
    ]
}

fn shared_memory() -> Finding {
    let free = rustix::fs::statvfs(Path::new(SHARED_MEMORY));
    let megabytes = |bytes: u64| bytes / 1_000_000;
    match free {
        Err(error) => Finding::note(SHARED_MEMORY, format!("not available: {error}")),
        Ok(found) => {
            let bytes = found.f_bavail.saturating_mul(found.f_frsize);
            let whole = found.f_blocks.saturating_mul(found.f_frsize);
            let text = format!("{} MB free of {} MB", megabytes(bytes), megabytes(whole));
            match bytes < SHARED_MEMORY_LITTLE {
                true => Finding::note(SHARED_MEMORY, text)
                    .remark("many MPIs need more; containers take --shm-size"),
                false => Finding::good(SHARED_MEMORY, text),
            }
        }
    }
}

/// The shared memory of a communicator, which grows with the ranks of a node.
fn communicators() -> Finding {
    let sizes = RANKS_PER_NODE.map(|ranks| {
        let megabytes = pario_transport::shared_bytes(ranks) >> 20;
        format!("{megabytes} MiB with {ranks}")
    });
    let found = format!(
        "shared memory per node, by the ranks there: {}",
        sizes.join(", ")
    );
    Finding::good("communicators", found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_examined() {
        let found = format!("{:?}", findings());
        for subject in [
            "processors",
            "open files",
            "io_uring",
            "memfd",
            SHARED_MEMORY,
            "communicators",
            "calls and copies",
            "pario_call_bytes, measured",
            "pario_stored_pieces, measured",
            "unaligned memory",
            "pario_wait_looks, measured",
            "22 MiB with 128, 27 MiB with 256, 110 MiB with 1024",
        ] {
            assert!(found.contains(subject), "{subject}: {found}");
        }
        assert!(!found.contains("Missing"), "{found}");
    }
}
