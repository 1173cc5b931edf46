//! Where a rank's data lies: in the file through its view, and in memory.

use pario::{Basic, Datatype, Result, View};

use crate::scenario::{BASE, FILE_BYTES, Lie, NATIVE_COUNT, Pattern, REGION};

/// What fills memory that no read may touch.
pub(crate) const UNTOUCHED: u8 = 0xee;
/// Scattered memory: so many elements, and so many from one such group to the
/// next.
const GROUP: usize = 3;
const GROUP_EXTENT: usize = 5;
/// What direct I/O is aligned to.
const BLOCK_BYTES: usize = 4096;

/// A view, as the naive model understands it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lens {
    base: usize,
    /// Bytes that are together in the file.
    piece: usize,
    /// From one piece to the next.
    tile: usize,
    pub(crate) element: Element,
    /// How many elements one call moves.
    pub(crate) count: usize,
}

/// What the data consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Byte,
    /// In external32.
    Long,
}

impl Element {
    pub(crate) fn memory_bytes(self) -> usize {
        match self {
            Element::Byte => 1,
            Element::Long => size_of::<i64>(),
        }
    }

    pub(crate) fn file_bytes(self) -> usize {
        match self {
            Element::Byte => 1,
            Element::Long => size_of::<i32>(),
        }
    }

    fn datatype(self) -> Datatype {
        Datatype::basic(match self {
            Element::Byte => Basic::Byte,
            Element::Long => Basic::Long,
        })
    }

    /// What data in memory looks like in the file.
    pub(crate) fn to_file(self, memory: &[u8]) -> Vec<u8> {
        match self {
            Element::Byte => memory.to_vec(),
            Element::Long => memory
                .as_chunks()
                .0
                .iter()
                .flat_map(|long| (i64::from_ne_bytes(*long) as i32).to_be_bytes())
                .collect(),
        }
    }

    /// `count` elements, the `first` of which has this number; their values
    /// differ between calls and ranks.
    pub(crate) fn data(self, call: usize, rank: usize, first: usize, count: usize) -> Vec<u8> {
        let value = |index: usize| index * 11 + call * 53 + rank * 101 + 1;
        let indices = first..first + count;
        match self {
            Element::Byte => indices.map(|index| value(index) as u8).collect(),
            Element::Long => indices
                .flat_map(|index| (value(index) as i64 * 70_001).to_ne_bytes())
                .collect(),
        }
    }
}

impl Lens {
    /// All bytes, as after open.
    pub(crate) fn bytes() -> Lens {
        Lens {
            base: 0,
            piece: 1,
            tile: 1,
            element: Element::Byte,
            count: NATIVE_COUNT,
        }
    }

    pub(crate) fn new(pattern: Pattern, rank: usize, ranks: usize) -> Lens {
        let dense = |base| Lens {
            base,
            ..Lens::bytes()
        };
        match pattern {
            Pattern::Region => dense(BASE + rank * REGION),
            Pattern::Common => dense(BASE),
            Pattern::BeyondTheEnd => dense(FILE_BYTES - 20 + rank * REGION),
            Pattern::Strided => Lens {
                base: BASE + rank * 8,
                piece: 8,
                tile: ranks * 8 + 6,
                ..Lens::bytes()
            },
            Pattern::External => Lens {
                base: BASE + rank * 16,
                piece: 8,
                tile: ranks * 16 + 16,
                element: Element::Long,
                count: NATIVE_COUNT / Element::Long.file_bytes(),
            },
            Pattern::Blocks => Lens {
                count: 2 * BLOCK_BYTES + 160,
                ..dense((2 + 4 * rank) * BLOCK_BYTES - 100)
            },
        }
    }

    pub(crate) fn view(&self) -> Result<View> {
        let element = self.element.datatype();
        let elements = (self.piece / self.element.file_bytes()) as u64;
        let piece = Datatype::contiguous(elements, &element)?;
        let filetype = Datatype::resized(&piece, 0, self.tile as i64)?;
        let view = View::new(self.base as u64, &element, &filetype);
        Ok(match self.element {
            Element::Byte => view,
            Element::Long => view.representation("external32"),
        })
    }

    /// The bytes of the file that hold `count` elements from the `first` on.
    pub(crate) fn places(&self, first: usize, count: usize) -> Vec<usize> {
        let size = self.element.file_bytes();
        (first * size..(first + count) * size)
            .map(|byte| self.base + byte / self.piece * self.tile + byte % self.piece)
            .collect()
    }
}

/// The datatype of data in memory and how many items of it there are.
pub(crate) fn items(element: Element, lie: Lie, count: usize) -> Result<(Datatype, u64)> {
    let datatype = element.datatype();
    if lie == Lie::Dense {
        return Ok((datatype, count as u64));
    }
    let group = Datatype::contiguous(GROUP as u64, &datatype)?;
    let extent = GROUP_EXTENT * element.memory_bytes();
    let group = Datatype::resized(&group, 0, extent as i64)?;
    Ok((group, (count / GROUP) as u64))
}

/// A buffer with the data where it belongs.
pub(crate) fn laid_out(element: Element, lie: Lie, data: &[u8]) -> Vec<u8> {
    let (group, extent) = group_bytes(element);
    match lie {
        Lie::Dense => data.to_vec(),
        Lie::Scattered => data
            .chunks(group)
            .flat_map(|part| [part, &vec![UNTOUCHED; extent - group]].concat())
            .collect(),
    }
}

/// The data of a buffer; panics if the memory between it was touched.
pub(crate) fn collected(element: Element, lie: Lie, buffer: &[u8]) -> Vec<u8> {
    let (group, extent) = group_bytes(element);
    match lie {
        Lie::Dense => buffer.to_vec(),
        Lie::Scattered => buffer
            .chunks(extent)
            .flat_map(|part| {
                let (data, gap) = part.split_at(group);
                assert!(
                    gap.iter().all(|byte| *byte == UNTOUCHED),
                    "a gap was touched"
                );
                data.to_vec()
            })
            .collect(),
    }
}

fn group_bytes(element: Element) -> (usize, usize) {
    let size = element.memory_bytes();
    (GROUP * size, GROUP_EXTENT * size)
}
