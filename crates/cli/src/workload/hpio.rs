//! HPIO (Coloma 2006 and Zhang 2009): regions of a size, a count and a spacing, in memory and file.

use pario_layout::{Basic, Datatype, TypeError};

use super::{Job, Piece, Step, Workload, signed};

/// A region within the range of Coloma 2006's figure 4, and its spacing.
const REGION: u64 = 256;
const SPACING: u64 = 128;

pub(super) const HPIO: Workload = Workload {
    name: "hpio",
    about: "regions with spacing in memory and file; Coloma 2006 has count=4096, Zhang 2009 spacing=0",
    parameters: &[
        ("region", "bytes per region"),
        ("count", "regions per rank"),
        ("spacing", "bytes between regions"),
        ("memory", "spaced or contiguous"),
        ("file", "spaced or contiguous"),
        (
            "type",
            "succinct (one region, tiled) or enumerated (a vector of all regions)",
        ),
    ],
    job: |setting| {
        let choices = &setting.parameters;
        let region = choices.number("region", REGION)?;
        let spacing = choices.number_or_zero("spacing", SPACING)?;
        let gaps = |side: &str| {
            let word = choices.word(side, &["spaced", "contiguous"])?;
            Ok::<_, String>(if word == "spaced" { spacing } else { 0 })
        };
        let count = choices.number("count", setting.items(region))?;
        setting.check_bytes(&[region + spacing, count])?;
        Ok(Box::new(Regions {
            ranks: u64::from(setting.ranks),
            region,
            count,
            memory_stride: region + gaps("memory")?,
            file_shape: match choices.word("file", &["spaced", "contiguous"])? {
                "contiguous" => Shape::Contiguous,
                _ => Shape::Spaced(region + spacing),
            },
            description: match choices.word("type", &["succinct", "enumerated"])? {
                "enumerated" => Description::Enumerated,
                _ => Description::Succinct,
            },
        }))
    },
};

/// The arrangement of regions in the file.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One after the other, rank by rank.
    Contiguous,
    /// Interleaved with the other ranks', at a stride in bytes.
    Spaced(u64),
}

/// What the filetype describes.
#[derive(Clone, Copy, Debug)]
enum Description {
    /// One region, which the view repeats.
    Succinct,
    /// All regions of the access.
    Enumerated,
}

struct Regions {
    ranks: u64,
    region: u64,
    count: u64,
    memory_stride: u64,
    file_shape: Shape,
    description: Description,
}

impl Regions {
    fn filetype(&self, region: &Datatype, stride: u64) -> Result<Datatype, TypeError> {
        let stride = signed(stride * self.ranks);
        match self.description {
            Description::Succinct => Datatype::resized(region, 0, stride),
            Description::Enumerated => Datatype::hvector(self.count, 1, stride, region),
        }
    }
}

impl Job for Regions {
    fn sizes(&self) -> String {
        let Regions { region, count, .. } = self;
        let file = match self.file_shape {
            Shape::Contiguous => "contiguous".to_owned(),
            Shape::Spaced(stride) => format!("{} apart", stride - region),
        };
        let memory = self.memory_stride - region;
        let description = match self.description {
            Description::Succinct => "succinct",
            Description::Enumerated => "enumerated",
        };
        format!(
            "{count} regions of {region} bytes per rank, {file} in the file, \
             {memory} apart in memory, {description}"
        )
    }

    fn step(&self, rank: u32, _call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let region = Datatype::contiguous(self.region, &byte)?;
        let (displacement, filetype) = match self.file_shape {
            Shape::Contiguous => (u64::from(rank) * self.count * self.region, byte.clone()),
            Shape::Spaced(stride) => (u64::from(rank) * stride, self.filetype(&region, stride)?),
        };
        Ok(Step {
            displacement,
            etype: byte,
            filetype,
            sets_view: true,
            offset: 0,
            memory: Datatype::resized(&region, 0, signed(self.memory_stride))?,
            count: self.count,
            memory_bytes: self.count * self.memory_stride,
        })
    }

    fn pieces(&self, rank: u32, _call: u64, each: &mut dyn FnMut(Piece)) {
        let rank = u64::from(rank);
        for number in 0..self.count {
            let file = match self.file_shape {
                Shape::Contiguous => (rank * self.count + number) * self.region,
                Shape::Spaced(stride) => (number * self.ranks + rank) * stride,
            };
            each(Piece {
                file,
                memory: number * self.memory_stride,
                bytes: self.region,
            });
        }
    }
}
