//! Signs by which the processes of a job on this node recognise each other, without `/proc`.
//!
//! A process that announces itself binds an abstract socket whose name contains its parent and
//! its rank. Ranks that a launcher has started itself have the same parent, so each finds the
//! signs of the others by their names. A missing sign proves nothing: there may be a shell
//! between launcher and program.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::MetadataExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    sync::OnceLock,
};

use super::{NAME_VARIABLES, Process, Variable, is_on_one_node, rank_of};

/// This process as others of its job know it.
#[derive(Debug)]
pub struct Presence {
    rank: u32,
    is_on_one_node: bool,
    /// The same for all processes that the same parent has started for the same job.
    siblings: u64,
    /// The sign, which disappears with the process.
    _sign: Option<UnixDatagram>,
}

static ANNOUNCED: OnceLock<Option<Presence>> = OnceLock::new();

impl Presence {
    /// Announces this process, if a launcher has started it.
    pub fn announce() {
        let variable = |name: &str| std::env::var(name).ok();
        ANNOUNCED.get_or_init(|| Presence::new(&variable));
    }

    /// This process, if it has announced itself.
    pub fn announced() -> Option<&'static Presence> {
        ANNOUNCED.get()?.as_ref()
    }

    fn new(variable: Variable<'_>) -> Option<Presence> {
        let (rank, _) = rank_of(variable)?;
        // Its start time distinguishes it from an earlier process of the same number.
        let parent = rustix::process::getppid()?;
        let parent = Process::find(parent.as_raw_nonzero().get().unsigned_abs())?;
        let processes = fs::metadata("/proc/self/ns/pid").ok()?.ino();
        let mut hasher = DefaultHasher::new();
        (processes, parent, NAME_VARIABLES.map(variable)).hash(&mut hasher);
        let siblings = hasher.finish();
        Some(Presence {
            rank,
            is_on_one_node: is_on_one_node(variable),
            siblings,
            _sign: sign_of(siblings, rank).and_then(|sign| UnixDatagram::bind_addr(&sign).ok()),
        })
    }

    /// The rank of this process according to the launcher.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Whether all ranks are on this node according to the launcher.
    pub fn is_on_one_node(&self) -> bool {
        self.is_on_one_node
    }

    /// Whether all of these ranks, started by the same parent, have announced themselves.
    pub fn are_announced(&self, mut ranks: impl Iterator<Item = u32>) -> bool {
        let Ok(socket) = UnixDatagram::unbound() else {
            return false;
        };
        ranks.all(|rank| {
            let sign = sign_of(self.siblings, rank);
            sign.is_some_and(|sign| socket.connect_addr(&sign).is_ok())
        })
    }
}

fn sign_of(siblings: u64, rank: u32) -> Option<SocketAddr> {
    SocketAddr::from_abstract_name(format!("pario-rank-{siblings:016x}-{rank}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(rank: &str, job: &str) -> Presence {
        let variable = |name: &str| match name {
            "PMI_RANK" => Some(rank.to_owned()),
            "PMI_SPAWNED" => Some(job.to_owned()),
            _ => None,
        };
        Presence::new(&variable).expect("tests have a parent")
    }

    #[test]
    fn ranks_find_those_that_are_present() {
        let job = format!("job of {}", std::process::id());
        let first = presence("0", &job);
        assert!(first.are_announced(0..1));
        assert!(!first.are_announced(0..2), "rank 1 has not been started");
        let second = presence("1", &job);
        assert!(first.are_announced(0..2) && second.are_announced(0..2));
        let other = presence("2", &format!("another {job}"));
        assert!(!first.are_announced(0..3), "a rank of another job");
        assert!(other.are_announced(2..3));
        drop(second);
        assert!(!first.are_announced(0..2), "rank 1 has ended");
    }

    #[test]
    fn without_a_launcher_there_is_no_presence() {
        assert!(Presence::new(&|_| None).is_none());
    }
}
