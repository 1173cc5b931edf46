//! Processes without an MPI, or with one that cannot be served, are told so.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Host, HostError};

/// An MPI of nobody's ABI.
const UNKNOWN: &str = "\
    #include <string.h>\n\
    int PMPI_Comm_dup(long comm, void *copy) { return 1; }\n\
    int MPI_Get_library_version(char *text, int *len)\n\
    { strcpy(text, \"Somebody's MPI 1.0\"); *len = strlen(text); return 0; }\n";

/// An MPI of MPICH's ABI that is initialised and has hardly a function.
const INCOMPLETE: &str = "\
    int PMPI_Comm_dup(int comm, int *copy) { return 1; }\n\
    int PMPI_Initialized(int *flag) { *flag = 1; return 0; }\n\
    int MPIR_Err_create_code(void) { return 1; }\n";

/// Compiles a shared library; none where there is no compiler.
fn compile(directory: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let (file, library) = (
        directory.join(name),
        directory.join(name).with_extension("so"),
    );
    std::fs::write(&file, source).expect("the directory is writable");
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&file);
    command
        .status()
        .is_ok_and(|status| status.success())
        .then_some(library)
}

fn load(library: &Path) {
    let path = library.to_str().expect("a name of ASCII");
    Library::load(path, Visibility::Local).expect("a library");
}

/// One test: what is loaded stays loaded.
#[test]
fn unusable_mpis_are_clear_errors() {
    let error = Host::current().expect_err("this program is not linked with an MPI");
    assert_eq!(error, HostError::NoMpi);
    assert!(error.to_string().contains("no MPI is loaded"), "{error}");

    let directory = tempfile::tempdir().expect("a temporary directory");
    let unknown = compile(directory.path(), "unknown.c", UNKNOWN);
    let incomplete = compile(directory.path(), "incomplete.c", INCOMPLETE);
    let (Some(unknown), Some(incomplete)) = (unknown, incomplete) else {
        common::skipped("MPIs that cannot be served", "there is no C compiler");
        return;
    };
    load(&unknown);
    let error = Host::current().expect_err("not a known ABI");
    assert!(
        matches!(&error, HostError::UnknownAbi { version, .. } if version.contains("Somebody"))
    );
    assert!(error.to_string().contains("unknown.so"), "{error}");

    // Of two, the one that is initialised is the program's.
    load(&incomplete);
    let error = Host::current().expect_err("functions are missing");
    let HostError::Missing { path, names } = &error else {
        panic!("{error}");
    };
    assert!(path.ends_with("incomplete.so"));
    assert!(names.iter().any(|name| name == "MPI_Type_get_contents"));
    assert!(!names.iter().any(|name| name == "MPI_Comm_dup"));
    assert!(error.to_string().contains("lacks MPI_Finalized"), "{error}");
    assert!(error.to_string().ends_with(" more"), "{error}");
}
