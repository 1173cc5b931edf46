//! The ranks of an MPI write the columns of a table into one file; rank 0 reads a row of it.
//!
//! No MPI is needed to build this: the one whose launcher starts it is loaded when it runs.
//!
//! ```sh
//! cargo build --package pario-mpi --example columns
//! mpirun -n 3 target/debug/examples/columns /tmp/table
//! ```

use std::error::Error;

use pario::{Comm, Datatype, File, Info, Mode, View};
use pario_mpi::{InsideCall, MpiTransport, Runtime, Threads};

/// Rows of the table.
const ROWS: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;

    // Ends the MPI when it is dropped, after everything below.
    let runtime = Runtime::start(Threads::Multiple)?;
    // An MPI that gives less than was asked for is called by this thread only.
    let _inside = InsideCall::enter();
    let comm = Comm::from(MpiTransport::new(runtime.host(), runtime.world())?);
    let (rank, ranks) = (u64::from(comm.rank()), u64::from(comm.size()));

    let file = File::open(&comm, &path, Mode::CREATE | Mode::READ_WRITE, &Info::new())?;
    let double = Datatype::of::<f64>();
    let column = Datatype::resized(&double, 0, 8 * i64::from(comm.size()))?;
    file.set_view(&View::new(8 * rank, &double, &column))?;
    file.write_at_all(0, &[rank as f64; ROWS])?;
    file.sync()?;

    file.set_view(&View::new(0, &double, &double))?;
    if rank == 0 {
        let mut row = vec![0.0; comm.size() as usize];
        file.read_at(7 * ranks, row.as_mut_slice())?;
        println!("row 7 of {}: {row:?}", file.size()? / (8 * ranks));
    }
    file.close()?;
    Ok(())
}
