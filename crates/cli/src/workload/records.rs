//! Workloads with records of one size at regular distances.

use pario_layout::{Basic, Datatype, TypeError};

use super::{Job, Piece, Setting, Step, Workload, signed};

pub(super) const STRIDED: Workload = Workload {
    name: "strided",
    about: "interleaved records, one call; try --sweep record=64,4K,64K,1M",
    parameters: &[("record", "bytes per record")],
    job: |setting| {
        let record = setting.parameters.number("record", 4096)?;
        Records::interleaved(setting, record, setting.items(record), 1)
    },
};

/// Section 1 of Zhang 2009, whose segments of 32 KiB to 1 MiB resonate at 64 KiB, the striping
/// unit.
pub(super) const DEMO: Workload = Workload {
    name: "demo",
    about: "four interleaved segments per rank, per call: the resonance demonstration (Zhang 2009)",
    parameters: &[
        ("segment", "bytes per segment"),
        ("segments", "segments per rank, per call"),
    ],
    job: |setting| {
        let segment = setting.parameters.number("segment", 64 << 10)?;
        let count = setting.parameters.number("segments", 4)?;
        let calls = setting.items(segment.saturating_mul(count));
        Records::interleaved(setting, segment, count, calls)
    },
};

pub(super) const MPI_IO_TEST: Workload = Workload {
    name: "mpi-io-test",
    about: "one segment per rank in rank order, the next row in the next call (Zhang 2009)",
    parameters: &[("segment", "bytes per segment")],
    job: |setting| {
        let segment = setting.parameters.number("segment", 64 << 10)?;
        Records::interleaved(setting, segment, 1, setting.items(segment))
    },
};

pub(super) const NONCONTIG: Workload = Workload {
    name: "noncontig",
    about: "one column of a table of ints per rank, 16 MiB per call for all ranks (Zhang 2009)",
    parameters: &[
        ("elements", "ints per row of a column"),
        ("buffer", "bytes per call for all ranks"),
    ],
    job: |setting| {
        const INT: u64 = size_of::<i32>() as u64;
        let elements = setting.parameters.number("elements", 4096)?;
        setting.check_bytes(&[elements, INT])?;
        let record = elements * INT;
        let buffer = setting.parameters.number("buffer", 16 << 20)?;
        let rows = buffer / u64::from(setting.ranks) / record;
        let rows = rows.max(1).min(setting.items(record));
        Records::interleaved(setting, record, rows, setting.items(record * rows))
    },
};

/// Latency-IO of Chaarawi 2011: the cost of a call that moves very little data.
pub(super) const SMALL: Workload = Workload {
    name: "small",
    about: "1000 times set_view and a 4 KiB call per rank: latency (Chaarawi 2011)",
    parameters: &[
        ("bytes", "bytes per rank, per call"),
        ("calls", "number of calls"),
        (
            "view",
            "tiled (interleaved records) or contiguous (one record)",
        ),
    ],
    job: |setting| {
        let calls = (1000.0 * setting.scale).max(1.0) as u64;
        let calls = setting.parameters.number("calls", calls)?;
        let bytes = setting.parameters.number("bytes", 4096)?;
        let view = setting.parameters.word("view", &["tiled", "contiguous"])?;
        let mut records = Records::new(setting, bytes, 1, calls)?;
        if view == "contiguous" {
            records.view = View::Contiguous;
        }
        Ok(Box::new(records))
    },
};

/// Section 6.4 of Coloma 2006: each call is sparse, and the calls together fill the file.
pub(super) const STEPS: Workload = Workload {
    name: "steps",
    about: "time steps of a point side by side, sparse calls; Coloma 2006 is points=2048,steps=32",
    parameters: &[
        ("points", "data points of all ranks"),
        ("steps", "time steps, one call each"),
        ("variables", "variables of 32 bytes per data point"),
    ],
    job: |setting| {
        const VARIABLE: u64 = 32;
        let choices = &setting.parameters;
        let ranks = u64::from(setting.ranks);
        let steps = choices.number("steps", 16)?;
        let variables = choices.number("variables", 100)?;
        setting.check_bytes(&[variables, VARIABLE, steps])?;
        let record = variables * VARIABLE;
        let points = setting.items(record * steps) * ranks;
        let points = choices.number("points", points)?.div_ceil(ranks);
        let records = Records::new(setting, record, points, steps)?;
        Ok(Box::new(Records {
            stride: record * steps * ranks,
            rank_distance: record * steps,
            call_distance: record,
            ..records
        }))
    },
};

/// Records of one size. Distances are in bytes, between the starts of records.
struct Records {
    record: u64,
    /// Records per rank, per call.
    count: u64,
    calls: u64,
    /// From a record to the rank's next one in the same call.
    stride: u64,
    /// From a rank's first record to that of the next rank.
    rank_distance: u64,
    /// From a call's first record to that of the next call.
    call_distance: u64,
    view: View,
}

/// The kind of filetype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// A record and the gap after it.
    Tiled,
    /// A byte: the view has no gaps.
    Contiguous,
}

impl Records {
    /// Interleaved records; each call continues where the last one ended.
    fn new(setting: &Setting, record: u64, count: u64, calls: u64) -> Result<Self, String> {
        setting.check_bytes(&[record, count, calls])?;
        let stride = record * u64::from(setting.ranks);
        Ok(Records {
            record,
            count,
            calls,
            stride,
            rank_distance: record,
            call_distance: count * stride,
            view: View::Tiled,
        })
    }

    fn interleaved(
        setting: &Setting,
        record: u64,
        count: u64,
        calls: u64,
    ) -> Result<Box<dyn Job>, String> {
        Ok(Box::new(Self::new(setting, record, count, calls)?))
    }

    fn start(&self, rank: u32, call: u64) -> u64 {
        u64::from(rank) * self.rank_distance + call * self.call_distance
    }
}

impl Job for Records {
    fn sizes(&self) -> String {
        let Records {
            record,
            count,
            calls,
            ..
        } = self;
        let plural = if *count == 1 { "" } else { "s" };
        format!("{calls} calls of {count} record{plural} of {record} bytes per rank")
    }

    fn calls(&self) -> u64 {
        self.calls
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let filetype = match self.view {
            View::Tiled => {
                let record = Datatype::contiguous(self.record, &byte)?;
                Datatype::resized(&record, 0, signed(self.stride))?
            }
            View::Contiguous => byte.clone(),
        };
        let bytes = self.record * self.count;
        Ok(Step::dense(self.start(rank, call), &byte, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        for record in 0..self.count {
            each(Piece {
                file: self.start(rank, call) + record * self.stride,
                memory: record * self.record,
                bytes: self.record,
            });
        }
    }
}
