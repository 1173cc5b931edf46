//! The input of plans: facts about a file system, and hints.

use std::path::Path;

use pario_driver::FileSystem;
use pario_hints::{Hints, Info, Sources};
use pario_plan::Facts;

use crate::failure::Failure;
use crate::measure::Scratch;

/// Facts about the files of a directory for ranks on these nodes, and its file system.
pub(crate) fn of_directory(
    directory: &Path,
    nodes: &[u32],
) -> Result<(Facts, FileSystem), Failure> {
    let scratch = Scratch::unguarded(Some(directory))?;
    let found = scratch.facts();
    let facts = pario::internal::plan_facts(found, nodes.to_vec());
    Ok((facts, found.file_system.clone()))
}

/// The hints in force if these are passed at open, and a warning for each that cannot be used.
pub(crate) fn hints(given: &[(String, String)]) -> Result<(Hints, Vec<String>), String> {
    let mut info = Info::new();
    for (name, value) in given {
        info.set(name, value).map_err(|error| error.to_string())?;
    }
    let resolved = Hints::resolve(&info, &Sources::from_environment());
    let warnings = resolved.warnings.iter().map(ToString::to_string);
    Ok((resolved.hints, warnings.collect()))
}

/// Where the value of a hint came from.
pub(crate) fn source(hints: &Hints, name: &str) -> String {
    hints
        .source(name)
        .map_or_else(String::new, ToString::to_string)
}

/// From how many pieces per page on they are stored through a mapping, and how that is known.
pub(crate) fn stored_pieces(hints: &Hints) -> String {
    let (pieces, source) = match hints.pario_stored_pieces {
        Some(pieces) => (pieces, source(hints, "pario_stored_pieces")),
        None => {
            let is_measured = pario_driver::page_costs().is_ok();
            let source = if is_measured { "measured" } else { "default" };
            (pario_driver::stored_pieces(), source.to_owned())
        }
    };
    format!("from {pieces} pieces per page on (pario_stored_pieces, {source})")
}

/// Whether a hint of that name exists.
pub(crate) fn is_hint(name: &str) -> bool {
    Hints::definition(name).is_some()
}

pub(crate) fn unknown_hint(name: &str) -> String {
    format!("unknown hint `{name}`; see `pario hints`")
}

/// A hint as on the command line, `name=value`.
pub(crate) fn parse_hint(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("write a hint as name=value".to_owned()),
    }
}
