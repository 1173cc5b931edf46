//! Representations by name.

use crate::error::DatarepError;
use crate::fixed::{EXTERNAL32, INTERNAL};
use crate::representation::{Native, Representation};
use crate::user::{UserDefined, UserRepresentation};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Maximum length of a name in bytes. `MPI_MAX_DATAREP_STRING`, 128 in every MPI, includes the
/// terminating NUL.
pub const MAX_NAME_LEN: usize = 127;

type Names = BTreeMap<String, Arc<dyn Representation>>;

/// Representations by name: the three defined by the standard and those registered by the
/// program. They cannot be removed.
#[derive(Debug)]
pub struct Registry {
    names: RwLock<Names>,
}

impl Registry {
    /// A registry with native, internal and external32.
    pub fn new() -> Registry {
        let builtin: [Arc<dyn Representation>; 3] = [native(), internal(), external32()];
        let names =
            builtin.map(|representation| (representation.name().to_owned(), representation));
        Registry {
            names: RwLock::new(Names::from(names)),
        }
    }

    /// The registry of the process, as used by `MPI_Register_datarep`. Ranks that are threads
    /// share it: one registration serves all.
    pub fn global() -> &'static Registry {
        static GLOBAL: OnceLock<Registry> = OnceLock::new();
        GLOBAL.get_or_init(Registry::new)
    }

    /// The representation with this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Representation>, DatarepError> {
        // A panic cannot leave the map half-modified: insertion is a single step.
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names
            .get(name)
            .cloned()
            .ok_or_else(|| DatarepError::Unknown {
                name: name.to_owned(),
                known: names.keys().cloned().collect(),
            })
    }

    /// Registers a user's representation under an unused name.
    pub fn register(
        &self,
        name: &str,
        representation: UserRepresentation,
    ) -> Result<(), DatarepError> {
        check_name(name)?;
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if names.contains_key(name) {
            return Err(DatarepError::Duplicate {
                name: name.to_owned(),
            });
        }
        names.insert(
            name.to_owned(),
            Arc::new(UserDefined::new(name, representation)),
        );
        Ok(())
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::new()
    }
}

/// The representation with this name in the registry of the process.
pub fn find(name: &str) -> Option<Arc<dyn Representation>> {
    Registry::global().get(name).ok()
}

/// Registers a user's representation in the registry of the process.
pub fn register(name: &str, representation: UserRepresentation) -> Result<(), DatarepError> {
    Registry::global().register(name, representation)
}

/// Bytes as they are in memory.
pub fn native() -> Arc<dyn Representation> {
    Arc::new(Native)
}

/// pario's own portable representation.
///
/// Little-endian, the sizes of 64-bit Linux, long double as IEEE binary128. It equals the native
/// representation on every machine that pario supports, except for long double on x86, so it
/// costs nothing and files are portable between them.
pub fn internal() -> Arc<dyn Representation> {
    Arc::new(INTERNAL)
}

/// The standard's portable representation.
///
/// Big-endian, IEEE, with the standard's table of sizes: `MPI_LONG` and `MPI_UNSIGNED_LONG` take
/// 4 bytes and `MPI_WCHAR` 2. A value that needs more is an error. Logical values are stored as
/// 0 and 1.
pub fn external32() -> Arc<dyn Representation> {
    Arc::new(EXTERNAL32)
}

fn check_name(name: &str) -> Result<(), DatarepError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_LEN {
        "it is longer than 127 bytes"
    } else if name.contains('\0') {
        "it contains a NUL byte"
    } else {
        return Ok(());
    };
    Err(DatarepError::BadName {
        name: name.to_owned(),
        reason,
    })
}
