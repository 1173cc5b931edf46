//! Views: which bytes of the file a rank sees, and in which order.

use std::sync::Arc;

use pario_datarep::{Converter, FileSizes, Registry, Representation};
use pario_layout::{Basic, Datatype, Layout, Overlap};

use crate::{Error, ErrorKind, Result};

/// Where a view starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// At this byte of the file.
    Bytes(u64),
    /// At the shared pointer: the only way in a sequential file.
    Current,
}

/// What a rank sees of a file: from a displacement on, the bytes that a
/// filetype shows, tiled without end, counted in etypes.
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

    /// The view of a file just opened: all bytes.
    pub fn bytes() -> View {
        let byte = Datatype::basic(Basic::Byte);
        View::new(0, &byte, &byte)
    }

    /// Starts the view elsewhere.
    #[must_use]
    pub fn at(mut self, displacement: Displacement) -> View {
        self.displacement = displacement;
        self
    }

    /// Stores data in another representation: `native`, `internal`,
    /// `external32`, or one that was registered.
    #[must_use]
    pub fn representation(mut self, name: impl Into<String>) -> View {
        self.representation = name.into();
        self
    }

    /// Where it starts.
    pub fn displacement(&self) -> Displacement {
        self.displacement
    }

    /// The unit of its offsets.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// The pattern that is tiled.
    pub fn filetype(&self) -> &Datatype {
        &self.filetype
    }

    /// How data is stored.
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

/// Whether all ranks have the same view, as shared-pointer calls need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    Same,
    Different,
}

/// A view in force: lowered to bytes of the file.
#[derive(Debug)]
pub(crate) struct Lowered {
    view: View,
    displacement: u64,
    representation: Arc<dyn Representation>,
    layout: Layout,
    /// Bytes of an etype in the file.
    etype_bytes: u64,
    tiles: Tiles,
    peers: Peers,
}

/// Whether repetitions of a filetype show bytes twice that one does not. Only
/// asked of views through which ranks may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tiles {
    Apart,
    Overlap,
}

/// What a rank sees of the file: enough to compute where its data lies.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) displacement: u64,
    pub(crate) layout: Layout,
}

/// The views of all ranks, as they were exchanged when they were set.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    /// By rank. Equal layouts are one.
    pub(crate) views: Arc<[Peer]>,
    pub(crate) sameness: Sameness,
    /// How often views were set before: tells one set of views from another.
    pub(crate) serial: u64,
}

impl Lowered {
    /// Checks a view by the standard's rules and lowers it. `current` is the
    /// byte of the file where the shared pointer stands.
    pub(crate) fn new(view: &View, current: u64, usage: Use) -> Result<Lowered> {
        let View {
            displacement,
            etype,
            filetype,
            representation,
        } = view;
        let displacement = match *displacement {
            Displacement::Bytes(bytes) => bytes,
            Displacement::Current => current,
        };
        if displacement > i64::MAX as u64 {
            return Err(Error::argument(format!(
                "a view cannot start at byte {displacement}: the last possible is 2^63 - 1"
            )));
        }
        etype.check_etype()?;
        filetype.check_filetype(etype)?;
        let representation = Registry::global().get(representation)?;
        let (layout, etype_bytes) = if representation.is_identity() {
            (filetype.layout().clone(), etype.size())
        } else {
            let elements = etype.signature().elements();
            let etype_bytes =
                Converter::new(representation.clone(), etype)?.file_bytes_of(elements)?;
            (lower(filetype, &*representation)?, etype_bytes)
        };
        // One filetype must not; tiles may where no access reaches into the
        // next one (HDF5 makes such views).
        if usage == Use::Writable && layout.tile_overlap() == Overlap::Present {
            return Err(Error::new(
                ErrorKind::Type,
                "the filetype shows some bytes twice, which is allowed only in files opened READ_ONLY",
            ));
        }
        let tiles = match usage {
            Use::Writable if layout.overlap() == Overlap::Present => Tiles::Overlap,
            _ => Tiles::Apart,
        };
        let view = View {
            displacement: Displacement::Bytes(displacement),
            ..view.clone()
        };
        Ok(Lowered {
            tiles,
            view,
            displacement,
            representation,
            layout,
            etype_bytes,
            peers: Peers {
                views: Arc::new([]),
                sameness: Sameness::Same,
                serial: 0,
            },
        })
    }

    /// Whether an access of `bytes` from data byte `first` on writes some bytes
    /// of the file twice.
    pub(crate) fn overlaps_itself(&self, first: u64, bytes: u64) -> bool {
        let tile = self.layout.size().max(1);
        self.tiles == Tiles::Overlap && bytes > 0 && first / tile != (first + bytes - 1) / tile
    }

    pub(crate) fn with_peers(mut self, peers: Peers) -> Lowered {
        self.peers = peers;
        self
    }

    /// The view of a file just opened, which all ranks have.
    pub(crate) fn bytes(ranks: u32) -> Result<Lowered> {
        let lowered = Lowered::new(&View::bytes(), 0, Use::Writable)?;
        let peer = lowered.as_peer();
        let views = std::iter::repeat_n(peer, ranks as usize).collect();
        Ok(lowered.with_peers(Peers {
            views,
            sameness: Sameness::Same,
            serial: 0,
        }))
    }

    /// What others need to know of it.
    pub(crate) fn as_peer(&self) -> Peer {
        Peer {
            displacement: self.displacement,
            layout: self.layout.clone(),
        }
    }

    /// The views of all ranks.
    pub(crate) fn peers(&self) -> &[Peer] {
        &self.peers.views
    }

    pub(crate) fn serial(&self) -> u64 {
        self.peers.serial
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn displacement(&self) -> u64 {
        self.displacement
    }

    pub(crate) fn representation(&self) -> &Arc<dyn Representation> {
        &self.representation
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn sameness(&self) -> Sameness {
        self.peers.sameness
    }

    /// The data byte at which an etype starts.
    pub(crate) fn data_byte(&self, etypes: u64) -> Result<u64> {
        let byte = etypes
            .checked_mul(self.etype_bytes)
            .filter(|byte| *byte <= i64::MAX as u64);
        byte.ok_or_else(|| out_of_range(etypes))
    }

    /// The byte of the file at which an etype starts. A view without data
    /// shows only its displacement.
    pub(crate) fn file_byte(&self, etypes: u64) -> Result<u64> {
        if self.layout.size() == 0 {
            return Ok(self.displacement);
        }
        let offset = self.layout.offset_of(self.data_byte(etypes)?);
        offset
            .and_then(|offset| self.displacement.checked_add_signed(offset))
            .filter(|byte| *byte <= i64::MAX as u64)
            .ok_or_else(|| out_of_range(etypes))
    }

    /// How many etypes so many data bytes are.
    pub(crate) fn whole_etypes(&self, bytes: u64) -> Result<u64> {
        if bytes == 0 {
            return Ok(0);
        }
        if self.etype_bytes == 0 || !bytes.is_multiple_of(self.etype_bytes) {
            return Err(Error::argument(format!(
                "{bytes} bytes are not a whole number of etypes of {} bytes",
                self.etype_bytes
            )));
        }
        Ok(bytes / self.etype_bytes)
    }

    /// The first etype that lies, wholly or in part, at or behind the end of
    /// a file of this size.
    pub(crate) fn etypes_below(&self, size: u64) -> u64 {
        if self.etype_bytes == 0 {
            return 0;
        }
        let reach = i64::try_from(size.saturating_sub(self.displacement)).unwrap_or(i64::MAX);
        self.layout.bytes_below(reach).div_ceil(self.etype_bytes)
    }
}

/// The bytes that a datatype describes in a file of this representation.
pub(crate) fn lower(datatype: &Datatype, representation: &dyn Representation) -> Result<Layout> {
    let sizes = FileSizes::of(representation, datatype.signature())?;
    Ok(datatype.lower(&|basic| sizes.get(basic))?)
}

fn out_of_range(etypes: u64) -> Error {
    Error::argument(format!(
        "offset {etypes} lies past the last possible byte of a file, 2^63 - 1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_other_int() -> Lowered {
        let int = Datatype::basic(Basic::Int32);
        let filetype = Datatype::resized(&int, 0, 8).unwrap();
        Lowered::new(&View::new(100, &int, &filetype), 0, Use::Writable).unwrap()
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
        assert!(Lowered::new(&view, 0, Use::ReadOnly).is_ok());
        assert_eq!(
            Lowered::new(&view, 0, Use::Writable).unwrap_err().kind(),
            ErrorKind::Type
        );
    }

    #[test]
    fn an_unknown_representation_is_named() {
        let error =
            Lowered::new(&View::bytes().representation("xdr"), 0, Use::ReadOnly).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedRepresentation);
        assert!(error.to_string().contains("xdr"), "{error}");
    }

    #[test]
    fn a_view_that_starts_past_the_last_byte_is_refused() {
        let view = View::bytes().at(Displacement::Bytes(1 << 63));
        assert_eq!(
            Lowered::new(&view, 0, Use::ReadOnly).unwrap_err().kind(),
            ErrorKind::Argument
        );
    }
}
