//! A process without an MPI is told so.

use pario_mpi::{Host, HostError};

#[test]
fn no_mpi_is_a_clear_error() {
    let error = Host::current().expect_err("this program is not linked with an MPI");
    assert_eq!(error, HostError::NoMpi);
    assert!(error.to_string().contains("no MPI is loaded"), "{error}");
}
