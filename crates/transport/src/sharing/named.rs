//! Memory in a file with a name that lasts until all have opened it.
#![allow(unsafe_code)] // posix_fallocate has no wrapper in the standard library

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::backing::Secret;

/// What all names start with.
const PREFIX: &str = "pario-";

/// The name of a file, which is removed when this is dropped.
pub(super) struct Name {
    path: PathBuf,
    /// The process that made it: a forked child must not remove it.
    owner: u32,
}

impl Name {
    /// The name itself, without the directory.
    pub(super) fn bytes(&self) -> &[u8] {
        self.path.file_name().map_or(&[], OsStr::as_bytes)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            // It may be gone already: who sweeps the directory meant this too.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A directory for the files of one world. Their names start alike, so that what a
/// killed rank has left can be told from anything else.
#[derive(Clone, Debug)]
pub(crate) struct NamedDirectory {
    directory: PathBuf,
    prefix: String,
}

impl NamedDirectory {
    pub(crate) fn new(directory: &Path) -> Self {
        static WORLDS: AtomicU64 = AtomicU64::new(0);
        let world = WORLDS.fetch_add(1, Ordering::Relaxed);
        NamedDirectory {
            directory: directory.to_owned(),
            prefix: format!("{PREFIX}{}-{world}-", std::process::id()),
        }
    }

    /// A new file of that many zeros, for this user only, and its name.
    pub(super) fn create(&self, secret: &Secret, bytes: usize) -> io::Result<(File, Name)> {
        let digits = secret.iter().map(|byte| format!("{byte:02x}"));
        let digits = digits.collect::<String>();
        let path = self.directory.join(format!("{}{digits}", self.prefix));
        let file = options().create_new(true).mode(0o600).open(&path)?;
        let name = Name {
            path,
            owner: std::process::id(),
        };
        allocate(&file, bytes)?;
        Ok((file, name))
    }

    /// Opens the file of that name, which another process has made here: its
    /// prefix may differ.
    pub(super) fn open(&self, name: &[u8]) -> io::Result<File> {
        let is_plain = !name.contains(&b'/') && name.starts_with(PREFIX.as_bytes());
        if !is_plain {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        options().open(self.directory.join(OsStr::from_bytes(name)))
    }

    /// Removes the files of this world. Called when a rank has been lost: then
    /// no other will get to use them either.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(self.prefix.as_bytes())
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Gives a new file its length and all its memory: touching a page that a full
/// file system cannot supply would end the process.
pub(super) fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    loop {
        // SAFETY: the call touches no memory of this process.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const SECRET: Secret = [7; 16];

    /// A new directory, removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("pario-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).expect("a new directory");
            Scratch(path)
        }

        fn names(&self) -> usize {
            fs::read_dir(&self.0).expect("a directory").count()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_private_and_its_name_goes() {
        let scratch = Scratch::new("private");
        let directory = NamedDirectory::new(&scratch.0);
        let (file, name) = directory.create(&SECRET, 10_000).expect("it is new");
        let metadata = file.metadata().expect("it is open");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(metadata.len(), 10_000);
        assert!(directory.create(&SECRET, 10).is_err(), "the name is taken");
        let bytes = name.bytes().to_vec();
        assert!(NamedDirectory::new(&scratch.0).open(&bytes).is_ok());
        drop(name);
        assert!(directory.open(&bytes).is_err());
        assert_eq!(scratch.names(), 0);
    }

    #[test]
    fn links_are_not_followed() {
        let scratch = Scratch::new("link");
        let directory = NamedDirectory::new(&scratch.0);
        let target = scratch.0.join("target");
        fs::write(&target, "precious").expect("a new file");
        let name = b"pario-link";
        symlink(&target, scratch.0.join("pario-link")).expect("a new link");
        assert!(directory.open(name).is_err());
        assert!(directory.open(b"pario-/../target").is_err());
        assert!(directory.open(b"target").is_err());
        assert_eq!(fs::read(&target).expect("it exists"), b"precious");
    }

    #[test]
    fn a_sweep_takes_what_is_its_own() {
        let scratch = Scratch::new("sweep");
        let (mine, other) = (
            NamedDirectory::new(&scratch.0),
            NamedDirectory::new(&scratch.0),
        );
        let (_, left) = mine.create(&SECRET, 10).expect("it is new");
        let (_, kept) = other.create(&SECRET, 10).expect("it is new");
        mine.sweep();
        assert!(!left.path.exists());
        assert!(kept.path.exists());
    }

    /// A forked child that drops what it inherited must not take the name.
    #[test]
    fn only_the_maker_removes_a_name() {
        let scratch = Scratch::new("owner");
        let directory = NamedDirectory::new(&scratch.0);
        let (_, mut name) = directory.create(&SECRET, 10).expect("it is new");
        name.owner += 1;
        drop(name);
        assert_eq!(scratch.names(), 1);
    }
}
