//! The layout of a Lustre file or directory, as the attribute `lustre.lov`
//! holds it: `lov_user_md` versions 1 and 3, composite and foreign layouts,
//! little-endian.
//!
//! Only what is written here is relied on. An unknown magic number, flag or
//! pattern, or a layout that does not fit its own lengths, is no layout: plans
//! then know nothing about the file's servers, which costs time but never data.

use std::ops::Range;

pub(super) const MAGIC_V1: u32 = 0x0bd1_0bd0;
pub(super) const MAGIC_V3: u32 = 0x0bd3_0bd0;
const MAGIC_COMPOSITE: u32 = 0x0bd6_0bd0;
const MAGIC_FOREIGN: u32 = 0x0bd7_0bd0;

/// Lengths of a header of version 1, a pool name, an object, the header of a
/// composite layout and one of its entries.
pub(super) const HEADER_BYTES: usize = 32;
pub(super) const POOL_BYTES: usize = 16;
pub(super) const OBJECT_BYTES: usize = 24;
const COMPOSITE_BYTES: usize = 32;
const ENTRY_BYTES: usize = 48;

/// A layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One pattern for the whole file.
    Plain(Plain),
    /// Components with a pattern each.
    Composite(Vec<Entry>),
    /// Data kept elsewhere.
    Foreign,
}

/// A pattern, and the objects of a file that has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// Pattern and flags.
    pub(super) pattern: u32,
    /// Bytes per stripe; 0 in a directory that leaves it to the file system.
    pub(super) stripe_size: u32,
    /// Number of stripes.
    pub(super) count: StripeCount,
    /// The servers (OSTs) to choose from, if restricted.
    pub(super) pool: Option<String>,
    /// The server of each object.
    pub(super) servers: Vec<u32>,
}

/// Number of stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StripeCount {
    /// As many as the file system chooses.
    Default,
    /// One per server.
    All,
    /// This many.
    Exactly(u16),
}

/// A component of a composite layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The mirror that it belongs to.
    pub(super) mirror: u32,
    /// `LCME_FL_…`.
    pub(super) flags: u32,
    /// Its range of the file.
    pub(super) file: Range<u64>,
    /// Its pattern; `None` if it is foreign.
    pub(super) plain: Option<Plain>,
}

impl StripeCount {
    const ALL: u16 = 0xffff;

    pub(super) fn from_raw(raw: u16) -> StripeCount {
        match raw {
            0 => StripeCount::Default,
            StripeCount::ALL => StripeCount::All,
            count => StripeCount::Exactly(count),
        }
    }

    pub(super) fn to_raw(self) -> u16 {
        match self {
            StripeCount::Default => 0,
            StripeCount::All => StripeCount::ALL,
            StripeCount::Exactly(count) => count,
        }
    }
}

impl Layout {
    /// The layout in the value of an attribute; `None` if it is not understood.
    pub(crate) fn parse(value: &[u8]) -> Option<Layout> {
        match u32_at(value, 0)? {
            MAGIC_V1 | MAGIC_V3 => Plain::parse(value).map(Layout::Plain),
            MAGIC_COMPOSITE => entries(value).map(Layout::Composite),
            MAGIC_FOREIGN => Some(Layout::Foreign),
            _ => None,
        }
    }
}

impl Plain {
    /// Objects are there or not, but not some of them.
    fn parse(value: &[u8]) -> Option<Plain> {
        let (pool, objects) = match u32_at(value, 0)? {
            MAGIC_V1 => (None, value.get(HEADER_BYTES..)?),
            MAGIC_V3 => {
                let objects = HEADER_BYTES + POOL_BYTES;
                (
                    pool(value.get(HEADER_BYTES..objects)?)?,
                    value.get(objects..)?,
                )
            }
            _ => return None,
        };
        let count = StripeCount::from_raw(u16_at(value, 28)?);
        let servers: Vec<u32> = objects
            .chunks_exact(OBJECT_BYTES)
            .map_while(|object| u32_at(object, 20))
            .collect();
        let expected = match count {
            StripeCount::Exactly(count) => usize::from(count),
            _ => 0,
        };
        let is_whole = objects.len().is_multiple_of(OBJECT_BYTES);
        if !is_whole || !(servers.is_empty() || servers.len() == expected) {
            return None;
        }
        Some(Plain {
            pattern: u32_at(value, 4)?,
            stripe_size: u32_at(value, 24)?,
            count,
            pool,
            servers,
        })
    }
}

/// The name of a pool, `Some(None)` if it is empty; `None` if it is malformed.
fn pool(field: &[u8]) -> Option<Option<String>> {
    let end = field.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&field[..end]).ok()?;
    Some((!name.is_empty()).then(|| name.to_owned()))
}

/// The components of a composite layout: its length is at byte 4, the number of
/// entries at 14; an entry has its id at 0, flags at 4, range at 8 and 16, and
/// the place and length of its pattern at 24 and 28.
fn entries(value: &[u8]) -> Option<Vec<Entry>> {
    let len = usize::try_from(u32_at(value, 4)?).ok()?;
    let value = value.get(..len)?;
    let count = usize::from(u16_at(value, 14)?);
    let entry = |index: usize| {
        let entry = value.get(COMPOSITE_BYTES + index * ENTRY_BYTES..)?;
        let entry = entry.get(..ENTRY_BYTES)?;
        let start = usize::try_from(u32_at(entry, 24)?).ok()?;
        let end = start.checked_add(usize::try_from(u32_at(entry, 28)?).ok()?)?;
        let pattern = value.get(start..end)?;
        let plain = match u32_at(pattern, 0)? {
            MAGIC_FOREIGN => None,
            _ => Some(Plain::parse(pattern)?),
        };
        Some(Entry {
            mirror: u32_at(entry, 0)? >> 16,
            flags: u32_at(entry, 4)?,
            file: u64_at(entry, 8)?..u64_at(entry, 16)?,
            plain,
        })
    };
    (0..count).map(entry).collect()
}

fn u16_at(value: &[u8], at: usize) -> Option<u16> {
    let bytes = value.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn u32_at(value: &[u8], at: usize) -> Option<u32> {
    let bytes = value.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn u64_at(value: &[u8], at: usize) -> Option<u64> {
    let bytes = value.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
