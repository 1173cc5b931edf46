//! libcephfs, loaded when it is first needed: its functions, and types that own
//! what they return.
//!
//! This file may contain `unsafe`: it loads a C library and calls it. All other
//! files of this driver use the safe types of this one. A function of the library
//! may be called from any thread; it may not be called in a process that was
//! forked from the one that mounted, whose threads do not exist there, so every
//! call checks that first.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    io,
    ops::Range,
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use libc::{flock, gid_t, iovec, mode_t, timespec, uid_t};

use super::layout::Layout;
use crate::{Direction, posix::sys, vector::Vector};

/// The name that also identifies the binary interface.
const SONAME: &CStr = c"libcephfs.so.2";

/// Its package, by the name that Debian, Fedora and openSUSE use.
const PACKAGE: &str = "libcephfs2";

/// What the library calls a mounted file system, a file's inode, an open file,
/// and a user.
enum RawMount {}
enum RawInode {}
enum RawFile {}
enum RawUser {}

/// `struct ceph_statx`.
#[repr(C)]
struct Statx {
    mask: u32,
    block_size: u32,
    links: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    ino: u64,
    size: u64,
    blocks: u64,
    device: libc::dev_t,
    special_device: libc::dev_t,
    accessed: timespec,
    changed: timespec,
    modified: timespec,
    born: timespec,
    version: u64,
}

const STATX_MODE: c_uint = 0x1;
const STATX_ATIME: c_uint = 0x20;
const STATX_INO: c_uint = 0x100;
const STATX_SIZE: c_uint = 0x200;
const STATX_BTIME: c_uint = 0x800;

/// More replicas than any pool has.
const OSDS_PER_OBJECT_MAX: usize = 32;

const SETATTR_ATIME: c_int = 1 << 4;
const SETATTR_SIZE: c_int = 1 << 5;

/// `struct ceph_file_layout`, which is packed: all fields have one size.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawLayout {
    stripe_unit: u32,
    stripe_count: u32,
    object_size: u32,
    cas_hash: u32,
    object_stripe_unit: u32,
    pg_preferred: u32,
    pool: u32,
}

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($field:ident: $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// The functions of a loaded library; the name of the first that it
            /// does not have.
            fn find(library: *mut c_void) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $($field: {
                        let symbol = symbol(library, $name).ok_or($name)?;
                        // SAFETY: the type is that of the library's header for
                        // this name.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> $result,
                            >(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    create: "ceph_create" (*mut *mut RawMount, *const c_char) -> c_int;
    read_configuration: "ceph_conf_read_file" (*mut RawMount, *const c_char) -> c_int;
    read_environment: "ceph_conf_parse_env" (*mut RawMount, *const c_char) -> c_int;
    init: "ceph_init" (*mut RawMount) -> c_int;
    select_file_system: "ceph_select_filesystem" (*mut RawMount, *const c_char) -> c_int;
    mount: "ceph_mount" (*mut RawMount, *const c_char) -> c_int;
    sync_all: "ceph_sync_fs" (*mut RawMount) -> c_int;
    abort: "ceph_abort_conn" (*mut RawMount) -> c_int;
    unmount: "ceph_unmount" (*mut RawMount) -> c_int;
    release: "ceph_release" (*mut RawMount) -> c_int;
    new_user: "ceph_userperm_new" (uid_t, gid_t, c_int, *mut gid_t) -> *mut RawUser;
    destroy_user: "ceph_userperm_destroy" (*mut RawUser) -> ();
    walk: "ceph_ll_walk" (*mut RawMount, *const c_char, *mut *mut RawInode, *mut Statx, c_uint, c_uint, *const RawUser) -> c_int;
    look_up: "ceph_ll_lookup_inode" (*mut RawMount, u64, *mut *mut RawInode) -> c_int;
    put: "ceph_ll_put" (*mut RawMount, *mut RawInode) -> c_int;
    create_file: "ceph_ll_create" (*mut RawMount, *mut RawInode, *const c_char, mode_t, c_int, *mut *mut RawInode, *mut *mut RawFile, *mut Statx, c_uint, c_uint, *const RawUser) -> c_int;
    open: "ceph_ll_open" (*mut RawMount, *mut RawInode, c_int, *mut *mut RawFile, *const RawUser) -> c_int;
    close: "ceph_ll_close" (*mut RawMount, *mut RawFile) -> c_int;
    unlink: "ceph_ll_unlink" (*mut RawMount, *mut RawInode, *const c_char, *const RawUser) -> c_int;
    get_attributes: "ceph_ll_getattr" (*mut RawMount, *mut RawInode, *mut Statx, c_uint, c_uint, *const RawUser) -> c_int;
    set_attributes: "ceph_ll_setattr" (*mut RawMount, *mut RawInode, *mut Statx, c_int, *const RawUser) -> c_int;
    get_attribute: "ceph_ll_getxattr" (*mut RawMount, *mut RawInode, *const c_char, *mut c_void, usize, *const RawUser) -> c_int;
    set_attribute: "ceph_ll_setxattr" (*mut RawMount, *mut RawInode, *const c_char, *const c_void, usize, c_int, *const RawUser) -> c_int;
    read: "ceph_ll_readv" (*mut RawMount, *mut RawFile, *const iovec, c_int, i64) -> i64;
    write: "ceph_ll_writev" (*mut RawMount, *mut RawFile, *const iovec, c_int, i64) -> i64;
    sync: "ceph_ll_fsync" (*mut RawMount, *mut RawFile, c_int) -> c_int;
    set_lock: "ceph_ll_setlk" (*mut RawMount, *mut RawFile, *mut flock, u64, c_int) -> c_int;
    get_lock: "ceph_ll_getlk" (*mut RawMount, *mut RawFile, *mut flock, u64) -> c_int;
    layout: "ceph_ll_file_layout" (*mut RawMount, *mut RawInode, *mut RawLayout) -> u32;
    open_path: "ceph_open" (*mut RawMount, *const c_char, c_int, mode_t) -> c_int;
    close_path: "ceph_close" (*mut RawMount, c_int) -> c_int;
    status: "ceph_fstatx" (*mut RawMount, c_int, *mut Statx, c_uint, c_uint) -> c_int;
    osds_at: "ceph_get_file_extent_osds" (*mut RawMount, c_int, i64, *mut i64, *mut c_int, c_int) -> c_int;
    osds: "ceph_ll_num_osds" (*mut RawMount) -> c_int;
    replicas: "ceph_get_pool_replication" (*mut RawMount, c_int) -> c_int;
}

fn symbol(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the library is loaded for the life of the process, and the name is
    // terminated.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The functions; why there are none.
fn functions() -> io::Result<&'static Functions> {
    static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(load);
    loaded
        .as_ref()
        .map_err(|why| io::Error::new(io::ErrorKind::Unsupported, why.clone()))
}

fn load() -> Result<Functions, String> {
    let name = SONAME.to_string_lossy();
    // The library may start threads as soon as it is loaded.
    let _blocked = sys::SignalsBlocked::new();
    // SAFETY: the name is terminated; the library has no initialisers that depend
    // on this program.
    let library = unsafe { libc::dlopen(SONAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(format!(
            "the driver cephfs needs {name}, which cannot be loaded ({}); it is in the package {PACKAGE}",
            last_error()
        ));
    }
    Functions::find(library).map_err(|missing| {
        format!("the driver cephfs needs {missing}, which this version of {name} does not have")
    })
}

fn last_error() -> String {
    // SAFETY: takes no arguments; the text is valid until the next call of the
    // dynamic linker on this thread.
    unsafe {
        match libc::dlerror() {
            text if text.is_null() => "no reason given".to_owned(),
            text => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}

/// Fails if the library cannot be loaded.
pub(super) fn require() -> io::Result<()> {
    functions().map(drop)
}

/// A mounted file system: a client of the cluster.
pub(super) struct Client {
    raw: *mut RawMount,
    functions: &'static Functions,
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
pub(super) struct Account {
    /// The user, such as `admin` for `client.admin`.
    pub(super) user: Option<CString>,
    /// One of several file systems.
    pub(super) file_system: Option<CString>,
}

impl Client {
    /// Mounts the root of a file system, as described by the usual configuration:
    /// `CEPH_CONF` or `/etc/ceph/ceph.conf`, and `CEPH_ARGS`.
    ///
    /// A thread of its own does so. The library draws the number that distinguishes
    /// the clients of a node from a generator of the calling thread, and processes
    /// that were forked from one would draw the same number.
    pub(super) fn mount(account: &Account) -> io::Result<Client> {
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
        // SAFETY: the mount exists; null stands for the usual places.
        unsafe {
            let read = (functions.read_configuration)(raw, ptr::null());
            step(
                "read the configuration (CEPH_CONF, /etc/ceph/ceph.conf)",
                read,
            )?;
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
    pub(super) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// Whether this is the process that mounted.
    pub(super) fn belongs_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Number of OSDs of the cluster.
    pub(super) fn osds(&self) -> io::Result<u32> {
        let raw = self.enter()?;
        // SAFETY: the mount exists.
        let count = self.checked(unsafe { (self.functions.osds)(raw) }.into())?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The file or directory of a path, by way of symbolic links.
    pub(super) fn walk(self: &Arc<Self>, path: &CStr, user: &User) -> io::Result<Inode> {
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
    pub(super) fn look_up(self: &Arc<Self>, number: u64) -> io::Result<Inode> {
        let raw = self.enter()?;
        let mut inode = ptr::null_mut();
        // SAFETY: the mount exists, and the address outlives the call.
        let found = unsafe { (self.functions.look_up)(raw, number, &mut inode) };
        self.checked(found.into())?;
        Ok(Inode::new(self, inode, number, false))
    }

    fn enter(&self) -> io::Result<*mut RawMount> {
        if self.belongs_here() {
            return Ok(self.raw);
        }
        Err(io::Error::other(
            "the file was opened before fork: a child process has to open it again, since the \
             threads of libcephfs are in its parent",
        ))
    }

    /// The result of a call, which is negative on failure.
    fn checked(&self, result: i64) -> io::Result<i64> {
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

fn evicted() -> io::Error {
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

impl Statx {
    fn zeroed() -> Statx {
        // SAFETY: consists of numbers.
        unsafe { std::mem::zeroed() }
    }
}

/// The user that files are accessed as.
pub(super) struct User {
    raw: *mut RawUser,
    functions: &'static Functions,
    /// The library refers to it.
    _groups: Box<[gid_t]>,
}

// SAFETY: the library only reads it.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    /// The effective user and group of this process, and its further groups.
    pub(super) fn of_process() -> io::Result<User> {
        let functions = functions()?;
        let mut groups = groups()?.into_boxed_slice();
        let count = c_int::try_from(groups.len()).map_err(io::Error::other)?;
        // SAFETY: the library refers to the groups, which live as long as the user.
        let raw = unsafe {
            let (user, group) = (libc::geteuid(), libc::getegid());
            (functions.new_user)(user, group, count, groups.as_mut_ptr())
        };
        if raw.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(User {
            raw,
            functions,
            _groups: groups,
        })
    }
}

/// The supplementary groups of this process.
fn groups() -> io::Result<Vec<gid_t>> {
    // SAFETY: without room for any, the call returns their number.
    let count = unsafe { libc::getgroups(0, ptr::null_mut()) };
    let mut groups = vec![0; usize::try_from(count).map_err(|_| io::Error::last_os_error())?];
    // SAFETY: there is room for as many.
    let count = unsafe { libc::getgroups(count, groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).map_err(|_| io::Error::last_os_error())?);
    Ok(groups)
}

impl Drop for User {
    fn drop(&mut self) {
        // SAFETY: files that refer to it have been closed. It does not need the
        // library's threads.
        unsafe { (self.functions.destroy_user)(self.raw) }
    }
}

/// A reference to a file or directory.
pub(super) struct Inode {
    raw: *mut RawInode,
    client: Arc<Client>,
    number: u64,
    is_directory: bool,
}

// SAFETY: the library protects its state by locks of its own.
unsafe impl Send for Inode {}
// SAFETY: as above.
unsafe impl Sync for Inode {}

/// What the metadata server knows about a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) size: u64,
    /// In seconds.
    pub(super) accessed: i64,
    /// In nanoseconds.
    pub(super) born: i64,
}

impl Inode {
    fn new(client: &Arc<Client>, raw: *mut RawInode, number: u64, is_directory: bool) -> Inode {
        Inode {
            raw,
            client: client.clone(),
            number,
            is_directory,
        }
    }

    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Opens the file.
    pub(super) fn open(self, flags: c_int, user: Arc<User>) -> io::Result<OpenFile> {
        let raw = self.client.enter()?;
        let mut file = ptr::null_mut();
        // SAFETY: the mount, the inode and the user exist, and the address outlives
        // the call.
        let opened =
            unsafe { (self.client.functions.open)(raw, self.raw, flags, &mut file, user.raw) };
        self.client.checked(opened.into())?;
        Ok(OpenFile {
            raw: file,
            inode: self,
            user,
        })
    }

    /// Creates and opens a file in this directory.
    pub(super) fn create(
        &self,
        name: &CStr,
        flags: c_int,
        permissions: u32,
        user: Arc<User>,
    ) -> io::Result<OpenFile> {
        let raw = self.client.enter()?;
        let (mut inode, mut file) = (ptr::null_mut(), ptr::null_mut());
        let mut found = Statx::zeroed();
        // SAFETY: as above; the name is terminated.
        let created = unsafe {
            (self.client.functions.create_file)(
                raw,
                self.raw,
                name.as_ptr(),
                permissions,
                flags,
                &mut inode,
                &mut file,
                &mut found,
                STATX_INO,
                0,
                user.raw,
            )
        };
        self.client.checked(created.into())?;
        Ok(OpenFile {
            raw: file,
            inode: Inode::new(&self.client, inode, found.ino, false),
            user,
        })
    }

    /// Removes a name from this directory.
    pub(super) fn unlink(&self, name: &CStr, user: &User) -> io::Result<()> {
        let raw = self.client.enter()?;
        // SAFETY: as above.
        let removed =
            unsafe { (self.client.functions.unlink)(raw, self.raw, name.as_ptr(), user.raw) };
        self.client.checked(removed.into()).map(drop)
    }

    /// Its attributes, no older than this call.
    pub(super) fn attributes(&self, user: &User) -> io::Result<Attributes> {
        let raw = self.client.enter()?;
        let mut found = Statx::zeroed();
        let want = STATX_SIZE | STATX_ATIME | STATX_BTIME;
        // SAFETY: as above.
        let got = unsafe {
            (self.client.functions.get_attributes)(raw, self.raw, &mut found, want, 0, user.raw)
        };
        self.client.checked(got.into())?;
        Ok(Attributes {
            size: found.size,
            accessed: found.accessed.tv_sec,
            born: found.born.tv_sec.wrapping_mul(1_000_000_000) + found.born.tv_nsec,
        })
    }

    pub(super) fn set_size(&self, bytes: u64, user: &User) -> io::Result<()> {
        let mut new = Statx::zeroed();
        new.size = bytes;
        self.set(new, SETATTR_SIZE, user)
    }

    pub(super) fn set_access_time(&self, seconds: i64, user: &User) -> io::Result<()> {
        let mut new = Statx::zeroed();
        new.accessed.tv_sec = seconds;
        self.set(new, SETATTR_ATIME, user)
    }

    fn set(&self, mut new: Statx, which: c_int, user: &User) -> io::Result<()> {
        let raw = self.client.enter()?;
        // SAFETY: as above.
        let set = unsafe {
            (self.client.functions.set_attributes)(raw, self.raw, &mut new, which, user.raw)
        };
        self.client.checked(set.into()).map(drop)
    }

    /// The value of an extended attribute, up to a length that all of this driver
    /// fit in.
    pub(super) fn attribute(&self, name: &CStr, user: &User) -> io::Result<Vec<u8>> {
        let raw = self.client.enter()?;
        let mut value = vec![0; 1 << 10];
        // SAFETY: as above; the value is as long as stated.
        let got = unsafe {
            (self.client.functions.get_attribute)(
                raw,
                self.raw,
                name.as_ptr(),
                value.as_mut_ptr().cast(),
                value.len(),
                user.raw,
            )
        };
        value.truncate(self.client.checked(got.into())? as usize);
        Ok(value)
    }

    pub(super) fn set_attribute(&self, name: &CStr, value: &[u8], user: &User) -> io::Result<()> {
        let raw = self.client.enter()?;
        // SAFETY: as above.
        let set = unsafe {
            (self.client.functions.set_attribute)(
                raw,
                self.raw,
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                0,
                user.raw,
            )
        };
        self.client.checked(set.into()).map(drop)
    }

    /// How the file is divided into objects.
    pub(super) fn layout(&self) -> io::Result<Layout> {
        let raw_layout = self.raw_layout()?;
        Ok(Layout {
            stripe_unit: raw_layout.stripe_unit,
            stripe_count: raw_layout.stripe_count,
            object_size: raw_layout.object_size,
        })
    }

    fn raw_layout(&self) -> io::Result<RawLayout> {
        let raw = self.client.enter()?;
        let mut layout = RawLayout::default();
        // SAFETY: as above.
        let got = unsafe { (self.client.functions.layout)(raw, self.raw, &mut layout) };
        // The result is unsigned in the header, and an error code nevertheless.
        self.client.checked(i64::from(got as i32))?;
        Ok(layout)
    }

    /// Whether this client knows the OSDs of the file's pool. It gets the map of the
    /// cluster some time after it has mounted.
    pub(super) fn knows_osds(&self) -> io::Result<bool> {
        let raw = self.client.enter()?;
        let pool = self.raw_layout()?.pool as c_int;
        // SAFETY: the mount exists.
        Ok(unsafe { (self.client.functions.replicas)(raw, pool) } >= 0)
    }

    /// The first OSD of each of these offsets, as far as they have one now. The client
    /// must [know](Inode::knows_osds) them: the library ends the process otherwise. It
    /// offers this for files that are open by their path only; for inodes, it has a
    /// function that always ends the process (in version 16).
    pub(super) fn osds_at(
        &self,
        path: &CStr,
        flags: c_int,
        offsets: impl Iterator<Item = u64>,
    ) -> io::Result<Vec<Option<u32>>> {
        let client = &self.client;
        let raw = client.enter()?;
        // SAFETY: the mount exists, and the path is terminated.
        let opened = unsafe { (client.functions.open_path)(raw, path.as_ptr(), flags, 0) };
        let file = client.checked(opened.into())? as c_int;
        let mut found = Statx::zeroed();
        // SAFETY: the file is open, and the address outlives the call.
        let got = unsafe { (client.functions.status)(raw, file, &mut found, STATX_INO, 0) };
        let is_same = got >= 0 && found.ino == self.number;
        let osds = offsets.map(|offset| {
            let offset = i64::try_from(offset).ok().filter(|_| is_same)?;
            let (mut len, mut osds) = (0, [-1; OSDS_PER_OBJECT_MAX]);
            let room = osds.len() as c_int;
            // SAFETY: as above; there is room for as many as stated.
            let count = unsafe {
                (client.functions.osds_at)(raw, file, offset, &mut len, osds.as_mut_ptr(), room)
            };
            u32::try_from(osds[0]).ok().filter(|_| count > 0)
        });
        let osds = osds.collect();
        // SAFETY: the file is open and not used again. It was only looked at, so
        // that nothing is lost if this fails.
        unsafe { (client.functions.close_path)(raw, file) };
        Ok(osds)
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        if let Ok(raw) = self.client.enter() {
            // SAFETY: the reference is not used again.
            unsafe { (self.client.functions.put)(raw, self.raw) };
        }
    }
}

/// An open file; closed when dropped.
pub(super) struct OpenFile {
    /// Null once closed.
    raw: *mut RawFile,
    inode: Inode,
    user: Arc<User>,
}

// SAFETY: the library protects its state by locks of its own.
unsafe impl Send for OpenFile {}
// SAFETY: as above.
unsafe impl Sync for OpenFile {}

/// The lock of a byte range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileLock {
    None,
    Shared,
    Exclusive,
}

impl OpenFile {
    pub(super) fn inode(&self) -> &Inode {
        &self.inode
    }

    /// As whom it was opened.
    pub(super) fn user(&self) -> &User {
        &self.user
    }

    /// Moves some bytes of a vector, whose offsets fit in 63 bits.
    pub(super) fn transfer(&self, vector: &Vector<'_>) -> io::Result<usize> {
        let client = &self.inode.client;
        let raw = client.enter()?;
        let call = match vector.direction() {
            Direction::Read => client.functions.read,
            Direction::Write => client.functions.write,
        };
        let offset =
            i64::try_from(vector.offset()).expect("offsets are checked before they get here");
        let parts = vector.parts();
        let count = c_int::try_from(parts.len()).expect("a vector has no more parts than IOV_MAX");
        // SAFETY: the parts of a vector are memory of a live batch, valid for the
        // direction and their lengths; the mount and the file exist.
        let moved = unsafe { call(raw, self.raw, parts.as_ptr(), count, offset) };
        Ok(client.checked(moved)? as usize)
    }

    /// Puts written data on the servers.
    pub(super) fn sync(&self) -> io::Result<()> {
        const DATA_AND_SIZE: c_int = 0;
        let client = &self.inode.client;
        let raw = client.enter()?;
        // SAFETY: as above.
        let synced = unsafe { (client.functions.sync)(raw, self.raw, DATA_AND_SIZE) };
        client.checked(synced.into())?;
        // The library drops what an evicted client has not written, and may have
        // reported that to someone else.
        match client.is_evicted() {
            true => Err(evicted()),
            false => Ok(()),
        }
    }

    /// Takes, converts or releases a lock for `owner`; false if another owner's is
    /// in the way.
    pub(super) fn try_lock(
        &self,
        range: &Range<u64>,
        kind: FileLock,
        owner: u64,
    ) -> io::Result<bool> {
        const WITHOUT_WAITING: c_int = 0;
        let client = &self.inode.client;
        let raw = client.enter()?;
        let mut wanted = raw_lock(range, kind);
        // SAFETY: as above.
        let set = unsafe {
            (client.functions.set_lock)(raw, self.raw, &mut wanted, owner, WITHOUT_WAITING)
        };
        match client.checked(set.into()) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The range of a lock that is in the way.
    pub(super) fn lock_in_the_way(
        &self,
        range: &Range<u64>,
        kind: FileLock,
        owner: u64,
    ) -> io::Result<Option<Range<u64>>> {
        let client = &self.inode.client;
        let raw = client.enter()?;
        let mut found = raw_lock(range, kind);
        // SAFETY: as above.
        let got = unsafe { (client.functions.get_lock)(raw, self.raw, &mut found, owner) };
        client.checked(got.into())?;
        if c_int::from(found.l_type) == libc::F_UNLCK {
            return Ok(None);
        }
        let start = u64::try_from(found.l_start).unwrap_or(0);
        let end = match found.l_len {
            0 => u64::MAX,
            len => start.saturating_add(u64::try_from(len).unwrap_or(0)),
        };
        Ok(Some(start..end))
    }

    /// Closes the file, which releases its locks.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.close_once()
    }

    fn close_once(&mut self) -> io::Result<()> {
        let file = std::mem::replace(&mut self.raw, ptr::null_mut());
        let client = &self.inode.client;
        if file.is_null() {
            return Ok(());
        }
        let raw = client.enter()?;
        // SAFETY: the file is open and not used again, whatever the result.
        let closed = unsafe { (client.functions.close)(raw, file) };
        client.checked(closed.into()).map(drop)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A file that was not closed by its owner has nowhere to report an error.
        let _ = self.close_once();
    }
}

/// A range that ends past the largest file is one without an end.
fn raw_lock(range: &Range<u64>, kind: FileLock) -> flock {
    let start = i64::try_from(range.start).unwrap_or(i64::MAX);
    let len = match i64::try_from(range.end) {
        Ok(i64::MAX) | Err(_) => 0,
        Ok(end) => end - start,
    };
    // SAFETY: consists of numbers.
    let mut lock: flock = unsafe { std::mem::zeroed() };
    lock.l_type = match kind {
        FileLock::None => libc::F_UNLCK,
        FileLock::Shared => libc::F_RDLCK,
        FileLock::Exclusive => libc::F_WRLCK,
    } as _;
    lock.l_whence = libc::SEEK_SET as _;
    (lock.l_start, lock.l_len) = (start, len);
    lock
}
