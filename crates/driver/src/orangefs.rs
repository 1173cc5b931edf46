//! OrangeFS (PVFS2) through the kernel's client: the distribution of new files
//! from the attributes `user.pvfs2.*` of their directory, in the text form of
//! OrangeFS 2.9. Not tried on a real one.
//!
//! The attributes of a directory request the distribution of files that are
//! created in it later. Nothing tells what an older file has, so only files
//! without data count: new ones, and those that are about to be written. The
//! attributes are set by the user or administrator: a single file cannot have
//! its own.

use std::{
    ffi::CStr,
    fs,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use pario_types::{Placement, Striping};

use crate::{control::Control, posix::sys};

/// No value is longer.
const VALUE_BYTES_MAX: usize = 1 << 10;

/// Where the bytes of a file without data are going to be, if its directory says
/// so.
pub(crate) fn placement(control: &Control, file: BorrowedFd<'_>) -> Option<Placement> {
    if sys::size(file).ok()? > 0 {
        return None;
    }
    let directory = directory(file)?;
    let value = |name: &CStr| {
        let value = control.attribute(directory.as_fd(), name, VALUE_BYTES_MAX);
        let text = String::from_utf8(value.ok()?).ok()?;
        Some(text.trim_matches(['\0', ' ', '\n']).to_owned())
    };
    let name = value(c"user.pvfs2.dist_name")?;
    let parameters = value(c"user.pvfs2.dist_params");
    let servers = value(c"user.pvfs2.num_dfiles")?;
    distribution(&name, parameters.as_deref(), &servers).map(Placement::uniform)
}

/// The directory of an open file.
fn directory(file: BorrowedFd<'_>) -> Option<OwnedFd> {
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    sys::open(path.parent()?, flags, 0).ok()
}

/// Stripes if none are given.
const STRIP_BYTES: u64 = 64 << 10;

/// The striping of a distribution. Only round-robin distributions are
/// understood.
fn distribution(name: &str, parameters: Option<&str>, servers: &str) -> Option<Striping> {
    if name != "simple_stripe" {
        return None;
    }
    let unit = match parameters {
        None | Some("") => STRIP_BYTES,
        Some(parameters) => {
            let mut values = parameters
                .split(',')
                .filter_map(|it| it.trim().strip_prefix("strip_size:"));
            values.next()?.trim().parse().ok()?
        }
    };
    let count = servers.parse().ok()?;
    (unit > 0 && count > 0).then_some(Striping { unit, count })
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use super::*;
    use crate::{FileControl, IoctlArgument};

    /// Directories with the attributes of a command line in OrangeFS's manual
    /// (constructed, not measured).
    #[derive(Debug)]
    struct Directories;

    impl FileControl for Directories {
        fn attribute(&self, file: BorrowedFd<'_>, name: &CStr, _: usize) -> io::Result<Vec<u8>> {
            let none = || io::Error::from_raw_os_error(libc::ENODATA);
            match name.to_bytes() {
                _ if !sys::is_directory(file)? => Err(none()),
                b"user.pvfs2.dist_name" => Ok(b"simple_stripe\0".to_vec()),
                b"user.pvfs2.dist_params" => Ok(b"strip_size:131072".to_vec()),
                b"user.pvfs2.num_dfiles" => Ok(b"3".to_vec()),
                _ => Err(none()),
            }
        }

        fn ioctl(&self, _: BorrowedFd<'_>, _: u64, _: IoctlArgument<'_>) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(libc::ENOTTY))
        }
    }

    /// The attributes used to be read from the file, which has none.
    #[test]
    fn new_files_have_the_distribution_of_their_directory() {
        let control: Control = Arc::new(Directories);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let new = fs::File::create(&path).unwrap();
        let found = placement(&control, new.as_fd()).unwrap().striping();
        assert_eq!((found.unit, found.count), (131_072, 3));
        fs::write(&path, b"data").unwrap();
        assert_eq!(placement(&control, new.as_fd()), None, "an older file");
    }

    #[test]
    fn round_robin_distributions_are_understood() {
        let striping = |unit, count| Some(Striping { unit, count });
        assert_eq!(distribution("simple_stripe", None, "4"), striping(65536, 4));
        let parameters = Some("strip_size:131072");
        assert_eq!(
            distribution("simple_stripe", parameters, "3"),
            striping(131_072, 3)
        );
        for (name, parameters, servers) in [
            ("basic_dist", None, "1"),
            ("varstrip_dist", Some("strips:0:32K"), "2"),
            ("simple_stripe", Some("strip_size:0"), "2"),
            ("simple_stripe", Some("strip_size:x"), "2"),
            ("simple_stripe", Some("other:1"), "2"),
            ("simple_stripe", None, "0"),
            ("simple_stripe", None, "-1"),
        ] {
            assert_eq!(
                distribution(name, parameters, servers),
                None,
                "{parameters:?}"
            );
        }
    }
}
