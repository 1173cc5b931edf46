//! Ranks that write disjoint, interleaved bytes of one file at the same time
//! must lose none of them (semantics rule 1).

use std::{ops::Range, sync::Arc};

use pario::{Basic, Datatype, File, Info, Result, View};
use pario_transport::Transport;

const CHUNK_BYTES_MAX: u64 = 64;
const FILE_BYTES: u64 = 16_000;
const ROUNDS: u64 = 3;

/// Hints by name; what the ranks agree on.
pub(crate) type Hints = Vec<(&'static str, String)>;

/// How a rank gets its bytes into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// One access for all of them.
    Whole,
    /// One access after the other, of a few pieces each.
    Parts,
    /// The same, all under way at once.
    Background,
    /// One contiguous access a piece, through a view of plain bytes.
    Pieces,
}

const STYLES: [Style; 4] = [Style::Whole, Style::Parts, Style::Background, Style::Pieces];
const METHODS: [&str; 4] = ["direct", "list", "sieve", "automatic"];

/// Who owns which bytes.
struct Shares {
    chunks: Vec<(Range<u64>, u32)>,
}

impl Shares {
    fn new(rng: &mut fastrand::Rng, ranks: u32) -> Shares {
        let mut chunks = Vec::new();
        let mut at = 0;
        while at < FILE_BYTES {
            let end = at + rng.u64(1..=CHUNK_BYTES_MAX);
            chunks.push((at..end, rng.u32(0..ranks)));
            at = end;
        }
        Shares { chunks }
    }

    fn of(&self, rank: u32) -> Vec<Range<u64>> {
        let own = self.chunks.iter().filter(|(_, owner)| *owner == rank);
        own.map(|(range, _)| range.clone()).collect()
    }
}

/// What a byte holds after a round. It changes with every round, so a byte
/// that someone put back to what it was before shows.
fn value(round: u64, byte: u64, owner: u32) -> u8 {
    (byte * 31 + round * 97 + u64::from(owner) * 13) as u8
}

fn values(round: u64, ranges: &[Range<u64>], owner: u32) -> Vec<u8> {
    let bytes = ranges.iter().cloned().flatten();
    bytes.map(|byte| value(round, byte, owner)).collect()
}

fn view_of(ranges: &[Range<u64>]) -> Result<View> {
    let byte = Datatype::basic(Basic::Byte);
    let blocks: Vec<_> = ranges
        .iter()
        .map(|range| (range.end - range.start, range.start as i64))
        .collect();
    Ok(View::new(0, &byte, &Datatype::hindexed(&blocks, &byte)?))
}

/// Hints of this rank's own, besides those that all share.
fn info(hints: &Hints, rng: &mut fastrand::Rng) -> Info {
    let own = [
        ("pario_write_method", *rng.choice(&METHODS).unwrap()),
        ("pario_read_method", *rng.choice(&METHODS).unwrap()),
        (
            "pario_list_pieces",
            *rng.choice(&["1", "3", "1024"]).unwrap(),
        ),
        (
            "ind_wr_buffer_size",
            *rng.choice(&["64", "777", "524288"]).unwrap(),
        ),
        (
            "ind_rd_buffer_size",
            *rng.choice(&["64", "777", "524288"]).unwrap(),
        ),
        (
            "pario_inflight_bytes",
            *rng.choice(&["1", "1000", "67108864"]).unwrap(),
        ),
    ];
    let given = hints.iter().map(|(name, value)| (*name, value.as_str()));
    Info::from_pairs(own.into_iter().chain(given)).unwrap()
}

/// Opens a file for this rank, with these hints.
pub(crate) type Open<'a> = &'a dyn Fn(&Arc<dyn Transport>, &Info) -> Result<File>;

/// What each rank does: rounds of concurrent writes, each checked by its
/// owner, and at last the whole file by everyone. Returns what was lost.
pub(crate) fn work(
    comm: &Arc<dyn Transport>,
    open: Open<'_>,
    hints: &Hints,
    seed: u64,
) -> Result<Option<String>> {
    work_in(&STYLES, comm, open, hints, seed)
}

/// As [`work`], with one access per rank and round: all ranks may rewrite at the same time, which
/// they do not while one of them writes in parts.
pub(crate) fn work_at_once(
    comm: &Arc<dyn Transport>,
    open: Open<'_>,
    hints: &Hints,
    seed: u64,
) -> Result<Option<String>> {
    work_in(&[Style::Whole], comm, open, hints, seed)
}

fn work_in(
    styles: &[Style],
    comm: &Arc<dyn Transport>,
    open: Open<'_>,
    hints: &Hints,
    seed: u64,
) -> Result<Option<String>> {
    let shares = Shares::new(&mut fastrand::Rng::with_seed(seed), comm.size());
    let rank = comm.rank().0;
    let mut rng = fastrand::Rng::with_seed(seed ^ (u64::from(rank) + 1) << 32);
    let ranges = shares.of(rank);
    let file = open(comm, &info(hints, &mut rng))?;
    let mut lost = None;
    for round in 1..=ROUNDS {
        let style = *rng.choice(styles).unwrap();
        match style {
            Style::Pieces => file.set_view(&View::bytes())?,
            _ => file.set_view(&view_of(&ranges)?)?,
        }
        let data = values(round, &ranges, rank);
        write(&file, style, &ranges, &data, &mut rng)?;
        comm.barrier()?;
        lost = lost.or(check_own(&file, style, &ranges, &data, round)?);
        comm.barrier()?;
    }
    file.sync()?;
    file.set_view(&View::bytes())?;
    let mut all = vec![0; shares.chunks.last().map_or(0, |(range, _)| range.end) as usize];
    assert_eq!(file.read_at(0, &mut all)?.bytes(), all.len() as u64);
    for (range, owner) in &shares.chunks {
        let expected = values(ROUNDS, std::slice::from_ref(range), *owner);
        if all[range.start as usize..range.end as usize] != expected {
            lost.get_or_insert(format!("bytes {range:?} of rank {owner} at the end"));
        }
    }
    comm.barrier()?;
    file.close()?;
    Ok(lost)
}

/// A walk over `data` in parts of random length.
fn parts(data: &[u8], rng: &mut fastrand::Rng) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let end = data.len().min(at + rng.usize(1..=600));
        parts.push(at..end);
        at = end;
    }
    parts
}

fn write(
    file: &File,
    style: Style,
    ranges: &[Range<u64>],
    data: &[u8],
    rng: &mut fastrand::Rng,
) -> Result<()> {
    let check = |bytes: u64, len: usize| assert_eq!(bytes, len as u64, "{style:?}");
    match style {
        Style::Whole => check(file.write_at(0, data)?.bytes(), data.len()),
        Style::Parts => {
            for part in parts(data, rng) {
                let len = part.len();
                check(file.write_at(part.start as u64, &data[part])?.bytes(), len);
            }
        }
        Style::Background => {
            let mut requests = Vec::new();
            for part in parts(data, rng) {
                requests.push(file.iwrite_at(part.start as u64, data[part].to_vec())?);
            }
            rng.shuffle(&mut requests);
            for request in requests {
                let (status, part) = request.wait()?;
                check(status.bytes(), part.len());
            }
        }
        Style::Pieces => {
            let mut rest = data;
            for range in ranges {
                let (piece, more) = rest.split_at((range.end - range.start) as usize);
                check(file.write_at(range.start, piece)?.bytes(), piece.len());
                rest = more;
            }
        }
    }
    Ok(())
}

/// This rank's bytes, read the way they were written.
fn check_own(
    file: &File,
    style: Style,
    ranges: &[Range<u64>],
    data: &[u8],
    round: u64,
) -> Result<Option<String>> {
    let mut found = vec![0; data.len()];
    if style == Style::Pieces {
        let mut rest = &mut found[..];
        for range in ranges {
            let (piece, more) = rest.split_at_mut((range.end - range.start) as usize);
            file.read_at(range.start, piece)?;
            rest = more;
        }
    } else {
        file.read_at(0, &mut found)?;
    }
    let wrong = found
        .iter()
        .zip(data)
        .position(|(found, wrote)| found != wrote);
    Ok(wrong.map(|index| {
        let byte = ranges.iter().cloned().flatten().nth(index);
        format!("byte {byte:?} in round {round}, written as {style:?}")
    }))
}
