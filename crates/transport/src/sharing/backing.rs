//! The kinds of memory that a segment can be made of.

use std::any::Any;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;

use super::named::NamedDirectory;
use super::registry::Registry;
use super::{available, memfd};
use crate::Segment;
use crate::memory::Mapping;

/// A random number that proves that two ranks see the same memory.
pub(super) type Secret = [u8; 16];

/// The bytes before a segment in its file, which hold the secret. A page, so
/// that the segment is aligned like any memory from the system.
const PREFACE_BYTES: usize = 4096;

/// A kind of memory.
#[derive(Clone, Debug)]
pub(crate) enum Backing {
    /// Memory of this process, for ranks that are threads.
    Process(Arc<Registry>),
    /// A file that never has a name: found by way of the process that made it.
    Memfd,
    /// A file in a directory such as /dev/shm, which has a name for a moment.
    Named(NamedDirectory),
}

/// How others can find new memory, as long as this exists.
pub(super) struct Offer {
    pub(super) secret: Secret,
    pub(super) locator: Vec<u8>,
    /// Takes the name away, or whatever else lets the others find the memory.
    _withdrawal: Box<dyn Any>,
}

impl Backing {
    /// Makes zeroed memory, but not more than half of what is free.
    pub(super) fn create(&self, bytes: usize) -> io::Result<(Segment, Offer)> {
        if !available::suffices_for(bytes) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let secret = draw_secret()?;
        let file_bytes = file_bytes(bytes)?;
        let (segment, locator, withdrawal): (Segment, Vec<u8>, Box<dyn Any>) = match self {
            Backing::Process(registry) => {
                let segment = Segment::anonymous(bytes)?;
                let entry = Registry::enter(registry, secret, segment.clone());
                (segment, Vec::new(), Box::new(entry))
            }
            Backing::Memfd => {
                let (file, locator) = memfd::create(file_bytes)?;
                let segment = map(&file, bytes)?;
                inscribe(&segment, &secret);
                (body(&segment, bytes), locator, Box::new(file))
            }
            Backing::Named(directory) => {
                let (file, name) = directory.create(&secret, file_bytes)?;
                let segment = map(&file, bytes)?;
                inscribe(&segment, &secret);
                (body(&segment, bytes), name.bytes().to_vec(), Box::new(name))
            }
        };
        let offer = Offer {
            secret,
            locator,
            _withdrawal: withdrawal,
        };
        Ok((segment, offer))
    }

    /// Maps memory that another rank has made, if it can be found and is the
    /// right one.
    pub(super) fn attach(
        &self,
        bytes: usize,
        secret: &Secret,
        locator: &[u8],
    ) -> io::Result<Segment> {
        let file = match self {
            Backing::Process(registry) => return registry.find(secret),
            Backing::Memfd => memfd::open(locator)?,
            Backing::Named(directory) => directory.open(locator)?,
        };
        if file.metadata()?.len() != file_bytes(bytes)? as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let segment = map(&file, bytes)?;
        let mut found = Secret::default();
        segment.load_bytes(0, &mut found);
        if found != *secret {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(body(&segment, bytes))
    }
}

fn file_bytes(bytes: usize) -> io::Result<usize> {
    bytes
        .checked_add(PREFACE_BYTES)
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Preface and body of a segment of `bytes`.
fn map(file: &File, bytes: usize) -> io::Result<Segment> {
    let total = file_bytes(bytes)?;
    let mapping = Mapping::of_file(file.as_fd(), total)?;
    Ok(Segment::within(Arc::new(mapping), 0, total))
}

fn inscribe(whole: &Segment, secret: &Secret) {
    whole.store_bytes(0, secret);
}

fn body(whole: &Segment, bytes: usize) -> Segment {
    whole.part(PREFACE_BYTES, bytes)
}

fn draw_secret() -> io::Result<Secret> {
    let mut secret = Secret::default();
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}
