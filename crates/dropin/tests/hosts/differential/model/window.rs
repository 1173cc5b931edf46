//! Views as bytes of the file.

use super::Rejected;
use crate::differential::case::View;
use crate::differential::datatype::{Datatype, Leaf};
use crate::differential::layout::Layout;

/// A view as bytes.
#[derive(Clone)]
pub(super) struct Window {
    pub(super) view: View,
    /// The size of the etype.
    pub(super) etype: i64,
    size: i64,
    layout: Layout,
}

impl Window {
    pub(super) fn new(view: View) -> Self {
        let layout = view.filetype.layout();
        Window {
            etype: view.etype.layout().size(),
            size: layout.size(),
            view,
            layout,
        }
    }

    pub(super) fn bytes() -> Self {
        let byte = Datatype::Basic(Leaf::Byte);
        Window::new(View {
            displacement: 0,
            etype: byte.clone(),
            filetype: byte,
        })
    }

    /// Where the view's data bytes from `first` on are in the file.
    pub(super) fn offsets(&self, first: i64, count: i64) -> Vec<i64> {
        let (mut tile, mut skip) = (first / self.size, first % self.size);
        let mut offsets = Vec::with_capacity(count as usize);
        while (offsets.len() as i64) < count {
            let base = self.view.displacement + tile * self.layout.extent();
            for &(start, length) in &self.layout.runs {
                let here = skip.min(length);
                skip -= here;
                let wanted = (length - here).min(count - offsets.len() as i64);
                offsets.extend((here..here + wanted).map(|byte| base + start + byte));
            }
            tile += 1;
        }
        offsets
    }

    /// How many of the view's data bytes are below the end of the file.
    pub(super) fn bytes_below(&self, end: i64) -> i64 {
        let (span, extent) = (end - self.view.displacement, self.layout.extent());
        let last = self.layout.runs.last().map_or(0, |(at, many)| at + many);
        // Tiles that end before are whole; those that begin before are looked at byte by byte.
        let whole = ((span - last).max(0) / extent).max(0);
        let begun = (span.max(0) / extent) + 1;
        let near = self.offsets(whole * self.size, (begun - whole).max(0) * self.size);
        whole * self.size + near.iter().filter(|offset| **offset < end).count() as i64
    }
}

/// The rules for filetypes, and that tiles do not run into each other.
pub(super) fn is_filetype(filetype: &Layout, etype: &Layout) -> Result<(), Rejected> {
    if filetype.runs.is_empty() || etype.runs.is_empty() {
        return Err(Rejected("the type is empty"));
    }
    let first = filetype.runs[0].0;
    let mut end = 0;
    for &(start, length) in &filetype.runs {
        if start < end {
            return Err(Rejected("displacements decrease or are negative"));
        }
        end = start + length;
    }
    if filetype.extent() < end - first || filetype.extent() <= 0 {
        return Err(Rejected("tiles overlap"));
    }
    Ok(())
}
