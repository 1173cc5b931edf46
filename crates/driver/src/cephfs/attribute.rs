//! Layouts of files on a CephFS that the kernel or FUSE has mounted: the extended
//! attribute `ceph.file.layout`, a text such as `stripe_unit=4194304 stripe_count=1
//! object_size=4194304 pool=data`.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::layout::{Layout, requested};
use crate::{Creation, Placement, control::Control, creation::NewFile};

/// The name of the attribute.
pub(super) const LAYOUT: &CStr = c"ceph.file.layout";

/// Longer values are not layouts.
const BYTES_MAX: usize = 4 << 10;

/// The stripes of an open file; which OSDs they are on is not known.
pub(crate) fn placement(control: &Control, file: BorrowedFd<'_>) -> Option<Placement> {
    let layout = read(control, file).ok()?;
    layout.striping().map(Placement::uniform)
}

/// Creates a file with the layout that hints request. `None` if the file exists or
/// nothing is requested.
pub(crate) fn create(file: &NewFile<'_>) -> io::Result<Option<(OwnedFd, Creation)>> {
    if !file.request().is_explicit() {
        return Ok(None);
    }
    let Some(created) = file.create(0)? else {
        return Ok(None);
    };
    let value = read(file.control, created.as_fd())
        .and_then(|default| requested(default, file.request(), unknown_osds));
    let set = |value: &str| {
        file.control
            .set_attribute(created.as_fd(), LAYOUT, value.as_bytes())
    };
    let creation = attempt(value, set);
    Ok(Some((created, creation)))
}

/// What becomes of a new file whose layout is set to `value`.
pub(super) fn attempt(
    value: io::Result<String>,
    set: impl FnOnce(&str) -> io::Result<()>,
) -> Creation {
    match value {
        Ok(value) => {
            let set = set(&value);
            Creation::attempted(format!("ceph.file.layout: {value}"), true, set)
        }
        Err(error) => Creation::attempted("the layout of the file".to_owned(), true, Err(error)),
    }
}

fn unknown_osds() -> io::Result<u32> {
    let message = "a mounted CephFS does not report how many OSDs it has: set striping_factor to \
                   a number greater than 0";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

fn read(control: &Control, file: BorrowedFd<'_>) -> io::Result<Layout> {
    let value = control.attribute(file, LAYOUT, BYTES_MAX)?;
    parse(&value).ok_or_else(|| {
        let value = String::from_utf8_lossy(&value);
        let message = format!("the attribute ceph.file.layout is {value:?}, which is not a layout");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn parse(layout: &[u8]) -> Option<Layout> {
    let layout = std::str::from_utf8(layout).ok()?;
    let value = |key: &str| {
        let found = layout
            .split_ascii_whitespace()
            .find_map(|field| field.strip_prefix(key)?.strip_prefix('='))?;
        found.trim_end_matches('\0').parse().ok()
    };
    Some(Layout {
        stripe_unit: value("stripe_unit")?,
        stripe_count: value("stripe_count")?,
        object_size: value("object_size")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Striping;

    #[test]
    fn texts_become_layouts() {
        // As read from a mount by ceph-fuse 16.2.
        let text = b"stripe_unit=65536 stripe_count=3 object_size=4194304 pool=data";
        let striping = parse(text).and_then(Layout::striping);
        let expected = Striping {
            unit: 65536,
            count: 3,
        };
        assert_eq!(striping, Some(expected));
        for text in [
            &b"stripe_unit=0 stripe_count=3 object_size=4194304"[..],
            b"stripe_unit=65536 stripe_count=3",
            b"stripe_unit=65536 stripe_count=3 object_size=100",
            b"stripe_unit=99999999999 stripe_count=3 object_size=4194304",
            b"\xff",
            b"",
        ] {
            assert_eq!(parse(text).and_then(Layout::striping), None, "{text:?}");
        }
    }
}
