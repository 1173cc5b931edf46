//! A program of rsmpi whose ranks share files through pario.
//!
//! rsmpi sends the messages; pario opens files on its communicators. Any communicator will do: here
//! ranks of even and of odd number write a file each.
//!
//! ```sh
//! cargo build --manifest-path examples/rsmpi/Cargo.toml
//! mpirun -n 4 examples/rsmpi/target/debug/pario-with-rsmpi /tmp/table
//! ```

use std::error::Error;

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::topology::Color;
use mpi::traits::*;
use pario::{Datatype, File, Info, Mode, View};
use pario_mpi::{Host, InsideCall, MpiTransport};

/// Numbers that each rank writes.
const NUMBERS: usize = 1000;

/// The ranks of a communicator of rsmpi, for pario. Collective.
///
/// A raw handle of rsmpi is a C integer or a pointer, as the MPI has it that rsmpi was built for;
/// pario takes either. The communicator is duplicated, and may be freed at any time.
fn ranks_of(comm: &impl Communicator) -> Result<pario::Comm, Box<dyn Error>> {
    let handle = pario_mpi::Comm::from(comm.as_raw().0);
    Ok(MpiTransport::new(Host::current()?, handle)?.into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let (universe, _) =
        mpi::initialize_with_threading(Threading::Multiple).ok_or("MPI was initialised before")?;
    let world = universe.world();
    // An MPI that gives less than was asked for is called by this thread only.
    let _inside = InsideCall::enter();

    let color = world.rank() % 2;
    let half = world
        .split_by_color(Color::with_value(color))
        .ok_or("this rank has a colour")?;
    let sum = write(&half, &format!("{path}-{color}"))?;

    // Messages of rsmpi and pario's files do not get in each other's way.
    let mut total = 0.0;
    world.all_reduce_into(&sum, &mut total, SystemOperation::sum());
    if world.rank() == 0 {
        println!(
            "{} ranks wrote two files, sum of what was read: {total}",
            world.size()
        );
    }
    Ok(())
}

/// Every rank writes numbers that interleave with those of the others, and reads them back; their
/// sum.
fn write(comm: &impl Communicator, path: &str) -> Result<f64, Box<dyn Error>> {
    let ranks = ranks_of(comm)?;
    let rank = u64::from(ranks.rank());
    let file = File::open(&ranks, path, Mode::CREATE | Mode::READ_WRITE, &Info::new())?;
    let double = Datatype::of::<f64>();
    let mine = Datatype::resized(&double, 0, 8 * i64::from(ranks.size()))?;
    file.set_view(&View::new(8 * rank, &double, &mine))?;
    file.write_at_all(0, &[1.0 + rank as f64; NUMBERS])?;
    let mut read = vec![0.0; NUMBERS];
    file.read_at_all(0, read.as_mut_slice())?;
    file.close()?;
    Ok(read.iter().sum())
}
