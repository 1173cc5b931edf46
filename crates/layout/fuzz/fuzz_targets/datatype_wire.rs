//! Reads arbitrary bytes as a datatype: no panic, a canonical form, and valid derived
//! properties.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pario_layout::{Basic, Datatype};

/// Elements checked per signature.
const CHECKED: u64 = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(datatype) = Datatype::from_wire(bytes) else {
        return;
    };
    assert_eq!(datatype.to_wire(), bytes);
    let native = datatype
        .flatten(&Basic::size)
        .expect("it has been flattened before");
    assert_eq!(&native, datatype.layout());
    let twice = |basic: Basic| 2 * basic.size();
    let signature = datatype.signature();
    assert_eq!(signature.size_in(&Basic::size), Some(datatype.size()));
    if let Ok(layout) = datatype.flatten(&twice) {
        assert_eq!(signature.size_in(&twice), Some(layout.size()));
    }
    for element in 0..CHECKED.min(signature.elements()) {
        let byte = signature
            .bytes_of(element, &Basic::size)
            .expect("within the type");
        assert_eq!(signature.element_at(byte, &Basic::size), Some((element, 0)));
    }
    let _ = signature.runs(0..u64::MAX).take(CHECKED as usize).count();
    let _ = datatype.check_etype();
    let _ = datatype.check_filetype(&datatype);
    let _ = datatype.check_filetype(&Basic::Int.into());
    let _ = datatype.check_elements(&Basic::Int.into());
});
