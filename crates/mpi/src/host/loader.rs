//! The dynamic linker: the libraries of this process.

#![allow(unsafe_code)] // dlopen and dl_iterate_phdr.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Range;
use std::ptr;

use super::symbols;

/// A library that stays loaded until the process exits.
#[derive(Debug)]
pub struct Library {
    handle: *mut c_void,
    path: String,
}

// SAFETY: the handle is a token that the dynamic linker accepts from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; it never changes.
unsafe impl Sync for Library {}

/// The visibility of the symbols of a library that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// To every library that is loaded later, as the MPI's own plugins expect.
    Global,
    /// Only to its own dependencies.
    Local,
}

impl Library {
    /// Loads the library of that file name or path.
    pub fn load(name: &str, visibility: Visibility) -> Result<Library, String> {
        let scope = match visibility {
            Visibility::Global => libc::RTLD_GLOBAL,
            Visibility::Local => libc::RTLD_LOCAL,
        };
        Self::open(name, libc::RTLD_NOW | scope)
    }

    /// The library of that path if it is loaded already; the program itself if it is empty.
    pub(super) fn loaded(path: &str) -> Option<Library> {
        Self::open(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD).ok()
    }

    fn open(name: &str, flags: c_int) -> Result<Library, String> {
        let text = CString::new(name).map_err(|_| format!("{name:?} contains a NUL"))?;
        let file = if name.is_empty() {
            ptr::null()
        } else {
            text.as_ptr()
        };
        // SAFETY: the name is a C string or null, which means the program itself.
        let handle = unsafe { libc::dlopen(file, flags) };
        if handle.is_null() {
            return Err(last_error());
        }
        let path = name.to_owned();
        Ok(Library { handle, path })
    }

    /// Where it was loaded from.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address of a symbol of this library or of those it depends on.
    pub fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open for the life of the process.
        unsafe { symbols::find(self.handle, &name) }
    }

    /// The address of MPI function `name`, given without its prefix: the `PMPI_` entry, which
    /// no tool intercepts, or the `MPI_` one.
    pub fn function(&self, name: &str) -> Option<*mut c_void> {
        let profiled = || self.symbol(&format!("MPI_{name}"));
        self.symbol(&format!("PMPI_{name}")).or_else(profiled)
    }

    /// The address of a variable as the program sees it: an executable that is not position
    /// independent owns a copy of the variables it names.
    pub(super) fn variable(&self, name: &str) -> Option<u64> {
        let copy = symbols::visible(&CString::new(name).ok()?);
        let address = copy.or_else(|| self.symbol(name))?;
        Some(address.addr() as u64)
    }
}

fn last_error() -> String {
    // SAFETY: no arguments; the text stays until the thread's next call of the linker.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker gave no reason".to_owned();
    }
    // SAFETY: not null, so a C string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// An object of this process: the program or a library.
#[derive(Debug)]
pub(super) struct Object {
    /// Its file; empty for the program itself.
    pub(super) path: String,
    /// The addresses of its segments.
    segments: Vec<Range<usize>>,
}

impl Object {
    /// Whether an address is in one of its segments.
    pub(super) fn contains(&self, address: usize) -> bool {
        self.segments.iter().any(|range| range.contains(&address))
    }
}

/// Every object of this process, in load order.
pub(super) fn objects() -> Vec<Object> {
    let mut objects = Vec::new();
    // SAFETY: the callback runs before the call returns and takes the vector it is given.
    unsafe { libc::dl_iterate_phdr(Some(note_object), (&raw mut objects).cast()) };
    objects
}

/// Adds one object to the vector behind `data`.
unsafe extern "C" fn note_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `objects` passes its vector, which nothing else uses in the meantime; the linker passes
    // a valid description with as many program headers as it says.
    let (objects, info, headers) = unsafe {
        let info = &*info;
        let headers = match info.dlpi_phdr.is_null() {
            true => &[][..],
            false => std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
        };
        (&mut *data.cast::<Vec<Object>>(), info, headers)
    };
    let loaded = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD);
    let segment = |header: &libc::Elf64_Phdr| {
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    };
    objects.push(Object {
        path: path_of(info.dlpi_name),
        segments: loaded.map(segment).collect(),
    });
    0
}

fn path_of(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: the linker's names are C strings.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_defines_its_own_functions() {
        let defines = |object: &Object| {
            let library = Library::loaded(&object.path)?;
            let address = library.symbol("getpid")?;
            object.contains(address.addr()).then_some(())
        };
        let found = objects().iter().filter_map(defines).count();
        assert_eq!(found, 1);
    }

    #[test]
    fn missing_libraries_are_named() {
        let error = Library::load("libno-such-library.so", Visibility::Local);
        assert!(
            error
                .expect_err("no such file")
                .contains("libno-such-library.so")
        );
    }
}
