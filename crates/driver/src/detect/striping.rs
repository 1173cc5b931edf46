//! Striping over servers, as reported by the clients of striped file systems.

use std::os::fd::BorrowedFd;

use crate::{FileSystem, Striping, posix::sys};

/// Longer layouts are composite and have no single stripe size.
const LAYOUT_BYTES_MAX: usize = 64 << 10;

/// The striping of an open file, if the file system reports any.
pub(super) fn find(fd: BorrowedFd<'_>, file_system: &FileSystem) -> Option<Striping> {
    match file_system {
        FileSystem::Lustre => lustre(&sys::attribute(fd, c"lustre.lov", LAYOUT_BYTES_MAX).ok()?),
        FileSystem::Ceph => ceph(&sys::attribute(fd, c"ceph.file.layout", LAYOUT_BYTES_MAX).ok()?),
        _ => None,
    }
}

/// Lustre's `lov_user_md`, versions 1 and 3: magic and pattern (4 bytes each),
/// object id (16), stripe size (4), stripe count (2), little-endian.
fn lustre(layout: &[u8]) -> Option<Striping> {
    const MAGIC_V1: u32 = 0x0bd1_0bd0;
    const MAGIC_V3: u32 = 0x0bd3_0bd0;
    let magic = u32::from_le_bytes(layout.get(..4)?.try_into().ok()?);
    if magic != MAGIC_V1 && magic != MAGIC_V3 {
        return None;
    }
    let unit = u32::from_le_bytes(layout.get(24..28)?.try_into().ok()?);
    let count = u16::from_le_bytes(layout.get(28..30)?.try_into().ok()?);
    striping(unit.into(), count.into())
}

/// CephFS's text form: `stripe_unit=4194304 stripe_count=1 object_size=4194304
/// …`.
fn ceph(layout: &[u8]) -> Option<Striping> {
    let layout = std::str::from_utf8(layout).ok()?;
    let value = |key: &str| {
        let found = layout
            .split_ascii_whitespace()
            .find_map(|field| field.strip_prefix(key))?;
        found.strip_prefix('=')?.trim_end_matches('\0').parse().ok()
    };
    striping(value("stripe_unit")?, value("stripe_count")?)
}

fn striping(unit: u64, count: u64) -> Option<Striping> {
    (unit > 0 && count > 0).then_some(Striping { unit, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lustre_layouts() {
        let mut layout = vec![0u8; 32];
        layout[..4].copy_from_slice(&0x0bd1_0bd0u32.to_le_bytes());
        layout[24..28].copy_from_slice(&(1u32 << 20).to_le_bytes());
        layout[28..30].copy_from_slice(&4u16.to_le_bytes());
        assert_eq!(
            lustre(&layout),
            Some(Striping {
                unit: 1 << 20,
                count: 4
            })
        );
        assert_eq!(lustre(&layout[..29]), None);
        layout[0] = 0;
        assert_eq!(lustre(&layout), None);
    }

    #[test]
    fn ceph_layouts() {
        let layout = b"stripe_unit=65536 stripe_count=3 object_size=4194304 pool=data";
        assert_eq!(
            ceph(layout),
            Some(Striping {
                unit: 65536,
                count: 3
            })
        );
        assert_eq!(ceph(b"stripe_unit=0 stripe_count=3"), None);
        assert_eq!(ceph(b"\xff"), None);
    }
}
