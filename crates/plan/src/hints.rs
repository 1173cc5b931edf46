//! Planner input from hints.

use pario_hints::{Buffering, Hints, Rmw};

use crate::{
    Client, Direction, Exchange, Facts, GroupLocks, LockProtocol, Rewriting, Tuning,
    algorithm::{Algorithm, Individual, TwoPhase},
    partition::{Partition, Persistent},
};

impl Tuning {
    /// The settings in the hints for calls of one direction.
    pub fn from_hints(hints: &Hints, direction: Direction) -> Tuning {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Tuning {
            buffer_bytes: hints.cb_buffer_size,
            slice_bytes: hints.pario_slice_bytes,
            cached_window_bytes: hints.cached_window_bytes(),
            call_bytes: hints.call_bytes(),
            aggregators: hints.cb_nodes.map(small),
            config_list: hints.cb_config_list.clone(),
            realm_alignment: hints.romio_cb_fr_alignment,
            saturation_bytes: hints.pario_saturation_bytes,
            partition: hints.pario_partition.clone().or_else(|| partition(hints)),
            algorithm: hints
                .pario_algorithm
                .clone()
                .or_else(|| algorithm(hints, direction)),
            exchange: exchange(hints).map(|exchange| exchange.name().to_owned()),
            timed_delay_us: hints.pario_timed_delay_us,
            agents_per_server: small(hints.pario_agents_per_server),
            stripe_multiple: hints.pario_stripe_multiple,
            rewriting: match hints.pario_rmw {
                Rmw::Locked => Rewriting::Allowed,
                _ => Rewriting::Forbidden,
            },
            // The holders' caches are not coherent with each other: a rank that rewrites a range
            // would write old data of others.
            locks_ahead: hints.pario_lock_ahead,
            group_locks: match (hints.pario_group_lock, hints.pario_rmw) {
                (true, Rmw::Automatic | Rmw::Never) => GroupLocks::Allowed,
                _ => GroupLocks::Forbidden,
            },
        }
    }
}

/// The partition selected by ROMIO's hints.
fn partition(hints: &Hints) -> Option<String> {
    let persistent = match hints.romio_cb_fr_alignment {
        Some(_) => Persistent::ALIGNED,
        None => Persistent::ANY,
    };
    hints.romio_cb_pfr.then(|| persistent.name().to_owned())
}

/// The algorithm selected by ROMIO's and MPI's hints.
fn algorithm(hints: &Hints, direction: Direction) -> Option<String> {
    let asked = match direction {
        Direction::Read => hints.romio_cb_read,
        Direction::Write => hints.romio_cb_write,
    };
    let name = match (asked, hints.collective_buffering) {
        (Buffering::Enable, _) | (Buffering::Automatic, Some(true)) => TwoPhase.name(),
        (Buffering::Disable, _) | (Buffering::Automatic, Some(false)) => Individual.name(),
        (Buffering::Automatic, None) => return None,
    };
    Some(name.to_owned())
}

fn exchange(hints: &Hints) -> Option<Exchange> {
    match (hints.pario_exchange, hints.romio_cb_alltoall) {
        (None, Buffering::Enable) => Some(Exchange::AllToAll),
        (exchange, _) => exchange,
    }
}

impl Facts {
    /// These facts, overridden by the facts that hints assume.
    #[must_use]
    pub fn with_assumptions(self, hints: &Hints) -> Facts {
        let assumes_servers = hints.pario_assume_striping.is_some()
            || hints
                .pario_assume_lock_protocol
                .is_some_and(|it| it != LockProtocol::None);
        Facts {
            striping: hints.pario_assume_striping.or(self.striping),
            placement: match hints.pario_assume_striping {
                Some(_) => None,
                None => self.placement,
            },
            lock_granularity: hints
                .pario_assume_lock_granularity
                .or(self.lock_granularity),
            lock_protocol: hints
                .pario_assume_lock_protocol
                .unwrap_or(self.lock_protocol),
            client: hints.pario_assume_client.unwrap_or(match self.client {
                Client::Local if assumes_servers => Client::Kernel,
                client => client,
            }),
            nonblocking: hints.pario_assume_nonblocking.unwrap_or(self.nonblocking),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use pario_hints::{Info, Sources};

    use super::*;
    use crate::{Striping, algorithm::ALGORITHMS, partition::PARTITIONS};

    fn hints(pairs: &[(&str, &str)]) -> Hints {
        let mut info = Info::new();
        for (key, value) in pairs {
            info.set(key, value).unwrap();
        }
        let resolved = Hints::resolve(&info, &Sources::none());
        assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
        resolved.hints
    }

    #[test]
    fn without_hints_the_planner_chooses() {
        let tuning = Tuning::from_hints(&hints(&[]), Direction::Read);
        assert_eq!(tuning, Tuning::default());
        let facts = Facts::one_node(3);
        assert_eq!(facts.clone().with_assumptions(&hints(&[])), facts);
    }

    #[test]
    fn nothing_is_rewritten_under_a_group_lock() {
        let group_locks = |pairs: &[(&str, &str)]| {
            Tuning::from_hints(&hints(pairs), Direction::Write).group_locks
        };
        let wanted = ("pario_group_lock", "true");
        assert_eq!(group_locks(&[wanted]), GroupLocks::Allowed);
        let both = [wanted, ("pario_rmw", "locked")];
        assert_eq!(group_locks(&both), GroupLocks::Forbidden);
    }

    #[test]
    fn the_documentation_of_the_hints_names_every_method() {
        let doc = |name: &str| {
            let mut definitions = Hints::DEFINITIONS.iter();
            let definition = definitions.find(|it| it.name == name).unwrap();
            definition.doc.join(" ")
        };
        let (partition, algorithm) = (doc("pario_partition"), doc("pario_algorithm"));
        for it in PARTITIONS {
            assert!(partition.contains(&format!("`{}`", it.name())));
        }
        for it in ALGORITHMS {
            assert!(algorithm.contains(&format!("`{}`", it.name())));
        }
    }

    #[test]
    fn romio_hints_are_translated() {
        let asked = hints(&[
            ("romio_cb_read", "disable"),
            ("romio_cb_write", "enable"),
            ("romio_cb_pfr", "enable"),
            ("romio_cb_alltoall", "enable"),
            ("cb_nodes", "3"),
            ("cb_config_list", "*:2"),
            ("cb_buffer_size", "64k"),
        ]);
        let read = Tuning::from_hints(&asked, Direction::Read);
        let write = Tuning::from_hints(&asked, Direction::Write);
        assert_eq!(read.algorithm.as_deref(), Some("individual"));
        assert_eq!(write.algorithm.as_deref(), Some("two-phase"));
        assert_eq!(read.partition.as_deref(), Some("persistent"));
        assert_eq!(read.exchange.as_deref(), Some("alltoall"));
        assert_eq!((read.aggregators, read.buffer_bytes), (Some(3), 64 << 10));
        let named = hints(&[
            ("romio_cb_read", "disable"),
            ("pario_algorithm", "resonant"),
        ]);
        let named = Tuning::from_hints(&named, Direction::Read);
        assert_eq!(named.algorithm.as_deref(), Some("resonant"));
    }

    #[test]
    fn any_file_system_can_be_assumed() {
        let hints = hints(&[
            ("pario_assume_striping", "64k, 4"),
            ("pario_assume_lock_protocol", "server"),
            ("pario_assume_client", "library"),
            ("pario_assume_lock_granularity", "4k"),
        ]);
        let facts = Facts::one_node(2).with_assumptions(&hints);
        let striping = Striping {
            unit: 64 << 10,
            count: 4,
        };
        assert_eq!(facts.striping, Some(striping));
        assert_eq!(facts.lock_protocol, LockProtocol::Server);
        assert_eq!(facts.client, Client::Library);
        assert_eq!(facts.boundary(), 4096);
    }

    #[test]
    fn stripes_are_not_on_a_local_file_system() {
        let hints = hints(&[("pario_assume_striping", "64k, 4")]);
        let facts = Facts::one_node(2).with_assumptions(&hints);
        assert_eq!(facts.client, Client::Kernel);
    }
}
