//! The wire form: round trips and hostile input.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pario_hints::{Hints, Info, Sources, WireError};

fn seed() -> u64 {
    std::env::var("PARIO_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..))
}

fn cases(default: usize) -> usize {
    std::env::var("PARIO_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Hints with a random value in about half of the entries.
fn random_hints(rng: &mut fastrand::Rng) -> Hints {
    const VALUES: &[&str] = &[
        "1",
        "17",
        "100",
        "4k",
        "true",
        "false",
        "enable",
        "disable",
        "direct",
        "list",
        "sieve",
        "locked",
        "uring",
        "pool",
        "memory",
        "file",
        "640",
        "mem",
        "random,read_once",
    ];
    let mut info = Info::new();
    for definition in Hints::DEFINITIONS {
        info.set(definition.name, VALUES[rng.usize(..VALUES.len())])
            .unwrap();
    }
    let mut hints = Hints::resolve(&info, &Sources::none()).hints;
    if rng.bool() {
        hints.adjust("a test set it: äöü", |hints| {
            hints.filename = Some("x".repeat(rng.usize(..3000)));
            hints.pario_list_pieces = 3;
        });
    }
    hints
}

#[test]
fn round_trips() {
    let seed = seed();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..cases(500) {
        let hints = random_hints(&mut rng);
        assert_eq!(
            Hints::from_wire(&hints.to_wire()),
            Ok(hints),
            "PARIO_SEED={seed}"
        );
    }
    assert_eq!(
        Hints::from_wire(&Hints::default().to_wire()),
        Ok(Hints::default())
    );
}

#[test]
fn every_truncation_is_an_error() {
    let wire = random_hints(&mut fastrand::Rng::with_seed(7)).to_wire();
    for len in 0..wire.len() {
        assert_eq!(
            Hints::from_wire(&wire[..len]),
            Err(WireError::Truncated),
            "{len} bytes"
        );
    }
    let mut longer = wire;
    longer.push(0);
    assert_eq!(Hints::from_wire(&longer), Err(WireError::Trailing(1)));
}

#[test]
fn a_default_is_not_sent() {
    let mut wire = Hints::default().to_wire();
    // One entry, whose source says that it has the default value.
    wire[4] = 1;
    for text in ["cb_nodes", "3"] {
        wire.extend((text.len() as u16).to_le_bytes());
        wire.extend(text.as_bytes());
    }
    wire.push(0);
    assert_eq!(Hints::from_wire(&wire), Err(WireError::BadSource(0)));
}

#[test]
fn damaged_messages_never_give_what_is_not_allowed() {
    let seed = seed();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..cases(5000) {
        let mut wire = random_hints(&mut rng).to_wire();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..wire.len());
            wire[at] = rng.u8(..);
        }
        if let Ok(hints) = Hints::from_wire(&wire) {
            assert!(
                (1..=100 << 30).contains(&hints.ind_rd_buffer_size),
                "PARIO_SEED={seed}"
            );
            assert!(hints.pario_sieve_density <= 100, "PARIO_SEED={seed}");
            assert_eq!(
                Hints::from_wire(&hints.to_wire()),
                Ok(hints),
                "PARIO_SEED={seed}"
            );
        }
    }
}

#[test]
fn foreign_entries_are_refused() {
    let entry = |name: &str, value: &str, source: u8| {
        let mut wire = Hints::default().to_wire()[..4].to_vec();
        wire.extend(1u16.to_le_bytes());
        for text in [name, value] {
            wire.extend((text.len() as u16).to_le_bytes());
            wire.extend(text.as_bytes());
        }
        wire.push(source);
        Hints::from_wire(&wire)
    };
    assert_eq!(
        entry("no_such", "1", 0),
        Err(WireError::UnknownHint("no_such".to_owned()))
    );
    assert_eq!(
        entry("direct_read", "true", 9),
        Err(WireError::BadSource(9))
    );
    assert!(matches!(
        entry("pario_sieve_density", "101", 2),
        Err(WireError::BadValue { .. })
    ));
    assert!(entry("direct_read", "true", 2).unwrap().direct_read);
    assert_eq!(Hints::from_wire(b"not a message"), Err(WireError::NotHints));
    assert_eq!(Hints::from_wire(b""), Err(WireError::Truncated));
}
