//! Rule 1 with `pario_rmw=locked`: a lock that only one side takes protects nothing, so every
//! write of a handle is made under one, whichever way its data takes.

use std::sync::Arc;

use pario::{Datatype, File, Info, Mode, View};
use pario_driver::Driver;
use pario_transport::threads::World;

use crate::{
    common::{
        NEW, byte, directory,
        probe::{Event, Probe},
    },
    safety::writes_under_locks,
};

const PIECES: u64 = 12;

/// Writes pieces with gaps by collective and independent calls.
fn write(nodes: &[u32], mode: Mode, piece: u64, gap: u64, hints: &[(&str, &str)]) -> Vec<Event> {
    let directory = directory();
    let path = directory.path().join("file");
    let probe = Probe::listening();
    let hints = Info::from_pairs(hints.iter().copied().chain([("pario_rmw", "locked")])).unwrap();
    let ranks = nodes.len() as u64;
    let results = World::new(ranks as u32).nodes(nodes).run(|comm| {
        let driver = probe.clone() as Arc<dyn Driver>;
        let file = File::open_with(&comm, driver, &path, mode, &hints)?;
        let me = u64::from(comm.rank().0);
        let tile = Datatype::contiguous(piece, &byte())?;
        let tile = Datatype::resized(&tile, 0, ((piece + gap) * ranks) as i64)?;
        file.set_view(&View::new(me * (piece + gap), &byte(), &tile))?;
        let data = vec![me as u8 + 1; (piece * PIECES) as usize];
        file.write_at_all(0, &data)?;
        file.iwrite_at_all(0, data.clone())?.wait()?;
        file.write_at(0, &data)?;
        file.close()
    });
    results.into_iter().for_each(|it| it.unwrap().unwrap());
    probe.take()
}

#[test]
fn rule_01_every_write_is_locked() {
    let methods: [&[(&str, &str)]; 7] = [
        &[],
        &[("romio_cb_write", "enable")],
        &[("romio_cb_write", "enable"), ("pario_write_method", "list")],
        &[("romio_cb_write", "disable")],
        &[("pario_algorithm", "static-segmentation")],
        &[("pario_algorithm", "dynamic-segmentation")],
        &[
            ("pario_exchange", "two-layer"),
            ("romio_cb_write", "enable"),
        ],
    ];
    for nodes in [&[0, 0, 0][..], &[0, 0, 1, 1], &[0, 1]] {
        for (piece, gap) in [(64, 64), (64, 64 << 10), (64 << 10, 0), (5000, 3)] {
            for hints in methods {
                for mode in [NEW, Mode::CREATE | Mode::WRITE_ONLY] {
                    let case = format!("{nodes:?}, {piece}/{gap}, {hints:?}, {mode:?}");
                    let events = write(nodes, mode, piece, gap, hints);
                    assert!(writes_under_locks(&events, &case) > 0, "{case}");
                }
            }
        }
    }
}
