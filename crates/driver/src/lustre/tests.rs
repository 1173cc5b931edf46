//! Layouts from bytes to placements, hostile ones included.

use std::ops::Range;

use pario_types::{Placement, Server, Striping};

use super::{
    Layout,
    fixtures::{self, component},
};
use crate::doubles::lustre::{PlainLayout, composite};

const MIB: u64 = 1 << 20;

fn placement(bytes: &[u8]) -> Option<Placement> {
    Layout::parse(bytes)?.placement()
}

/// The server, object and offset in the object of a byte.
fn place(placement: &Placement, byte: u64) -> (Server, u64, u64) {
    let part = placement.parts(byte..byte + 1).next().unwrap();
    (part.server, part.object, part.object_offset)
}

#[test]
fn measured_plain_layout() {
    let bytes = fixtures::plain();
    assert_eq!(bytes.len(), 128);
    let placement = placement(&bytes).unwrap();
    let striping = Striping {
        unit: 64 << 10,
        count: 4,
    };
    assert_eq!(placement.striping(), striping);
    assert_eq!(place(&placement, 0), (Server::Data(0), 0, 0));
    let byte = (6 << 16) + 5;
    assert_eq!(place(&placement, byte), (Server::Data(2), 2, (1 << 16) + 5));
}

#[test]
fn measured_progressive_layout() {
    let bytes = fixtures::progressive();
    assert_eq!(bytes.len(), 216);
    let placement = placement(&bytes).unwrap();
    let [first, rest] = placement.components() else {
        panic!("two components");
    };
    assert_eq!((first.file.clone(), first.striping.count), (0..MIB, 1));
    assert_eq!((rest.file.clone(), rest.striping.count), (MIB..u64::MAX, 4));
    assert_eq!(placement.striping().unit, 256 << 10);
    assert_eq!(place(&placement, 5), (Server::Data(0), 0, 5));
    // No objects yet, but their stripes are known, counted from byte 0.
    assert_eq!(place(&placement, MIB), (Server::Unknown, 0, 256 << 10));
}

#[test]
fn metadata_server_overstriping_and_pool() {
    let placement = placement(&fixtures::metadata_then_overstriped()).unwrap();
    assert_eq!(place(&placement, 77), (Server::Metadata, 0, 77));
    assert_eq!(place(&placement, MIB), (Server::Data(6), 1, 0));
    assert_eq!(place(&placement, 3 * MIB), (Server::Data(6), 3, 0));
    assert_eq!(placement.striping().count, 4);
}

#[test]
fn stale_mirrors_are_not_mapped() {
    let valid = |flags: u32| {
        placement(&fixtures::mirrored(flags))
            .unwrap()
            .striping()
            .count
    };
    assert_eq!(valid(0x10), 2);
    assert_eq!(valid(0x11), 3, "stale");
    assert_eq!(valid(0x18), 3, "offline");
    let preferred = component(
        0x2_0002,
        0x12,
        0..u64::MAX,
        PlainLayout::new(1, 1 << 20, 1).on(&[9]),
    );
    let first = component(
        0x1_0001,
        0x10,
        0..u64::MAX,
        PlainLayout::new(1, 1 << 20, 2).on(&[1, 2]),
    );
    let both = placement(&composite(1, &[first.clone(), preferred])).unwrap();
    assert_eq!(place(&both, 0).0, Server::Data(9));
    let stale = crate::doubles::lustre::ComponentLayout { flags: 1, ..first };
    assert_eq!(placement(&composite(1, &[stale])), None);
}

#[test]
fn extensions_belong_to_the_component_before_them() {
    let placement = placement(&fixtures::extending()).unwrap();
    // The last component is to use all servers, however many those are.
    let [only] = placement.components() else {
        panic!("one component");
    };
    assert_eq!(only.file, 0..1 << 30);
    assert_eq!(only.striping.unit, MIB);
    // It used to count as striped like the component before it.
    let sections = placement.sections((1 << 30) - MIB..(1 << 30) + MIB);
    let known: Vec<_> = sections.iter().map(|it| it.1.is_some()).collect();
    assert_eq!(known, [true, false]);
}

#[test]
fn what_is_not_understood_is_unknown() {
    let plain = |pattern, size, count| PlainLayout::new(pattern, size, count).to_bytes();
    for (bytes, why) in [
        (plain(1 | 0x8000_0000, 1 << 20, 4), "released"),
        (plain(2, 1 << 20, 4), "unknown pattern"),
        (plain(0x801, 1 << 20, 4), "compressed"),
        (plain(1 | 0x0100_0000, 1 << 20, 4), "unknown flag"),
        (plain(1, 1 << 20, 0xffff), "all servers"),
        (plain(1, 1 << 20, 0), "default count"),
        (plain(1, 0, 4), "default size"),
        (plain(1, 4096, 4), "too small"),
        (0x0bd7_0bd0_u32.to_le_bytes().to_vec(), "foreign"),
        (0x0bd5_0bd0_u32.to_le_bytes().to_vec(), "unknown magic"),
        (composite(1, &[]), "no components"),
    ] {
        assert_eq!(placement(&bytes), None, "{why}");
    }
    let part = |id, flags, file| component(id, flags, file, PlainLayout::new(1, 1 << 20, 1));
    for (components, why) in [
        (vec![part(1, 0x80, 0..MIB)], "unknown flag"),
        (vec![part(1, 0x40, 0..MIB)], "an extension of nothing"),
        (vec![part(1, 0, 0..9), part(2, 0, 3..12)], "overlap"),
        (
            vec![part(1, 0, 0..9), part(2, 0x40, 12..20)],
            "gap before an extension",
        ),
        (vec![part(1, 0, Range { start: 9, end: 3 })], "backwards"),
    ] {
        assert_eq!(placement(&composite(1, &components)), None, "{why}");
    }
}

#[test]
fn a_foreign_component_has_no_known_place() {
    let mut foreign = component(1, 0x10, 0..MIB, PlainLayout::new(1, 1 << 20, 1));
    foreign.plain = 0x0bd7_0bd0_u32.to_le_bytes().to_vec();
    let rest = component(2, 0x10, MIB..u64::MAX, PlainLayout::new(1, 1 << 20, 2));
    let placement = placement(&composite(1, &[foreign, rest])).unwrap();
    assert_eq!(placement.parts(0..MIB).count(), 0);
    assert_eq!(placement.striping().count, 2);
}

#[test]
fn truncated_layouts_are_unknown_or_lack_only_objects() {
    for bytes in fixtures::all() {
        let whole = placement(&bytes);
        for len in 0..bytes.len() {
            if let Some(cut) = placement(&bytes[..len]) {
                assert_eq!(
                    Some(cut.striping()),
                    whole.as_ref().map(Placement::striping)
                );
                assert!(matches!(place(&cut, 0).0, Server::Unknown), "{len} bytes");
            }
        }
    }
}

/// Random changes of valid layouts, and random bytes after a valid magic
/// number: no panic, and every placement is consistent.
#[test]
fn hostile_layouts_are_unknown_or_consistent() {
    let seed = std::env::var("PARIO_SEED").map_or(0x1057, |seed| seed.parse().unwrap());
    let cases = std::env::var("PARIO_CASES").map_or(20_000, |cases| cases.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    let all = fixtures::all();
    for case in 0..cases {
        let mut bytes = all[random.usize(..all.len())].clone();
        if random.u8(..) < 30 {
            let len = random.usize(4..300);
            bytes.resize(len, 0);
            random.fill(&mut bytes[4..]);
        }
        for _ in 0..random.usize(..6) {
            let at = random.usize(..bytes.len());
            bytes[at] = match random.u8(..3) {
                0 => 0xff,
                1 => 0,
                _ => random.u8(..),
            };
        }
        bytes.truncate(random.usize(bytes.len() / 2..=bytes.len()));
        let Some(placement) = placement(&bytes) else {
            continue;
        };
        let from = random.u64(..u64::MAX - 10 * MIB);
        for start in [0, from] {
            let mut end = start;
            for part in placement.parts(start..start + 10 * MIB) {
                let why = || format!("case {case}, seed {seed}: {bytes:?}");
                assert!(part.file_offset >= end && part.len > 0, "{}", why());
                end = part.file_offset + part.len;
                assert!(end <= start + 10 * MIB, "{}", why());
            }
            let sections = placement.sections(start..start + 10 * MIB);
            assert_eq!(sections.first().unwrap().0.start, start);
            assert_eq!(sections.last().unwrap().0.end, start + 10 * MIB);
        }
    }
}
