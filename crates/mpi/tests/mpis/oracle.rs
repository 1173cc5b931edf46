//! What the host itself says of where a datatype's bytes lie.

use std::ffi::{c_int, c_void};

use pario_mpi::{DataLayout, Datatype, Host};

use crate::maker::host_call;

/// Types that span more are not packed: two bytes tell an offset.
const SPAN_MAX: i64 = 1 << 16;

/// The offsets of the data bytes of an instance in the order in which the host packs them; none
/// if they span too much.
///
/// The host packs buffers whose bytes are the digits of their own offsets. One instance only:
/// Open MPI packs several of a type with empty parts as if they were adjacent.
fn packed_offsets(host: &Host, datatype: Datatype) -> Option<Vec<i64>> {
    let (first, span) = host.type_true_extent(datatype).expect("a valid type");
    // Intel packs nested arrays in a wrong order, and more bytes than some types have.
    if span > SPAN_MAX || host.version().contains("Intel") {
        return None;
    }
    let size = host.type_size(datatype).expect("a valid type") as usize;
    host.type_commit(datatype).expect("a valid type");
    let digits = |digit: u32| {
        let memory: Vec<u8> = (0..span)
            .map(|offset| (offset >> (8 * digit)) as u8)
            .collect();
        let origin = memory.as_ptr().wrapping_offset(-first as isize);
        pack(host, datatype, origin, size)
    };
    let (low, high) = (digits(0), digits(1));
    let offset = |(&low, &high): (&u8, &u8)| i64::from(low) + (i64::from(high) << 8) + first;
    Some(low.iter().zip(&high).map(offset).collect())
}

/// Packs an instance that begins at an address.
fn pack(host: &Host, datatype: Datatype, from: *const u8, bytes: usize) -> Vec<u8> {
    let capacity = bytes + 64;
    let (mut packed, mut position) = (vec![0_u8; capacity], 0);
    host_call!(host, "Pack"(from.cast() => *const c_void, 1 => c_int,
        datatype.0 => u64, packed.as_mut_ptr().cast() => *mut c_void, capacity as c_int => c_int,
        &mut position => *mut c_int, host.predefined().comm_self.0 => u64))
    .expect("valid arguments");
    assert_eq!(position as usize, bytes, "bytes that the host packs");
    packed.truncate(bytes);
    packed
}

/// The offsets of the data bytes as the layout says.
fn layout_offsets(datatype: &pario_layout::Datatype) -> Vec<i64> {
    let offset = |byte| datatype.layout().offset_of(byte).expect("a data byte");
    (0..datatype.size()).map(offset).collect()
}

/// Compares bounds and, where it spans little, every byte. `context` names the type.
pub(crate) fn compare(host: &Host, datatype: Datatype, context: &str) -> pario_layout::Datatype {
    // Before anything else is known about it, and once more.
    host.type_commit(datatype).expect("a valid type");
    let as_data = [(); 2].map(|()| host.decode_data(datatype));
    let decoded = host
        .decode(datatype)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let as_data = as_data.into_iter().chain([host.decode_data(datatype)]);
    for data in as_data {
        match data.unwrap_or_else(|error| panic!("{context}: {error}")) {
            DataLayout::Contiguous(bytes) => {
                let is_dense = decoded.layout().is_dense();
                assert!(is_dense && bytes == decoded.size(), "data of {context}");
            }
            DataLayout::Other(other) => assert_eq!(other, decoded, "data of {context}"),
        }
    }
    assert_eq!(
        decoded.size(),
        host.type_size(datatype).unwrap(),
        "size of {context}"
    );
    let bounds = (decoded.lower_bound(), decoded.extent());
    assert_eq!(
        bounds,
        host.type_extent(datatype).unwrap(),
        "bounds of {context}"
    );
    if let Some(packed) = packed_offsets(host, datatype) {
        assert_eq!(layout_offsets(&decoded), packed, "bytes of {context}");
    }
    decoded
}
