//! What may be an etype or a filetype.

use pario_layout::{Basic, TypeErrorKind};

use crate::spec::{Flavour, Spec, around, random};
use crate::typemap::{TypeMap, type_map};

fn rises(map: &TypeMap) -> bool {
    let places: Vec<i64> = map.elements.iter().map(|(_, place)| *place).collect();
    places.iter().all(|place| *place >= 0) && places.is_sorted()
}

/// The filetype is instances of the etype, whole extents of it apart and from the bounds.
fn made_of(filetype: &TypeMap, etype: &TypeMap) -> bool {
    let (all, unit, extent) = (&filetype.elements, &etype.elements, etype.extent());
    if all.is_empty() {
        return true;
    }
    if unit.is_empty() || all.len() % unit.len() != 0 {
        return false;
    }
    let instances = all.chunks(unit.len()).map(|instance| {
        let base = instance[0].1 - unit[0].1;
        let moved: Vec<_> = unit
            .iter()
            .map(|(basic, place)| (*basic, place + base))
            .collect();
        (moved == instance).then_some(base + etype.lower())
    });
    let Some(starts) = instances.collect::<Option<Vec<i64>>>() else {
        return false;
    };
    let whole = |distance: i64| extent <= 1 || distance % extent == 0;
    whole(filetype.extent()) && starts.iter().all(|start| whole(start - filetype.lower()))
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
fn filetypes_are_made_of_etypes() {
    crate::for_cases(|rng| {
        let core = core(rng);
        let spec = around(rng, &core, Flavour::File);
        let (filetype, etype) = (type_map(&spec, &Basic::size), type_map(&core, &Basic::size));
        let bytes = !etype.elements.is_empty()
            && etype
                .elements
                .iter()
                .all(|(basic, _)| *basic == Basic::Byte);
        let expected = rises(&filetype) && made_of(&filetype, &etype);
        let checked = spec.build().check_filetype(&core.build());
        // An etype of bytes is taken as untyped, and one that goes backwards is refused by its
        // own check.
        if !bytes && rises(&etype) {
            assert_eq!(
                checked.is_ok(),
                expected,
                "{spec:?} of {core:?}: {checked:?}"
            );
        }
    });
}

#[test]
fn another_type_of_the_same_size_is_no_etype() {
    let filetype = Spec::Vector(3, 2, 4, Box::new(Spec::Basic(Basic::Int))).build();
    let refused = filetype.check_filetype(&Basic::Float.into()).unwrap_err();
    assert_eq!(refused.kind(), TypeErrorKind::Etype);
    filetype.check_filetype(&Basic::Int.into()).unwrap();
    filetype.check_filetype(&Basic::Byte.into()).unwrap();
}

/// An etype that is dense but whose bounds were moved: the hole before it is measured from them.
#[test]
fn a_hole_ends_where_the_etype_begins() {
    let etype = Spec::Resized(4, 16, Box::new(Spec::Basic(Basic::LongDouble)));
    let apart = |lower| {
        let one = Box::new(etype.clone());
        Spec::Resized(lower, 48, Box::new(Spec::IndexedBlock(1, vec![2], one))).build()
    };
    apart(4).check_filetype(&etype.build()).unwrap();
    apart(0).check_filetype(&etype.build()).unwrap_err();
}
