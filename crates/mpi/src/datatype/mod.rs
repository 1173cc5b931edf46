//! Turns the host's datatypes into layouts, once each, and layouts into datatypes of the host.

mod cache;
mod committed;
mod constructor;
mod contents;
mod contiguous;
mod encode;
mod known_sizes;
mod named;
mod observed;
mod predefined;

use std::error::Error;
use std::fmt;

use pario_layout::{MAX_DEPTH, TypeError};

pub(crate) use cache::Decoded;
use cache::{Kept, Known};
use constructor::Constructor;
pub use encode::{EncodeError, Encoded};

use crate::error::MpiError;
use crate::handles::Datatype;
use crate::host::combiner::Combiner;
use crate::host::{Envelope, Host, SimpleContents};

/// Why a datatype of the host cannot be turned into a layout.
#[derive(Clone, Debug)]
pub enum DecodeError {
    /// The handle is `MPI_DATATYPE_NULL`.
    Null,
    /// The datatype is not committed.
    Uncommitted,
    /// A function of the host failed.
    Mpi(MpiError),
    /// The host returned arguments that make no valid datatype.
    Type(TypeError),
    /// A predefined type that is unknown.
    UnknownName {
        /// Its name.
        name: String,
        /// Its data bytes.
        size: u64,
    },
    /// Constructors nest deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The constructor is unknown or its arguments are incomplete.
    Malformed(Option<Combiner>),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("the datatype is MPI_DATATYPE_NULL"),
            Self::Uncommitted => {
                f.write_str("the datatype is not committed: call MPI_Type_commit first")
            }
            Self::Mpi(error) => error.fmt(f),
            Self::Type(error) => error.fmt(f),
            Self::UnknownName { name, size } => write!(
                f,
                "the MPI has a predefined datatype {name:?} of {size} bytes that is unknown here"
            ),
            Self::TooDeep => {
                write!(
                    f,
                    "constructors of the datatype nest deeper than {MAX_DEPTH} levels"
                )
            }
            Self::Malformed(Some(combiner)) => write!(
                f,
                "the MPI gives too few arguments for a datatype of {}",
                combiner.name()
            ),
            Self::Malformed(None) => {
                f.write_str("the datatype was made by a constructor that is unknown here")
            }
        }
    }
}

impl Error for DecodeError {}

impl From<MpiError> for DecodeError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

impl From<TypeError> for DecodeError {
    fn from(error: TypeError) -> Self {
        Self::Type(error)
    }
}

/// The datatype of data in memory.
#[derive(Clone, Debug)]
pub enum DataLayout {
    /// So many bytes per item, one item after the other without a gap.
    Contiguous(u64),
    /// Any other.
    Other(pario_layout::Datatype),
}

impl DataLayout {
    fn of(layout: pario_layout::Datatype) -> DataLayout {
        match layout.layout().is_dense() {
            true => DataLayout::Contiguous(layout.size()),
            false => DataLayout::Other(layout),
        }
    }
}

impl Host {
    /// As [`decode_committed`](Self::decode_committed), for data of which only the bytes
    /// matter, not their types. Programs make types for a single call, and use one for many
    /// calls: this takes few calls of the host for the former, and none for the latter.
    #[inline]
    pub fn decode_data(&self, datatype: Datatype) -> Result<DataLayout, DecodeError> {
        if let Some(repeated) = self.decoded().observed().committed(datatype)
            && let Some(bytes) = self.bytes_of(repeated.count, repeated.of)
        {
            return Ok(DataLayout::Contiguous(bytes));
        }
        match self.decoded().kept(self, datatype)? {
            Kept::Contiguous(bytes) => Ok(DataLayout::Contiguous(bytes)),
            Kept::Layout => Ok(DataLayout::of(self.decode_committed(datatype)?)),
            Kept::Nothing => self.decode_new_data(datatype),
        }
    }

    /// Decodes a type that is used for data for the first time.
    fn decode_new_data(&self, datatype: Datatype) -> Result<DataLayout, DecodeError> {
        if datatype == self.predefined().datatype_null {
            return Err(DecodeError::Null);
        }
        let envelope = self.type_envelope(datatype)?;
        if let Some(bytes) = contiguous::bytes(self, datatype, &envelope, MAX_DEPTH)? {
            self.check_committed(datatype)?;
            if self.decoded().keep_contiguous(self, datatype, bytes)? {
                return Ok(DataLayout::Contiguous(bytes));
            }
        }
        let layout = decode_enveloped(self, datatype, &envelope, MAX_DEPTH)?;
        if self.decoded().predefined(datatype).is_none() {
            self.check_committed(datatype)?;
            self.keep_data(datatype, &layout)?;
        }
        Ok(DataLayout::of(layout))
    }

    /// Keeps what is known about a committed type that was used for data.
    fn keep_data(
        &self,
        datatype: Datatype,
        layout: &pario_layout::Datatype,
    ) -> Result<(), DecodeError> {
        let is_dense = layout.layout().is_dense();
        if is_dense
            && self
                .decoded()
                .keep_contiguous(self, datatype, layout.size())?
        {
            return Ok(());
        }
        let known = Known {
            layout: layout.clone(),
            committed: true,
        };
        Ok(self.decoded().keep(self, datatype, known)?)
    }

    fn check_committed(&self, datatype: Datatype) -> Result<(), DecodeError> {
        match self.type_is_committed(datatype)? {
            true => Ok(()),
            false => Err(DecodeError::Uncommitted),
        }
    }

    /// The layout of a datatype, committed or not. Decoded once, then kept with the datatype.
    pub fn decode(&self, datatype: Datatype) -> Result<pario_layout::Datatype, DecodeError> {
        decode_at(self, datatype, MAX_DEPTH)
    }

    /// The layout of a predefined datatype that has been decoded before.
    pub fn decoded_predefined(&self, datatype: Datatype) -> Option<&pario_layout::Datatype> {
        self.decoded().predefined(datatype)
    }

    /// As [`decode`](Self::decode), for a datatype that must be committed, as those of data and
    /// views must. The host is asked until it is; then the result is kept.
    pub fn decode_committed(
        &self,
        datatype: Datatype,
    ) -> Result<pario_layout::Datatype, DecodeError> {
        if let Some(layout) = self.decoded().predefined(datatype) {
            return Ok(layout.clone());
        }
        if let Some(layout) = self.observed_layout(datatype) {
            return Ok(layout);
        }
        let layout = match self.decoded().get(self, datatype)? {
            Some(known) if known.committed => return Ok(known.layout),
            Some(known) => known.layout,
            None => decode_unknown(self, datatype, MAX_DEPTH)?,
        };
        if self.decoded().predefined(datatype).is_some() {
            return Ok(layout);
        }
        self.check_committed(datatype)?;
        let known = Known {
            layout: layout.clone(),
            committed: true,
        };
        self.decoded().keep(self, datatype, known)?;
        Ok(layout)
    }
}

/// Decodes a datatype under which constructors may nest `depth` more levels.
fn decode_at(
    host: &Host,
    datatype: Datatype,
    depth: u16,
) -> Result<pario_layout::Datatype, DecodeError> {
    if let Some(known) = host.decoded().get(host, datatype)? {
        return Ok(known.layout);
    }
    let layout = decode_unknown(host, datatype, depth)?;
    if host.decoded().predefined(datatype).is_none() {
        let known = Known {
            layout: layout.clone(),
            committed: false,
        };
        host.decoded().keep(host, datatype, known)?;
    }
    Ok(layout)
}

/// Decodes a datatype of which nothing is known. Keeps the result if it is predefined.
fn decode_unknown(
    host: &Host,
    datatype: Datatype,
    depth: u16,
) -> Result<pario_layout::Datatype, DecodeError> {
    if datatype == host.predefined().datatype_null {
        return Err(DecodeError::Null);
    }
    let envelope = host.type_envelope(datatype)?;
    decode_enveloped(host, datatype, &envelope, depth)
}

/// As [`decode_unknown`], for a datatype with this envelope.
fn decode_enveloped(
    host: &Host,
    datatype: Datatype,
    envelope: &Envelope,
    depth: u16,
) -> Result<pario_layout::Datatype, DecodeError> {
    let combiner = envelope.combiner.ok_or(DecodeError::Malformed(None))?;
    match combiner {
        Combiner::Named => {
            let named = named::decode(host, datatype)?;
            host.decoded().keep_predefined(datatype, &named);
            return Ok(named);
        }
        Combiner::Dup | Combiner::Contiguous => {
            if let Some(contents) = host.type_simple_contents(datatype, envelope)? {
                let made = decode_simple(host, combiner, contents, depth)?;
                // Hosts have their own rules for the bounds of types without data.
                return match made.layout().is_dense() && made.size() > 0 {
                    true => Ok(made),
                    false => with_bounds_of(host, datatype, made),
                };
            }
        }
        _ => {}
    }
    let contents = host.type_contents(datatype, envelope)?;
    let parts = decode_parts(host, &contents.datatypes, depth)?;
    let made = Constructor {
        host,
        combiner,
        size: host.type_size(datatype)?,
        parts: &parts,
    }
    .apply(&contents)?;
    let bounded = with_bounds_of(host, datatype, made)?;
    if combiner.is_predefined() {
        host.decoded().keep_predefined(datatype, &bounded);
    }
    Ok(bounded)
}

/// Decodes a duplicate or a repetition, and frees the handle of its inner datatype. Many
/// programs make such a type for a single call, so this takes as few calls of the host as
/// possible, and nothing is kept with inner types that are simple, too.
fn decode_simple(
    host: &Host,
    combiner: Combiner,
    contents: SimpleContents,
    depth: u16,
) -> Result<pario_layout::Datatype, DecodeError> {
    let SimpleContents { count, datatype } = contents;
    if let Some(of) = host.decoded().predefined(datatype) {
        return repeat(host, combiner, count, of);
    }
    let envelope = host.type_envelope(datatype)?;
    let of = match (envelope.combiner, depth.checked_sub(1)) {
        (_, None) => Err(DecodeError::TooDeep),
        (Some(Combiner::Dup | Combiner::Contiguous | Combiner::Named), Some(depth)) => {
            decode_enveloped(host, datatype, &envelope, depth)
        }
        (_, Some(depth)) => decode_at(host, datatype, depth),
    };
    if envelope.combiner.is_some_and(|it| !it.is_predefined()) {
        host.type_free(datatype)?;
    }
    repeat(host, combiner, count, &of?)
}

/// What a simple constructor makes of its inner datatype.
fn repeat(
    host: &Host,
    combiner: Combiner,
    count: Option<u64>,
    of: &pario_layout::Datatype,
) -> Result<pario_layout::Datatype, DecodeError> {
    match (combiner, count) {
        (Combiner::Contiguous, Some(count)) => Ok(host.decoded().contiguous(count, of)?),
        (Combiner::Contiguous, None) => Err(DecodeError::Malformed(Some(combiner))),
        _ => Ok(of.clone()),
    }
}

/// Decodes the inner datatypes of a constructor and frees their handles, whatever happens.
fn decode_parts(
    host: &Host,
    handles: &[Datatype],
    depth: u16,
) -> Result<Vec<pario_layout::Datatype>, DecodeError> {
    let decode = |&handle: &Datatype| match depth.checked_sub(1) {
        Some(depth) => decode_at(host, handle, depth),
        None => Err(DecodeError::TooDeep),
    };
    let parts = handles.iter().map(decode).collect();
    for &handle in handles {
        release(host, handle)?;
    }
    parts
}

/// Frees a handle that `MPI_Type_get_contents` returned, unless it is the host's own.
fn release(host: &Host, handle: Datatype) -> Result<(), DecodeError> {
    if host.decoded().predefined(handle).is_some() {
        return Ok(());
    }
    let combiner = host.type_envelope(handle)?.combiner;
    if combiner.is_some_and(|combiner| !combiner.is_predefined()) {
        host.type_free(handle)?;
    }
    Ok(())
}

/// The same datatype with the bounds that the host reports: the alignment of structures and the
/// markers `MPI_LB` and `MPI_UB` depend on the host.
fn with_bounds_of(
    host: &Host,
    datatype: Datatype,
    made: pario_layout::Datatype,
) -> Result<pario_layout::Datatype, DecodeError> {
    let (lower_bound, extent) = host.type_extent(datatype)?;
    if (made.lower_bound(), made.extent()) == (lower_bound, extent) {
        return Ok(made);
    }
    Ok(pario_layout::Datatype::resized(&made, lower_bound, extent)?)
}
