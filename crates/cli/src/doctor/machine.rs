//! Limits, io_uring, shared memory, processors.

use std::path::Path;

use pario::internal::CopySpeed;
use pario_driver::{Access, Create, Driver, OpenHow, Uring};
use rustix::process::{Resource, getrlimit};

use super::report::Finding;

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
        copies(),
        shared_memory(),
        communicators(),
    ]
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

/// Which copies are used for memory that aliases the pages of files.
fn copies() -> Finding {
    const NAME: &str = "unaligned memory";
    match CopySpeed::of_machine() {
        None => Finding::good(NAME, "copied directly: measuring it needs a memfd"),
        Some(speed) => {
            let how = match speed.is_staged_faster() {
                true => "copied through a buffer",
                false => "copied directly",
            };
            Finding::good(NAME, format!("{how}: {speed}"))
        }
    }
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
            "22 MiB with 128, 27 MiB with 256, 110 MiB with 1024",
        ] {
            assert!(found.contains(subject), "{subject}: {found}");
        }
        assert!(!found.contains("Missing"), "{found}");
    }
}
