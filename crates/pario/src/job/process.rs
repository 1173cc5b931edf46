//! Other processes, as `/proc` shows them.

use std::{
    fs, io,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::PathBuf,
};

/// A process. Numbers are used again, but not at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    id: u32,
    /// In ticks after the kernel's start.
    started: u64,
    parent: u32,
}

/// The variables that a process was started with.
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
    /// This one.
    pub(super) fn this() -> Option<Process> {
        Process::find(std::process::id())
    }

    /// One that runs, by its number.
    fn find(id: u32) -> Option<Process> {
        /// Places in `/proc/PID/stat`, counted from behind the program's name.
        const PARENT: usize = 1;
        const STARTED: usize = 19;
        let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name may have spaces and brackets.
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

    /// What started it, or took it over.
    pub fn parent(&self) -> Option<Process> {
        Process::find(self.parent)
    }

    /// The processes that it has started and that still run.
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

    /// The environment that it was started with; nothing where that cannot be
    /// read.
    pub(super) fn environment(&self) -> Environment {
        Environment(fs::read(self.file("environ")).unwrap_or_default())
    }

    /// The files that it has mapped, if every process of its user may know.
    pub fn mapped_files(&self) -> io::Result<Vec<PathBuf>> {
        // What a process hides it still sees of itself.
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
