//! Lists of pieces, compared with a model of the file; concurrent writers.

use std::{sync::Arc, thread};

use super::{
    Check,
    random::{Random, cases},
    subject::{Subject, read, write},
};
use crate::{Access, Batch, Direction, Handle};

pub(super) const CHECKS: &[Check] = &[
    ("pieces in any order", any_order),
    ("end of the file in a list", end_in_list),
    ("many pieces", many_pieces),
    ("random lists", random_lists),
    ("concurrent writers", concurrent_writers),
];

/// Offset in the file, start in memory, length.
type Place = (u64, usize, usize);

fn transfer(file: &dyn Handle, batch: &Batch<'_>) -> u64 {
    file.transfer(batch).into_result().unwrap()
}

fn any_order(subject: &Subject) {
    let file = subject.create();
    let mut memory = *b"ABCDEFGHIJ";
    let places = [(8, 0, 2), (0, 2, 3), (3, 5, 2), (100, 0, 0), (20, 9, 1)];
    let batch = Batch::gather(Direction::Write, &mut memory, &places);
    assert_eq!(transfer(&*file, &batch), 8);
    assert_eq!(read(&*file, 0, 99), b"CDEFG\0\0\0AB\0\0\0\0\0\0\0\0\0\0J");
    let mut memory = [b'.'; 12];
    let places = [(20, 11, 1), (8, 0, 2), (4, 5, 0), (0, 3, 5)];
    let batch = Batch::gather(Direction::Read, &mut memory, &places);
    assert_eq!(transfer(&*file, &batch), 8);
    assert_eq!(memory, *b"AB.CDEFG...J");
    assert_eq!(transfer(&*file, &Batch::new(Direction::Read)), 0);
    subject.finish(&*file);
}

fn end_in_list(subject: &Subject) {
    let file = subject.create();
    write(&*file, 0, b"0123456789");
    let mut memory = [b'.'; 12];
    let places = [(0, 0, 3), (8, 3, 5), (13, 8, 2), (20, 10, 2)];
    let batch = Batch::gather(Direction::Read, &mut memory, &places);
    assert_eq!(transfer(&*file, &batch), 5, "the prefix before the end");
    assert_eq!(memory, *b"01289.......");
    let mut memory = [b'.'; 6];
    let batch = Batch::gather(Direction::Read, &mut memory, &[(9, 0, 3), (0, 3, 3)]);
    assert_eq!(
        transfer(&*file, &batch),
        1,
        "a list stops at the end of the file"
    );
    assert_eq!(memory[0], b'9');
    subject.finish(&*file);
}

/// More pieces than one vectored call accepts, adjacent in the file or not.
fn many_pieces(subject: &Subject) {
    const PIECES: usize = 3000;
    let file = subject.create();
    let mut random = Random::new();
    for stride in [3, 7] {
        let mut memory = random.bytes(PIECES * 3);
        let place = |at: usize| ((at * stride) as u64, (PIECES - 1 - at) * 3, 3);
        let places: Vec<Place> = (0..PIECES).map(place).collect();
        let batch = Batch::gather(Direction::Write, &mut memory, &places);
        assert_eq!(transfer(&*file, &batch), PIECES as u64 * 3);
        let mut back = vec![0; PIECES * 3];
        let batch = Batch::gather(Direction::Read, &mut back, &places);
        assert_eq!(transfer(&*file, &batch), PIECES as u64 * 3);
        assert!(back == memory, "{PIECES} pieces at stride {stride}");
    }
    subject.finish(&*file);
}

/// A few pages, so that direct transfers have edges and middles.
const FILE_BYTES: usize = 60_000;

/// Random writes, reads and sizes give the same results as a plain vector.
fn random_lists(subject: &Subject) {
    let file = subject.create();
    let mut random = Random::new();
    let mut model: Vec<u8> = Vec::new();
    for _ in 0..cases(150) {
        match random.below(10) {
            0 => {
                let size = random.below(FILE_BYTES);
                file.set_size(size as u64).unwrap();
                model.resize(size, 0);
            }
            1..=5 => random_write(&*file, &mut random, &mut model),
            _ => random_read(&*file, &mut random, &model),
        }
        assert_eq!(file.size().unwrap(), model.len() as u64);
    }
    assert!(read(&*file, 0, model.len() + 1) == model, "the whole file");
    subject.finish(&*file);
}

/// Disjoint pieces of file and memory in random order, and the size of the
/// memory.
fn random_places(random: &mut Random) -> (Vec<Place>, usize) {
    let longest = random.choose(&[3, 300, 5000, 20_000]);
    let (mut offset, mut start) = (random.below(FILE_BYTES), random.below(100));
    let mut places = Vec::new();
    for _ in 0..random.below(8) {
        let len = random.below(longest);
        places.push((offset as u64, start, len));
        offset += len + random.choose(&[0, 0, 1, 4096]);
        start += len + random.choose(&[0, 0, 1]);
    }
    random.shuffle(&mut places);
    (places, start)
}

fn random_write(file: &dyn Handle, random: &mut Random, model: &mut Vec<u8>) {
    let (places, memory_bytes) = random_places(random);
    let mut memory = random.bytes(memory_bytes);
    for &(offset, start, len) in places.iter().filter(|place| place.2 > 0) {
        let offset = offset as usize;
        model.resize(model.len().max(offset + len), 0);
        model[offset..offset + len].copy_from_slice(&memory[start..start + len]);
    }
    let batch = Batch::gather(Direction::Write, &mut memory, &places);
    assert_eq!(transfer(file, &batch), batch.bytes(), "{places:?}");
}

fn random_read(file: &dyn Handle, random: &mut Random, model: &[u8]) {
    let (mut places, memory_bytes) = random_places(random);
    if random.below(2) == 0 {
        places.sort_unstable();
    }
    let mut memory = vec![0; memory_bytes];
    let batch = Batch::gather(Direction::Read, &mut memory, &places);
    let moved = transfer(file, &batch) as usize;
    let mut expected = 0;
    for &(offset, start, len) in &places {
        let from = (offset as usize).min(model.len());
        let there = (model.len() - from).min(len);
        assert!(
            memory[start..start + there] == model[from..from + there],
            "{places:?}"
        );
        expected += there;
        if there < len {
            break;
        }
    }
    assert_eq!(moved, expected, "{places:?} of a file of {}", model.len());
}

/// Threads that each write every fourth byte, with their own handles or a
/// shared one, lose no bytes.
fn concurrent_writers(subject: &Subject) {
    const WRITERS: usize = 4;
    const PIECES: usize = 2000;
    let first = subject.create();
    let shared = subject.open(Access::ReadWrite);
    let write_share = |writer: usize, file: Arc<dyn Handle>| {
        let mut memory = vec![writer as u8 + 1; PIECES];
        let place = |at: usize| ((at * WRITERS + writer) as u64, at, 1);
        let places: Vec<Place> = (0..PIECES).map(place).collect();
        let batch = Batch::gather(Direction::Write, &mut memory, &places);
        assert_eq!(transfer(&*file, &batch), PIECES as u64);
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let file = match writer {
                0 | 1 => shared.clone(),
                _ => subject.open(Access::ReadWrite),
            };
            scope.spawn(move || write_share(writer, file));
        }
    });
    let bytes = read(&*first, 0, WRITERS * PIECES + 1);
    assert_eq!(bytes.len(), WRITERS * PIECES);
    for (at, &byte) in bytes.iter().enumerate() {
        assert_eq!(byte as usize, at % WRITERS + 1, "byte {at}");
    }
    shared.close().unwrap();
    subject.finish(&*first);
}
