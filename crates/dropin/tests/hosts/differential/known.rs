//! Differences that are known: what, where, and why. Nothing else may differ.
//!
//! `docs/differential.md` lists them for users.

use std::fs;
use std::path::Path;

use super::case::{Direction, Family, How, Scope, Step, Whence};
use super::compare::Aspect;
use super::execute::Server;
use super::seen::{Seen, has_empty_part, has_odd_memory, is_decreasing, is_displaced};
use crate::host::Host;
use crate::run::TestResult;

/// One known difference from what the standard says.
pub(super) struct Known {
    /// Under whom it is seen.
    servers: &'static [Server],
    /// The beginnings of the names of hosts that have it; empty for all.
    hosts: &'static [&'static str],
    pub(super) reason: &'static str,
    matches: fn(&Seen<'_>) -> bool,
}

const HOST: &[Server] = &[Server::Host];
const BOTH: &[Server] = &[Server::Host, Server::Pario];

const ROMIO: &[&str] = &["mpich", "impi"];
const OMPIO: &[&str] = &["openmpi"];

const KNOWN: &[Known] = &[
    Known {
        servers: HOST,
        hosts: &[],
        reason: "the host's MPI-IO crashes or does not return",
        matches: |seen| matches!(seen.aspect(), Aspect::Hang | Aspect::Crash),
    },
    Known {
        servers: HOST,
        hosts: &[],
        reason: "reads past the end of the file change memory or count what was not read",
        matches: |seen| {
            matches!(seen.aspect(), Aspect::Data | Aspect::Count)
                && seen.is_short(seen.difference.step)
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "after a read past the end of the file, pointers stand at the end",
        matches: |seen| {
            seen.aspect() == Aspect::Pointer
                && (1..=seen.difference.step).any(|step| seen.is_short(step))
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "memory whose data are one run that does not begin at the buffer's address is taken \
                 to begin there",
        matches: |seen| {
            seen.aspect() == Aspect::Data && seen.accesses().iter().any(|it| is_displaced(it))
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "types with a lower bound other than 0 in them, and distributed arrays, are flattened \
                 wrongly, in memory and in views",
        matches: |seen| {
            seen.aspect() == Aspect::Data
                && (seen.accesses().iter().any(|it| has_odd_memory(it)) || seen.has_odd_view())
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "nonblocking collective calls move the individual pointer when they complete",
        matches: |seen| {
            seen.aspect() == Aspect::Pointer
                && seen
                    .accesses()
                    .iter()
                    .any(|it| (it.how, it.scope) == (How::Nonblocking, Scope::Collective))
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "writes through a view with holes put arbitrary bytes into holes past the end of the \
                 file (the standard leaves such bytes open)",
        matches: |seen| {
            seen.aspect() == Aspect::Data
                && seen.has_view_with_holes()
                && seen
                    .accesses()
                    .iter()
                    .any(|it| it.direction == Direction::Write)
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "where MPI_MODE_EXCL finds a file, ranks other than the first are told class OTHER",
        matches: |seen| seen.key() == "open" && seen.found() == "OTHER" && seen.is_exclusive(),
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "a cb_config_list that names no host of the job makes the open fail",
        matches: |seen| {
            seen.key() == "open"
                && seen
                    .open()
                    .hints
                    .iter()
                    .any(|(key, value)| key == "cb_config_list" && !value.starts_with('*'))
        },
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "preallocate on a file for reading is class IO on rank 0 and success elsewhere",
        matches: |seen| seen.key() == "class" && matches!(seen.step(), Some(Step::Preallocate(_))),
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "set_view rejects some nested filetypes that are valid",
        matches: |seen| {
            seen.key() == "class"
                && seen.found() == "IO"
                && matches!(seen.step(), Some(Step::View(..)))
        },
    },
    Known {
        servers: HOST,
        hosts: &["impi"],
        reason: "MPI_File_get_byte_offset gives -1 in views whose types have empty blocks",
        matches: |seen| seen.key() == "byte_offset" && seen.found() == "-1",
    },
    Known {
        servers: HOST,
        hosts: &["impi"],
        reason: "accesses with memory types whose displacements decrease or whose lower bound is not 0 \
                 fail with class IO",
        matches: |seen| {
            seen.key() == "class"
                && seen.found() == "IO"
                && seen
                    .accesses()
                    .iter()
                    .any(|it| has_odd_memory(it) || is_decreasing(it))
        },
    },
    Known {
        servers: HOST,
        hosts: &[],
        reason: "sync on a file for reading fails",
        matches: |seen| seen.key() == "class" && matches!(seen.step(), Some(Step::Sync)),
    },
    Known {
        servers: HOST,
        hosts: ROMIO,
        reason: "reads of files for writing and writes of files for reading succeed where nothing is \
                 moved, or by ordered calls",
        matches: |seen| {
            seen.key() == "class"
                && seen.found() == "success"
                && seen.accesses().iter().any(|it| {
                    it.family == Family::Shared || it.parts.iter().any(|part| part.count == 0)
                })
        },
    },
    Known {
        servers: BOTH,
        hosts: &["mpich", "impi"],
        reason: "MPI_Get_elements, a function of the host in any case, is wrong for structs with \
                 empty parts",
        matches: |seen| {
            seen.key() == "elements" && seen.accesses().iter().any(|it| has_empty_part(it))
        },
    },
    Known {
        servers: HOST,
        hosts: OMPIO,
        reason: "preallocate writes over data, and succeeds on files for reading",
        matches: |seen| matches!(seen.step(), Some(Step::Preallocate(_))),
    },
    Known {
        servers: HOST,
        hosts: OMPIO,
        reason: "explicit offsets are accepted where they are negative, and in sequential files",
        matches: |seen| {
            let accesses = seen.accesses();
            seen.key() == "class"
                && seen.found() == "success"
                && accesses.iter().any(|it| it.family != Family::Shared)
                && (seen.is_sequential()
                    || accesses
                        .iter()
                        .any(|it| it.parts.iter().all(|part| part.offset < 0)))
        },
    },
    Known {
        servers: HOST,
        hosts: OMPIO,
        reason: "collective writes of three or more ranks through views with holes leave wrong bytes \
                 in the file",
        matches: |seen| {
            seen.key() == "contents"
                && seen.case.ranks >= 3
                && seen.has_view_with_holes()
                && seen
                    .accesses()
                    .iter()
                    .any(|it| (it.direction, it.scope) == (Direction::Write, Scope::Collective))
        },
    },
    Known {
        servers: HOST,
        hosts: OMPIO,
        reason: "the end of the file through a view with holes is wrong",
        matches: |seen| {
            seen.aspect() == Aspect::Pointer
                && match seen.step() {
                    Some(Step::Seek(seeks)) => seeks.iter().any(|(_, from)| *from == Whence::End),
                    Some(Step::SeekShared(_, from)) => *from == Whence::End,
                    _ => false,
                }
        },
    },
    Known {
        servers: HOST,
        hosts: OMPIO,
        reason: "seeks before the start of the view and set_size on files for reading fail with \
                 class OTHER",
        matches: |seen| {
            let is_rejected = matches!(
                seen.step(),
                Some(Step::Seek(_) | Step::SeekShared(..) | Step::SetSize(_))
            );
            seen.key() == "class" && is_rejected && seen.found() == "OTHER"
        },
    },
];

/// Fails unless the page about the fuzzer gives every reason.
pub(super) fn are_documented() -> TestResult {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/differential.md");
    let text = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&text);
    let missing: Vec<&str> = KNOWN
        .iter()
        .map(|known| known.reason)
        .filter(|reason| !text.contains(&words(reason)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join("\n");
    Err(format!("docs/differential.md does not say:\n{missing}"))
}

/// The entry that a difference falls under.
pub(super) fn known(server: Server, host: &Host, seen: &Seen<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| {
        let mut hosts = known.hosts.iter();
        known.servers.contains(&server)
            && (known.hosts.is_empty() || hosts.any(|prefix| host.name.starts_with(prefix)))
            && (known.matches)(seen)
    })
}
