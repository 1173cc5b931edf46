//! Selects direct, list or sieving access, per access, from the pattern, the
//! hints and the safety of read-modify-write, and explains the selection.

use std::{fmt, ops::Range};

use pario_driver::{Client, Direction, Facts, FileSystem, Handle, Latency};
use pario_hints::{AccessMethod, Hints, SievedAccess, Sieving};
use pario_layout::Layout;

use crate::{
    file::REQUEST_BYTES,
    view::{Outline, RankViews},
};

/// With less data than this, whole blocks take less time than the gaps between them.
const BLOCKS_PERCENT_MIN: u64 = 25;

/// Whether a window with holes may be written back (semantics rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadModifyWrite {
    /// No, for the given reason: others may be writing to the holes.
    Forbidden(&'static str),
    /// Yes: there is no other writer.
    Alone,
    /// Yes: every writer locks what it writes.
    Locked,
}

/// The properties of an access on which the selection depends.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) direction: Direction,
    /// The number of contiguous pieces of the file.
    pub(crate) pieces: u64,
    /// The number of data bytes.
    pub(crate) bytes: u64,
    /// From the first byte to the end of the last.
    pub(crate) span: u64,
    /// Whether the pieces ascend without overlap.
    pub(crate) increasing: bool,
    /// Whether every piece consists of whole blocks of the file system.
    pub(crate) block_aligned: bool,
    /// Whether whole blocks may be worth rewriting along with the gaps: see [`rewrites_blocks`].
    pub(crate) rewrites_blocks: bool,
    /// Whether the driver would write a list of these pieces through a mapping.
    pub(crate) stored: bool,
    /// Whether the data is copied through a buffer because memory aliases the pages of the file.
    pub(crate) staged: bool,
    pub(crate) read_modify_write: ReadModifyWrite,
    /// Whether every piece is a request to a server, however small.
    pub(crate) each_piece_is_a_request: bool,
    /// On what the longest extent that is sieved depends.
    pub(crate) sieved: SievedAccess,
}

impl Pattern {
    /// The average length of a piece and the gap after it: the "extent", which is
    /// decisive according to Coloma 2006 (section 6.3).
    fn extent(&self) -> u64 {
        self.span / self.pieces.max(1)
    }

    fn density_percent(&self) -> u64 {
        (u128::from(self.bytes) * 100 / u128::from(self.span.max(1))) as u64
    }
}

/// Why a method was selected or rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    OnePiece,
    Asked(&'static str),
    ExtentBelow {
        extent: u64,
        limit: u64,
    },
    ExtentAbove {
        extent: u64,
        limit: u64,
    },
    TooSparse {
        percent: u64,
        limit: u64,
    },
    WholeBlocks,
    NotIncreasing,
    Unsafe(&'static str),
    Disabled(&'static str),
    FewerCalls {
        pieces: u64,
    },
    Stored {
        pieces: u64,
        extent: u64,
        limit: u64,
    },
    MoreCalls {
        pieces: u64,
    },
    AnotherAsked,
    NothingToGather,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::OnePiece => write!(f, "the access is one contiguous piece of the file"),
            Reason::Asked(hint) => write!(f, "the hint {hint} asks for it"),
            Reason::ExtentBelow { extent, limit } => write!(
                f,
                "a piece and its gap are {extent} bytes on average, at most {limit} (pario_sieve_extent)"
            ),
            Reason::ExtentAbove { extent, limit } => write!(
                f,
                "a piece and its gap are {extent} bytes on average, more than {limit} (pario_sieve_extent)"
            ),
            Reason::TooSparse { percent, limit } => write!(
                f,
                "{percent} % of the bytes are data, less than the {limit} % of pario_sieve_density"
            ),
            Reason::WholeBlocks => {
                write!(f, "every piece consists of whole blocks of the file system")
            }
            Reason::NotIncreasing => write!(f, "the view's bytes do not strictly ascend"),
            Reason::Unsafe(why) => write!(f, "bytes in the holes could be lost: {why}"),
            Reason::Disabled(hint) => write!(f, "the hint {hint} disables it"),
            Reason::FewerCalls { pieces } => write!(f, "{pieces} pieces go in fewer calls"),
            Reason::Stored {
                pieces,
                extent,
                limit,
            } => write!(
                f,
                "{pieces} pieces, one per {extent} bytes on average, are copied by the kernel into a mapping of the file, many per call: \
                 that is faster from {limit} pieces per page on (pario_stored_pieces)"
            ),
            Reason::MoreCalls { pieces } => write!(f, "it would take {pieces} calls"),
            Reason::AnotherAsked => write!(f, "a hint asks for another method"),
            Reason::NothingToGather => write!(f, "there is only one piece"),
        }
    }
}

/// The selected access method with the reasons, which `Display` prints.
#[derive(Clone, Debug)]
pub struct Selection {
    method: AccessMethod,
    reason: Reason,
    rejected: Vec<(AccessMethod, Reason)>,
    pattern: Pattern,
}

impl Selection {
    /// The selected method.
    pub fn method(&self) -> AccessMethod {
        self.method
    }

    /// The reason, as a sentence.
    pub fn reason(&self) -> String {
        self.reason.to_string()
    }

    /// The other methods, each with the reason against it.
    pub fn rejected(&self) -> impl Iterator<Item = (AccessMethod, String)> {
        self.rejected
            .iter()
            .map(|(method, reason)| (*method, reason.to_string()))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pattern {
            direction,
            pieces,
            bytes,
            span,
            ..
        } = &self.pattern;
        let verb = match direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        writeln!(
            f,
            "{verb} {bytes} bytes in {pieces} pieces over {span} bytes of the file"
        )?;
        write!(f, "  {}: {}", self.method, self.reason)?;
        if self.pattern.staged {
            write!(
                f,
                "\n  through a buffer: memory starts a few bytes past the page boundaries of the file (hint pario_staged_copies)"
            )?;
        }
        for (method, reason) in &self.rejected {
            write!(f, "\n  not {method}: {reason}")?;
        }
        Ok(())
    }
}

/// Selects a method and gives all reasons, for explanations.
pub(crate) fn explain(pattern: Pattern, hints: &Hints) -> Selection {
    let (method, reason) = select(&pattern, hints);
    let rejected = AccessMethod::ALL
        .into_iter()
        .filter(|other| *other != method)
        .map(|other| (other, objection(other, &pattern, hints)))
        .collect();
    Selection {
        method,
        reason,
        rejected,
        pattern,
    }
}

/// Selects a method, as every access does.
pub(super) fn method(pattern: &Pattern, hints: &Hints) -> AccessMethod {
    select(pattern, hints).0
}

fn select(pattern: &Pattern, hints: &Hints) -> (AccessMethod, Reason) {
    let list = (AccessMethod::List, list_reason(pattern, hints));
    match asked(pattern.direction, hints) {
        Some((AccessMethod::Sieve, hint)) => match sieving_forbidden(pattern) {
            None => (AccessMethod::Sieve, Reason::Asked(hint)),
            Some(_) => list,
        },
        Some((method, hint)) => (method, Reason::Asked(hint)),
        None if pattern.pieces <= 1 => (AccessMethod::Direct, Reason::OnePiece),
        None => match sieving_objection(pattern, hints) {
            None => {
                let limit = extent_limit(pattern, hints);
                (
                    AccessMethod::Sieve,
                    Reason::ExtentBelow {
                        extent: pattern.extent(),
                        limit,
                    },
                )
            }
            Some(_) => list,
        },
    }
}

/// Whether long accesses through a view with this outline would be written by sieving if there
/// was no other writer.
pub(crate) fn is_sieved(view: &Outline, views: &RankViews, facts: &Facts, hints: &Hints) -> bool {
    if view.is_dense || view.size == 0 {
        return false;
    }
    let stats = view.stats;
    let pattern = Pattern {
        direction: Direction::Write,
        pieces: stats.pieces,
        bytes: stats.bytes,
        span: stats.span,
        increasing: view.is_increasing,
        block_aligned: stats.pieces > 1 && view.alignment.is_multiple_of(facts.block_size.max(1)),
        rewrites_blocks: rewrites_blocks(facts, views),
        stored: false,
        staged: false,
        read_modify_write: ReadModifyWrite::Alone,
        each_piece_is_a_request: false,
        sieved: sieved_access(&facts.file_system, Direction::Write),
    };
    method(&pattern, hints) == AccessMethod::Sieve
}

/// Whether writes of whole blocks may be faster if the gaps are rewritten. On file systems with storage, two
/// ranks that write a block at a time wait for each other at each, and every block is allocated by itself, while
/// a window is allocated in large units. Gaps that no rank fills would take storage in vain.
pub(super) fn rewrites_blocks(facts: &Facts, views: &RankViews) -> bool {
    facts.file_system.latency(Direction::Read) == Latency::WhereCached && views.covers_most
}

/// Whether all pieces of a view's data are whole blocks.
pub(super) fn consists_of_blocks(
    layout: &Layout,
    data: Range<u64>,
    displacement: u64,
    block_bytes: u64,
) -> bool {
    let pieces = layout.piece_stats(data.clone()).pieces;
    pieces > 1
        && layout.runs(data).next().is_some_and(|run| {
            let start = displacement.wrapping_add_signed(run.offset);
            run.count == pieces
                && [start, run.len, run.stride.unsigned_abs()]
                    .iter()
                    .all(|number| number.is_multiple_of(block_bytes.max(1)))
        })
}

/// The length up to which a piece with the gap after it is moved as a whole. Where every piece is a
/// request to a server, it is at least what travels in the time of a request: once for a read,
/// twice for a write.
pub(crate) fn sieve_extent(handle: &dyn Handle, direction: Direction, hints: &Hints) -> u64 {
    let sieved = sieved_access(&handle.facts().file_system, direction);
    let each_piece_is_a_request = each_piece_is_a_request(handle, direction);
    limit(
        each_piece_is_a_request,
        direction,
        hints.sieve_extent(sieved),
    )
}

/// Where accesses of files on this file system would be sieved.
pub(super) fn sieved_access(file_system: &FileSystem, direction: Direction) -> SievedAccess {
    match (file_system, direction) {
        (FileSystem::Tmpfs | FileSystem::Memory, Direction::Read) => SievedAccess::MemoryRead,
        (FileSystem::Tmpfs | FileSystem::Memory, Direction::Write) => SievedAccess::MemoryWrite,
        _ if file_system.client() == Client::Local => SievedAccess::LocalStorage,
        _ => SievedAccess::Other,
    }
}

/// Whether every piece is a request to a server, however small. Reads of FUSE file systems go through
/// the kernel's cache.
pub(super) fn each_piece_is_a_request(handle: &dyn Handle, direction: Direction) -> bool {
    let file_system = &handle.facts().file_system;
    handle.bypasses_cache() || direction == Direction::Write && file_system.rewrites_under_locks()
}

fn extent_limit(pattern: &Pattern, hints: &Hints) -> u64 {
    // Blocks that are written one at a time are allocated one at a time, too.
    let sieved = match pattern.block_aligned && has_rewritten_blocks(pattern) {
        true => SievedAccess::Other,
        false => pattern.sieved,
    };
    let extent = hints.sieve_extent(sieved);
    limit(pattern.each_piece_is_a_request, pattern.direction, extent)
}

fn limit(each_piece_is_a_request: bool, direction: Direction, extent: u64) -> u64 {
    let least = match (each_piece_is_a_request, direction) {
        (false, _) => 0,
        (true, Direction::Read) => REQUEST_BYTES,
        (true, Direction::Write) => REQUEST_BYTES / 2,
    };
    extent.max(least)
}

/// Why a list is better than one call per piece.
fn list_reason(pattern: &Pattern, hints: &Hints) -> Reason {
    let pieces = pattern.pieces;
    match pattern.stored {
        true => Reason::Stored {
            pieces,
            extent: pattern.extent(),
            limit: hints
                .pario_stored_pieces
                .unwrap_or_else(pario_driver::stored_pieces),
        },
        false => Reason::FewerCalls { pieces },
    }
}

/// The method that a hint requests for this direction, and the hint.
pub(crate) fn asked(direction: Direction, hints: &Hints) -> Option<(AccessMethod, &'static str)> {
    let (method, hint, sieving, sieving_hint) = match direction {
        Direction::Read => (
            hints.pario_read_method,
            "pario_read_method",
            hints.romio_ds_read,
            "romio_ds_read",
        ),
        Direction::Write => (
            hints.pario_write_method,
            "pario_write_method",
            hints.romio_ds_write,
            "romio_ds_write",
        ),
    };
    match method {
        Some(method) => Some((method, hint)),
        None => (sieving == Sieving::Enable).then_some((AccessMethod::Sieve, sieving_hint)),
    }
}

/// The reason why sieving is impossible, even if a hint requests it.
fn sieving_forbidden(pattern: &Pattern) -> Option<Reason> {
    if !pattern.increasing {
        return Some(Reason::NotIncreasing);
    }
    match (pattern.direction, pattern.read_modify_write) {
        (Direction::Write, ReadModifyWrite::Forbidden(why)) => Some(Reason::Unsafe(why)),
        _ => None,
    }
}

/// The reason against sieving if no hint requests it.
fn sieving_objection(pattern: &Pattern, hints: &Hints) -> Option<Reason> {
    let (setting, hint) = match pattern.direction {
        Direction::Read => (hints.romio_ds_read, "romio_ds_read"),
        Direction::Write => (hints.romio_ds_write, "romio_ds_write"),
    };
    let (extent, extent_limit) = (pattern.extent(), extent_limit(pattern, hints));
    let (percent, percent_limit) = (pattern.density_percent(), hints.pario_sieve_density);
    if pattern.pieces <= 1 {
        Some(Reason::NothingToGather)
    } else if setting == Sieving::Disable {
        Some(Reason::Disabled(hint))
    } else if let Some(forbidden) = sieving_forbidden(pattern) {
        Some(forbidden)
    } else if extent > extent_limit {
        Some(Reason::ExtentAbove {
            extent,
            limit: extent_limit,
        })
    } else if pattern.each_piece_is_a_request {
        None
    } else if percent < percent_limit {
        Some(Reason::TooSparse {
            percent,
            limit: percent_limit,
        })
    } else if pattern.block_aligned && !has_rewritten_blocks(pattern) {
        Some(Reason::WholeBlocks)
    } else {
        None
    }
}

fn has_rewritten_blocks(pattern: &Pattern) -> bool {
    pattern.direction == Direction::Write
        && pattern.rewrites_blocks
        && pattern.density_percent() >= BLOCKS_PERCENT_MIN
}

/// Why a method was not selected.
fn objection(method: AccessMethod, pattern: &Pattern, hints: &Hints) -> Reason {
    match method {
        AccessMethod::Sieve => sieving_objection(pattern, hints).unwrap_or(Reason::AnotherAsked),
        _ if asked(pattern.direction, hints).is_some() => Reason::AnotherAsked,
        AccessMethod::List if pattern.pieces <= 1 => Reason::NothingToGather,
        AccessMethod::Direct | AccessMethod::List => Reason::MoreCalls {
            pieces: pattern.pieces,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(direction: Direction, pieces: u64, piece: u64, extent: u64) -> Pattern {
        Pattern {
            direction,
            pieces,
            bytes: pieces * piece,
            span: pieces * extent,
            increasing: true,
            block_aligned: false,
            rewrites_blocks: false,
            stored: false,
            staged: false,
            read_modify_write: ReadModifyWrite::Forbidden("others may write"),
            each_piece_is_a_request: false,
            sieved: SievedAccess::Other,
        }
    }

    #[test]
    fn one_piece_goes_directly() {
        let selection = explain(pattern(Direction::Read, 1, 100, 100), &Hints::default());
        assert_eq!(selection.method(), AccessMethod::Direct);
        assert_eq!(selection.rejected().count(), 2);
    }

    #[test]
    fn the_extent_decides_between_sieve_and_list() {
        let hints = Hints::default();
        let limit = hints.sieve_extent(SievedAccess::Other);
        assert_eq!(
            method(&pattern(Direction::Read, 100, limit / 2, limit), &hints),
            AccessMethod::Sieve
        );
        assert_eq!(
            method(&pattern(Direction::Read, 100, limit, limit + 1), &hints),
            AccessMethod::List
        );
    }

    #[test]
    fn files_in_memory_are_sieved_only_in_short_extents() {
        let hints = Hints::default();
        let longest = |file_system, direction| {
            let sieved = sieved_access(&file_system, direction);
            let is_sieved = |extent: &u64| {
                let pattern = Pattern {
                    read_modify_write: ReadModifyWrite::Alone,
                    sieved,
                    ..pattern(direction, 100, 1500, *extent)
                };
                method(&pattern, &hints) == AccessMethod::Sieve
            };
            (1600..20_000).rev().find(is_sieved)
        };
        use Direction::{Read, Write};
        assert_eq!(longest(FileSystem::Tmpfs, Read), Some(6 << 10));
        assert_eq!(longest(FileSystem::Tmpfs, Write), Some(5 << 10));
        assert_eq!(longest(FileSystem::Ext, Read), Some(12 << 10));
        assert_eq!(longest(FileSystem::Xfs, Write), Some(12 << 10));
        assert_eq!(longest(FileSystem::Lustre, Read), Some(16 << 10));
    }

    #[test]
    fn what_would_be_many_requests_is_sieved_in_longer_extents() {
        let hints = Hints::default();
        for (direction, longest) in [
            (Direction::Read, REQUEST_BYTES),
            (Direction::Write, REQUEST_BYTES / 2),
        ] {
            let requests = |piece, extent| Pattern {
                read_modify_write: ReadModifyWrite::Locked,
                each_piece_is_a_request: true,
                ..pattern(direction, 100, piece, extent)
            };
            let sieved = requests(4, longest);
            assert_eq!(method(&sieved, &hints), AccessMethod::Sieve);
            let listed = requests(4, longest + 1);
            assert_eq!(method(&listed, &hints), AccessMethod::List);
        }
    }

    #[test]
    fn sparse_data_is_not_sieved() {
        let hints = Hints::default();
        let limit = hints.sieve_extent(SievedAccess::Other);
        let sparse = limit * hints.pario_sieve_density / 100 - 1;
        assert_eq!(
            method(&pattern(Direction::Read, 100, sparse, limit), &hints),
            AccessMethod::List
        );
    }

    #[test]
    fn no_hint_makes_an_unsafe_write_sieve() {
        for hint in ["romio_ds_write", "pario_write_method"] {
            let mut hints = Hints::default();
            let value = if hint == "romio_ds_write" {
                "enable"
            } else {
                "sieve"
            };
            hints.update(&pario_hints::Info::from_pairs([(hint, value)]).unwrap());
            let mut pattern = pattern(Direction::Write, 100, 8, 16);
            let selection = explain(pattern.clone(), &hints);
            assert_eq!(selection.method(), AccessMethod::List, "{hint}");
            assert!(
                selection.to_string().contains("others may write"),
                "{selection}"
            );
            pattern.read_modify_write = ReadModifyWrite::Locked;
            assert_eq!(method(&pattern, &hints), AccessMethod::Sieve, "{hint}");
        }
    }

    #[test]
    fn an_explanation_mentions_that_the_kernel_copies_a_list() {
        let mut pattern = pattern(Direction::Write, 100, 8, 16);
        pattern.stored = true;
        let text = explain(pattern, &Hints::default()).to_string();
        assert!(
            text.contains("list: 100 pieces, one per 16 bytes"),
            "{text}"
        );
        assert!(text.contains("by the kernel into a mapping"), "{text}");
    }

    #[test]
    fn an_explanation_mentions_copies_through_a_buffer() {
        let mut pattern = pattern(Direction::Read, 1, 4096, 4096);
        assert!(
            !explain(pattern.clone(), &Hints::default())
                .to_string()
                .contains("buffer")
        );
        pattern.staged = true;
        let text = explain(pattern, &Hints::default()).to_string();
        assert!(text.contains("through a buffer: memory starts"), "{text}");
    }

    #[test]
    fn whole_blocks_are_not_sieved() {
        let mut pattern = pattern(Direction::Read, 100, 4096, 8192);
        pattern.block_aligned = true;
        assert_eq!(method(&pattern, &Hints::default()), AccessMethod::List);
    }

    #[test]
    fn whole_blocks_are_rewritten_if_other_ranks_fill_the_gaps() {
        let hints = Hints::default();
        let blocks = |direction, extent, read_modify_write| Pattern {
            block_aligned: true,
            rewrites_blocks: true,
            read_modify_write,
            sieved: SievedAccess::LocalStorage,
            ..pattern(direction, 100, 4096, extent)
        };
        let write = |extent| blocks(Direction::Write, extent, ReadModifyWrite::Alone);
        assert_eq!(method(&write(8192), &hints), AccessMethod::Sieve);
        assert_eq!(method(&write(16384), &hints), AccessMethod::Sieve);
        let few = Pattern {
            bytes: 100 * 2048,
            ..write(16384)
        };
        assert_eq!(method(&few, &hints), AccessMethod::List);
        let read = blocks(Direction::Read, 8192, ReadModifyWrite::Alone);
        assert_eq!(method(&read, &hints), AccessMethod::List);
        let others = blocks(Direction::Write, 8192, ReadModifyWrite::Forbidden("others"));
        assert_eq!(method(&others, &hints), AccessMethod::List);
        let sparse = Pattern {
            rewrites_blocks: false,
            ..write(8192)
        };
        assert_eq!(method(&sparse, &hints), AccessMethod::List);
    }

    #[test]
    fn an_explanation_gives_a_reason_against_every_other_method() {
        let selection = explain(pattern(Direction::Read, 100, 8, 16), &Hints::default());
        let text = selection.to_string();
        assert!(
            text.contains("sieve: a piece and its gap are 16 bytes"),
            "{text}"
        );
        assert!(
            text.contains("not direct: it would take 100 calls"),
            "{text}"
        );
        assert!(text.contains("not list: it would take 100 calls"), "{text}");
    }
}
