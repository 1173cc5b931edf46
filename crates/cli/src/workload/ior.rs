//! IOR: one transfer per call, so that the cost of a call counts rather than that of a byte.

use pario_layout::{Basic, Datatype, TypeError};

use super::{Job, Piece, Setting, Step, Workload, signed};

/// Transfers per call through a strided datatype.
const TRANSFERS_PER_CALL: u64 = 16;

/// The random order is the same in every run, so that figures are comparable.
const SEED: u64 = 1;

pub(super) const IOR: Workload = Workload {
    name: "ior",
    about: "one transfer per call, segmented, strided or in random order (IOR; Zhang 2009)",
    parameters: &[
        ("segment", "bytes per transfer"),
        (
            "layout",
            "segmented (one part of the file per rank), strided or random (segmented, in any order)",
        ),
        (
            "access",
            "offsets (explicit ones), view (set once) or datatype (16 strided transfers per call)",
        ),
    ],
    job: |setting| Ok(Box::new(Ior::new(setting)?)),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Each call has an explicit offset; there is no view.
    Offsets,
    /// The first call sets a view of all transfers of the rank.
    View,
    /// The same, and each call moves several transfers.
    Datatype,
}

struct Ior {
    /// Bytes per transfer.
    transfer: u64,
    /// Transfers per rank.
    transfers: u64,
    /// Transfers per call.
    per_call: u64,
    ranks: u64,
    access: Access,
    /// Whether ranks take turns in the file; otherwise each has a part of its own.
    is_strided: bool,
    /// The order in which a rank moves the transfers of its part; empty if it is that of the file.
    order: Vec<u64>,
}

impl Ior {
    fn new(setting: &Setting) -> Result<Ior, String> {
        let choices = &setting.parameters;
        let transfer = choices.number("segment", 256 << 10)?;
        let layout = choices.word("layout", &["segmented", "strided", "random"])?;
        let access = match choices.word("access", &["offsets", "view", "datatype"])? {
            "view" => Access::View,
            "datatype" => Access::Datatype,
            _ => Access::Offsets,
        };
        if access == Access::Datatype && layout != "strided" {
            return Err(format!(
                "access=datatype requires layout=strided: the transfers of layout={layout} are \
                 contiguous or in any order"
            ));
        }
        let transfers = setting.items(transfer);
        setting.check_bytes(&[transfer, transfers])?;
        let mut order = Vec::new();
        if layout == "random" {
            order.extend(0..transfers);
            fastrand::Rng::with_seed(SEED).shuffle(&mut order);
        }
        Ok(Ior {
            transfer,
            transfers,
            per_call: match access {
                Access::Datatype => TRANSFERS_PER_CALL.min(transfers),
                Access::Offsets | Access::View => 1,
            },
            ranks: setting.ranks.into(),
            access,
            is_strided: layout == "strided",
            order,
        })
    }

    /// The place of a rank's transfer among those of its part. Ranks start at different places of a
    /// random order.
    fn place(&self, rank: u32, transfer: u64) -> u64 {
        let shift = u64::from(rank) * self.transfers / self.ranks;
        let index = (transfer + shift) % self.transfers;
        *self.order.get(index as usize).unwrap_or(&transfer)
    }

    /// Where a rank's transfer is in the file.
    fn start(&self, rank: u32, transfer: u64) -> u64 {
        let (rank, place) = (u64::from(rank), self.place(rank, transfer));
        let before = match self.is_strided {
            true => place * self.ranks + rank,
            false => rank * self.transfers + place,
        };
        before * self.transfer
    }

    /// The transfers of a call.
    fn of_call(&self, call: u64) -> std::ops::Range<u64> {
        let first = call * self.per_call;
        first..(first + self.per_call).min(self.transfers)
    }
}

impl Job for Ior {
    fn sizes(&self) -> String {
        let calls = self.calls();
        let plural = if self.per_call == 1 { "" } else { "s" };
        let (count, bytes) = (self.per_call, self.transfer);
        format!("{calls} calls of {count} transfer{plural} of {bytes} bytes per rank")
    }

    fn calls(&self) -> u64 {
        self.transfers.div_ceil(self.per_call)
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let transfers = self.of_call(call);
        let bytes = (transfers.end - transfers.start) * self.transfer;
        if self.access == Access::Offsets {
            let step = Step::dense(0, &byte, &byte, bytes);
            return Ok(step.at(self.start(rank, transfers.start)));
        }
        let (displacement, filetype) = match self.is_strided {
            true => {
                let transfer = Datatype::contiguous(self.transfer, &byte)?;
                let stride = signed(self.transfer * self.ranks);
                let turn = Datatype::resized(&transfer, 0, stride)?;
                (u64::from(rank) * self.transfer, turn)
            }
            false => (
                u64::from(rank) * self.transfers * self.transfer,
                byte.clone(),
            ),
        };
        let step = Step::dense(displacement, &byte, &filetype, bytes);
        let offset = self.place(rank, transfers.start) * self.transfer;
        Ok(match call {
            0 => Step { offset, ..step },
            _ => step.at(offset),
        })
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        for (index, transfer) in (0..).zip(self.of_call(call)) {
            each(Piece {
                file: self.start(rank, transfer),
                memory: index * self.transfer,
                bytes: self.transfer,
            });
        }
    }
}
