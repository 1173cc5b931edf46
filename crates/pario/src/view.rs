//! Views: the bytes of the file that a rank sees, and their order.

mod shape;

use std::sync::Arc;

use pario_datarep::{Converter, FileSizes, Registry, Representation};
use pario_layout::{Basic, Datatype, Layout, Monotonicity, Overlap};

pub(crate) use self::shape::{Outline, Shape, malformed};
use crate::{Error, ErrorKind, Result};

/// Where a view starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// At this byte of the file.
    Bytes(u64),
    /// At the shared pointer: required in files opened SEQUENTIAL, not allowed in others.
    Current,
}

/// The part of a file that a rank sees: from a displacement on, the bytes of a filetype,
/// repeated without end. Offsets count etypes.
#[derive(Clone, Debug)]
pub struct View {
    displacement: Displacement,
    etype: Datatype,
    filetype: Datatype,
    representation: String,
}

impl View {
    /// A view in native representation.
    pub fn new(displacement: u64, etype: &Datatype, filetype: &Datatype) -> View {
        View {
            displacement: Displacement::Bytes(displacement),
            etype: etype.clone(),
            filetype: filetype.clone(),
            representation: "native".into(),
        }
    }

    /// The view of a newly opened file: all bytes.
    pub fn bytes() -> View {
        let byte = Datatype::basic(Basic::Byte);
        View::new(0, &byte, &byte)
    }

    /// Changes where the view starts.
    #[must_use]
    pub fn at(mut self, displacement: Displacement) -> View {
        self.displacement = displacement;
        self
    }

    /// Sets the data representation: `native`, `internal`, `external32`, or a
    /// [registered](crate::datarep) one.
    #[must_use]
    pub fn representation(mut self, name: impl Into<String>) -> View {
        self.representation = name.into();
        self
    }

    /// Where the view starts.
    pub fn displacement(&self) -> Displacement {
        self.displacement
    }

    /// The unit of offsets.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// The pattern that is repeated.
    pub fn filetype(&self) -> &Datatype {
        &self.filetype
    }

    /// The name of the data representation.
    pub fn representation_name(&self) -> &str {
        &self.representation
    }
}

/// Whether the ranks may write through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    ReadOnly,
    Writable,
}

/// Whether all ranks have the same view, which shared-pointer calls require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewsEqual {
    Same,
    Different,
}

/// The current view, flattened to bytes of the file.
#[derive(Debug)]
pub(crate) struct FlattenedView {
    displacement: u64,
    shape: Arc<ViewShape>,
    rank_views: RankViews,
}

/// A view without its displacement. Programs that set a view before every call often change
/// only the displacement, so the rest is checked and flattened once.
#[derive(Debug)]
struct ViewShape {
    etype: Datatype,
    filetype: Datatype,
    representation: Arc<dyn Representation>,
    layout: Layout,
    /// The size of an etype in the file.
    etype_bytes: u64,
    tiles: Tiles,
}

/// Whether repetitions of a filetype overlap although one does not. Determined only for views
/// of writable files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tiles {
    Apart,
    Overlap,
}

/// The views of all ranks, exchanged when they were set: enough to compute which bytes each
/// rank moves.
#[derive(Clone, Debug)]
pub(crate) struct RankViews {
    /// By rank. Equal layouts share memory.
    pub(crate) shapes: Arc<[Shape]>,
    /// Where each rank's view starts.
    pub(crate) displacements: Vec<u64>,
    /// A number that changes when the views change, except by a displacement common to all
    /// ranks.
    pub(crate) family: u64,
    /// Whether every rank's view has no holes.
    pub(crate) dense: bool,
    /// Whether the views have so much data that they can leave few holes between them.
    pub(crate) covers_most: bool,
}

/// The least data of all views that covers most of the file, in percent of their common range.
const COVERING_PERCENT: u64 = 75;

/// Whether views with these layouts and displacements can leave few holes between them. Those that
/// begin where another one does, or after the first tile of the first one, fill none of its holes.
pub(crate) fn covers_most(shapes: &[Shape], displacements: &[u64]) -> bool {
    let starts = shapes.iter().map(Shape::outline).zip(displacements);
    let mut views: Vec<(i128, &Outline)> = starts
        .map(|(outline, displacement)| {
            let first = i128::from(outline.true_lower_bound);
            (i128::from(*displacement) + first, outline)
        })
        .filter(|(_, outline)| outline.size > 0)
        .collect();
    views.sort_unstable_by_key(|(start, _)| *start);
    views.dedup_by_key(|(start, _)| *start);
    let Some((first, tile)) = views.first().copied() else {
        return false;
    };
    let percent = |(_, outline): &(i128, &Outline)| {
        let extent = outline.extent.unsigned_abs().max(1);
        u128::from(outline.size) * 100 / u128::from(extent)
    };
    let near = views
        .iter()
        .take_while(|(start, _)| start - first < i128::from(tile.extent.unsigned_abs()));
    near.map(percent).sum::<u128>() >= u128::from(COVERING_PERCENT)
}

impl RankViews {
    /// Whether all ranks have the same view.
    fn equality(&self) -> ViewsEqual {
        let same_shape = |shape: &Shape| shape.hash() == self.shapes[0].hash();
        let same_start = |start: &u64| *start == self.displacements[0];
        match self.shapes.iter().all(same_shape) && self.displacements.iter().all(same_start) {
            true => ViewsEqual::Same,
            false => ViewsEqual::Different,
        }
    }
}

impl ViewShape {
    /// Checks a view by semantics rule 21 and flattens it.
    fn new(view: &View, usage: Use) -> Result<ViewShape> {
        let View {
            etype, filetype, ..
        } = view;
        etype.check_etype()?;
        filetype.check_filetype(etype)?;
        let representation = Registry::global().get(&view.representation)?;
        let (layout, etype_bytes) = if representation.is_identity() {
            (filetype.layout().clone(), etype.size())
        } else {
            filetype.check_elements(etype)?;
            let elements = etype.signature().elements();
            let etype_bytes =
                Converter::new(representation.clone(), etype)?.file_bytes_of(elements)?;
            (flatten(filetype, &*representation)?, etype_bytes)
        };
        // A single filetype must not overlap itself. Its repetitions may, as long as no access
        // reaches into the next one (HDF5 makes such views).
        if usage == Use::Writable && layout.tile_overlap() == Overlap::Present {
            return Err(Error::new(
                ErrorKind::Type,
                "the filetype overlaps itself, which is allowed only in files opened READ_ONLY",
            ));
        }
        let tiles = match usage {
            Use::Writable if layout.overlap() == Overlap::Present => Tiles::Overlap,
            _ => Tiles::Apart,
        };
        Ok(ViewShape {
            tiles,
            etype: etype.clone(),
            filetype: filetype.clone(),
            representation,
            layout,
            etype_bytes,
        })
    }

    /// Whether `view` differs from this one at most in its displacement.
    fn is_of(&self, view: &View) -> bool {
        self.representation.name() == view.representation
            && self.etype == view.etype
            && self.filetype == view.filetype
    }
}

impl FlattenedView {
    /// Checks a view against the standard's rules and flattens it, reusing the previous one.
    /// `current` is the byte of the file at the shared pointer.
    pub(crate) fn new(
        view: &View,
        current: u64,
        usage: Use,
        before: Option<&FlattenedView>,
    ) -> Result<FlattenedView> {
        let displacement = match view.displacement {
            Displacement::Bytes(bytes) => bytes,
            Displacement::Current => current,
        };
        if displacement > i64::MAX as u64 {
            return Err(Error::argument(format!(
                "a view cannot start at byte {displacement}: the last possible is 2^63 - 1"
            )));
        }
        let known = before.filter(|before| before.shape.is_of(view));
        let shape = match known {
            Some(before) => before.shape.clone(),
            None => Arc::new(ViewShape::new(view, usage)?),
        };
        Ok(FlattenedView {
            displacement,
            shape,
            rank_views: RankViews {
                shapes: Arc::new([]),
                displacements: Vec::new(),
                family: 0,
                dense: false,
                covers_most: false,
            },
        })
    }

    /// Whether an access of `bytes` from data byte `first` on writes some bytes of the file
    /// twice.
    pub(crate) fn overlaps_itself(&self, first: u64, bytes: u64) -> bool {
        let tile = self.layout().size().max(1);
        self.shape.tiles == Tiles::Overlap
            && bytes > 0
            && first / tile != (first + bytes - 1) / tile
    }

    pub(crate) fn with_rank_views(mut self, rank_views: RankViews) -> FlattenedView {
        self.rank_views = rank_views;
        self
    }

    /// The view of a newly opened file, the same on all ranks.
    pub(crate) fn bytes(ranks: u32) -> Result<FlattenedView> {
        let flattened = FlattenedView::new(&View::bytes(), 0, Use::Writable, None)?;
        let layout = flattened.layout();
        let shape = Shape::known(layout, layout.content_hash());
        let rank_views = RankViews {
            shapes: std::iter::repeat_n(shape, ranks as usize).collect(),
            displacements: vec![0; ranks as usize],
            family: 0,
            dense: true,
            covers_most: true,
        };
        Ok(flattened.with_rank_views(rank_views))
    }

    /// Whether this view differs from another one at most in its displacement.
    pub(crate) fn is_moved_from(&self, other: &FlattenedView) -> bool {
        Arc::ptr_eq(&self.shape, &other.shape)
    }

    /// The views of all ranks.
    pub(crate) fn rank_views(&self) -> &RankViews {
        &self.rank_views
    }

    /// The view as it was set, with its displacement in bytes.
    pub(crate) fn view(&self) -> View {
        View {
            displacement: Displacement::Bytes(self.displacement),
            etype: self.shape.etype.clone(),
            filetype: self.shape.filetype.clone(),
            representation: self.shape.representation.name().to_owned(),
        }
    }

    pub(crate) fn etype(&self) -> &Datatype {
        &self.shape.etype
    }

    pub(crate) fn displacement(&self) -> u64 {
        self.displacement
    }

    pub(crate) fn representation(&self) -> &Arc<dyn Representation> {
        &self.shape.representation
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.shape.layout
    }

    pub(crate) fn equality(&self) -> ViewsEqual {
        self.rank_views.equality()
    }

    /// The data byte at which an etype starts.
    pub(crate) fn data_byte(&self, etypes: u64) -> Result<u64> {
        let byte = etypes
            .checked_mul(self.shape.etype_bytes)
            .filter(|byte| *byte <= i64::MAX as u64);
        byte.ok_or_else(|| out_of_range(etypes))
    }

    /// The byte of the file at which an etype starts. A view without data
    /// shows only its displacement.
    pub(crate) fn file_byte(&self, etypes: u64) -> Result<u64> {
        if self.layout().size() == 0 {
            return Ok(self.displacement);
        }
        let offset = self.layout().offset_of(self.data_byte(etypes)?);
        offset
            .and_then(|offset| self.displacement.checked_add_signed(offset))
            .filter(|byte| *byte <= i64::MAX as u64)
            .ok_or_else(|| out_of_range(etypes))
    }

    /// The number of etypes in `bytes` data bytes.
    pub(crate) fn whole_etypes(&self, bytes: u64) -> Result<u64> {
        if bytes == 0 {
            return Ok(0);
        }
        if self.shape.etype_bytes == 0 || !bytes.is_multiple_of(self.shape.etype_bytes) {
            return Err(Error::argument(format!(
                "{bytes} bytes are not a whole number of etypes of {} bytes",
                self.shape.etype_bytes
            )));
        }
        Ok(bytes / self.shape.etype_bytes)
    }

    /// The view in numbers, if it shows equal blocks of the file, as they are.
    pub(crate) fn as_blocks(&self) -> Option<BlockView> {
        let (layout, etype_bytes) = (self.layout(), self.shape.etype_bytes);
        if !self.representation().is_identity() || etype_bytes == 0 {
            return None;
        }
        let (first, end) = (layout.true_lower_bound(), layout.true_upper_bound());
        let block = layout.size();
        let is_one_block = block > 0
            && end.checked_sub(first)?.cast_unsigned() == block
            && layout.order() == Monotonicity::Increasing;
        let stride = layout.extent().cast_unsigned();
        is_one_block.then_some(BlockView {
            start: self.displacement.checked_add_signed(first)?,
            etype_bytes,
            blocks: (stride > block).then_some(Blocks { block, stride }),
        })
    }

    /// The first etype that is not completely below the end of a file of this size.
    pub(crate) fn etypes_below(&self, size: u64) -> u64 {
        if self.shape.etype_bytes == 0 {
            return 0;
        }
        let reach = i64::try_from(size.saturating_sub(self.displacement)).unwrap_or(i64::MAX);
        self.layout()
            .bytes_below(reach)
            .div_ceil(self.shape.etype_bytes)
    }
}

/// A view of blocks of one size at equal distances, or of all bytes of the file from one on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockView {
    start: u64,
    etype_bytes: u64,
    /// `None` if there is nothing between the blocks.
    blocks: Option<Blocks>,
}

#[derive(Clone, Copy, Debug)]
struct Blocks {
    block: u64,
    stride: u64,
}

impl BlockView {
    /// Where `bytes` bytes at an offset in etypes start in the file, and how many etypes they
    /// are. `None` if they are in several blocks, are not whole etypes, or reach past the last
    /// possible byte.
    #[inline]
    pub(crate) fn locate(self, offset: u64, bytes: u64) -> Option<(u64, u64)> {
        let (first, etypes) = match self.etype_bytes {
            1 => (offset, bytes),
            size if bytes.is_multiple_of(size) => (offset.checked_mul(size)?, bytes / size),
            _ => return None,
        };
        let first = match self.blocks {
            None => first,
            Some(blocks) => blocks.locate(first, bytes)?,
        };
        let start = first.checked_add(self.start)?;
        let end = start.checked_add(bytes)?;
        (end <= i64::MAX as u64).then_some((start, etypes))
    }
}

impl Blocks {
    /// Where data bytes are that are in one block.
    fn locate(self, first: u64, bytes: u64) -> Option<u64> {
        let (index, at) = (first / self.block, first % self.block);
        let is_within = bytes <= self.block - at;
        is_within.then_some(index.checked_mul(self.stride)?.checked_add(at)?)
    }
}

/// The bytes that a datatype describes in a file with this representation.
pub(crate) fn flatten(datatype: &Datatype, representation: &dyn Representation) -> Result<Layout> {
    let sizes = FileSizes::of(representation, datatype.signature())?;
    Ok(datatype.flatten(&|basic| sizes.get(basic))?)
}

fn out_of_range(etypes: u64) -> Error {
    Error::argument(format!(
        "offset {etypes} lies past the last possible byte of a file, 2^63 - 1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_other_int() -> FlattenedView {
        let int = Datatype::basic(Basic::Int32);
        let filetype = Datatype::resized(&int, 0, 8).unwrap();
        FlattenedView::new(&View::new(100, &int, &filetype), 0, Use::Writable, None).unwrap()
    }

    #[test]
    fn a_piece_of_a_block_is_located_by_numbers() {
        let int = Datatype::basic(Basic::Int32);
        let view = |blocks: &[(u64, i64)], extent| {
            let blocks = Datatype::hindexed(blocks, &int).unwrap();
            let filetype = Datatype::resized(&blocks, 0, extent).unwrap();
            FlattenedView::new(&View::new(100, &int, &filetype), 0, Use::ReadOnly, None).unwrap()
        };
        let strided = view(&[(4, 8)], 40);
        let blocks = strided.as_blocks().unwrap();
        for offset in 0..12 {
            for count in 1..6 {
                let is_within = offset % 4 + count <= 4;
                let expected = is_within.then(|| (strided.file_byte(offset).unwrap(), count));
                assert_eq!(
                    blocks.locate(offset, 4 * count),
                    expected,
                    "{offset} {count}"
                );
            }
        }
        assert_eq!(blocks.locate(0, 6), None, "not whole etypes");
        assert_eq!(blocks.locate(u64::MAX / 8, 4), None, "past the last byte");

        let adjacent = view(&[(4, 8)], 16).as_blocks().unwrap();
        assert_eq!(adjacent.locate(3, 80), Some((120, 20)));
        assert!(
            view(&[(1, 0), (1, 8)], 16).as_blocks().is_none(),
            "two blocks"
        );
        assert!(
            view(&[(4, 0)], 8).as_blocks().is_none(),
            "overlapping tiles"
        );
    }

    #[test]
    fn offsets_count_etypes_of_the_view() {
        let view = every_other_int();
        assert_eq!(view.file_byte(0).unwrap(), 100);
        assert_eq!(view.file_byte(3).unwrap(), 124);
        assert!(view.file_byte(u64::MAX / 8).is_err());
        assert_eq!(view.whole_etypes(12).unwrap(), 3);
        assert!(view.whole_etypes(13).is_err());
    }

    #[test]
    fn contiguous_views_locate_accesses_as_others_do() {
        let int = Datatype::basic(Basic::Int32);
        let make = |filetype| FlattenedView::new(&filetype, 0, Use::Writable, None).unwrap();
        let view = make(View::new(100, &int, &int));
        let contiguous = view.as_blocks().unwrap();
        assert_eq!(
            contiguous.locate(3, 8),
            Some((view.file_byte(3).unwrap(), 2))
        );
        assert_eq!(contiguous.locate(3, 9), None);
        let last = (i64::MAX as u64 - 100) / 4;
        assert_eq!(
            contiguous.locate(last - 1, 4).map(|(_, etypes)| etypes),
            Some(1)
        );
        assert_eq!(contiguous.locate(last, 4), None);
        assert_eq!(contiguous.locate(u64::MAX / 2, 4), None);
        let bytes = make(View::bytes().at(Displacement::Bytes(7)));
        assert_eq!(bytes.as_blocks().unwrap().locate(3, 9), Some((10, 9)));
        let every_other = every_other_int().as_blocks().unwrap();
        assert_eq!(every_other.locate(3, 4), Some((124, 1)));
        assert_eq!(every_other.locate(3, 8), None);
        let converted = make(View::new(0, &int, &int).representation("external32"));
        assert!(converted.as_blocks().is_none());
    }

    #[test]
    fn the_end_of_the_file_is_the_first_etype_not_wholly_in_it() {
        let view = every_other_int();
        let ends = [
            (0, 0),
            (100, 0),
            (101, 1),
            (104, 1),
            (108, 1),
            (109, 2),
            (117, 3),
        ];
        for (size, etypes) in ends {
            assert_eq!(view.etypes_below(size), etypes, "{size}");
        }
    }

    #[test]
    fn overlaps_are_for_reading_only() {
        let int = Datatype::basic(Basic::Int32);
        let twice = Datatype::indexed(&[(1, 0), (1, 0)], &int).unwrap();
        let view = View::new(0, &int, &twice);
        assert!(FlattenedView::new(&view, 0, Use::ReadOnly, None).is_ok());
        assert_eq!(
            FlattenedView::new(&view, 0, Use::Writable, None)
                .unwrap_err()
                .kind(),
            ErrorKind::Type
        );
    }

    #[test]
    fn an_unknown_representation_is_named() {
        let error =
            FlattenedView::new(&View::bytes().representation("xdr"), 0, Use::ReadOnly, None)
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedRepresentation);
        assert!(error.to_string().contains("xdr"), "{error}");
    }

    #[test]
    fn a_view_that_starts_past_the_last_byte_is_an_error() {
        let view = View::bytes().at(Displacement::Bytes(1 << 63));
        assert_eq!(
            FlattenedView::new(&view, 0, Use::ReadOnly, None)
                .unwrap_err()
                .kind(),
            ErrorKind::Argument
        );
    }

    /// `len` bytes of every `period`, from byte `start` of a tile on.
    fn shape(start: i64, len: u64, period: i64) -> Shape {
        let byte = Datatype::basic(Basic::Byte);
        let piece = Datatype::contiguous(len, &byte).unwrap();
        let placed = Datatype::hindexed(&[(1, start)], &piece).unwrap();
        let tile = Datatype::resized(&placed, 0, period).unwrap();
        Shape::known(tile.layout(), tile.layout().content_hash())
    }

    #[test]
    fn views_cover_most_if_they_lie_in_each_other_s_gaps() {
        let quarter = |_| shape(0, 4096, 16384);
        let quarters: Vec<Shape> = (0..4).map(quarter).collect();
        let apart = |distance: u64| -> Vec<u64> { (0..4).map(|rank| rank * distance).collect() };
        assert!(covers_most(&quarters, &apart(4096)));
        assert!(!covers_most(&quarters, &apart(1 << 30)), "far apart");
        assert!(!covers_most(&quarters, &apart(0)), "the same");
        assert!(!covers_most(&quarters[..2], &apart(4096)[..2]), "half");
        // The place in the tile counts like the displacement.
        let placed: Vec<Shape> = (0..4).map(|rank| shape(rank * 4096, 4096, 16384)).collect();
        assert!(covers_most(&placed, &[0; 4]));
        assert!(!covers_most(&[], &[]));
    }
}
