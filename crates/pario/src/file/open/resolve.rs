//! The driver of a file, from its name and hints.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use pario_driver::{CephFs, Driver, Resolved};
use pario_hints::Hints;
use pario_transport::Transport;

use crate::{Error, ErrorKind, Result, file::FileSharing};

/// The name of the driver that hints can give another account.
const CEPHFS: &str = "cephfs";

pub(super) fn resolve(path: &Path, hints: &Hints, sharing: &FileSharing) -> Result<Resolved> {
    let resolved = pario_driver::resolve(path.as_os_str(), hints.pario_driver.as_deref());
    let resolved = resolved.map_err(|error| {
        Error::new(ErrorKind::BadFile, "no driver for the file").with_source(error)
    })?;
    Ok(sharing.select(with_ceph_access(resolved, hints)?))
}

/// The same driver with the configuration and the user that hints name, if it is CephFS's library.
fn with_ceph_access(resolved: Resolved, hints: &Hints) -> Result<Resolved> {
    let (configuration, user) = (&hints.pario_ceph_conf, &hints.pario_ceph_user);
    if resolved.driver.name() != CEPHFS || configuration.is_none() && user.is_none() {
        return Ok(resolved);
    }
    let driver = CephFs::with_access(configuration.as_deref(), user.as_deref());
    Ok(Resolved {
        driver: Arc::new(driver.map_err(Error::from)?),
        ..resolved
    })
}

/// The name under which the file can be found until it is closed: the program may
/// change its directory.
pub(super) fn lasting(path: PathBuf, driver: &dyn Driver) -> PathBuf {
    match driver.is_mounted() {
        true => std::path::absolute(&path).unwrap_or(path),
        false => path,
    }
}

/// Fails if the driver keeps files inside one process, but the ranks are in several.
pub(super) fn check_reachable(comm: &dyn Transport, resolved: &Resolved) -> Result<()> {
    if comm.spans_processes() && !resolved.driver.capabilities().between_processes {
        return Err(Error::new(
            ErrorKind::UnsupportedOperation,
            format!(
                "the driver {} keeps files inside one process, but the ranks are in several processes",
                resolved.driver.name()
            ),
        ));
    }
    Ok(())
}
