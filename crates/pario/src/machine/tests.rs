use pario_hints::{Info, SievedAccess, Source, Sources};

use super::*;
use crate::threads;

pub(super) fn hints(pairs: &[(&str, &str)]) -> Hints {
    let info = Info::from_pairs(pairs.iter().copied()).unwrap();
    Hints::resolve(&info, &Sources::none()).hints
}

/// The machine on which the thresholds were found.
const USUAL: MachineProfile = MachineProfile {
    call_ns: 520,
    copy_ns: 1850,
    cache_bytes: 512 << 10,
};

#[test]
fn powers_are_nearest_by_ratio() {
    let powers = [0, 1, 2, 3, 5, 6, 11, 12, 1448, 1449].map(nearest_power);
    assert_eq!(powers, [1, 1, 2, 4, 4, 8, 8, 16, 1024, 2048]);
    assert_eq!(nearest_power(u64::MAX), u64::MAX);
}

#[test]
fn the_bytes_of_a_call_are_a_power_of_two_within_bounds() {
    let of = |call_ns, copy_ns| MachineProfile {
        call_ns,
        copy_ns,
        ..USUAL
    };
    assert_eq!(USUAL.call_bytes(), Some(8 << 10));
    // A fifth more or less makes no difference.
    assert_eq!(of(650, 1850).call_bytes(), Some(8 << 10));
    assert_eq!(of(520, 2300).call_bytes(), Some(8 << 10));
    assert_eq!(of(1200, 1850).call_bytes(), Some(16 << 10));
    assert_eq!(of(200, 1850).call_bytes(), Some(CALL_BYTES_MIN));
    assert_eq!(of(1, 1_000_000).call_bytes(), Some(CALL_BYTES_MIN));
    assert_eq!(of(u32::MAX, 1).call_bytes(), Some(CALL_BYTES_MAX));
    assert_eq!(MachineProfile::default().call_bytes(), None);
}

#[test]
fn hints_take_precedence_over_the_profile() {
    let mut free = hints(&[]);
    USUAL.set(&mut free);
    assert_eq!(
        (free.call_bytes(), free.sieve_extent(SievedAccess::Other)),
        (8 << 10, 16 << 10)
    );
    assert_eq!(free.cached_window_bytes(), 256 << 10);
    assert_eq!(free.source("pario_call_bytes"), Some(&Source::Measured));

    let slow = MachineProfile {
        call_ns: 1040,
        ..USUAL
    };
    let mut free = hints(&[]);
    slow.set(&mut free);
    assert_eq!(
        (free.call_bytes(), free.sieve_extent(SievedAccess::Other)),
        (16 << 10, 32 << 10)
    );
    assert_eq!(free.cached_window_bytes(), 256 << 10, "half of the cache");

    let mut set = hints(&[
        ("pario_call_bytes", "1000"),
        ("pario_sieve_extent", "5k"),
        ("pario_cache_bytes", "128k"),
    ]);
    slow.set(&mut set);
    assert_eq!(
        (set.call_bytes(), set.sieve_extent(SievedAccess::Other)),
        (1000, 5 << 10)
    );
    assert_eq!(set.cached_window_bytes(), 64 << 10);

    // A profile that could not be measured changes nothing.
    let mut unknown = hints(&[]);
    MachineProfile::default().set(&mut unknown);
    assert_eq!(unknown, hints(&[]));
}

#[test]
fn the_profile_is_measured_once_and_crosses_the_wire() {
    let profile = MachineProfile::of_node();
    assert_eq!(MachineProfile::of_node(), profile);
    assert_eq!(MachineProfile::from_wire(&profile.to_wire()), profile);
    assert_eq!(MachineProfile::from_wire(&USUAL.to_wire()), USUAL);
}

#[test]
fn one_rank_per_node_measures_and_all_plan_with_rank_0s_values() {
    let kept = threads::run(3, |comm| {
        let comm = comm.transport();
        let sent = MachineProfile::to_send(&**comm, &hints(&[]));
        assert_eq!(sent != MachineProfile::default(), comm.rank() == Rank(0));
        let set = hints(&[("pario_call_bytes", "4k"), ("pario_cache_bytes", "1m")]);
        let sent = MachineProfile::to_send(&**comm, &set);
        assert_eq!(
            sent,
            MachineProfile::default(),
            "nothing is left to measure"
        );
        // As if every rank had measured something else.
        let of_rank = |rank: Rank| MachineProfile {
            call_ns: 520 << rank.0,
            ..USUAL
        };
        let mut hints = hints(&[]);
        MachineProfile::adopt(&**comm, of_rank, &mut hints);
        Ok(hints.call_bytes())
    });
    assert_eq!(kept.unwrap(), [8 << 10; 3]);
}
