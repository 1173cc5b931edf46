//! Random hints: known ones, with good and bad values, and such as nobody knows.

use super::case::Hints;
use super::random::Random;

const SIZES: &[&str] = &[
    "1", "7", "64", "100", "512", "4096", "65536", "4m", "-3", "many",
];
const SWITCHES: &[&str] = &["enable", "disable", "automatic", "true", "false", "perhaps"];
const NUMBERS: &[&str] = &["1", "2", "3", "16", "0", "x"];

/// Hints and values worth trying. None may change what a correct program sees.
const KNOWN: &[(&str, &[&str])] = &[
    ("cb_buffer_size", SIZES),
    ("cb_nodes", NUMBERS),
    ("cb_config_list", &["*:1", "*:*", "0:2", "nonsense"]),
    ("ind_rd_buffer_size", SIZES),
    ("ind_wr_buffer_size", SIZES),
    ("romio_cb_read", SWITCHES),
    ("romio_cb_write", SWITCHES),
    ("romio_ds_read", SWITCHES),
    ("romio_ds_write", SWITCHES),
    ("romio_no_indep_rw", SWITCHES),
    ("romio_cb_alltoall", SWITCHES),
    ("romio_cb_pfr", SWITCHES),
    ("romio_cb_fr_alignment", SIZES),
    ("romio_cb_ds_threshold", SIZES),
    ("collective_buffering", SWITCHES),
    ("striping_factor", NUMBERS),
    ("striping_unit", SIZES),
    ("direct_read", SWITCHES),
    (
        "access_style",
        &["read_once", "write_once,sequential", "random", "odd"],
    ),
    ("file_perm", &["600", "644", "999"]),
    ("nb_proc", NUMBERS),
    ("pario_read_method", &["direct", "list", "sieve", "none"]),
    ("pario_write_method", &["direct", "list", "sieve", "none"]),
    ("pario_list_pieces", NUMBERS),
    ("pario_sieve_extent", SIZES),
    ("pario_sieve_density", &["0", "5", "100", "101"]),
    ("pario_rmw", &["never", "locked"]),
    ("pario_async", &["uring", "pool", "automatic"]),
    ("pario_inflight_bytes", SIZES),
    (
        "pario_algorithm",
        &[
            "individual",
            "private-sieve",
            "two-phase",
            "static-segmentation",
            "dynamic-segmentation",
            "one-per-server",
            "resonant",
            "resonant-prefetch",
            "resonant-timed",
            "resonant-agents",
            "unheard-of",
        ],
    ),
    (
        "pario_partition",
        &[
            "even",
            "aligned",
            "static-cyclic",
            "group-cyclic",
            "persistent",
            "persistent-aligned",
            "by-server",
            "file-layout",
            "stripe-multiple",
            "neighbours",
            "balanced",
            "unheard-of",
        ],
    ),
    (
        "pario_exchange",
        &["shared", "messages", "alltoall", "two-layer"],
    ),
    ("pario_slice_bytes", SIZES),
    ("pario_call_bytes", SIZES),
    ("pario_cache_bytes", SIZES),
    ("pario_stored_pieces", NUMBERS),
    ("pario_wait_looks", NUMBERS),
    ("pario_saturation_bytes", SIZES),
    ("pario_assume_striping", &["64,2", "1000,3", "4096,1"]),
    ("pario_assume_lock_granularity", SIZES),
    ("pario_assume_lock_protocol", &["none", "server", "token"]),
    ("pario_assume_client", &["kernel", "library"]),
    ("pario_driver", &["posix", "ufs", "mapped", "uring"]),
    (
        "pario_shared_pointer",
        &["automatic", "memory", "file", "owner"],
    ),
    ("pario_sync_on_close", SWITCHES),
    ("nobody_knows_this", &["1", "a", "{}"]),
    ("romio_unheard_of", SWITCHES),
];

/// Often none; the same on all ranks.
pub(super) fn hints(random: &mut Random) -> Hints {
    if random.percent(40) {
        return Hints::new();
    }
    some_hints(random)
}

pub(super) fn some_hints(random: &mut Random) -> Hints {
    let many = 1 + random.below(4);
    let mut hints = Hints::new();
    for _ in 0..many {
        let (key, values) = random.pick(KNOWN);
        let value = (*random.pick(values)).to_owned();
        if hints.iter().all(|(other, _)| other != key) {
            hints.push(((*key).to_owned(), value));
        }
    }
    hints
}
