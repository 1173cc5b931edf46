//! Lists dense enough to be stored through a mapping: the same bytes as with
//! calls, in any order, in growing files and next to other writers.

use pario_driver::{Access, Batch, Create, Direction, Driver, Mapped, OpenHow};

const SEED: u64 = 20;

fn how(access: Access) -> OpenHow {
    OpenHow::new(access).create(Create::IfMissing)
}

/// A list of small pieces of `memory` in a file of about one megabyte: mostly
/// close together, in any order, some overlapping.
fn list(random: &mut fastrand::Rng, memory: usize) -> Vec<(u64, usize, usize)> {
    let stride = random.u64(8..1200);
    let base = random.u64(0..1 << 20);
    let mut pieces = Vec::new();
    let mut place = 0;
    while pieces.len() < 3000 {
        let len = random.usize(0..64).min(memory - place);
        let jitter = random.u64(0..16);
        let far = if len == 0 { 1 << 40 } else { 0 };
        pieces.push((
            base + pieces.len() as u64 * stride + jitter + far,
            place,
            len,
        ));
        place = (place + len) % memory;
    }
    match random.u8(0..3) {
        0 => random.shuffle(&mut pieces),
        1 => pieces.reverse(),
        _ => {}
    }
    pieces
}

#[test]
fn small_pieces_are_written_correctly() {
    for parent in [std::env::temp_dir().as_path(), "/dev/shm".as_ref()] {
        let directory = tempfile::tempdir_in(parent).unwrap();
        let path = directory.path().join("file");
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut expected: Vec<u8> = Vec::new();
        for round in 0..40 {
            let access = match round % 2 {
                0 => Access::Write,
                _ => Access::ReadWrite,
            };
            let handle = Mapped.open(&path, &how(access)).unwrap();
            let mut memory: Vec<u8> = (0..4096).map(|_| random.u8(1..)).collect();
            let pieces = list(&mut random, memory.len());
            for &(offset, start, len) in pieces.iter().filter(|piece| piece.2 > 0) {
                let range = offset as usize..offset as usize + len;
                expected.resize(expected.len().max(range.end), 0);
                expected[range].copy_from_slice(&memory[start..start + len]);
            }
            let batch = Batch::gather(Direction::Write, &mut memory, &pieces);
            let outcome = handle.transfer(&batch);
            assert_eq!(outcome.bytes, batch.bytes(), "round {round}");
            assert!(outcome.error.is_none(), "round {round}: {outcome:?}");
            handle.close().unwrap();
            assert!(std::fs::read(&path).unwrap() == expected, "round {round}");
        }
    }
}

#[test]
fn a_write_only_file_is_not_readable_through_the_handle() {
    let directory = tempfile::tempdir().unwrap();
    let handle = Mapped
        .open(&directory.path().join("file"), &how(Access::Write))
        .unwrap();
    let outcome = handle.transfer(&Batch::read(0, &mut [0; 8]));
    let error = outcome.error.unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn concurrent_writers_of_neighbouring_bytes_lose_nothing() {
    const PIECES: usize = 100_000;
    const WRITERS: usize = 4;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &path;
            scope.spawn(move || {
                let handle = Mapped.open(path, &how(Access::ReadWrite)).unwrap();
                let mut memory = vec![writer as u8 + 1; 3];
                let place = |at: usize| ((at * WRITERS + writer) * 3) as u64;
                let pieces: Vec<_> = (0..PIECES).map(|at| (place(at), 0, 3)).collect();
                for some in pieces.chunks(1024) {
                    let batch = Batch::gather(Direction::Write, &mut memory, some);
                    assert_eq!(
                        handle.transfer(&batch).into_result().unwrap(),
                        batch.bytes()
                    );
                }
                handle.close().unwrap();
            });
        }
    });
    let found = std::fs::read(&path).unwrap();
    let right = |(at, byte): (usize, &u8)| *byte as usize == at / 3 % WRITERS + 1;
    assert_eq!(found.len(), PIECES * WRITERS * 3);
    assert!(found.iter().enumerate().all(right));
}

#[test]
fn a_file_is_not_truncated_during_a_store() {
    const ROUNDS: usize = 300;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let handle = Mapped
        .open(&directory.path().join("file"), &how(Access::ReadWrite))
        .unwrap();
    let mut memory = [7; 8];
    let pieces: Vec<_> = (0..20_000).map(|at| (at * 16, 0, 8)).collect();
    let batch = Batch::gather(Direction::Write, &mut memory, &pieces);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                handle.set_size(0).unwrap();
            }
        });
        for _ in 0..ROUNDS {
            assert_eq!(
                handle.transfer(&batch).into_result().unwrap(),
                batch.bytes()
            );
        }
    });
}
