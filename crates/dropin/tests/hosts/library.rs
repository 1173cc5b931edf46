//! The library under test.

use std::path::{Path, PathBuf};

use crate::run::TestResult;

/// The library that is to be preloaded, or why there is none.
pub(crate) fn find() -> TestResult<PathBuf> {
    let path = match std::env::var_os("PARIO_LIBRARY") {
        Some(path) => PathBuf::from(path),
        None => target_directory().join("release/libpario.so"),
    };
    path.canonicalize().map_err(|error| {
        let path = path.display();
        format!("no library at {path} ({error}): run `cargo build --release -p pario-dropin` first")
    })
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("cargo's directory for tests is below its target directory")
}
