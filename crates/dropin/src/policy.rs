//! Which MPI-IO handles a file: pario's or the host's own.
//!
//! The user decides (`PARIO_DISABLE`, the hint `pario_disable`), and pario leaves files to the
//! host that it could not handle safely: those that the ranks see through several page caches
//! that are not known to be coherent (other than those of NFS, which its driver bypasses), those of
//! programs that may pass memory of a graphics processor, and those of ranks of which some run
//! without pario ([`company`]).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use engine::Info;
use pario_driver::{MountView, Sharing, mount_of, mount_of_directory};
use pario_hints::{Hints, Sources};
use pario_mpi::host::symbols;
use pario_mpi::{Comm, Host, MpiTransport};
use pario_transport::{Rank, Transport};

use crate::failure::Failure;
use crate::{company, notice, pattern};

/// `1` leaves every file to the host; any other value is a list of path
/// patterns, separated by colons, of the files to leave.
pub(crate) const DISABLE: &str = "PARIO_DISABLE";

/// The hint that leaves one file to the host.
const DISABLE_HINT: &str = "pario_disable";

const ROOT: Rank = Rank(0);

/// Why the host handles a file. The highest of the ranks' reasons applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Reason {
    /// pario handles the file.
    None = 0,
    /// The file system is not known to be coherent; the ranks have to find out whether they see
    /// it through one cache.
    Doubtful = 2,
    /// The user requests it, also by a name with the prefix of one of the host's drivers.
    Wish = 4,
    /// The program has loaded a library for graphics processors.
    Device = 6,
}

/// A flag that rank 0 adds to its reason if the name leads to another mount than its directory. If no rank
/// has a reason, the greatest sum is this flag or zero; otherwise [`examine`] sends it.
const ELSEWHERE: u64 = 1;

impl Reason {
    const ALL: [Reason; 4] = [Reason::None, Reason::Doubtful, Reason::Wish, Reason::Device];

    /// The warning to the user, if any.
    fn warning(self, path: &Path) -> Option<String> {
        let path = path.display();
        match self {
            Reason::None | Reason::Doubtful | Reason::Wish => None,
            Reason::Device => Some(format!(
                "this program uses a graphics processor, whose memory pario cannot access: \
                 {path} and other files are left to the MPI's own MPI-IO (PARIO_DEVICE_MEMORY=never \
                 states that no such memory is passed to file functions)"
            )),
        }
    }
}

/// The host, if pario does anything in this process.
pub(crate) fn host_for_pario() -> Option<&'static Host> {
    if disabled().is_some_and(disables_all) {
        return None;
    }
    match Host::current() {
        Ok(host) => Some(host),
        Err(error) => {
            notice::warn_locally(&format!("pario does nothing here: {error}"));
            None
        }
    }
}

/// Whether a value of the variable leaves every file to the host.
pub(crate) fn disables_all(value: &str) -> bool {
    value.trim() == "1"
}

/// File systems that ROMIO accesses by a library of theirs, which pario has no driver for. As a prefix of
/// a name, they request ROMIO's driver.
const HOST_PREFIXES: [&str; 3] = ["daos", "ime", "quobyte"];

/// Whether a name requests a driver that only the host can have.
fn names_host_driver(path: &Path) -> bool {
    let name = path.as_os_str().to_string_lossy();
    let prefix = name.split_once(':').map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| {
        HOST_PREFIXES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(prefix))
    })
}

/// Whether the environment or its name leaves the file to the host.
pub(crate) fn is_excluded(path: &Path) -> bool {
    if names_host_driver(path) {
        return true;
    }
    let Some(patterns) = disabled() else {
        return false;
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = path.to_string_lossy();
    let mut patterns = patterns.split(':').filter(|pattern| !pattern.is_empty());
    patterns.any(|pattern| pattern == "1" || pattern::matches(pattern, &path))
}

/// What the ranks of a file that pario handles have found out before it is opened.
pub(crate) struct Meeting {
    pub(crate) transports: [Arc<MpiTransport>; 2],
    /// How this rank sees the file system of the file, if it is known.
    pub(crate) seen: Option<MountView>,
}

/// The ranks agree on who handles a file. Returns nothing if any rank has a reason to leave the file
/// to the host. *Collective*.
pub(crate) fn meet(
    host: &'static Host,
    comm: Comm,
    path: &Path,
    hints: &Info,
) -> Result<Option<Meeting>, Failure> {
    if company::needs_host(host, comm)? {
        return Ok(None);
    }
    // A rank on its own has one cache.
    let is_alone = host.comm_size(comm)? == 1;
    let is_root = host.comm_rank(comm)? == ROOT.index();
    let sight = match is_alone {
        true => Sight::default(),
        false => Sight::before_open(path, is_root),
    };
    let doubt = !is_alone && !sight.is_coherent();
    let flag = if sight.leads_elsewhere() {
        ELSEWHERE
    } else {
        0
    };
    let brought = |_| reason(doubt, path, hints) as u64 | flag;
    let Some(met) = MpiTransport::meet(host, comm, brought).map_err(engine::Error::from)? else {
        return Ok(None);
    };
    let reason = Reason::ALL
        .into_iter()
        .find(|it| *it as u64 == met.greatest & !ELSEWHERE);
    let reason = reason.unwrap_or(Reason::None);
    let (seen, warning) = match reason {
        Reason::None => (sight.view(met.greatest & ELSEWHERE != 0, path), None),
        Reason::Doubtful => {
            let (seen, incoherence) = examine(&*met.transports[0], path, hints, sight)?;
            let warning = incoherence.map(|why| {
                let path = path.display();
                format!("{path}: {why}: the file is left to the MPI's own MPI-IO")
            });
            (seen, warning)
        }
        reason => (None, reason.warning(path)),
    };
    if let (0, Some(warning)) = (met.transports[0].rank().0, &warning) {
        engine::internal::warn_of(&format!("{reason:?}"), warning);
    }
    match (reason, warning) {
        (Reason::None, _) | (Reason::Doubtful, None) => Ok(Some(Meeting {
            transports: met.transports,
            seen,
        })),
        _ => Ok(None),
    }
}

/// How a rank sees the file before anyone opens it.
#[derive(Default)]
struct Sight {
    /// By its name, which only rank 0 looks up: it creates new files in every MPI-IO. The clients of the
    /// others could remember for a minute that there is no such file, and each look-up may be a request
    /// to a server.
    name: Option<MountView>,
    directory: Option<MountView>,
}

impl Sight {
    fn before_open(path: &Path, is_root: bool) -> Sight {
        let name = is_root.then(|| mount_of(path).ok());
        Sight {
            name: name.flatten(),
            directory: mount_of_directory(path).ok(),
        }
    }

    fn is_coherent(&self) -> bool {
        let seen = self.name.as_ref().or(self.directory.as_ref());
        seen.is_some_and(MountView::is_coherent)
    }

    /// Whether the name is that of an existing file on another mount than its directory, as far as this
    /// rank knows.
    fn leads_elsewhere(&self) -> bool {
        self.name.is_some() && self.directory.is_some() && self.name != self.directory
    }

    /// How this rank sees the file, once it knows where the name leads on rank 0.
    fn view(self, leads_elsewhere: bool, path: &Path) -> Option<MountView> {
        match leads_elsewhere {
            true => self.name.or_else(|| mount_of(path).ok()),
            false => self.directory,
        }
    }
}

/// How this rank sees the file before it is opened, and why what one rank writes could be lost or
/// hidden from others, if it could. *Collective*; what rank 0 asks for counts, and where the name leads on
/// rank 0.
fn examine(
    transport: &dyn Transport,
    path: &Path,
    hints: &Info,
    sight: Sight,
) -> Result<(Option<MountView>, Option<String>), Failure> {
    let told = match transport.rank() == ROOT {
        true => vec![
            u8::from(sight.leads_elsewhere()),
            u8::from(needs_no_mount(path, hints)),
        ],
        false => Vec::new(),
    };
    let told = transport.broadcast(ROOT, told);
    let told = told.map_err(engine::Error::from)?;
    let [leads_elsewhere, needs_no_mount] = [0, 1].map(|at| told.get(at) == Some(&1));
    if needs_no_mount {
        return Ok((None, None));
    }
    let mine = sight.view(leads_elsewhere, path);
    let wire = mine.as_ref().map_or_else(Vec::new, MountView::to_wire);
    let all = transport.all_gather(&wire).map_err(engine::Error::from)?;
    let views = all.iter().map(|wire| MountView::from_wire(wire));
    let views: Option<Vec<_>> = views.collect();
    let incoherence = match views.map(|views| Sharing::of(&views)) {
        Some(Sharing::Incoherent(reason)) => Some(reason),
        // pario's driver for NFS bypasses the caches. If the directory cannot be examined, opening
        // the file reports why.
        Some(_) | None => None,
    };
    Ok((mine, incoherence))
}

/// Whether the driver that the name or the hints select does not go through the kernel's mounts.
fn needs_no_mount(path: &Path, hints: &Info) -> bool {
    let hints = Hints::resolve(hints, &Sources::from_environment()).hints;
    let resolved = pario_driver::resolve(path, hints.pario_driver.as_deref());
    resolved.is_ok_and(|resolved| !resolved.driver.is_mounted())
}

/// `doubt` is whether the file system is not known to be coherent.
fn reason(doubt: bool, path: &Path, hints: &Info) -> Reason {
    let asked = match hints.get(DISABLE_HINT) {
        Some(_) => {
            let resolved = Hints::resolve(hints, &Sources::from_environment());
            resolved.hints.pario_disable
        }
        None => disabled_by_default(),
    };
    if asked || is_excluded(path) {
        return Reason::Wish;
    }
    if has_device_library() {
        return Reason::Device;
    }
    match doubt {
        true => Reason::Doubtful,
        false => Reason::None,
    }
}

/// Whether hints of the environment or of a hints file leave files to the host.
fn disabled_by_default() -> bool {
    static DISABLED: OnceLock<bool> = OnceLock::new();
    *DISABLED.get_or_init(|| {
        let resolved = Hints::resolve(&Info::new(), &Sources::from_environment());
        resolved.hints.pario_disable
    })
}

/// Functions that identify programs that use a graphics processor.
const DEVICE_FUNCTIONS: [&std::ffi::CStr; 3] = [
    c"cuPointerGetAttribute",
    c"hipPointerGetAttributes",
    c"zeMemGetAllocProperties",
];

/// Whether a library for graphics processors is loaded, unless the user has stated that its
/// memory is never passed to file functions. Libraries are examined again once there are more
/// of them.
fn has_device_library() -> bool {
    static WITHOUT: AtomicU64 = AtomicU64::new(0);
    let loaded = symbols::libraries_loaded();
    if loaded == WITHOUT.load(Ordering::Relaxed) {
        return false;
    }
    let never = std::env::var("PARIO_DEVICE_MEMORY").is_ok_and(|value| value == "never");
    let has = !never && DEVICE_FUNCTIONS.iter().any(|it| symbols::is_loaded(it));
    if !has {
        WITHOUT.store(loaded, Ordering::Relaxed);
    }
    has
}

fn disabled() -> Option<&'static str> {
    static VALUE: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let value = std::env::var(DISABLE).ok()?;
        let value = value.trim().to_owned();
        (!value.is_empty() && value != "0").then_some(value)
    };
    VALUE.get_or_init(read).as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_prefixes_of_the_hosts_drivers_are_left_to_it() {
        for name in [
            "daos:/pool/container/data",
            "DAOS:data",
            "ime:x",
            "quobyte:x",
        ] {
            assert!(is_excluded(Path::new(name)), "{name}");
        }
        for name in [
            "data",
            "daos",
            "dir/daos:x",
            "ufs:daos:x",
            "mydaos:x",
            "lustre:x",
        ] {
            assert!(!is_excluded(Path::new(name)), "{name}");
        }
    }
}
