//! New files: their layout is set between the creation of the file and that of
//! its objects.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::{
    LAYOUT_ATTRIBUTE, LAYOUT_BYTES_MAX,
    choice::{self, Choice},
    layout::{HEADER_BYTES, Layout, MAGIC_V1, MAGIC_V3, POOL_BYTES, StripeCount},
    placement::{OVERSTRIPED, RAID0},
};
use crate::{
    Creation, IoctlArgument, ServerCount, StripingRequest,
    control::{Control, write_request},
    creation::NewFile,
    detect,
    posix::sys,
};

/// `LL_IOC_LOV_SETSTRIPE`: the argument is the address of a layout.
const SET_LAYOUT: u64 = write_request(b'f', 154, 8);

/// `O_LOV_DELAY_CREATE`: no objects before a layout is set or data written.
const DELAY_CREATE: libc::c_int = libc::O_NOCTTY | libc::O_ASYNC;

/// Length of a pool's name.
const POOL_NAME_MAX: usize = POOL_BYTES - 1;

/// A layout to set: what of it is `None` is left to the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) count: Option<StripeCount>,
    pub(super) stripe_bytes: Option<u32>,
    pub(super) first_server: Option<u16>,
    pub(super) pool: Option<String>,
    pub(super) is_overstriped: bool,
}

/// Creates a file with a layout. `None` if the file exists or has to be created
/// as usual.
pub(crate) fn create(file: &NewFile<'_>) -> io::Result<Option<(OwnedFd, Creation)>> {
    let request = file.request();
    let (wanted, reason) = match explicit(request) {
        Ok(Some(wanted)) => (wanted, "requested by hints".to_owned()),
        Ok(None) => match choose(file) {
            Choice::Keep(reason) => return as_usual(file, Creation::Default { reason }),
            Choice::Stripes(wanted, reason) => (wanted, reason),
        },
        Err(reason) => return as_usual(file, Creation::Refused { reason }),
    };
    let Some(created) = file.create(DELAY_CREATE)? else {
        return Ok(None);
    };
    let result = set(file.control, created.as_fd(), &wanted);
    let what = format!("{wanted}, {reason}");
    let creation = Creation::attempted(what, request.is_explicit(), result);
    let created = match &creation {
        Creation::Set { .. } => created,
        // Another open creates the objects of the default layout, so that all
        // ranks see it. If it is not permitted, the first write does.
        _ => sys::reopen(created.as_fd(), file.flags & libc::O_ACCMODE).unwrap_or(created),
    };
    Ok(Some((created, creation)))
}

/// Creates a file with the default layout.
fn as_usual(file: &NewFile<'_>, creation: Creation) -> io::Result<Option<(OwnedFd, Creation)>> {
    Ok(file.create(0)?.map(|fd| (fd, creation)))
}

/// What to choose for a file for which nothing was requested.
fn choose(file: &NewFile<'_>) -> Choice {
    let Some(expected) = file.request().expected else {
        return Choice::Keep("nothing is requested".to_owned());
    };
    match default_layout(file) {
        Ok(value) => match Layout::parse(&value) {
            Some(default) => choice::choose(&default, expected),
            None => Choice::Keep("the directory's default is not understood".to_owned()),
        },
        Err(error) => Choice::Keep(format!("the directory's default cannot be read: {error}")),
    }
}

/// The default of the file's directory; one that has none takes over that of the
/// file system's root.
fn default_layout(file: &NewFile<'_>) -> io::Result<Vec<u8>> {
    let read = |directory: BorrowedFd<'_>| {
        let control = file.control;
        control.attribute(directory, LAYOUT_ATTRIBUTE, LAYOUT_BYTES_MAX)
    };
    match file.with_directory(read) {
        Err(error) if error.raw_os_error() == Some(libc::ENODATA) => {
            let (_, mount) = detect::mount_of(file.directory)?;
            let root = mount.ok_or(error)?.point;
            let flags = libc::O_RDONLY | libc::O_DIRECTORY;
            read(sys::open(&root, flags, 0)?.as_fd())
        }
        value => value,
    }
}

/// The layout that the user requested, if any; an error if Lustre has no such
/// layout.
fn explicit(request: &StripingRequest) -> Result<Option<Wanted>, String> {
    if !request.is_explicit() {
        return Ok(None);
    }
    let per_server = request.stripes_per_server.max(1);
    let count = match request.servers {
        None if per_server > 1 => {
            return Err("overstriping needs striping_factor, the number of servers".to_owned());
        }
        None => None,
        Some(ServerCount::All) if per_server > 1 => {
            return Err("overstriping needs a number of servers, not all of them".to_owned());
        }
        Some(ServerCount::All) => Some(StripeCount::All),
        Some(ServerCount::Exactly(servers)) => {
            let count = servers.saturating_mul(per_server);
            let count = u16::try_from(count).ok().filter(|count| *count < u16::MAX);
            let count = count.ok_or_else(|| {
                format!("{servers} servers with {per_server} stripes each are too many")
            })?;
            Some(StripeCount::Exactly(count))
        }
    };
    let stripe_bytes = match request.unit {
        None => None,
        Some(unit) => Some(u32::try_from(unit).map_err(|_| {
            format!("stripes of {unit} bytes are too long: they must be shorter than 4 GiB")
        })?),
    };
    if let Some(pool) = &request.pool
        && (pool.len() > POOL_NAME_MAX || pool.contains('\0'))
    {
        return Err(format!(
            "the pool name {pool:?} is longer than {POOL_NAME_MAX} bytes"
        ));
    }
    let first_server = request.first_server.map(u16::try_from).transpose();
    Ok(Some(Wanted {
        count,
        stripe_bytes,
        first_server: first_server.map_err(|_| "the first server does not exist".to_owned())?,
        pool: request.pool.clone(),
        is_overstriped: per_server > 1,
    }))
}

/// Sets the layout of a file that has none.
pub(super) fn set(control: &Control, file: BorrowedFd<'_>, wanted: &Wanted) -> io::Result<()> {
    let mut header = wanted.header();
    control.ioctl(file, SET_LAYOUT, IoctlArgument::Structure(&mut header))
}

impl Wanted {
    /// A `lov_user_md` of version 1, or 3 if there is a pool. Zero means the
    /// default; for the first server, all ones.
    fn header(&self) -> Vec<u8> {
        let magic = match self.pool {
            None => MAGIC_V1,
            Some(_) => MAGIC_V3,
        };
        let pattern = match self.is_overstriped {
            true => RAID0 | OVERSTRIPED,
            false => RAID0,
        };
        let count = self.count.unwrap_or(StripeCount::Default).to_raw();
        let mut header = Vec::with_capacity(HEADER_BYTES + POOL_BYTES);
        header.extend(magic.to_le_bytes());
        header.extend(pattern.to_le_bytes());
        header.extend([0; 16]);
        header.extend(self.stripe_bytes.unwrap_or(0).to_le_bytes());
        header.extend(count.to_le_bytes());
        header.extend(self.first_server.unwrap_or(u16::MAX).to_le_bytes());
        if let Some(pool) = &self.pool {
            header.extend(pool.as_bytes());
            header.resize(HEADER_BYTES + POOL_BYTES, 0);
        }
        header
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            None | Some(StripeCount::Default) => write!(f, "the default number of stripes")?,
            Some(StripeCount::All) => write!(f, "a stripe on every server")?,
            Some(StripeCount::Exactly(1)) => write!(f, "1 stripe")?,
            Some(StripeCount::Exactly(count)) => write!(f, "{count} stripes")?,
        }
        if let Some(bytes) = self.stripe_bytes {
            write!(f, " of {bytes} bytes")?;
        }
        if let Some(first) = self.first_server {
            write!(f, " from server {first} on")?;
        }
        if let Some(pool) = &self.pool {
            write!(f, " in the pool {pool}")?;
        }
        match self.is_overstriped {
            true => write!(f, ", several per server"),
            false => Ok(()),
        }
    }
}
