//! Reads arbitrary bytes as a layout: no panic, a canonical form, and consistent
//! look-ups.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pario_layout::{Layout, Monotonicity};

/// Data bytes and runs checked per layout.
const CHECKED: u64 = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(layout) = Layout::from_wire(bytes) else {
        return;
    };
    assert_eq!(layout.to_wire(), bytes);
    let size = layout.size();
    let near_the_end = size.saturating_sub(CHECKED / 2)..size.saturating_add(CHECKED / 2);
    for k in (0..CHECKED).chain(near_the_end.clone()) {
        let Some(offset) = layout.offset_of(k) else {
            continue;
        };
        let below = layout.bytes_below(offset);
        assert!(below <= k);
        assert!(layout.order() == Monotonicity::Unordered || below == k);
    }
    for data in [0..CHECKED, near_the_end, 0..size, size / 3..u64::MAX] {
        let (start, end) = (data.start, data.end);
        let bounds = layout.run_bounds(data.clone());
        let stats = layout.piece_stats(data.clone());
        assert!(stats.pieces <= stats.bytes);
        let mut position = start;
        for run in layout.runs(data).take(CHECKED as usize) {
            assert_eq!(layout.offset_of(position), Some(run.offset));
            let last = run.piece(run.count - 1);
            let low = run.offset.min(last);
            // A run from below 0 may be longer than any offset.
            let high = run.offset.max(last).checked_add_unsigned(run.len);
            let high = high.expect("runs end where offsets do");
            assert!(bounds.is_none_or(|bounds| bounds.0 <= low && high <= bounds.1));
            position += run.bytes();
            assert!(position <= end);
        }
    }
    let _ = (layout.overlap(), layout.tile_overlap(), layout.heap_bytes());
});
