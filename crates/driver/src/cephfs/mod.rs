//! CephFS by its own library, without a mount on the node.
//!
//! The library is loaded when a file is opened by this driver, which only a prefix
//! or a hint selects: users of a kernel mount often have no key of their own. A
//! process that has files open is a client of the cluster; a forked child becomes
//! one of its own.

pub(crate) mod attribute;
mod clients;
mod handle;
mod layout;
mod library;
mod locks;
mod mounted;
mod names;
mod transfer;

use std::{ffi::CString, fmt, fs, io, path::Path, sync::Arc};

use crate::{
    Access, Background, Capabilities, Create, Creation, Driver, FileSystem, Handle, IoMode, OpenHow,
};
use clients::KeptClients;
use handle::{CephHandle, Found};
use library::{Account, Client, OpenFile, User};
use names::Name;

/// CephFS through libcephfs. Files of one process share a client of the cluster,
/// which exists while the driver does, from the first use on.
#[derive(Default)]
pub struct CephFs {
    clients: KeptClients,
    /// What was set explicitly.
    account: Account,
}

impl CephFs {
    /// The driver; nothing is loaded yet.
    pub fn new() -> Self {
        CephFs::default()
    }

    /// The same with a configuration file and a user of the cluster; `None` for the
    /// usual ones.
    ///
    /// # Errors
    /// If one of them contains a NUL byte.
    pub fn with_access(configuration: Option<&str>, user: Option<&str>) -> io::Result<Self> {
        let terminated = |text: Option<&str>| text.map(CString::new).transpose();
        Ok(CephFs {
            clients: KeptClients::default(),
            account: Account {
                configuration: terminated(configuration)?,
                user: terminated(user)?,
                file_system: None,
            },
        })
    }

    /// The client for a file: what was set takes precedence over how the kernel has
    /// mounted it.
    fn client(&self, name: &Name) -> io::Result<Arc<Client>> {
        let mounted = name.account();
        self.clients.get(&Account {
            configuration: self.account.configuration.clone(),
            user: self.account.user.clone().or_else(|| mounted.user.clone()),
            file_system: mounted.file_system.clone(),
        })
    }
}

impl fmt::Debug for CephFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CephFs").finish_non_exhaustive()
    }
}

/// How often a file that seems to be neither there nor missing is tried again:
/// another process may create and remove it at the same time.
const CREATE_TRIES: u32 = 16;

impl Driver for CephFs {
    fn name(&self) -> &'static str {
        "cephfs"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            between_processes: true,
            locks: true,
            durable: true,
            background: Background::Threads,
        }
    }

    fn is_mounted(&self) -> bool {
        false
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        let name = Name::new(path)?;
        let client = self.client(&name)?;
        let user = Arc::new(User::of_process()?);
        let (file, creation) = match how.create {
            Create::Never => (name.open(&client, access_flags(how), &user)?, None),
            Create::Exclusive => create(&name, how, &client, &user)?,
            Create::IfMissing => open_or_create(&name, how, &client, &user)?,
        };
        let placement = layout::placement(file.inode(), name.path().as_deref(), access_flags(how));
        let node_path = (*name.account() == Account::default())
            .then(|| names::by_number(file.inode().number()));
        let found = Found {
            placement,
            creation,
            node_path,
        };
        Ok(Arc::new(CephHandle::new(file, how, found)?))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        let name = Name::new(path)?;
        let client = self.client(&name)?;
        name.unlink(&client, &User::of_process()?)
    }

    /// Whatever the kernel has at that path.
    fn file_system(&self, _path: &Path) -> io::Result<FileSystem> {
        library::require()?;
        Ok(FileSystem::Ceph)
    }
}

fn access_flags(how: &OpenHow) -> libc::c_int {
    let access = match how.access {
        Access::Read => libc::O_RDONLY,
        Access::Write => libc::O_WRONLY,
        Access::ReadWrite => libc::O_RDWR,
    };
    // Past the client's cache, for both directions and without alignment.
    match how.reads == IoMode::Direct || how.writes == IoMode::Direct {
        true => access | libc::O_DIRECT,
        false => access,
    }
}

type Created = (OpenFile, Option<Creation>);

fn open_or_create(
    name: &Name,
    how: &OpenHow,
    client: &Arc<Client>,
    user: &Arc<User>,
) -> io::Result<Created> {
    let mut tries = 1;
    loop {
        match name.open(client, access_flags(how), user) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, None)),
        }
        match create(name, how, client, user) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < CREATE_TRIES => {}
            created => return created,
        }
        tries += 1;
    }
}

/// Creates a file, which must not exist, with the layout that is requested.
fn create(
    name: &Name,
    how: &OpenHow,
    client: &Arc<Client>,
    user: &Arc<User>,
) -> io::Result<Created> {
    let flags = access_flags(how) | libc::O_CREAT | libc::O_EXCL;
    let permissions = how.permissions & !umask()?;
    let file = name.create(client, flags, permissions, user)?;
    let creation = layout::set(file.inode(), &how.striping, user);
    Ok((file, creation))
}

/// The permissions that new files do not get. The library does not apply them.
fn umask() -> io::Result<u32> {
    // `umask(2)` would change them for other threads, if only for a moment.
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|it| it.strip_prefix("Umask:"));
    let mask = line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    mask.ok_or_else(|| io::Error::other("/proc/self/status does not state the umask"))
}
