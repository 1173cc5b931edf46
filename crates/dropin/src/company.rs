//! Ranks that run without pario: started without the library, or with `PARIO_DISABLE=1`.
//!
//! They would wait in the host's `MPI_File_open` for the others, which wait in pario's. They
//! cannot be asked, but those on this node can be detected. Ranks with pario announce themselves
//! in `MPI_Init` ([`Job::announce`]); if all have, no more is needed. Otherwise `/proc` shows which
//! processes of the job have loaded the MPI's library and not this one. Where this library was
//! loaded at the program's start, that does not change once `MPI_Init` has returned, so every
//! rank finds the same, and ranks on one node come to the same decision without a message.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::thread;
use std::time::Duration;

use engine::internal::{Environment, Job, Process};
use pario_mpi::host::symbols;
use pario_mpi::{Comm, Host};

use crate::failure::Failure;
use crate::policy;

/// More ranks than this are not named in a warning.
const NAMED_MAX: usize = 8;

/// How often to look for ranks that were not found, or not with the library: the kernel may omit a
/// process while another one exits, and a mapping while its neighbours change.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(2);

/// Whether a rank has loaded pario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Equipment {
    Pario,
    HostOnly,
}

/// What is known about the ranks of the world on this node.
type Known = BTreeMap<u32, Equipment>;

/// Whether this library was there when the program started the MPI.
static AT_START: AtomicBool = AtomicBool::new(false);

/// Called when the program has started the MPI.
pub(crate) fn note_start() {
    AT_START.store(true, Ordering::Relaxed);
}

/// Announces this rank to the others of its node.
pub(crate) fn announce() {
    if let Some(job) = Job::current() {
        job.announce();
    }
}

/// Whether the host must open a file of these ranks because some of them run without pario and
/// all others know it. Warns if some do.
pub(crate) fn needs_host(host: &Host, comm: Comm) -> Result<bool, Failure> {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    static ALL_ANNOUNCED: OnceLock<bool> = OnceLock::new();
    if !AT_START.load(Ordering::Relaxed) {
        // An interpreter has loaded the library; other ranks may be about to do so.
        return Ok(false);
    }
    let known = match KNOWN.get() {
        Some(known) => known,
        None if !host.has_world() || host.comm_size(comm)? == 1 => return Ok(false),
        None if *ALL_ANNOUNCED.get_or_init(|| are_all_announced(host) == Some(true)) => {
            return Ok(false);
        }
        None => KNOWN.get_or_init(|| look(host).unwrap_or_default()),
    };
    if known.values().all(|it| *it == Equipment::Pario) {
        return Ok(false);
    }
    let members = world_ranks(host, comm)?;
    let of = |member: &Option<u32>| member.and_then(|rank| known.get(&rank));
    let without: Vec<u32> = members
        .iter()
        .filter(|member| of(member) == Some(&Equipment::HostOnly))
        .filter_map(|member| *member)
        .collect();
    if without.is_empty() {
        return Ok(false);
    }
    let all_are_known = members.iter().all(|member| of(member).is_some());
    engine::internal::warn_of("company", &warning(&without, all_are_known));
    Ok(all_are_known)
}

fn warning(without: &[u32], all_are_known: bool) -> String {
    let named: Vec<_> = without.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = match without.len() > NAMED_MAX {
        true => " and others",
        false => "",
    };
    let consequence = match all_are_known {
        true => "the files of these ranks are left to the MPI's own MPI-IO",
        false => "opening a file together with them hangs if ranks of several nodes take part",
    };
    format!(
        "some ranks of MPI_COMM_WORLD run without libpario.so or with PARIO_DISABLE=1 ({}{more}): \
         {consequence}. Give all ranks the library, or none",
        named.join(", ")
    )
}

/// The ranks of a communicator in the world.
fn world_ranks(host: &Host, comm: Comm) -> Result<Vec<Option<u32>>, Failure> {
    let group = host.comm_group(comm)?;
    let world = host.comm_group(host.predefined().comm_world)?;
    let ranks: Vec<usize> = (0..host.comm_size(comm)?).collect();
    let found = host.group_translate_ranks(group, &ranks, world);
    host.group_free(world)?;
    host.group_free(group)?;
    let ranks = found?.into_iter();
    Ok(ranks
        .map(|rank| rank.and_then(|rank| u32::try_from(rank).ok()))
        .collect())
}

/// Whether all ranks of the world are on this node and have announced themselves.
fn are_all_announced(host: &Host) -> Option<bool> {
    let job = Job::current()?;
    let world = host.predefined().comm_world;
    let rank = u32::try_from(host.comm_rank(world).ok()?).ok()?;
    let size = u32::try_from(host.comm_size(world).ok()?).ok()?;
    let is_known = job.is_on_one_node() && job.rank() == rank;
    Some(is_known && job.are_announced((0..size).filter(|other| *other != rank)))
}

/// Examines the ranks on this node. `None` if it cannot be determined which processes they are.
fn look(host: &Host) -> Option<Known> {
    let job = Job::current()?;
    let world = host.predefined().comm_world;
    if u32::try_from(host.comm_rank(world).ok()?) != Ok(job.rank()) {
        return None;
    }
    let expected = match job.is_on_one_node() {
        true => host.comm_size(world).ok()?,
        false => 0,
    };
    let mut known = look_once(host, job)?;
    for _ in 1..LOOKS {
        let is_complete = known.len() >= expected;
        if is_complete && known.values().all(|it| *it == Equipment::Pario) {
            break;
        }
        thread::sleep(PAUSE);
        merge(&mut known, look_once(host, job)?);
    }
    Some(known)
}

/// Adds what another look has found. A mapping may be missing in a look, but none is seen that
/// is not there.
fn merge(known: &mut Known, found: Known) {
    for (rank, equipment) in found {
        let entry = known.entry(rank).or_insert(equipment);
        if equipment == Equipment::Pario {
            *entry = Equipment::Pario;
        }
    }
}

fn look_once(host: &Host, job: &Job) -> Option<Known> {
    let library = std::fs::canonicalize(host.path()).ok()?;
    let mut found: BTreeMap<u32, Vec<(Process, Equipment)>> = BTreeMap::new();
    for (rank, process, environment) in job.processes().ok()? {
        if let Some(equipment) = equipment(&process, &environment, &library) {
            found.entry(rank).or_default().push((process, equipment));
        }
    }
    let ranks = found.into_iter();
    Some(
        ranks
            .filter_map(|(rank, all)| Some((rank, of_rank(&all)?)))
            .collect(),
    )
}

/// The state of a rank. Its process may have started others, whose ancestor it is; if several
/// remain, it is unknown which one is the rank.
fn of_rank(found: &[(Process, Equipment)]) -> Option<Equipment> {
    let is_found = |process| found.iter().any(|(other, _)| Some(*other) == process);
    let mut first = found
        .iter()
        .filter(|(process, _)| !is_found(process.parent()));
    match (first.next(), first.next()) {
        (Some((_, equipment)), None) => Some(*equipment),
        _ => None,
    }
}

/// The state of a process, if it has loaded the MPI at all.
fn equipment(process: &Process, environment: &Environment, library: &Path) -> Option<Equipment> {
    let files = process.mapped_files().ok()?;
    if !files.iter().any(|file| file == library) {
        return None;
    }
    let disabled = environment.get(policy::DISABLE);
    let is_active = disabled.is_none_or(|value| !policy::disables_all(&value));
    Some(match is_active && files.iter().any(|file| is_pario(file)) {
        true => Equipment::Pario,
        false => Equipment::HostOnly,
    })
}

/// The library may be installed under another name, and ranks may have different copies of it.
fn is_pario(file: &Path) -> bool {
    static OWN: LazyLock<Option<PathBuf>> = LazyLock::new(symbols::own_file);
    let name = file.file_name().and_then(|name| name.to_str());
    OWN.as_deref() == Some(file) || name.is_some_and(|name| name.starts_with("libpario.so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_name_ranks_and_what_follows() {
        let text = warning(&[1, 3], true);
        assert!(
            text.contains("(1, 3): the files of these ranks are left"),
            "{text}"
        );
        let many: Vec<u32> = (0..20).collect();
        let text = warning(&many, false);
        assert!(text.contains("6, 7 and others): opening"), "{text}");
    }

    #[test]
    fn a_library_seen_once_is_there() {
        let mut known = Known::from([(0, Equipment::HostOnly), (1, Equipment::Pario)]);
        merge(
            &mut known,
            Known::from([(0, Equipment::Pario), (1, Equipment::HostOnly)]),
        );
        merge(&mut known, Known::from([(2, Equipment::HostOnly)]));
        let expected = [
            (0, Equipment::Pario),
            (1, Equipment::Pario),
            (2, Equipment::HostOnly),
        ];
        assert_eq!(known, Known::from(expected));
    }

    #[test]
    fn the_library_is_known_by_its_name_or_its_file() {
        for (path, expected) in [
            ("/opt/pario/lib/libpario.so", true),
            ("/opt/pario/lib/libpario.so.1 (deleted)", true),
            ("/usr/lib/libmpi.so", false),
        ] {
            assert_eq!(is_pario(Path::new(path)), expected, "{path}");
        }
        assert!(is_pario(&symbols::own_file().unwrap()));
    }
}
