//! The access patterns of a comparison: workloads at sizes that stay the same from version to
//! version, so that figures are comparable.

use crate::workload::{self, Job, RANK_BYTES, Setting};

/// A workload with its own name and size.
pub(crate) struct Pattern {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    workload: &'static str,
    /// Bytes that a rank moves at scale 1, about.
    rank_bytes: f64,
    choices: fn(Size) -> String,
}

/// The size of a pattern.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Bytes of a rank, about.
    bytes: f64,
    ranks: u64,
}

impl Size {
    /// The number of items of a given size per rank; at least one.
    fn items(self, bytes: f64) -> u64 {
        ((self.bytes / bytes) as u64).max(1)
    }

    /// The edge of a cube of that many elements per rank, for all ranks together, in multiples of
    /// `unit`; at least one.
    fn side(self, elements: f64, unit: u64) -> u64 {
        let edge = (elements * self.ranks as f64).cbrt() as u64;
        (edge / unit * unit).max(unit)
    }
}

/// Bytes that a rank moves at scale 1, about.
const USUAL: f64 = 64e6;
/// The same for small pieces or pieces with holes.
const HALF: f64 = 32e6;
/// The same for the smallest pieces.
const QUARTER: f64 = 16e6;

/// The same for the largest transfers.
const EIGHT_LARGE: f64 = (8 * (16 << 20)) as f64;

/// Bytes of an int, a double and a point of BTIO.
const INT: f64 = 4.0;
const DOUBLE: f64 = 8.0;
const POINT: f64 = 40.0;

/// The usual patterns, in the order of tables.
pub(crate) const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "contig",
        about: "one contiguous share per rank",
        workload: "ior",
        rank_bytes: USUAL,
        choices: |size| format!("segment={},access=view", size.items(4096.0) * 4096),
    },
    strided("strided1m", "interleaved records of 1 MiB", |_| {
        "record=1M".into()
    }),
    strided("strided64k", "interleaved records of 64 KiB", |_| {
        "record=64K".into()
    }),
    strided("strided4k", "interleaved records of 4 KiB", |_| {
        "record=4K".into()
    }),
    strided("strided64", "interleaved records of 64 bytes", |_| {
        "record=64".into()
    }),
    Pattern {
        name: "coll_perf",
        about: "3-D array of ints in blocks",
        workload: "coll_perf",
        rank_bytes: USUAL,
        choices: |size| format!("side={}", size.side(size.bytes / INT, 4)),
    },
    Pattern {
        name: "hpio",
        about: "256-byte regions 128 bytes apart, in file and memory",
        workload: "hpio",
        rank_bytes: HALF,
        choices: |size| format!("region=256,spacing=128,count={}", size.items(256.0)),
    },
    Pattern {
        name: "tile",
        about: "2-D tiles of 64-byte elements",
        workload: "tile",
        rank_bytes: USUAL,
        choices: |size| {
            const UNIT: u64 = 16;
            let edge = ((size.items(64.0) as f64).sqrt() as u64 / UNIT * UNIT).max(UNIT);
            format!("element=64,width={edge},height={edge}")
        },
    },
    Pattern {
        name: "btio",
        about: "block-tridiagonal cells of a 3-D grid, 4 calls",
        workload: "btio",
        rank_bytes: USUAL,
        choices: |size| {
            let side = size.side(size.bytes / 4.0 / POINT, size.ranks.isqrt());
            format!("steps=4,side={side}")
        },
    },
    Pattern {
        name: "flash",
        about: "24 variables, guard cells in memory, 24 calls",
        workload: "flash",
        rank_bytes: USUAL,
        choices: |size| {
            let blocks = size.items(24.0 * 16.0 * 16.0 * 16.0 * DOUBLE);
            format!("edge=16,blocks={blocks}")
        },
    },
    Pattern {
        name: "s3d",
        about: "arrays of 11, 3, 1 and 1 components in x-y-z blocks, 4 calls",
        workload: "s3d",
        rank_bytes: USUAL,
        choices: |size| format!("side={}", size.side(size.bytes / 16.0 / DOUBLE, 4)),
    },
    Pattern {
        name: "steps",
        about: "time steps of a point side by side, 16 sparse calls",
        workload: "steps",
        rank_bytes: USUAL,
        choices: |size| {
            let points = size.items(16.0 * 3200.0) * size.ranks;
            format!("steps=16,variables=100,points={points}")
        },
    },
    Pattern {
        name: "cyclic",
        about: "single doubles in round-robin order (darray)",
        workload: "cyclic",
        rank_bytes: QUARTER,
        choices: |_| "block=1".into(),
    },
    Pattern {
        name: "indexed",
        about: "irregular blocks of 1 to 2 KiB (hindexed)",
        workload: "indexed",
        rank_bytes: HALF,
        choices: |_| "shortest=1024".into(),
    },
    Pattern {
        name: "small",
        about: "200 calls of 4 KiB per rank",
        workload: "small",
        rank_bytes: 200.0 * 4096.0,
        choices: |_| "bytes=4096,calls=200,view=contiguous".into(),
    },
    ior(
        "ior4k",
        QUARTER,
        "transfers of 4 KiB, strided, explicit offsets",
        |_| "segment=4K,layout=strided,access=offsets".into(),
    ),
    ior(
        "ior64k",
        USUAL,
        "transfers of 64 KiB, strided, explicit offsets",
        |_| "segment=64K,layout=strided,access=offsets".into(),
    ),
    ior(
        "ior1m",
        USUAL,
        "transfers of 1 MiB, strided, explicit offsets",
        |_| "segment=1M,layout=strided,access=offsets".into(),
    ),
];

/// More patterns of IOR, which are measured on request.
const MORE_OF_IOR: &[Pattern] = &[
    ior(
        "ior4k-segmented",
        QUARTER,
        "transfers of 4 KiB, each rank in its own part, explicit offsets",
        |_| "segment=4K,layout=segmented,access=offsets".into(),
    ),
    ior(
        "ior4k-random",
        QUARTER,
        "transfers of 4 KiB, in random order, explicit offsets",
        |_| "segment=4K,layout=random,access=offsets".into(),
    ),
    ior(
        "ior4k-view",
        QUARTER,
        "transfers of 4 KiB, strided, through a view that is set once",
        |_| "segment=4K,layout=strided,access=view".into(),
    ),
    ior(
        "ior4k-datatype",
        QUARTER,
        "transfers of 4 KiB, strided, 16 per call",
        |_| "segment=4K,layout=strided,access=datatype".into(),
    ),
    ior(
        "ior64k-segmented",
        USUAL,
        "transfers of 64 KiB, each rank in its own part, explicit offsets",
        |_| "segment=64K,layout=segmented,access=offsets".into(),
    ),
    ior(
        "ior64k-random",
        USUAL,
        "transfers of 64 KiB, in random order, explicit offsets",
        |_| "segment=64K,layout=random,access=offsets".into(),
    ),
    ior(
        "ior64k-view",
        USUAL,
        "transfers of 64 KiB, strided, through a view that is set once",
        |_| "segment=64K,layout=strided,access=view".into(),
    ),
    ior(
        "ior64k-datatype",
        USUAL,
        "transfers of 64 KiB, strided, 16 per call",
        |_| "segment=64K,layout=strided,access=datatype".into(),
    ),
    ior(
        "ior1m-segmented",
        USUAL,
        "transfers of 1 MiB, each rank in its own part, explicit offsets",
        |_| "segment=1M,layout=segmented,access=offsets".into(),
    ),
    ior(
        "ior1m-random",
        USUAL,
        "transfers of 1 MiB, in random order, explicit offsets",
        |_| "segment=1M,layout=random,access=offsets".into(),
    ),
    ior(
        "ior1m-view",
        USUAL,
        "transfers of 1 MiB, strided, through a view that is set once",
        |_| "segment=1M,layout=strided,access=view".into(),
    ),
    ior(
        "ior1m-datatype",
        USUAL,
        "transfers of 1 MiB, strided, 16 per call",
        |_| "segment=1M,layout=strided,access=datatype".into(),
    ),
    ior(
        "ior16m",
        EIGHT_LARGE,
        "transfers of 16 MiB, strided, explicit offsets",
        |_| "segment=16M,layout=strided,access=offsets".into(),
    ),
    ior(
        "ior16m-segmented",
        EIGHT_LARGE,
        "transfers of 16 MiB, each rank in its own part, explicit offsets",
        |_| "segment=16M,layout=segmented,access=offsets".into(),
    ),
    ior(
        "ior16m-random",
        EIGHT_LARGE,
        "transfers of 16 MiB, in random order, explicit offsets",
        |_| "segment=16M,layout=random,access=offsets".into(),
    ),
    ior(
        "ior16m-view",
        EIGHT_LARGE,
        "transfers of 16 MiB, strided, through a view that is set once",
        |_| "segment=16M,layout=strided,access=view".into(),
    ),
    ior(
        "ior16m-datatype",
        EIGHT_LARGE,
        "transfers of 16 MiB, strided, 16 per call",
        |_| "segment=16M,layout=strided,access=datatype".into(),
    ),
];

/// Selects all patterns of IOR.
const IOR: &str = "ior";

const fn strided(name: &'static str, about: &'static str, choices: fn(Size) -> String) -> Pattern {
    Pattern {
        name,
        about,
        workload: "strided",
        rank_bytes: USUAL,
        choices,
    }
}

/// One transfer per call, or 16.
const fn ior(
    name: &'static str,
    rank_bytes: f64,
    about: &'static str,
    choices: fn(Size) -> String,
) -> Pattern {
    Pattern {
        name,
        about,
        workload: "ior",
        rank_bytes,
        choices,
    }
}

impl Pattern {
    /// The job of a number of ranks at a scale.
    pub(crate) fn job(&self, ranks: u32, scale: f64) -> Result<Box<dyn Job>, String> {
        let size = Size {
            bytes: self.rank_bytes * scale,
            ranks: u64::from(ranks),
        };
        let choices = (self.choices)(size);
        let (workload, parameters) = workload::parse(&format!("{}:{choices}", self.workload))?;
        workload.job(&Setting {
            ranks,
            scale: size.bytes / RANK_BYTES as f64,
            parameters,
        })
    }
}

/// The patterns with these names, in the order of tables; the usual ones if none is given.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static Pattern>, String> {
    let names = workload::split_list(names);
    let every = || PATTERNS.iter().chain(MORE_OF_IOR);
    let is_known = |name: &String| {
        [workload::ALL, IOR].contains(&name.as_str()) || every().any(|it| it.name == name)
    };
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<_> = every().map(|it| it.name).collect();
        return Err(format!(
            "unknown workload `{unknown}`; `bench compare` has {}, and `{IOR}` for those of IOR",
            known.join(", ")
        ));
    }
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let usual = PATTERNS
        .iter()
        .filter(|it| names.is_empty() || has(workload::ALL) || is_selected(it, &has));
    let more = MORE_OF_IOR.iter().filter(|it| is_selected(it, &has));
    Ok(usual.chain(more).collect())
}

/// Whether the names select this pattern, by its own name or by that of IOR.
fn is_selected(pattern: &Pattern, has: &impl Fn(&str) -> bool) -> bool {
    has(pattern.name) || (pattern.name.starts_with(IOR) && has(IOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(pattern: &Pattern, ranks: u32, scale: f64) -> u64 {
        let job = pattern.job(ranks, scale).unwrap();
        let steps = (0..ranks).flat_map(|rank| (0..job.calls()).map(move |call| (rank, call)));
        steps
            .map(|(rank, call)| job.step(rank, call).unwrap().bytes())
            .sum()
    }

    #[test]
    fn every_pattern_has_its_size() {
        for pattern in PATTERNS.iter().chain(MORE_OF_IOR) {
            for ranks in [2, 4] {
                let wanted = pattern.rank_bytes * f64::from(ranks);
                let share = bytes(pattern, ranks, 1.0) as f64 / wanted;
                // Blocks are whole, and some ranks of flash have one or two more.
                assert!((0.9..1.1).contains(&share), "{}: {share}", pattern.name);
            }
        }
    }

    /// Their pieces, in the order of the calls, or their numbers of calls.
    #[test]
    fn patterns_of_one_size_differ() {
        let mut seen = std::collections::BTreeSet::new();
        for pattern in PATTERNS.iter().chain(MORE_OF_IOR) {
            let job = pattern.job(2, 1.0).unwrap();
            let mut pieces = Vec::new();
            for call in 0..job.calls() {
                job.pieces(1, call, &mut |piece| pieces.push((piece.file, piece.bytes)));
            }
            let first = job.step(1, 0).unwrap();
            let key = (first.sets_view, job.calls(), pieces);
            assert!(seen.insert(key), "{}", pattern.name);
        }
    }

    #[test]
    fn the_smallest_scales_and_odd_numbers_of_ranks_work() {
        for pattern in PATTERNS.iter().chain(MORE_OF_IOR) {
            for ranks in [1, 3, 7] {
                assert!(bytes(pattern, ranks, 1e-9) > 0, "{}", pattern.name);
            }
        }
    }

    #[test]
    fn sizes_are_those_of_earlier_figures() {
        let total = |name: &str, ranks| {
            let patterns = named(&[name.to_owned()]).unwrap();
            bytes(patterns[0], ranks, 1.0)
        };
        assert_eq!(total("contig", 2), 2 * 15_625 * 4096);
        assert_eq!(total("strided64k", 2), 2 * 976 * 65_536);
        assert_eq!(total("coll_perf", 2), 316 * 316 * 316 * 4);
        assert_eq!(total("tile", 4), 4 * 992 * 992 * 64);
        assert_eq!(total("steps", 2), 2 * 1250 * 51_200);
        assert_eq!(total("cyclic", 4), 4 * 16_000_000);
        assert_eq!(total("small", 2), 2 * 200 * 4096);
    }

    #[test]
    fn unknown_names_are_reported() {
        assert_eq!(named(&[]).unwrap().len(), 18);
        assert_eq!(named(&["all".to_owned()]).unwrap().len(), 18);
        assert_eq!(named(&["ior".to_owned()]).unwrap().len(), 20);
        assert_eq!(named(&["all,ior".to_owned()]).unwrap().len(), 35);
        assert_eq!(named(&["ior1m-view".to_owned()]).unwrap().len(), 1);
        assert_eq!(named(&["tile,small".to_owned()]).unwrap().len(), 2);
        let error = named(&["tiles".to_owned()]).err().unwrap();
        assert!(error.contains("`tiles`") && error.contains("strided64k"));
    }
}
