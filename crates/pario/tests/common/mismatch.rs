//! Ranks that make different collective calls.

use std::{path::Path, sync::Arc};

use pario::{Atomicity, ErrorKind, File, Info, Result, Seek, View};
use pario_transport::Transport;

use super::{NEW, every, info};

type Call = (&'static str, fn(&File) -> Result<()>);

const CALLS: &[Call] = &[
    ("write_at_all", |file| {
        file.write_at_all(0, &[1u8; 64]).map(drop)
    }),
    ("write_all", |file| file.write_all(&[2u8; 64]).map(drop)),
    ("read_all", |file| file.read_all(&mut [0u8; 64]).map(drop)),
    ("write_ordered", |file| {
        file.write_ordered(&[3u8; 64]).map(drop)
    }),
    ("set_view", |file| file.set_view(&file.view())),
    ("set_info", |file| file.set_info(&Info::new())),
    ("set_size", |file| file.set_size(4096)),
    ("preallocate", |file| file.preallocate(4096)),
    ("sync", File::sync),
    ("set_atomicity", |file| {
        file.set_atomicity(Atomicity::NonAtomic)
    }),
    ("seek_shared", |file| file.seek_shared(0, Seek::Set)),
    ("close", File::close),
];

const IN_BACKGROUND: &[Call] = &[
    ("iwrite_all", |file| {
        file.iwrite_all(vec![5u8; 64])?.wait().map(drop)
    }),
    ("iread_at_all", |file| {
        let request = file.iread_at_all(0, vec![0u8; 64])?;
        while !request.is_complete() {}
        request.wait().map(drop)
    }),
    ("write_at_all_begin", |file| {
        file.write_at_all_begin(0, vec![6u8; 64])?.end().map(drop)
    }),
    ("write_ordered_begin", |file| {
        file.write_ordered_begin(vec![7u8; 64])?.end().map(drop)
    }),
];

/// The last rank makes another call than the others. All get an error that names both calls,
/// and the file stays usable.
pub(crate) fn check(comm: &Arc<dyn Transport>, path: &Path) -> Result<()> {
    check_pairs(comm, path, || blocking_pairs().chain(background_pairs()))
}

/// As [`check`], for ranks on several nodes, without calls in the background.
pub(crate) fn check_between_nodes(comm: &Arc<dyn Transport>, path: &Path) -> Result<()> {
    check_pairs(comm, path, blocking_pairs)
}

type Pair = (&'static Call, &'static Call);

fn check_pairs<P: Iterator<Item = Pair>>(
    comm: &Arc<dyn Transport>,
    path: &Path,
    pairs: impl Fn() -> P,
) -> Result<()> {
    let last = comm.size() - 1;
    let parts = || every(128, 64, 64 * u64::from(comm.rank().0));
    // Pieces of 64 bytes are moved first, before the ranks know of each other, if calls take no time.
    let moved_first = info(&[("pario_call_bytes", "64")]);
    let cases = [
        (View::bytes(), true, Info::new()),
        (parts(), false, Info::new()),
        (parts(), false, moved_first),
    ];
    for (view, are_equal, info) in cases {
        let file = File::open(comm, path, NEW, &info)?;
        file.set_view(&view)?;
        for (theirs, other) in pairs() {
            // Fails at once on the ranks that make it if their views differ.
            let is_rejected = |call: &Call| call.0 == "write_ordered_begin";
            if !are_equal && (is_rejected(theirs) || is_rejected(other)) {
                continue;
            }
            let (name, call) = match comm.rank().0 == last {
                true => other,
                false => theirs,
            };
            let error = call(&file).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::NotSame, "{error}");
            assert_eq!(error.operation(), *name);
            let calls = format!("rank 0 called {}, rank {last} called {}", theirs.0, other.0);
            assert!(error.to_string().contains(&calls), "{error}");
        }
        assert_eq!(file.write_at_all(0, &[4u8; 64])?.bytes(), 64);
        file.close()?;
    }
    Ok(())
}

/// All pairs of blocking calls that do not match.
fn blocking_pairs() -> impl Iterator<Item = Pair> {
    let is_write = |call: &Call| matches!(call.0, "write_at_all" | "write_all");
    let all = CALLS
        .iter()
        .flat_map(|theirs| CALLS.iter().map(move |other| (theirs, other)));
    all.filter(move |(theirs, other)| theirs.0 != other.0 && !(is_write(theirs) && is_write(other)))
}

/// Each call in the background is the call of all ranks but the last with some blocking calls, and
/// of the last with others.
fn background_pairs() -> impl Iterator<Item = Pair> {
    IN_BACKGROUND.iter().flat_map(|call| {
        let mixed = CALLS.iter().enumerate();
        mixed.map(move |(index, other)| match index % 2 {
            0 => (call, other),
            _ => (other, call),
        })
    })
}
