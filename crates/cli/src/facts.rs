//! What plans rest on: facts of a file system and hints, as the planner wants them.

use std::path::Path;

use pario_hints::{Hints, Info, Sources};
use pario_plan::{Client, Facts, LockProtocol, Striping};

use crate::bench::folder::Folder;
use crate::failure::Failure;

/// Facts of the files of a folder for ranks on these nodes.
pub(crate) fn of_folder(folder: &Path, nodes: &[u32]) -> Result<Facts, Failure> {
    Ok(of_file(Folder::new(Some(folder))?.facts(), nodes))
}

/// Facts of a file for ranks on these nodes.
pub(crate) fn of_file(facts: &pario_driver::Facts, nodes: &[u32]) -> Facts {
    Facts {
        nodes: nodes.to_vec(),
        striping: facts.striping.map(|it| Striping {
            unit: it.unit,
            count: it.count,
        }),
        lock_granularity: facts.lock_granularity,
        lock_protocol: match facts.file_system {
            pario_driver::FileSystem::Lustre => LockProtocol::Server,
            pario_driver::FileSystem::Gpfs => LockProtocol::Token,
            _ => LockProtocol::None,
        },
        client: match facts.client {
            pario_driver::Client::Kernel => Client::Kernel,
            pario_driver::Client::Library => Client::Library,
        },
        block_bytes: facts.block_size,
    }
}

/// Hints in force where these are given, as they would be at open. The second value has a line
/// for each that cannot be used.
pub(crate) fn hints(given: &[(String, String)]) -> Result<(Hints, Vec<String>), String> {
    let mut info = Info::new();
    for (name, value) in given {
        info.set(name, value).map_err(|error| error.to_string())?;
    }
    let resolved = Hints::resolve(&info, &Sources::from_environment());
    let warnings = resolved.warnings.iter().map(ToString::to_string);
    Ok((resolved.hints, warnings.collect()))
}
