//! Access patterns from the parallel I/O literature.
//!
//! Each is described twice: by views and memory types, which the library sees, and by a
//! formula for the pieces, which gives the expected bytes. A wrong layout is detected, not timed.

mod arrays;
mod block;
mod btio;
mod cyclic;
mod dist3d;
mod flash;
mod hpio;
mod indexed;
mod ior;
mod parameters;
mod records;

use pario_layout::{Basic, Datatype, TypeError};
use pario_plan::Access;

pub(crate) use parameters::{Parameters, parse_size};

/// No file of a job is longer than this.
const JOB_BYTES_MAX: u64 = 1 << 42;

/// Bytes that a rank moves at scale 1, about.
pub(crate) const RANK_BYTES: u64 = 8 << 20;

/// Selects every workload.
pub(crate) const ALL: &str = "all";

/// A named pattern.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// One line about it.
    pub(crate) about: &'static str,
    /// Its parameters: names and meanings.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    job: fn(&Setting) -> Result<Box<dyn Job>, String>,
}

/// All workloads, in the order of tables.
pub(crate) const WORKLOADS: &[&Workload] = &[
    &dist3d::DIST3D,
    &arrays::COLL_PERF,
    &btio::BTIO,
    &flash::FLASH,
    &arrays::S3D,
    &hpio::HPIO,
    &records::NONCONTIG,
    &records::MPI_IO_TEST,
    &ior::IOR,
    &arrays::TILE,
    &records::STEPS,
    &records::DEMO,
    &records::SMALL,
    &records::STRIDED,
    &cyclic::CYCLIC,
    &indexed::INDEXED,
];

impl Workload {
    /// The job of a setting, or why there is none.
    pub(crate) fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        (self.job)(setting).map_err(|reason| format!("{}: {reason}", self.name))
    }
}

/// Parses `name:parameter=value,parameter=value`.
pub(crate) fn parse(text: &str) -> Result<(&'static Workload, Parameters), String> {
    let (name, choices) = text.split_once(':').unwrap_or((text, ""));
    let workload = WORKLOADS.iter().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<_> = WORKLOADS.iter().map(|it| it.name).collect();
        format!(
            "unknown workload `{name}`; workloads are {}",
            names.join(", ")
        )
    })?;
    let parameters = Parameters::parse(choices, workload.parameters);
    let parameters = parameters.map_err(|reason| format!("{name}: {reason}"))?;
    Ok((workload, parameters))
}

/// Splits a list of workloads at its commas, except those between the parameters of one workload:
/// `btio,hpio:region=64,spacing=0,small` has three.
pub(crate) fn split_list(lists: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for list in lists {
        for (index, part) in list.split(',').enumerate() {
            let is_choice = part.contains('=') && !part.contains(':');
            match names.last_mut() {
                Some(name) if is_choice && index > 0 => *name += &format!(",{part}"),
                _ => names.push(part.to_owned()),
            }
        }
    }
    names
}

/// A factor on the data per rank.
pub(crate) fn parse_scale(text: &str, max: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= max => Ok(scale),
        _ => Err(format!("must be a number above 0, at most {max}")),
    }
}

/// How large a job is, and for how many ranks.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Number of ranks, not zero.
    pub(crate) ranks: u32,
    /// Factor on the data per rank.
    pub(crate) scale: f64,
    /// The parameters of the workload.
    pub(crate) parameters: Parameters,
}

impl Setting {
    /// Bytes that each rank should move, about.
    fn rank_bytes(&self) -> u64 {
        (RANK_BYTES as f64 * self.scale) as u64
    }

    /// How many items of a given size make up each rank's data; at least one.
    fn items(&self, bytes: u64) -> u64 {
        (self.rank_bytes() / bytes.max(1)).max(1)
    }

    /// Fails if the product of these numbers, one of which is in bytes, and the number of ranks
    /// exceeds the limit of a job.
    fn check_bytes(&self, factors: &[u64]) -> Result<(), String> {
        let ranks = u64::from(self.ranks);
        let product = factors
            .iter()
            .try_fold(ranks, |product, factor| product.checked_mul(*factor));
        match product {
            Some(bytes) if bytes <= JOB_BYTES_MAX => Ok(()),
            _ => Err(format!(
                "the file would exceed {JOB_BYTES_MAX} bytes: choose smaller sizes"
            )),
        }
    }

    /// The edge of a cube of items of a given size that makes up each rank's data; at least two.
    fn edge(&self, bytes: u64) -> u64 {
        (self.items(bytes) as f64).cbrt().round().max(2.0) as u64
    }
}

/// A workload of a given size, ready to run.
pub(crate) trait Job: Sync {
    /// A short description of its sizes.
    fn sizes(&self) -> String;

    /// The number of calls of each rank.
    fn calls(&self) -> u64 {
        1
    }

    /// The arguments of a rank's call.
    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError>;

    /// Where the bytes of a call are, in the order of the data. Computed without datatypes.
    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece));
}

/// One call of one rank: a view of the file and what moves through it, from where.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Where the view starts.
    pub(crate) displacement: u64,
    /// The view's unit.
    pub(crate) etype: Datatype,
    /// The view's pattern.
    pub(crate) filetype: Datatype,
    /// Whether the view is set before the call. Otherwise it is that of the preceding call, or the
    /// bytes of the file.
    pub(crate) sets_view: bool,
    /// Where the call starts, in bytes of the view's data; etypes are bytes unless it is 0.
    pub(crate) offset: u64,
    /// The datatype of an item in memory.
    pub(crate) memory: Datatype,
    pub(crate) count: u64,
    /// Bytes of memory spanned by the items.
    pub(crate) memory_bytes: u64,
}

impl Step {
    /// A call in which memory has no gaps.
    fn dense(displacement: u64, etype: &Datatype, filetype: &Datatype, bytes: u64) -> Step {
        Step {
            displacement,
            etype: etype.clone(),
            filetype: filetype.clone(),
            sets_view: true,
            offset: 0,
            memory: Basic::Byte.into(),
            count: bytes,
            memory_bytes: bytes,
        }
    }

    /// The call at an explicit offset of a view that is in force already.
    fn at(self, offset: u64) -> Step {
        Step {
            sets_view: false,
            offset,
            ..self
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.size() * self.count
    }

    /// The bytes of the file; `None` if they reach beyond the largest file offset.
    pub(crate) fn access(&self) -> Option<Access> {
        let layout = self.filetype.layout().clone();
        Access::new(self.displacement, layout, self.offset, self.bytes())
    }
}

/// Contiguous bytes, in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where they are in the file.
    pub(crate) file: u64,
    /// Where they are in the memory of the call.
    pub(crate) memory: u64,
    pub(crate) bytes: u64,
}

/// A displacement or an extent in a datatype.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("no job is larger than JOB_BYTES_MAX")
}

/// A job by the name and parameters of its workload.
#[cfg(test)]
pub(crate) fn test_job(workload: &str, ranks: u32, scale: f64) -> Box<dyn Job> {
    let (workload, parameters) = parse(workload).unwrap();
    let setting = Setting {
        ranks,
        scale,
        parameters,
    };
    workload.job(&setting).unwrap()
}

#[cfg(test)]
mod tests;
