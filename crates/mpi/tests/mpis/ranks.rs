//! Several processes, started by the MPI's own launcher, which is all that names the MPI.

use std::path::PathBuf;

use pario_mpi::Runtime;

use crate::common::environments;

/// A launcher to test with.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
}

/// How many processes are started.
pub(crate) const RANKS: usize = 2;

/// Every launcher that this project knows how to install, where it is.
pub(crate) fn launchers() -> Vec<Launcher> {
    let known = [
        (
            "MPICH of the distribution",
            PathBuf::from("/usr/bin/mpirun.mpich"),
        ),
        (
            "Open MPI of the distribution",
            PathBuf::from("/usr/bin/mpirun.openmpi"),
        ),
        ("newest MPICH", environments().join("mpich/bin/mpiexec")),
        ("newest Open MPI", environments().join("openmpi/bin/mpirun")),
        (
            "Intel MPI",
            environments().join("impi-rt/bin/mpiexec.hydra"),
        ),
    ];
    let present = known.into_iter().filter(|(_, program)| program.exists());
    present
        .map(|(name, program)| Launcher { name, program })
        .collect()
}

pub(crate) fn talk(runtime: &Runtime) {
    let host = runtime.host();
    let comm = host.comm_dup(runtime.world()).unwrap();
    host.comm_return_errors(comm).unwrap();
    let (rank, size) = (host.comm_rank(comm).unwrap(), host.comm_size(comm).unwrap());
    println!("rank {rank} of {size} in {}", host.path());
    assert_eq!(size, RANKS);
    let node = host.comm_split_shared(comm, 0).unwrap();
    assert_eq!(host.comm_size(node).unwrap(), RANKS);

    // Lengths differ, one is zero.
    let mine = vec![rank as u8 + 1; 3 * rank];
    let all = host.allgatherv(&mine, comm).unwrap();
    assert_eq!(all, [vec![], vec![2; 3]]);
    let sums = host
        .allreduce(&[1, rank as u64], host.predefined().op_sum, comm)
        .unwrap();
    assert_eq!(sums, [RANKS as u64, 1]);
    let mut word = if rank == 1 { *b"from" } else { [0; 4] };
    host.bcast(&mut word, 1, comm).unwrap();
    assert_eq!(&word, b"from");

    let other = RANKS - 1 - rank;
    let (sent, mut taken) = (vec![rank as u8; 100_000], vec![9_u8; 100_000]);
    // SAFETY: both buffers outlive the requests, which are completed below.
    let mut requests = unsafe {
        [
            host.irecv(&raw mut taken[..], Some(other), Some(5), comm)
                .unwrap(),
            host.isend(&raw const sent[..], other, 5, comm).unwrap(),
        ]
    };
    for request in &mut requests {
        host.wait(request).unwrap();
    }
    assert!(taken.iter().all(|&byte| byte == other as u8));
    for comm in [node, comm] {
        host.comm_free(comm).unwrap();
    }
}
