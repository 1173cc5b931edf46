//! The size of contiguous types, without their layout.
//!
//! Programs make such types for a single call. Of data in memory only the bytes matter, so numbers
//! suffice: a layout would have to be made, compared and freed.

use crate::datatype::DecodeError;
use crate::handles::Datatype;
use crate::host::combiner::Combiner;
use crate::host::{Envelope, Host};

/// The bytes of a type that repeats or duplicates, at any depth up to `depth`, a predefined type
/// without gaps. `None` if it is not known to be one, or has no data: hosts have their own rules
/// for the bounds of such types.
pub(super) fn bytes(
    host: &Host,
    datatype: Datatype,
    envelope: &Envelope,
    depth: u16,
) -> Result<Option<u64>, DecodeError> {
    let (Some(Combiner::Dup | Combiner::Contiguous), Some(depth)) =
        (envelope.combiner, depth.checked_sub(1))
    else {
        return Ok(None);
    };
    let Some(contents) = host.type_simple_contents(datatype, envelope)? else {
        return Ok(None);
    };
    let of = match host.decoded().predefined(contents.datatype) {
        Some(known) => known.layout().is_dense().then(|| known.size()),
        None => bytes_of_inner(host, contents.datatype, depth)?,
    };
    let count = match envelope.combiner {
        Some(Combiner::Dup) => Some(1),
        _ => contents.count,
    };
    let bytes = of.zip(count).and_then(|(of, count)| of.checked_mul(count));
    Ok(bytes.filter(|bytes| (1..=i64::MAX as u64).contains(bytes)))
}

/// As [`bytes`], for the inner type of another, whose handle is freed.
fn bytes_of_inner(host: &Host, datatype: Datatype, depth: u16) -> Result<Option<u64>, DecodeError> {
    let envelope = host.type_envelope(datatype)?;
    let found = bytes(host, datatype, &envelope, depth);
    if envelope.combiner.is_some_and(|it| !it.is_predefined()) {
        host.type_free(datatype)?;
    }
    found
}
