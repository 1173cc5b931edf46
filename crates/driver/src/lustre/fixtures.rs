//! Layouts for tests, each with its origin.

use crate::doubles::lustre::{ComponentLayout, PlainLayout, composite};

/// Measured on Lustre 2.17.57 (`lfs setstripe -c 4 -S 64k`): the header and the
/// first object. Constructed: the other three objects, on servers 1 to 3.
pub(crate) fn plain() -> Vec<u8> {
    let mut bytes = hex(
        "d00bd10b 01000000 0100000000000000 0104000002000000 00000100 0400 ffff
         00040040 02000000 0200000000000000 00000000 00000000",
    );
    let object = bytes[32..].to_vec();
    for server in 1..4u8 {
        bytes.extend(&object[..20]);
        bytes.extend([server, 0, 0, 0]);
    }
    bytes
}

/// Measured on Lustre 2.17.57 (`lfs setstripe -E 1M -c 1 -E -1 -c 4 -S 256k`),
/// before the first write. Constructed: the object's identifier.
pub(crate) fn progressive() -> Vec<u8> {
    let mut bytes = hex("d00bd60b d8000000 02000000 0000 0200");
    bytes.resize(32, 0);
    bytes.extend(hex(
        "01000000 10000000 0000000000000000 0000100000000000 80000000 38000000",
    ));
    bytes.resize(80, 0);
    bytes.extend(hex(
        "02000000 00000000 0000100000000000 ffffffffffffffff b8000000 20000000",
    ));
    bytes.resize(0x80, 0);
    bytes.extend(hex("d00bd10b 01000000"));
    bytes.extend([0; 16]);
    bytes.extend(hex("00001000 0100 ffff"));
    bytes.extend([2; 20]);
    bytes.extend([0; 4]);
    bytes.extend(hex("d00bd10b 01000000"));
    bytes.extend([0; 16]);
    bytes.extend(hex("00000400 0400 ffff"));
    bytes
}

/// Constructed from the header of Lustre 2.15: data on the metadata server up
/// to 1 MiB, then overstriped over two servers in a pool.
pub(crate) fn metadata_then_overstriped() -> Vec<u8> {
    let rest = PlainLayout {
        pool: Some("flash".to_owned()),
        ..PlainLayout::new(0x201, 1 << 20, 4).on(&[5, 6, 5, 6])
    };
    composite(
        4,
        &[
            component(1, 0x10, 0..1 << 20, PlainLayout::new(0x100, 1 << 20, 0)),
            component(2, 0x10, 1 << 20..u64::MAX, rest),
        ],
    )
}

/// Constructed from the header of Lustre 2.15: two mirrors; `flags` are those
/// of the first.
pub(crate) fn mirrored(flags: u32) -> Vec<u8> {
    let mirror = |servers: &[u32]| PlainLayout::new(1, 1 << 20, servers.len() as u16).on(servers);
    composite(
        7,
        &[
            component(0x1_0001, flags, 0..u64::MAX, mirror(&[1, 2])),
            component(0x2_0002, 0x10, 0..u64::MAX, mirror(&[3, 4, 5])),
        ],
    )
}

/// Constructed from the header of Lustre 2.15: a component that is extended by
/// 64 MiB at a time up to 1 GiB, then another.
pub(crate) fn extending() -> Vec<u8> {
    composite(
        3,
        &[
            component(
                1,
                0x10,
                0..64 << 20,
                PlainLayout::new(1, 1 << 20, 1).on(&[0]),
            ),
            component(2, 0x40, 64 << 20..1 << 30, PlainLayout::new(1, 64 << 20, 1)),
            component(
                3,
                0,
                1 << 30..u64::MAX,
                PlainLayout::new(1, 1 << 20, 0xffff),
            ),
        ],
    )
}

/// Every layout above.
pub(crate) fn all() -> Vec<Vec<u8>> {
    vec![
        plain(),
        progressive(),
        metadata_then_overstriped(),
        mirrored(0x11),
        extending(),
    ]
}

pub(crate) fn component(
    id: u32,
    flags: u32,
    file: std::ops::Range<u64>,
    plain: PlainLayout,
) -> ComponentLayout {
    ComponentLayout {
        id,
        flags,
        start: file.start,
        end: file.end,
        plain: plain.to_bytes(),
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).unwrap();
        u8::from_str_radix(pair, 16).unwrap()
    };
    digits.chunks(2).map(byte).collect()
}
