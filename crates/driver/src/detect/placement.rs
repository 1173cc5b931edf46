//! Where the bytes of a file are, as reported by the clients of striped file
//! systems.

use std::os::fd::BorrowedFd;

use crate::{FileSystem, Placement, Striping, beegfs, control::Control, lustre, orangefs};

/// Longer values are not layouts.
const LAYOUT_BYTES_MAX: usize = 4 << 10;

/// The placement of an open file, if the file system reports any.
pub(crate) fn find(
    file: BorrowedFd<'_>,
    file_system: &FileSystem,
    control: &Control,
) -> Option<Placement> {
    match file_system {
        FileSystem::Lustre => lustre::placement(control, file),
        FileSystem::BeeGfs => beegfs::placement(control, file),
        FileSystem::OrangeFs => orangefs::placement(control, file),
        FileSystem::Ceph => {
            let layout = control.attribute(file, c"ceph.file.layout", LAYOUT_BYTES_MAX);
            ceph(&layout.ok()?).map(Placement::uniform)
        }
        _ => None,
    }
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
    let (unit, count) = (value("stripe_unit")?, value("stripe_count")?);
    (unit > 0 && count > 0).then_some(Striping { unit, count })
}

#[cfg(test)]
mod tests {
    use super::*;

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
