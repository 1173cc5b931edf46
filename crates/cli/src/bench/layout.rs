//! Layouts: the cost of building and look-ups, and the speed of packing small pieces.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use pario_layout::{Basic, Datatype, Layout, TypeError};

use crate::failure::Failure;
use crate::measure::{Buffer, Samples};
use crate::output::Table;

/// Blocks of the regular and of the irregular type.
const VECTOR_BLOCKS: u64 = 1_000_000_000;
const IRREGULAR_BLOCKS: usize = 1_000_000;

/// Random look-ups per repeat.
const LOOKUPS: u64 = 200_000;

/// Pieces whose copies are timed, and the data bytes of each copy: with gaps twice that, well
/// beyond a second-level cache.
const PIECE_LENGTHS: [u64; 3] = [8, 64, 4096];
const COPY_BYTES: usize = 16 << 20;

/// Measurements are interleaved; the best repeat counts.
const REPEATS: usize = 9;

/// Prints look-up and copy figures.
pub(super) fn run(out: &mut impl Write) -> Result<(), Failure> {
    lookups(out)
        .and_then(|()| writeln!(out))
        .map_err(Failure::Output)?;
    copies(out)
}

/// A measurement that is part of a repeat.
fn sample<T>(samples: &mut Samples, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    samples.push(start.elapsed());
    result
}

fn best(samples: &Samples) -> Duration {
    samples.best().unwrap_or_default()
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
    let mut table =
        Table::of_numbers(["type", "build", "bytes", "byte -> offset", "offset -> byte"]);
    let int = Datatype::basic(Basic::Int);
    let vector = || Datatype::vector(VECTOR_BLOCKS, 2, 5, &int);
    table.push(lookup_row("vector of 10^9 blocks", vector).map_err(io::Error::other)?);
    let blocks = irregular_blocks();
    let indexed = || Datatype::indexed(&blocks, &int);
    table.push(lookup_row("indexed of 10^6 blocks", indexed).map_err(io::Error::other)?);
    table.print(out)
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
    name: &str,
    build: impl Fn() -> Result<Datatype, TypeError>,
) -> Result<[String; 5], TypeError> {
    let layout = build()?.layout().clone();
    let [mut builds, mut offsets, mut below] = [const { Samples::new() }; 3];
    for _ in 0..REPEATS {
        sample(&mut builds, || black_box(build()))?;
        sample(&mut offsets, || look_up_offsets(&layout));
        sample(&mut below, || look_up_bytes(&layout));
    }
    let nanoseconds = |it: &Samples| format!("{} ns", best(it).as_nanos() / u128::from(LOOKUPS));
    Ok([
        name.to_owned(),
        format!("{:.1} µs", best(&builds).as_secs_f64() * 1e6),
        layout.heap_bytes().to_string(),
        nanoseconds(&offsets),
        nanoseconds(&below),
    ])
}

fn look_up_offsets(layout: &Layout) {
    let mut scatter = Scatter(2);
    for _ in 0..LOOKUPS {
        black_box(layout.offset_of(scatter.below(layout.size())));
    }
}

fn look_up_bytes(layout: &Layout) {
    let mut scatter = Scatter(3);
    let end = layout.true_upper_bound().unsigned_abs();
    for _ in 0..LOOKUPS {
        black_box(layout.bytes_below(scatter.below(end).cast_signed()));
    }
}

fn copies(out: &mut impl Write) -> Result<(), Failure> {
    let mut table = Table::of_numbers(["pieces at stride 2", "pack", "unpack", "memcpy"]);
    for length in PIECE_LENGTHS {
        let [memcpy, pack, unpack] = time_copies(length)?;
        let of_memcpy = |it: &Samples| format!("{:.2}", it.speed_over(&memcpy).unwrap_or(0.0));
        let gigabytes = COPY_BYTES as f64 / best(&memcpy).as_secs_f64() / 1e9;
        table.push([
            format!("{length} bytes, of memcpy"),
            of_memcpy(&pack),
            of_memcpy(&unpack),
            format!("{gigabytes:.1} GB/s"),
        ]);
    }
    let about = format!(
        "({} MiB of data, page-aligned, best of {REPEATS})",
        COPY_BYTES >> 20
    );
    table
        .print(out)
        .and_then(|()| writeln!(out, "{about}"))
        .map_err(Failure::Output)
}

/// Times of memcpy, pack and unpack. Memory is page-aligned, like most large arrays:
/// where a 64-byte piece starts within a cache line determines how many lines it touches.
fn time_copies(length: u64) -> Result<[Samples; 3], Failure> {
    let rejected = |error: String| Failure::Arguments(error);
    let count = COPY_BYTES as u64 / length;
    let vector = Datatype::vector(count, length, 2 * length.cast_signed(), &Basic::Byte.into());
    let layout = vector.map_err(|error| rejected(error.to_string()))?;
    let layout = layout.layout().clone();
    let mut memory = Buffer::new(2 * COPY_BYTES as u64, 1, 0)?;
    let mut packed = Buffer::new(COPY_BYTES as u64, 2, 0)?;
    let mut twin = Buffer::new(COPY_BYTES as u64, 3, 0)?;
    let (memory, packed) = (memory.bytes_mut(), packed.bytes_mut());
    let twin = twin.bytes_mut();
    let [mut memcpy, mut pack, mut unpack] = [const { Samples::new() }; 3];
    for _ in 0..REPEATS {
        sample(&mut memcpy, || {
            black_box(&mut *twin).copy_from_slice(black_box(packed));
        });
        let done = sample(&mut pack, || {
            layout.pack_slice(black_box(memory), 0, 0..layout.size(), packed)
        });
        done.map_err(|error| rejected(error.to_string()))?;
        let done = sample(&mut unpack, || {
            layout.unpack_slice(black_box(packed), memory, 0, 0..layout.size())
        });
        done.map_err(|error| rejected(error.to_string()))?;
        black_box(&*memory);
    }
    Ok([memcpy, pack, unpack])
}
