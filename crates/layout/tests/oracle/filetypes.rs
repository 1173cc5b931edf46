//! Checks of etypes and filetypes.

use pario_layout::{Basic, TypeErrorKind};

use crate::spec::{Flavour, Spec, around, random};
use crate::typemap::{TypeMap, type_map};

fn rises(map: &TypeMap) -> bool {
    let places: Vec<i64> = map.elements.iter().map(|(_, place)| *place).collect();
    places.iter().all(|place| *place >= 0) && places.is_sorted()
}

/// Whether the filetype holds a whole number of etypes, regardless of basic types.
fn holds_whole(filetype: &TypeMap, etype: &TypeMap) -> bool {
    let bytes = |map: &TypeMap| -> u64 { map.elements.iter().map(|(basic, _)| basic.size()).sum() };
    let (all, unit) = (bytes(filetype), bytes(etype));
    all == 0 || unit > 0 && all % unit == 0
}

/// Whether the basic types of the filetype are those of the etype, repeated.
fn repeats(filetype: &TypeMap, etype: &TypeMap) -> bool {
    let basics = |map: &TypeMap| -> Vec<Basic> { map.elements.iter().map(|it| it.0).collect() };
    let (all, unit) = (basics(filetype), basics(etype));
    all.is_empty()
        || !unit.is_empty()
            && all.len() % unit.len() == 0
            && all.chunks(unit.len()).all(|instance| instance == unit)
}

fn core(rng: &mut fastrand::Rng) -> Spec {
    match rng.u32(0..4) {
        0 => Spec::Basic(Basic::Int),
        1 => Spec::Contiguous(2, Box::new(Spec::Basic(Basic::Short))),
        2 => Spec::Structure(vec![
            (1, 0, Spec::Basic(Basic::Int)),
            (1, 8, Spec::Basic(Basic::Double)),
        ]),
        _ => random(rng, Flavour::File),
    }
}

#[test]
fn displacements_of_etypes_rise_from_zero() {
    crate::for_cases(|rng| {
        let flavour = if rng.u32(0..3) == 0 {
            Flavour::Memory
        } else {
            Flavour::File
        };
        let spec = random(rng, flavour);
        let map = type_map(&spec, &Basic::size);
        let checked = spec.build().check_etype();
        assert_eq!(checked.is_ok(), rises(&map), "{spec:?}");
        let kind = checked.err().map(|error| error.kind());
        assert!(kind.is_none_or(|kind| kind == TypeErrorKind::Displacement));
    });
}

#[test]
fn filetypes_consist_of_whole_etypes() {
    crate::for_cases(|rng| {
        let core = core(rng);
        let spec = match rng.bool() {
            true => around(rng, &core, Flavour::File),
            false => random(rng, Flavour::File),
        };
        let (filetype, etype) = (type_map(&spec, &Basic::size), type_map(&core, &Basic::size));
        let checked = spec.build().check_filetype(&core.build());
        assert_eq!(
            checked.is_ok(),
            rises(&filetype) && holds_whole(&filetype, &etype),
            "{spec:?} of {core:?}: {checked:?}"
        );
        let checked = spec.build().check_elements(&core.build());
        // An etype of bytes counts as untyped.
        let bytes = !etype.elements.is_empty()
            && etype
                .elements
                .iter()
                .all(|(basic, _)| *basic == Basic::Byte);
        assert_eq!(
            checked.is_ok(),
            bytes || filetype.elements.is_empty() || repeats(&filetype, &etype),
            "{spec:?} of {core:?}: {checked:?}"
        );
    });
}

#[test]
fn types_of_equal_size_are_not_equal_elements() {
    let filetype = Spec::Vector(3, 2, 4, Box::new(Spec::Basic(Basic::Int))).build();
    let rejected = filetype.check_elements(&Basic::Float.into()).unwrap_err();
    assert_eq!(rejected.kind(), TypeErrorKind::Etype);
    filetype.check_filetype(&Basic::Float.into()).unwrap();
    filetype.check_elements(&Basic::Int.into()).unwrap();
    filetype.check_elements(&Basic::Byte.into()).unwrap();
}

/// Holes need not be multiples of the etype's extent, nor start at its bounds: ROMIO and
/// OMPIO accept such views too.
#[test]
fn holes_may_have_any_length() {
    let etype = Spec::Resized(4, 16, Box::new(Spec::Basic(Basic::LongDouble)));
    for lower in [0, 3, 4] {
        let one = Box::new(etype.clone());
        let apart = Spec::Resized(lower, 50, Box::new(Spec::IndexedBlock(1, vec![2], one)));
        apart.build().check_filetype(&etype.build()).unwrap();
    }
}
