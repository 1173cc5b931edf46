//! The functions of libcephfs and the structures that they take.
//!
//! This file may contain `unsafe`: it loads a C library.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    io,
    sync::OnceLock,
};

use libc::{flock, gid_t, iovec, mode_t, timespec, uid_t};

use crate::posix::sys;

/// The name that also identifies the binary interface.
const SONAME: &CStr = c"libcephfs.so.2";

/// Its package, by the name that Debian, Fedora and openSUSE use.
const PACKAGE: &str = "libcephfs2";

/// What the library calls a mounted file system, a file's inode, an open file,
/// and a user.
pub(super) enum RawMount {}
pub(super) enum RawInode {}
pub(super) enum RawFile {}
pub(super) enum RawUser {}

/// `struct ceph_statx`.
#[repr(C)]
pub(super) struct Statx {
    pub(super) mask: u32,
    pub(super) block_size: u32,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u16,
    pub(super) ino: u64,
    pub(super) size: u64,
    pub(super) blocks: u64,
    pub(super) device: libc::dev_t,
    pub(super) special_device: libc::dev_t,
    pub(super) accessed: timespec,
    pub(super) changed: timespec,
    pub(super) modified: timespec,
    pub(super) born: timespec,
    pub(super) version: u64,
}

impl Statx {
    pub(super) fn zeroed() -> Statx {
        // SAFETY: consists of numbers.
        unsafe { std::mem::zeroed() }
    }
}

pub(super) const STATX_MODE: c_uint = 0x1;
pub(super) const STATX_ATIME: c_uint = 0x20;
pub(super) const STATX_INO: c_uint = 0x100;
pub(super) const STATX_SIZE: c_uint = 0x200;
pub(super) const STATX_BTIME: c_uint = 0x800;

pub(super) const SETATTR_ATIME: c_int = 1 << 4;
pub(super) const SETATTR_SIZE: c_int = 1 << 5;

/// `struct ceph_file_layout`, which is packed: all fields have one size.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct RawLayout {
    pub(super) stripe_unit: u32,
    pub(super) stripe_count: u32,
    pub(super) object_size: u32,
    pub(super) cas_hash: u32,
    pub(super) object_stripe_unit: u32,
    pub(super) pg_preferred: u32,
    pub(super) pool: u32,
}

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($field:ident: $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
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
pub(super) fn functions() -> io::Result<&'static Functions> {
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
pub(crate) fn require() -> io::Result<()> {
    functions().map(drop)
}
