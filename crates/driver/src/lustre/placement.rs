//! From a Lustre layout to the placement of a file.

use std::ops::Range;

use pario_types::{Component, Placement, Storage, Striping};

use super::layout::{Entry, Layout, Plain, StripeCount};

/// Patterns. Any other is not understood.
pub(super) const RAID0: u32 = 0x001;
const METADATA: u32 = 0x100;
pub(super) const OVERSTRIPED: u32 = 0x200;
/// Flags of a pattern: an object is missing; the data is in an archive.
const HOLE: u32 = 0x4000_0000;

/// Flags of a component.
const STALE: u32 = 0x01;
const PREFERRED: u32 = 0x02 | 0x04;
const OFFLINE: u32 = 0x08;
const INSTANTIATED: u32 = 0x10;
const NOT_SYNCED: u32 = 0x20;
const EXTENSION: u32 = 0x40;
const KNOWN_FLAGS: u32 = STALE | PREFERRED | OFFLINE | INSTANTIATED | NOT_SYNCED | EXTENSION;

/// Stripes are multiples of this many bytes.
pub(crate) const STRIPE_BYTES_MIN: u64 = 64 << 10;

impl Layout {
    /// Where the bytes of a file with this layout are; `None` if any of it is
    /// not understood, or if nothing is known about any byte. Parts whose number
    /// of stripes is not decided yet have no known place. A file whose data
    /// is in an archive (*released*) gets a new layout when it is restored.
    pub(crate) fn placement(&self) -> Option<Placement> {
        let components = match self {
            Layout::Foreign => return None,
            Layout::Plain(plain) => plain.component(0..u64::MAX)?.into_iter().collect(),
            Layout::Composite(entries) => valid_mirror(entries)?,
        };
        let pool = match self {
            Layout::Plain(plain) => plain.pool.as_deref(),
            Layout::Composite(_) | Layout::Foreign => None,
        };
        Some(Placement::new(components)?.with_pool(pool))
    }
}

impl Plain {
    /// A component with this pattern; `Some(None)` if the number or length of its
    /// stripes is not decided yet, `None` if it is not understood.
    fn component(&self, file: Range<u64>) -> Option<Option<Component>> {
        let pattern = self.pattern & !HOLE;
        let (striping, storage) = match pattern {
            // All of it is under one lock.
            METADATA => {
                let unit = file.end - file.start;
                (Some(Striping { unit, count: 1 }), Storage::Metadata)
            }
            _ if pattern & !OVERSTRIPED == RAID0 => (self.striping()?, self.storage()),
            _ => return None,
        };
        Some(striping.map(|striping| Component {
            file,
            striping,
            storage,
        }))
    }

    fn striping(&self) -> Option<Option<Striping>> {
        let unit = u64::from(self.stripe_size);
        match self.count {
            _ if !unit.is_multiple_of(STRIPE_BYTES_MIN) => None,
            StripeCount::Exactly(count) if unit > 0 => {
                let count = u64::from(count);
                Some(Some(Striping { unit, count }))
            }
            _ => Some(None),
        }
    }

    fn storage(&self) -> Storage {
        match self.servers.as_slice() {
            _ if self.pattern & HOLE != 0 => Storage::Unknown,
            [] if self.pattern & OVERSTRIPED != 0 => Storage::Unallocated,
            [] => Storage::Unknown,
            servers => Storage::Servers(servers.to_vec()),
        }
    }
}

/// The components of the first mirror that holds valid data, of a preferred one
/// if possible.
fn valid_mirror(entries: &[Entry]) -> Option<Vec<Component>> {
    if entries.iter().any(|entry| entry.flags & !KNOWN_FLAGS != 0) {
        return None;
    }
    let mirrors = || entries.chunk_by(|a, b| a.mirror == b.mirror);
    let is_valid = |mirror: &&[Entry]| {
        let unusable = STALE | OFFLINE;
        mirror.iter().all(|entry| entry.flags & unusable == 0)
    };
    let is_preferred = |mirror: &&[Entry]| mirror.iter().any(|it| it.flags & PREFERRED != 0);
    let mirror = mirrors()
        .filter(is_valid)
        .find(is_preferred)
        .or_else(|| mirrors().find(is_valid))?;
    components(mirror)
}

/// The components of a mirror. A foreign one has no known place.
fn components(mirror: &[Entry]) -> Option<Vec<Component>> {
    let mut components = Vec::with_capacity(mirror.len());
    let mut end = 0;
    let mut entries = mirror.iter().peekable();
    while let Some(entry) = entries.next() {
        let mut file = entry.file.clone();
        if file.start < end || file.end < file.start || entry.flags & EXTENSION != 0 {
            return None;
        }
        // An extension has no objects: as the file grows, the component before
        // it takes over parts of its range.
        if let Some(extension) = entries.next_if(|next| next.flags & EXTENSION != 0) {
            if extension.file.start != file.end || extension.file.end < file.end {
                return None;
            }
            file.end = extension.file.end;
        }
        end = file.end;
        match &entry.plain {
            Some(plain) if !file.is_empty() => components.extend(plain.component(file)?),
            _ => {}
        }
    }
    Some(components)
}
