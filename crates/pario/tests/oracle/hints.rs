//! Random hints: those of independent accesses, and every method of
//! collective ones, on assumed servers and with windows far smaller than
//! the data.

use fastrand::Rng;
use pario_plan::{Exchange, algorithm::ALGORITHMS, partition::PARTITIONS};

use crate::{generate::one_of, scenario::Hint};

const BUFFER_SIZES: [&str; 6] = ["1", "3", "17", "100", "1024", "4194304"];
/// Those that do not cut large accesses into too many windows.
const LARGE_BUFFER_SIZES: [&str; 3] = ["1000", "65536", "4194304"];

/// Hints that can change while the file is open.
pub(crate) fn hints(rng: &mut Rng, large: bool) -> Vec<Hint> {
    let buffer_sizes: &[&str] = match large {
        true => &LARGE_BUFFER_SIZES,
        false => &BUFFER_SIZES,
    };
    let methods = ["automatic", "direct", "list", "sieve"];
    let sieving = ["automatic", "enable", "disable"];
    let numbers = ["0", "1", "40", "100"];
    let table: [(&'static str, &[&str]); 10] = [
        ("pario_read_method", &methods),
        ("pario_write_method", &methods),
        ("romio_ds_read", &sieving),
        ("romio_ds_write", &sieving),
        ("ind_rd_buffer_size", buffer_sizes),
        ("ind_wr_buffer_size", buffer_sizes),
        ("pario_list_pieces", &["1", "2", "5", "1024"]),
        ("pario_sieve_extent", &["0", "20", "16384"]),
        ("pario_sieve_density", &numbers),
        ("pario_inflight_bytes", &["1", "5000", "67108864"]),
    ];
    draw_hints(rng, &table)
}

pub(crate) fn hints_at_open(rng: &mut Rng, one_node: bool) -> Vec<Hint> {
    let flags = ["true", "false"];
    let pointers: &[&str] = match one_node {
        true => &["memory", "file", "owner", "automatic"],
        false => &["file", "owner", "automatic"],
    };
    let table: [(&'static str, &[&str]); 10] = [
        ("pario_call_bytes", &["64", "8k", "1m"]),
        ("pario_cache_bytes", &["64k", "8m"]),
        ("pario_stored_pieces", &["1", "4", "4096"]),
        ("pario_rmw", &["locked", "never"]),
        ("pario_async", &["pool", "automatic"]),
        (
            "access_style",
            &["random", "sequential", "read_once,write_once"],
        ),
        ("direct_read", &flags),
        ("direct_write", &flags),
        ("pario_shared_pointer", pointers),
        ("pario_sync_on_close", &["false"]),
    ];
    draw_hints(rng, &table)
}

fn draw_hints(rng: &mut Rng, table: &[(&'static str, &[&str])]) -> Vec<Hint> {
    let mut drawn = Vec::new();
    for (name, values) in table {
        if rng.u32(..5) < 2 {
            drawn.push((*name, one_of(rng, values).to_owned()));
        }
    }
    drawn
}

/// The names of `pario_algorithm`.
pub(crate) fn algorithms() -> Vec<&'static str> {
    ALGORITHMS.iter().map(|it| it.name()).collect()
}

/// The names of `pario_partition`.
pub(crate) fn partitions() -> Vec<&'static str> {
    PARTITIONS.iter().map(|it| it.name()).collect()
}

/// The words of `pario_exchange`.
pub(crate) fn exchanges() -> Vec<&'static str> {
    let named = Exchange::ALL.into_iter().map(|it| it.name());
    named.chain(["automatic"]).collect()
}

/// Most often some of these: algorithms that gather take a partition, an
/// exchange, and windows that make many rounds of little data.
pub(crate) fn methods(rng: &mut Rng, large: bool) -> Vec<Hint> {
    let windows: &[&str] = match large {
        true => &LARGE_BUFFER_SIZES,
        false => &["7", "40", "100", "333", "1024", "16777216"],
    };
    let mut drawn = Vec::new();
    // Half of the calls are two-phase: the method with all the partitions.
    match rng.u32(..10) {
        0..4 => drawn.push(("pario_algorithm", "two-phase".to_owned())),
        4..9 => drawn.push(("pario_algorithm", one_of(rng, &algorithms()).to_owned())),
        _ => {}
    }
    for (name, values) in [
        ("pario_partition", &partitions()[..]),
        ("pario_exchange", &exchanges()[..]),
        ("cb_buffer_size", windows),
        ("pario_slice_bytes", windows),
    ] {
        if rng.u32(..10) > 0 {
            drawn.push((name, one_of(rng, values).to_owned()));
        }
    }
    let buffering = ["enable", "disable", "automatic"];
    let flags = ["true", "false"];
    let table: [(&'static str, &[&str]); 11] = [
        ("cb_nodes", &["1", "2", "3", "5", "16", "100"]),
        (
            "cb_config_list",
            &["*:1", "*:*", "0:2,*:1", "1:1", "2:*,0:1", "*:3"],
        ),
        ("romio_cb_fr_alignment", &["1", "7", "64", "1000"]),
        ("romio_cb_pfr", &flags),
        ("romio_cb_read", &buffering),
        ("romio_cb_write", &buffering),
        ("romio_cb_alltoall", &buffering),
        ("collective_buffering", &flags),
        ("pario_saturation_bytes", &["1", "50", "1048576"]),
        ("pario_stripe_multiple", &["1", "2", "5"]),
        ("pario_agents_per_server", &["1", "2", "3"]),
    ];
    drawn.extend(draw_hints(rng, &table));
    // Not the half a millisecond that it is by default: groups are many.
    drawn.push((
        "pario_timed_delay_us",
        one_of(rng, &["0", "1", "40"]).to_owned(),
    ));
    drawn
}

/// An assumed file system.
pub(crate) fn assumptions(rng: &mut Rng) -> Vec<Hint> {
    let mut drawn = Vec::new();
    if rng.u32(..4) > 0 {
        let striping = ["64,1", "10,3", "100,4", "37,2", "1000,7", "333,16"];
        drawn.push(("pario_assume_striping", one_of(rng, &striping).to_owned()));
    }
    let table: [(&'static str, &[&str]); 3] = [
        ("pario_assume_lock_granularity", &["1", "16", "100", "4096"]),
        ("pario_assume_lock_protocol", &["none", "server", "token"]),
        ("pario_assume_client", &["kernel", "library"]),
    ];
    drawn.extend(draw_hints(rng, &table));
    drawn
}
