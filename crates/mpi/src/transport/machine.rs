//! Which machine this process runs on, as far as it can tell by itself.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use super::placement::SIMULATED_NODES;

/// A number that processes have in common if they can find each other's files in `/proc` and
/// nothing tells them apart: the kernel and the namespaces. Containers of one machine may be
/// meant to be nodes. 0 if that is not known, or if nodes are simulated.
pub(super) fn number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| match are_nodes_simulated() {
        true => 0,
        false => look().unwrap_or(0),
    })
}

fn look() -> Option<u64> {
    let kernel = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let mut hasher = DefaultHasher::new();
    kernel.hash(&mut hasher);
    for namespace in ["pid", "uts", "ipc", "net", "mnt"] {
        let namespace = fs::metadata(format!("/proc/self/ns/{namespace}")).ok()?;
        (namespace.dev(), namespace.ino()).hash(&mut hasher);
    }
    Some(hasher.finish().max(1))
}

/// Whether ranks of one machine are to be taken for ranks of several: by pario, or by MPICH
/// (`MPIR_CVAR_NUM_CLIQUES` and its relatives).
fn are_nodes_simulated() -> bool {
    env::vars_os()
        .any(|(name, _)| name == SIMULATED_NODES || name.as_encoded_bytes().ends_with(b"_CLIQUES"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_stays_where_it_is() {
        assert_eq!(look(), look());
        assert!(look().is_some_and(|number| number != 0));
    }
}
