//! Layouts: what building and looking up costs, and how fast small pieces are packed.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use pario_layout::{Basic, Datatype, Layout, TypeError};

/// Blocks of the regular and of the irregular type.
const VECTOR_BLOCKS: u64 = 1_000_000_000;
const IRREGULAR_BLOCKS: usize = 1_000_000;

/// Times a look-up is repeated at random places.
const LOOKUPS: u64 = 200_000;

/// Pieces whose copies are timed, and the data bytes of each copy: with the gaps twice that, well
/// past a second-level cache.
const PIECE_LENGTHS: [u64; 3] = [8, 64, 4096];
const COPY_BYTES: usize = 16 << 20;

/// Measurements take turns so that a slow spell of the machine meets all of them; the best of the
/// rounds counts.
const ROUNDS: usize = 9;

/// Prints look-up and copy figures.
pub(super) fn run(out: &mut impl Write) -> io::Result<()> {
    lookups(out)?;
    writeln!(out)?;
    copies(out)
}

fn refused(error: TypeError) -> io::Error {
    io::Error::other(error)
}

/// A sequence of numbers that is the same in every run.
struct Scatter(u64);

impl Scatter {
    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's linear congruential generator; its high bits are the random ones.
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        const ADDEND: u64 = 1_442_695_040_888_963_407;
        self.0 = self.0.wrapping_mul(FACTOR).wrapping_add(ADDEND);
        ((u128::from(self.0) * u128::from(limit)) >> u64::BITS) as u64
    }
}

fn lookups(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<28} {:>12} {:>12} {:>14} {:>14}",
        "type", "build", "bytes", "byte -> offset", "offset -> byte"
    )?;
    let int = Datatype::basic(Basic::Int);
    let vector = || Datatype::vector(VECTOR_BLOCKS, 2, 5, &int);
    lookup_row(out, "vector of 10^9 blocks", vector)?;
    let blocks = irregular_blocks();
    lookup_row(out, "indexed of 10^6 blocks", || {
        Datatype::indexed(&blocks, &int)
    })
}

/// Blocks of one to eight elements with gaps of one to eight.
fn irregular_blocks() -> Vec<(u64, i64)> {
    let (mut scatter, mut place) = (Scatter(1), 0);
    let block = |_| {
        let length = 1 + scatter.below(8);
        let block = (length, place);
        place += length.cast_signed() + 1 + scatter.below(8).cast_signed();
        block
    };
    (0..IRREGULAR_BLOCKS).map(block).collect()
}

fn lookup_row(
    out: &mut impl Write,
    name: &str,
    build: impl Fn() -> Result<Datatype, TypeError>,
) -> io::Result<()> {
    let (mut best_build, mut best_offset, mut best_below) =
        (Duration::MAX, Duration::MAX, Duration::MAX);
    let layout = build().map_err(refused)?.layout().clone();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(build()).map_err(refused)?;
        best_build = best_build.min(start.elapsed());
        best_offset = best_offset.min(time_offsets(&layout));
        best_below = best_below.min(time_below(&layout));
    }
    let nanoseconds = |time: Duration| time.as_nanos() as f64 / LOOKUPS as f64;
    writeln!(
        out,
        "{name:<28} {:>9.1} µs {:>12} {:>11.0} ns {:>11.0} ns",
        best_build.as_nanos() as f64 / 1e3,
        layout.heap_bytes(),
        nanoseconds(best_offset),
        nanoseconds(best_below)
    )
}

fn time_offsets(layout: &Layout) -> Duration {
    let mut scatter = Scatter(2);
    let start = Instant::now();
    for _ in 0..LOOKUPS {
        black_box(layout.offset_of(scatter.below(layout.size())));
    }
    start.elapsed()
}

fn time_below(layout: &Layout) -> Duration {
    let mut scatter = Scatter(3);
    let end = layout.true_upper_bound().unsigned_abs();
    let start = Instant::now();
    for _ in 0..LOOKUPS {
        black_box(layout.bytes_below(scatter.below(end).cast_signed()));
    }
    start.elapsed()
}

/// The best times of one piece length.
#[derive(Clone, Copy)]
struct Copies {
    memcpy: Duration,
    pack: Duration,
    unpack: Duration,
}

fn copies(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<28} {:>12} {:>12} {:>12}   ({} MiB of data, page-aligned, best of {ROUNDS})",
        "pieces at stride 2",
        "pack",
        "unpack",
        "memcpy",
        COPY_BYTES >> 20
    )?;
    for len in PIECE_LENGTHS {
        let times = time_copies(len)?;
        let fraction = |time: Duration| times.memcpy.as_secs_f64() / time.as_secs_f64();
        writeln!(
            out,
            "{:<28} {:>12.2} {:>12.2} {:>7.1} GB/s",
            format!("{len} bytes, of memcpy"),
            fraction(times.pack),
            fraction(times.unpack),
            COPY_BYTES as f64 / times.memcpy.as_secs_f64() / 1e9
        )?;
    }
    Ok(())
}

fn time_copies(len: u64) -> io::Result<Copies> {
    let count = COPY_BYTES as u64 / len;
    let vector = Datatype::vector(count, len, 2 * len.cast_signed(), &Basic::Byte.into());
    let layout = vector.map_err(refused)?.layout().clone();
    let mut memory = Lines::new(1, 2 * COPY_BYTES);
    let mut packed = Lines::new(2, COPY_BYTES);
    let mut twin = Lines::new(3, COPY_BYTES);
    let (memory, packed, twin) = (memory.bytes(), packed.bytes(), twin.bytes());
    let mut best = Copies {
        memcpy: Duration::MAX,
        pack: Duration::MAX,
        unpack: Duration::MAX,
    };
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(&mut *twin).copy_from_slice(black_box(packed));
        best.memcpy = best.memcpy.min(start.elapsed());

        let start = Instant::now();
        let done = layout.pack_slice(black_box(memory), 0, 0..layout.size(), packed);
        done.map_err(io::Error::other)?;
        best.pack = best.pack.min(start.elapsed());

        let start = Instant::now();
        let done = layout.unpack_slice(black_box(packed), memory, 0, 0..layout.size());
        done.map_err(io::Error::other)?;
        best.unpack = best.unpack.min(start.elapsed());
        black_box(&*memory);
    }
    Ok(best)
}

/// Memory that starts at a page, as that of large arrays mostly does: where a
/// piece of 64 bytes starts within a cache line decides how many it touches.
struct Lines {
    memory: Vec<u8>,
    len: usize,
}

const PAGE_BYTES: usize = 4096;

impl Lines {
    fn new(fill: u8, len: usize) -> Lines {
        Lines {
            memory: vec![fill; len + PAGE_BYTES],
            len,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(PAGE_BYTES);
        &mut self.memory[start..start + self.len]
    }
}
