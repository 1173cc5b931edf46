//! A client of the cluster.
//!
//! This file may contain `unsafe`: it calls libcephfs.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_int},
    io, ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use libc::mode_t;

use super::{
    functions::{Functions, RawMount, STATX_INO, STATX_MODE, Statx, functions},
    inode::Inode,
    user::User,
};
use crate::posix::sys;

/// A mounted file system: a client of the cluster.
pub(crate) struct Client {
    raw: *mut RawMount,
    pub(super) functions: &'static Functions,
    /// The process that mounted it.
    process: u32,
    /// Whether the cluster does not accept this client any more.
    is_evicted: AtomicBool,
}

// SAFETY: the library protects its state by locks of its own.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// What identifies the client to the cluster; the rest is in its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    /// The configuration file, if not the usual one.
    pub(crate) configuration: Option<CString>,
    /// The user, such as `admin` for `client.admin`.
    pub(crate) user: Option<CString>,
    /// One of several file systems.
    pub(crate) file_system: Option<CString>,
}

impl Client {
    /// Mounts the root of a file system, as described by the configuration of the
    /// account, by default `CEPH_CONF` or `/etc/ceph/ceph.conf`, and `CEPH_ARGS`.
    ///
    /// A thread of its own does so: two processes that were forked from one that had
    /// mounted could not mount both from their first threads. Probably the library
    /// draws the number that distinguishes the clients of a node from a generator of
    /// the calling thread, so that both drew the same.
    pub(crate) fn mount(account: &Account) -> io::Result<Client> {
        // Signal handlers should run on the program's own threads.
        let _blocked = sys::SignalsBlocked::new();
        thread::scope(|scope| {
            let mounting = || Self::mount_here(account);
            let thread = thread::Builder::new().spawn_scoped(scope, mounting)?;
            thread.join().expect("mounting does not panic")
        })
    }

    fn mount_here(account: &Account) -> io::Result<Client> {
        let functions = functions()?;
        let optional = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |it| it.as_ptr());
        let mut raw = ptr::null_mut();
        // SAFETY: the address outlives the call, and the text is terminated or null.
        let created = unsafe { (functions.create)(&mut raw, optional(&account.user)) };
        step("create a client", created)?;
        let client = Client {
            raw,
            functions,
            process: std::process::id(),
            is_evicted: AtomicBool::new(false),
        };
        let configuration = match &account.configuration {
            Some(path) => format!("{path:?}"),
            None => "CEPH_CONF, /etc/ceph/ceph.conf".to_owned(),
        };
        // SAFETY: the mount exists; null stands for the usual places.
        unsafe {
            let read = (functions.read_configuration)(raw, optional(&account.configuration));
            step(&format!("read the configuration ({configuration})"), read)?;
            let read = (functions.read_environment)(raw, ptr::null());
            step("read CEPH_ARGS", read)?;
            step("initialise the client", (functions.init)(raw))?;
        }
        if let Some(name) = &account.file_system {
            // SAFETY: the mount exists, and the name is terminated.
            let selected = unsafe { (functions.select_file_system)(raw, name.as_ptr()) };
            step(&format!("select the file system {name:?}"), selected)?;
        }
        // SAFETY: as above.
        step("mount", unsafe { (functions.mount)(raw, c"/".as_ptr()) })?;
        Ok(client)
    }

    /// Whether the cluster has refused this client.
    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// Whether this is the process that mounted.
    pub(crate) fn belongs_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Number of OSDs of the cluster.
    pub(crate) fn osds(&self) -> io::Result<u32> {
        let raw = self.enter()?;
        // SAFETY: the mount exists.
        let count = self.checked(unsafe { (self.functions.osds)(raw) }.into())?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The file or directory of a path, by way of symbolic links.
    pub(crate) fn walk(self: &Arc<Self>, path: &CStr, user: &User) -> io::Result<Inode> {
        let raw = self.enter()?;
        let (mut inode, mut found) = (ptr::null_mut(), Statx::zeroed());
        // SAFETY: the mount and the user exist, the path is terminated, and the
        // addresses outlive the call.
        let walked = unsafe {
            let want = STATX_INO | STATX_MODE;
            (self.functions.walk)(
                raw,
                path.as_ptr(),
                &mut inode,
                &mut found,
                want,
                0,
                user.raw,
            )
        };
        self.checked(walked.into())?;
        let is_directory = mode_t::from(found.mode) & libc::S_IFMT == libc::S_IFDIR;
        Ok(Inode::new(self, inode, found.ino, is_directory))
    }

    /// The file with this number, even if it has no name any more.
    pub(crate) fn look_up(self: &Arc<Self>, number: u64) -> io::Result<Inode> {
        let raw = self.enter()?;
        let mut inode = ptr::null_mut();
        // SAFETY: the mount exists, and the address outlives the call.
        let found = unsafe { (self.functions.look_up)(raw, number, &mut inode) };
        self.checked(found.into())?;
        Ok(Inode::new(self, inode, number, false))
    }

    pub(super) fn enter(&self) -> io::Result<*mut RawMount> {
        if self.belongs_here() {
            return Ok(self.raw);
        }
        Err(io::Error::other(
            "the file was opened before fork: a child process has to open it again, since the \
             threads of libcephfs are in its parent",
        ))
    }

    /// The result of a call, which is negative on failure.
    pub(super) fn checked(&self, result: i64) -> io::Result<i64> {
        if result >= 0 {
            return Ok(result);
        }
        let code = i32::try_from(-result).unwrap_or(libc::EIO);
        if code != libc::ESHUTDOWN {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.is_evicted.store(true, Ordering::Relaxed);
        Err(evicted())
    }
}

pub(super) fn evicted() -> io::Error {
    io::Error::other(
        "the Ceph cluster has evicted this client: data that was not yet on the servers is lost",
    )
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.belongs_here() {
            return;
        }
        // SAFETY: nothing uses the mount any more. Errors cannot be reported; data
        // has been synced by closing the files. Without `sync_all`, `unmount`
        // waits for the journal of the metadata server.
        unsafe {
            match self.is_evicted() {
                true => (self.functions.abort)(self.raw),
                false => (self.functions.sync_all)(self.raw),
            };
            (self.functions.unmount)(self.raw);
            (self.functions.release)(self.raw);
        }
    }
}

/// The result of a step of mounting.
fn step(what: &str, result: c_int) -> io::Result<()> {
    if result >= 0 {
        return Ok(());
    }
    // Codes from 1000 on are the library's own.
    let cause = match result.unsigned_abs() {
        code @ 1000.. => io::Error::other(format!("error {code} of libcephfs")),
        code => io::Error::from_raw_os_error(code as i32),
    };
    let message = format!("cannot mount CephFS by libcephfs: cannot {what}: {cause}");
    Err(io::Error::new(cause.kind(), message))
}
