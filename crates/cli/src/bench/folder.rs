//! The folder of the benchmark's files.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use pario_driver::{Access, Create, Driver, Facts, OpenHow, Posix};
use tempfile::TempDir;

use super::world::World;
use crate::failure::Failure;

/// Where the name of the benchmark's own folder starts.
const PREFIX: &str = "pario-bench-";

/// A folder of our own inside the one that is measured; it goes with all its files when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    parent: PathBuf,
    path: PathBuf,
    /// Of the process that made it.
    _own: Option<TempDir>,
    facts: Facts,
}

impl Folder {
    /// Makes our own folder in `parent`, or in the system's folder for temporary files.
    pub(crate) fn new(parent: Option<&Path>) -> Result<Self, Failure> {
        let parent = parent.map_or_else(env::temp_dir, Path::to_owned);
        let cannot = |source| Failure::Storage {
            action: "create a file in",
            path: parent.clone(),
            source,
        };
        let own = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            // The error names a random path inside the folder; its kind says all.
            .map_err(|error| cannot(error.kind().into()))?;
        let facts = facts(own.path()).map_err(cannot)?;
        Ok(Folder {
            parent,
            path: own.path().to_owned(),
            _own: Some(own),
            facts,
        })
    }

    /// One folder for all ranks: the leader makes it. Collective.
    pub(crate) fn shared(parent: Option<&Path>, world: &World) -> Result<Self, Failure> {
        let made = world.lead(|| Folder::new(parent))?;
        let path = made.as_ref().map(|it| it.path().display().to_string());
        let path = PathBuf::from(world.tell(path.unwrap_or_default())?);
        // Others see for themselves that it is the same folder on their node.
        let joined = made.map_or_else(|| Folder::join(&path), Ok);
        world.agree(joined)
    }

    /// The folder that another process has made.
    fn join(path: &Path) -> Result<Self, Failure> {
        let facts = facts(path).map_err(|source| Failure::Storage {
            action: "create a file in",
            path: path.to_owned(),
            source,
        })?;
        Ok(Folder {
            parent: path.parent().unwrap_or(path).to_owned(),
            path: path.to_owned(),
            _own: None,
            facts,
        })
    }

    /// The folder that is measured.
    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// Our own folder in it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of its files.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }
}

fn facts(folder: &Path) -> io::Result<Facts> {
    let how = OpenHow::new(Access::ReadWrite).create(Create::Exclusive);
    // Several ranks may look at once.
    let probe = folder.join(format!("probe-{}-{}", std::process::id(), nodename()));
    let handle = Posix::new().open(&probe, &how)?;
    let facts = handle.facts().clone();
    handle.close()?;
    std::fs::remove_file(&probe)?;
    Ok(facts)
}

/// The name of this node.
fn nodename() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::new(Some(parent.path())).unwrap();
        std::fs::write(folder.path().join("array"), [0; 100]).unwrap();
        assert_eq!(folder.parent(), parent.path());
        drop(folder);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_named() {
        let failure = Folder::new(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "cannot create a file in /nowhere/at/all: entity not found; \
             choose a folder you can write to with --dir"
        );
    }
}
