//! What plans rest on: facts of a file system and hints, as the planner wants them.

use std::path::Path;

use pario_hints::{Hints, Info, Sources};
use pario_plan::Facts;

use crate::bench::folder::Folder;
use crate::failure::Failure;

/// Facts of the files of a folder for ranks on these nodes.
pub(crate) fn of_folder(folder: &Path, nodes: &[u32]) -> Result<Facts, Failure> {
    Ok(pario::plan_facts(
        Folder::new(Some(folder))?.facts(),
        nodes.to_vec(),
    ))
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

/// A hint as it is given on a command line, `name=value`.
pub(crate) fn parse_hint(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("write a hint as name=value".to_owned()),
    }
}
