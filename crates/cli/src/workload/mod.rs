//! The access patterns of the literature on parallel I/O. One file a workload.
//!
//! Each is described twice: as views and memory types, which is what the library sees, and as a
//! formula for the pieces, which is what the bytes must be. A wrong layout is found, not timed.

mod block;
mod btio;
mod coll_perf;
mod cyclic;
mod demo;
mod dist3d;
mod flash;
mod hpio;
mod indexed;
mod ior;
mod mpi_io_test;
mod noncontig;
mod parameters;
mod records;
mod s3d;
mod small;
mod steps;
mod strided;
mod tile;

use pario_layout::{Basic, Datatype, TypeError};

pub(crate) use parameters::{Parameter, Parameters, parse_size};

/// No file of a job is longer than this.
const JOB_BYTES_MAX: u64 = 1 << 42;

/// Bytes that a rank moves at scale 1, about.
pub(crate) const RANK_BYTES: u64 = 8 << 20;

/// A pattern that can be named.
pub(crate) trait Workload: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn about(&self) -> &'static str;

    /// What can be chosen about it.
    fn parameters(&self) -> &'static [Parameter];

    /// The job of a setting, or why there is none.
    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String>;
}

/// All workloads, in the order of tables.
pub(crate) const WORKLOADS: &[&dyn Workload] = &[
    &dist3d::Dist3d,
    &coll_perf::CollPerf,
    &btio::Btio,
    &flash::Flash,
    &s3d::S3d,
    &hpio::Hpio,
    &noncontig::Noncontig,
    &mpi_io_test::MpiIoTest,
    &ior::Ior,
    &tile::Tile,
    &steps::Steps,
    &demo::Demo,
    &small::Small,
    &strided::Strided,
    &cyclic::Cyclic,
    &indexed::Indexed,
];

/// The workload of that name.
pub(crate) fn by_name(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS
        .iter()
        .copied()
        .find(|workload| workload.name() == name)
}

/// How large a job is, and for how many ranks.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Number of ranks, not zero.
    pub(crate) ranks: u32,
    /// Factor on the data of each rank.
    pub(crate) scale: f64,
    /// What was chosen about the workload.
    pub(crate) parameters: Parameters,
}

impl Setting {
    /// Bytes that each rank should move, about.
    fn rank_bytes(&self) -> u64 {
        (RANK_BYTES as f64 * self.scale) as u64
    }

    /// How many items of some bytes make up what each rank should move; at least one.
    fn items(&self, bytes: u64) -> u64 {
        (self.rank_bytes() / bytes.max(1)).max(1)
    }

    /// Fails if the product of these numbers, one of which is in bytes, and the number of ranks
    /// is more than a job may have.
    fn check_bytes(&self, factors: &[u64]) -> Result<(), String> {
        let ranks = u64::from(self.ranks);
        let product = factors
            .iter()
            .try_fold(ranks, |product, factor| product.checked_mul(*factor));
        match product {
            Some(bytes) if bytes <= JOB_BYTES_MAX => Ok(()),
            _ => Err(format!(
                "a file of more than {JOB_BYTES_MAX} bytes is too much: choose smaller sizes"
            )),
        }
    }

    /// The edge of a cube of items of some bytes that each rank should move; at least two.
    fn edge(&self, bytes: u64) -> u64 {
        (self.items(bytes) as f64).cbrt().round().max(2.0) as u64
    }
}

/// A workload of a certain size, ready to run.
pub(crate) trait Job: Sync {
    /// Its sizes, in a few words.
    fn sizes(&self) -> String;

    /// How many collective calls it makes, each with a view of its own.
    fn calls(&self) -> u64 {
        1
    }

    /// What a rank gives to a call.
    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError>;

    /// Where the bytes of a call are, in the order of the data. Computed without datatypes.
    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece));
}

/// One call of one rank: a view of the file and what moves through it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Where the view starts.
    pub(crate) displacement: u64,
    /// The view's unit.
    pub(crate) etype: Datatype,
    /// The view's pattern.
    pub(crate) filetype: Datatype,
    /// What an item in memory is.
    pub(crate) memory: Datatype,
    /// How many items move.
    pub(crate) count: u64,
    /// Bytes of memory that the items span.
    pub(crate) memory_bytes: u64,
}

impl Step {
    /// A call in which memory has no gaps.
    fn dense(displacement: u64, etype: &Datatype, filetype: &Datatype, bytes: u64) -> Step {
        Step {
            displacement,
            etype: etype.clone(),
            filetype: filetype.clone(),
            memory: Basic::Byte.into(),
            count: bytes,
            memory_bytes: bytes,
        }
    }

    /// A call that moves so many bytes in a row.
    fn contiguous(displacement: u64, bytes: u64) -> Step {
        let byte = Datatype::basic(Basic::Byte);
        Step::dense(displacement, &byte, &byte, bytes)
    }

    /// Bytes that move.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.size() * self.count
    }
}

/// Bytes in a row, in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where they are in the file.
    pub(crate) file: u64,
    /// Where they are in the memory of the call.
    pub(crate) memory: u64,
    /// How many.
    pub(crate) bytes: u64,
}

/// A displacement or an extent in a datatype.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("no job is larger than JOB_BYTES_MAX")
}

#[cfg(test)]
mod tests;
