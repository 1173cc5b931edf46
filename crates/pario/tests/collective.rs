//! Collective calls against what a byte-by-byte writer would do.

use pario::{Basic, Datatype, File, Info, Mode, View, threads::World};

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

/// Ranks write blocks of `block` bytes in turn, `gap` bytes after each round.
fn interleaved(nodes: &[u32], block: u64, gap: u64, blocks: u64, mode: Mode, info: &Info) {
    let ranks = nodes.len() as u32;
    let world = World::new(ranks).nodes(nodes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("interleaved");
    let stride = u64::from(ranks) * block + gap;
    let expected: Vec<u8> = {
        let len = stride * blocks - gap;
        let value = |byte: u64| match byte % stride / block {
            rank if rank < u64::from(ranks) => (byte.wrapping_mul(31) ^ rank) as u8,
            _ => 7,
        };
        (0..len).map(value).collect()
    };
    std::fs::write(&path, vec![7u8; expected.len()]).unwrap();
    let results = world.run(|comm| -> pario::Result<()> {
        let file = File::open(&comm, &path, mode, info)?;
        let rank = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        let tile = Datatype::contiguous(block, &byte)?;
        let tile = Datatype::resized(&tile, 0, stride as i64)?;
        file.set_view(&View::new(rank * block, &byte, &tile))?;
        let mine: Vec<u8> = (0..blocks)
            .flat_map(|index| (0..block).map(move |at| index * stride + rank * block + at))
            .map(|at| expected[at as usize])
            .collect();
        assert_eq!(file.write_at_all(0, &mine)?.bytes(), mine.len() as u64);
        let mut back = vec![0u8; mine.len() + 100];
        let read = file.read_at_all(0, &mut back[..])?.bytes();
        assert_eq!(read, mine.len() as u64);
        assert!(back[..mine.len()] == mine[..]);
        assert_eq!(back[mine.len()..], [0; 100]);
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let found = std::fs::read(&path).unwrap();
    let wrong = found
        .iter()
        .zip(&expected)
        .position(|(found, expected)| found != expected);
    assert_eq!((wrong, found.len()), (None, expected.len()));
}

#[test]
fn small_blocks_interleave() {
    for ranks in [1, 2, 3, 4, 7] {
        for (block, gap, blocks) in [
            (8, 0, 40_000),
            (64, 0, 20_000),
            (5, 3, 30_000),
            (1000, 24, 999),
        ] {
            interleaved(&vec![0; ranks], block, gap, blocks, NEW, &Info::new());
        }
    }
}

#[test]
fn holes_are_rewritten_where_that_is_safe() {
    let locked = Info::from_pairs([("pario_rmw", "locked")]).unwrap();
    interleaved(&[0; 3], 5, 3, 30_000, NEW, &locked);
    interleaved(&[0; 3], 5, 3, 30_000, NEW | Mode::UNIQUE_OPEN, &Info::new());
}

#[test]
fn blocks_cross_nodes_by_messages_and_by_node_leaders() {
    for nodes in [
        &[0, 1][..],
        &[0, 0, 1],
        &[0, 1, 0, 1],
        &[2, 0, 0, 1, 1, 2, 2],
    ] {
        for (block, gap, blocks) in [(8, 0, 9_000), (5, 3, 9_000), (1000, 24, 199)] {
            interleaved(nodes, block, gap, blocks, NEW, &Info::new());
        }
    }
}
