//! A double of Lustre's client.
//!
//! It behaves as measured on Lustre 2.17: before a layout is set, a file opened
//! with `O_LOV_DELAY_CREATE` has none; a second layout is `EEXIST`; a stripe
//! that is not a multiple of 64 KiB is `EINVAL`; more stripes than servers are
//! reduced silently. From the sources of Lustre 2.15: overstriping, pools,
//! group locks and lock-ahead.

mod encode;

pub use encode::{ComponentLayout, PlainLayout, composite};

use std::{
    collections::HashMap,
    ffi::CStr,
    fs, io,
    ops::Range,
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::fs::MetadataExt,
    },
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{FileControl, IoctlArgument};

const SET_LAYOUT: u64 = 0x4008_669a;
const GROUP_LOCK: u64 = 0x4008_669e;
const GROUP_UNLOCK: u64 = 0x4008_669f;
const ADVISE: u64 = 0x8020_66fa;
const RAID0: u32 = 0x001;
const OVERSTRIPED: u32 = 0x201;
/// `LCME_FL_INIT`.
const INSTANTIATED: u32 = 0x10;

/// A call that the double answered, with its result.
pub type Answered = (&'static str, Result<(), i32>);

/// Answers as the client of a file system with some servers would.
#[derive(Debug)]
pub struct LustreDouble {
    servers: u16,
    pools: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The default of directories; `None`: the attribute does not exist.
    directory: Option<Vec<u8>>,
    /// That of the root of the mount; `None`: that of the others.
    root: Option<Vec<u8>>,
    layouts: HashMap<Inode, Vec<u8>>,
    /// The components of files that are created as usual, if they have any.
    progressive: Vec<(Range<u64>, PlainLayout)>,
    /// The group, and the descriptors that hold it.
    groups: HashMap<Inode, (u64, Vec<i32>)>,
    /// First and last byte of each lock requested in advance.
    ahead: Vec<(u64, u64)>,
    answered: Vec<Answered>,
    failing: Option<i32>,
}

type Inode = (u64, u64);

impl LustreDouble {
    /// A file system with this many servers, whose directories default to one
    /// stripe of 4 MiB.
    pub fn new(servers: u16) -> LustreDouble {
        let default = PlainLayout::new(RAID0, 4 << 20, 1).to_bytes();
        LustreDouble {
            servers,
            pools: vec!["flash".to_owned()],
            state: Mutex::new(State {
                directory: Some(default),
                ..State::default()
            }),
        }
    }

    /// Sets the default of directories.
    pub fn set_directory(&self, layout: Option<Vec<u8>>) {
        self.state().directory = layout;
    }

    /// Sets the default of the directory at which the file system is mounted, if
    /// it is not that of the others.
    pub fn set_root(&self, layout: Vec<u8>) {
        self.state().root = Some(layout);
    }

    /// Gives new files these components. A component gets its objects once the
    /// file has data in it; a count of 0xffff is all servers then.
    pub fn set_progressive(&self, components: Vec<(Range<u64>, PlainLayout)>) {
        let mut state = self.state();
        state.directory = Some(self.progressive(&components, 0));
        state.progressive = components;
    }

    /// The composite layout of a file of `size` bytes. As measured, its generation
    /// changes when a component gets objects.
    fn progressive(&self, components: &[(Range<u64>, PlainLayout)], size: u64) -> Vec<u8> {
        let mut generation = 1;
        let entries = components.iter().zip(1..).map(|((file, plain), id)| {
            let has_objects = file.start == 0 || size > file.start;
            let (flags, plain) = match has_objects {
                true => (INSTANTIATED, self.allocate(&plain.to_bytes(), None)),
                false => (0, plain.to_bytes()),
            };
            generation += u32::from(has_objects);
            ComponentLayout {
                id,
                flags,
                start: file.start,
                end: file.end,
                plain,
            }
        });
        let entries: Vec<_> = entries.collect();
        composite(generation, &entries)
    }

    /// Makes every attempt to set a layout fail with this error.
    pub fn fail_layouts(&self, errno: i32) {
        self.state().failing = Some(errno);
    }

    /// The calls so far that change something, and their results.
    pub fn answered(&self) -> Vec<Answered> {
        self.state().answered.clone()
    }

    /// Whether some descriptor holds a group lock.
    pub fn has_group_locks(&self) -> bool {
        let state = self.state();
        state
            .groups
            .values()
            .any(|(_, holders)| !holders.is_empty())
    }

    /// First and last byte of each lock requested in advance.
    pub fn locked_ahead(&self) -> Vec<(u64, u64)> {
        self.state().ahead.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layout of a file; files that were created as usual have the default.
    fn layout(&self, state: &mut State, file: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
        let inode = inode(file)?.0;
        if let Some(layout) = state.layouts.get(&inode) {
            return Ok(Some(layout.clone()));
        }
        if is_delayed(file)? {
            return Ok(None);
        }
        if !state.progressive.is_empty() {
            let size = status(file)?.len();
            return Ok(Some(self.progressive(&state.progressive, size)));
        }
        let default = state.directory.clone();
        let layout = match default {
            // Objects of plain layouts are allocated when the file is created.
            Some(header) if header[..4] == 0x0bd1_0bd0_u32.to_le_bytes() => {
                self.allocate(&header, None)
            }
            Some(composite) => composite,
            None => self.allocate(&PlainLayout::new(RAID0, 1 << 20, 1).to_bytes(), None),
        };
        state.layouts.insert(inode, layout.clone());
        Ok(Some(layout))
    }

    /// A header with objects on as many servers as it asks for and there are.
    fn allocate(&self, header: &[u8], pool: Option<String>) -> Vec<u8> {
        let field = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let short = |at: usize| u16::from_le_bytes(header[at..at + 2].try_into().expect("2 bytes"));
        let pattern = field(4).max(RAID0);
        let stripe_size = match field(24) {
            0 => 1 << 20,
            bytes => bytes,
        };
        let limit = match pattern {
            OVERSTRIPED => 2000,
            _ => self.servers,
        };
        let count = match short(28) {
            0 => 1,
            count => count.min(limit),
        };
        let first = match short(30) {
            0xffff => 0,
            first => first,
        };
        let servers: Vec<u32> = (0..count)
            .map(|index| u32::from((first + index) % self.servers))
            .collect();
        PlainLayout {
            pool,
            ..PlainLayout::new(pattern, stripe_size, count).on(&servers)
        }
        .to_bytes()
    }

    fn set_layout(&self, state: &mut State, file: BorrowedFd<'_>, given: &[u8]) -> Result<(), i32> {
        if let Some(errno) = state.failing {
            return Err(errno);
        }
        let existing = self.layout(state, file).map_err(|_| libc::EIO)?;
        if existing.is_some() {
            return Err(libc::EEXIST);
        }
        let field = |at: usize| given[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let pool = match field(0) {
            0x0bd1_0bd0 => None,
            0x0bd3_0bd0 => {
                let name = given[32..48].split(|byte| *byte == 0).next();
                let name = String::from_utf8_lossy(name.unwrap_or(&[])).into_owned();
                Some(name)
            }
            _ => return Err(libc::EINVAL),
        };
        let has_pool = pool.as_ref().is_none_or(|name| self.pools.contains(name));
        if !field(24).is_multiple_of(64 << 10) || !has_pool {
            return Err(libc::EINVAL);
        }
        let layout = self.allocate(given, pool);
        let inode = inode(file).map_err(|_| libc::EIO)?.0;
        state.layouts.insert(inode, layout);
        Ok(())
    }
}

impl State {
    /// Only asynchronous requests of locks for writing.
    fn lock_ahead(&mut self, given: &[u8]) -> Result<(), i32> {
        let (header, advices) = given.split_at_checked(32).ok_or(libc::EFAULT)?;
        let count = u32::from_ne_bytes(header[4..8].try_into().map_err(|_| libc::EFAULT)?);
        let is_valid = header[..4] == 0x1adf_1ce0_u32.to_ne_bytes()
            && (1..=1024).contains(&count)
            && advices.len() == 32 * count as usize;
        if !is_valid {
            return Err(libc::EINVAL);
        }
        let kind = [
            &4_u16.to_ne_bytes()[..],
            &2_u16.to_ne_bytes(),
            &1_u32.to_ne_bytes(),
        ]
        .concat();
        for advice in advices.chunks(32) {
            let long = |at: usize| advice[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
            let (first, last) = (long(8), long(16));
            if advice[..8] != kind || first >= last {
                return Err(libc::EINVAL);
            }
            self.ahead.push((first, last));
        }
        Ok(())
    }

    fn lock_group(&mut self, file: BorrowedFd<'_>, group: u64) -> Result<(), i32> {
        let inode = inode(file).map_err(|_| libc::EIO)?.0;
        let held = self.groups.entry(inode).or_insert((group, Vec::new()));
        match held {
            _ if group == 0 || held.1.contains(&file.as_raw_fd()) => Err(libc::EINVAL),
            (other, holders) if *other != group && !holders.is_empty() => Err(libc::EAGAIN),
            (current, holders) => {
                *current = group;
                holders.push(file.as_raw_fd());
                Ok(())
            }
        }
    }

    fn unlock_group(&mut self, file: BorrowedFd<'_>, group: u64) -> Result<(), i32> {
        let inode = inode(file).map_err(|_| libc::EIO)?.0;
        let held = self.groups.get_mut(&inode).ok_or(libc::EINVAL)?;
        let place = held.1.iter().position(|fd| *fd == file.as_raw_fd());
        match place.filter(|_| held.0 == group) {
            None => Err(libc::EINVAL),
            Some(place) => {
                held.1.remove(place);
                Ok(())
            }
        }
    }
}

impl FileControl for LustreDouble {
    fn attribute(&self, file: BorrowedFd<'_>, name: &CStr, limit: usize) -> io::Result<Vec<u8>> {
        let none = || io::Error::from_raw_os_error(libc::ENODATA);
        if name != c"lustre.lov" {
            return Err(none());
        }
        let mut state = self.state();
        let value = match inode(file)?.1 {
            true => match is_root(file)? {
                true => state.root.clone().or_else(|| state.directory.clone()),
                false => state.directory.clone(),
            },
            false => self.layout(&mut state, file)?,
        };
        let value = value.ok_or_else(none)?;
        match value.len() > limit {
            true => Err(io::Error::from_raw_os_error(libc::ERANGE)),
            false => Ok(value),
        }
    }

    fn ioctl(
        &self,
        file: BorrowedFd<'_>,
        request: u64,
        argument: IoctlArgument<'_>,
    ) -> io::Result<()> {
        let mut state = self.state();
        let (name, result) = match (request, argument) {
            (SET_LAYOUT, IoctlArgument::Structure(given)) => {
                ("set layout", self.set_layout(&mut state, file, given))
            }
            (GROUP_LOCK, IoctlArgument::Value(group)) => {
                ("group lock", state.lock_group(file, group))
            }
            (GROUP_UNLOCK, IoctlArgument::Value(group)) => {
                ("group unlock", state.unlock_group(file, group))
            }
            (ADVISE, IoctlArgument::Structure(given)) => ("lock ahead", state.lock_ahead(given)),
            _ => ("unknown", Err(libc::ENOTTY)),
        };
        state.answered.push((name, result));
        result.map_err(io::Error::from_raw_os_error)
    }
}

fn status(file: BorrowedFd<'_>) -> io::Result<fs::Metadata> {
    fs::File::from(file.try_clone_to_owned()?).metadata()
}

/// The file's identity, and whether it is a directory.
fn inode(file: BorrowedFd<'_>) -> io::Result<(Inode, bool)> {
    let status = status(file)?;
    Ok(((status.dev(), status.ino()), status.is_dir()))
}

/// Whether a directory is the root of its mount.
fn is_root(directory: BorrowedFd<'_>) -> io::Result<bool> {
    let place = format!("/proc/self/fd/{}/..", directory.as_raw_fd());
    let parent = fs::metadata(place)?;
    let (device, number) = inode(directory)?.0;
    Ok(parent.dev() != device || parent.ino() == number)
}

/// Whether the file was opened with `O_LOV_DELAY_CREATE`. The kernel keeps one
/// of its two flags.
fn is_delayed(file: BorrowedFd<'_>) -> io::Result<bool> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    Ok(flags.is_some_and(|flags| flags & libc::O_ASYNC != 0))
}
