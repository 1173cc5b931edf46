//! Other processes, from `/proc`.

use std::{
    fs, io,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::PathBuf,
};

/// A process. The start time distinguishes processes that reuse a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    id: u32,
    /// In ticks since boot.
    started: u64,
    parent: u32,
}

/// The environment variables that a process was started with.
#[derive(Clone, Debug)]
pub struct Environment(Vec<u8>);

impl Environment {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        let mut variables = self.0.split(|byte| *byte == 0);
        let value = variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        Some(String::from_utf8_lossy(value?).into_owned())
    }
}

impl Process {
    /// The current process.
    pub(super) fn this() -> Option<Process> {
        Process::find(std::process::id())
    }

    /// A running process, by its number.
    fn find(id: u32) -> Option<Process> {
        /// Indices in `/proc/PID/stat`, counted from the field after the program's name.
        const PARENT: usize = 1;
        const STARTED: usize = 19;
        let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name may contain spaces and brackets.
        let fields: Vec<_> = line.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Process {
            id,
            started: fields.get(STARTED)?.parse().ok()?,
            parent: fields.get(PARENT)?.parse().ok()?,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The process that started it, or adopted it.
    pub fn parent(&self) -> Option<Process> {
        Process::find(self.parent)
    }

    /// Its children that are still running.
    pub(super) fn children(&self) -> io::Result<Vec<Process>> {
        let mut children = Vec::new();
        for thread in fs::read_dir(self.file("task"))? {
            let thread = thread?.path();
            let ids = match fs::read_to_string(thread.join("children")) {
                // The thread has ended.
                Err(_) if !thread.exists() => continue,
                ids => ids?,
            };
            let ids = ids.split_whitespace().filter_map(|id| id.parse().ok());
            children.extend(ids.filter_map(Process::find));
        }
        Ok(children)
    }

    /// The environment that it was started with; empty if it cannot be read.
    pub(super) fn environment(&self) -> Environment {
        Environment(fs::read(self.file("environ")).unwrap_or_default())
    }

    /// The files that it has mapped. Fails if other processes of the user may not see them.
    pub fn mapped_files(&self) -> io::Result<Vec<PathBuf>> {
        // A process can always see its own mappings, so access to others is checked by the
        // owner.
        if fs::metadata(self.file(""))?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        /// Addresses, permissions, offset, device and inode come before the name.
        const FIELDS: usize = 5;
        let maps = fs::read(self.file("maps"))?;
        let names = maps.split(|byte| *byte == b'\n').filter_map(|line| {
            let start = line.iter().position(|byte| *byte == b'/')?;
            let fields = line[..start].split(|byte| *byte == b' ');
            let count = fields.filter(|field| !field.is_empty()).count();
            (count == FIELDS).then(|| line[start..].to_vec())
        });
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        let paths = names.into_iter();
        Ok(paths
            .map(|name| std::ffi::OsString::from_vec(name).into())
            .collect())
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.id))
    }
}
