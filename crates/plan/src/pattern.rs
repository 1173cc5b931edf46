//! Summary of all ranks' accesses, on which selection is based.

use crate::Case;

/// Access pattern of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Contiguous pieces of all ranks.
    pub pieces: u64,
    /// Average size of a piece in bytes.
    pub piece_bytes: u64,
    /// Data bytes of all ranks.
    pub bytes: u64,
    /// From the first byte to the end of the last.
    pub region_bytes: u64,
    /// Whether the spans of different ranks overlap, so that the pieces of one
    /// lie between those of another.
    pub is_interleaved: bool,
    /// Number of nodes.
    pub nodes: usize,
}

impl Pattern {
    /// Examines a case with a few look-ups per rank.
    pub fn of(case: &Case<'_>) -> Pattern {
        let region = case.region();
        let pieces = case
            .accesses
            .iter()
            .filter(|access| !access.is_empty())
            .fold(0u64, |sum, access| {
                sum.saturating_add(access.stats().pieces)
            });
        let bytes = case.bytes();
        Pattern {
            pieces,
            piece_bytes: bytes.checked_div(pieces).unwrap_or(0),
            bytes,
            region_bytes: region.end - region.start,
            is_interleaved: is_interleaved(case),
            nodes: case.facts.node_count(),
        }
    }
}

fn is_interleaved(case: &Case<'_>) -> bool {
    let mut spans: Vec<_> = case
        .accesses
        .iter()
        .filter(|a| !a.is_empty())
        .map(|a| a.span())
        .collect();
    spans.sort_unstable_by_key(|span| span.start);
    spans.windows(2).any(|pair| pair[1].start < pair[0].end)
}
