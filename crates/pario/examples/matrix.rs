//! Four ranks write the columns of a matrix into one file; one of them reads a row.
use pario::{Datatype, File, Info, Mode, Order, View, threads};

fn main() -> pario::Result<()> {
    let path = std::env::temp_dir().join(format!("matrix-{}", std::process::id()));
    threads::run(4, |comm| {
        let rank = u64::from(comm.rank());
        let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
        let file = File::open(&comm, &path, mode, &Info::new())?;

        // The matrix has 8 rows of 8 numbers; each rank sees two columns of it.
        let number = Datatype::of::<f64>();
        let columns = Datatype::subarray(&[8, 8], &[8, 2], &[0, 2 * rank], Order::C, &number)?;
        file.set_view(&View::new(0, &number, &columns))?;
        file.write_at_all(0, &[rank as f64; 16])?;
        file.sync()?;

        // The whole file, as numbers.
        file.set_view(&View::new(0, &number, &number))?;
        if rank == 0 {
            let mut row = [0.0; 8];
            file.read_at(24, &mut row)?;
            println!("row 3: {row:?}");
        }
        file.close()
    })?;
    Ok(())
}
