//! Signs by which the ranks of a job on this node recognise each other without looking at every
//! process.
//!
//! A rank that announces itself binds an abstract socket whose name contains the job's launcher
//! and its rank, so that the others find it by its name. The kernel removes it when the process
//! ends.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::OnceLock,
};

use super::Job;

impl Job {
    /// Announces this process to the other ranks of the job on this node.
    pub fn announce(&self) {
        static SIGN: OnceLock<Option<UnixDatagram>> = OnceLock::new();
        SIGN.get_or_init(|| self.bind_sign());
    }

    fn bind_sign(&self) -> Option<UnixDatagram> {
        UnixDatagram::bind_addr(&self.sign_of(self.rank)?).ok()
    }

    /// Whether all of these ranks have announced themselves on this node.
    pub fn are_announced(&self, mut ranks: impl Iterator<Item = u32>) -> bool {
        let Ok(socket) = UnixDatagram::unbound() else {
            return false;
        };
        ranks.all(|rank| {
            let sign = self.sign_of(rank);
            sign.is_some_and(|sign| socket.connect_addr(&sign).is_ok())
        })
    }

    fn sign_of(&self, rank: u32) -> Option<SocketAddr> {
        let mut hasher = DefaultHasher::new();
        (&self.launcher, &self.names).hash(&mut hasher);
        let (launcher, job) = (self.launcher.id(), hasher.finish());
        SocketAddr::from_abstract_name(format!("pario-{launcher}-{job:016x}-rank-{rank}")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rank: &str, name: &str) -> Job {
        let variable = |variable: &str| match variable {
            "PMI_RANK" => Some(rank.to_owned()),
            "PMI_SPAWNED" => Some(name.to_owned()),
            _ => None,
        };
        Job::find(&variable).expect("tests have a parent")
    }

    #[test]
    fn ranks_find_those_that_have_announced_themselves() {
        let name = format!("job of {}", std::process::id());
        let [first, second] = ["0", "1"].map(|rank| job(rank, &name));
        let _first_sign = first.bind_sign().expect("the name is free");
        assert!(first.are_announced(0..1));
        assert!(!first.are_announced(0..2));
        let second_sign = second.bind_sign();
        assert!(first.are_announced(0..2) && second.are_announced(0..2));
        assert!(first.bind_sign().is_none(), "the name is taken");
        let other = job("2", &format!("another {name}"));
        let _other_sign = other.bind_sign();
        assert!(other.are_announced(2..3));
        assert!(!first.are_announced(0..3), "a rank of another job");
        drop(second_sign);
        assert!(!first.are_announced(0..2), "the process has ended");
    }
}
