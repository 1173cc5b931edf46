//! The wire form: rank 0's hints in one message.
//!
//! ```text
//! magic u32 | entries u16 | entry...
//! entry: name, value (each: length u16, UTF-8) | source u8 [reason, if adjusted]
//! ```
//! All numbers are little-endian. Hints that are not set have no entry, since all
//! ranks know the defaults. Values
//! are sent as text and parsed like a user's, so no message can set a hint
//! to a value that its definition does not allow.

use crate::source::Source;
use crate::table::Hints;
use std::fmt;

/// The magic number includes the version of the wire form.
const MAGIC: u32 = u32::from_le_bytes(*b"PHt1");
/// The length of a text takes two bytes.
const TEXT_BYTES_MAX: usize = u16::MAX as usize;

impl Hints {
    /// The hints as bytes.
    pub fn to_wire(&self) -> Vec<u8> {
        let set: Vec<_> = Hints::DEFINITIONS
            .iter()
            .zip(&self.sources)
            .filter(|(_, source)| **source != Source::Default)
            .filter_map(|(definition, source)| {
                Some((definition.name, definition.value(self)?, source))
            })
            .filter(|(_, value, _)| value.len() <= TEXT_BYTES_MAX)
            .collect();
        let mut wire = MAGIC.to_le_bytes().to_vec();
        let entries = u16::try_from(set.len()).expect("there are fewer than 2^16 hints");
        wire.extend(entries.to_le_bytes());
        for (name, value, source) in set {
            put_text(&mut wire, name);
            put_text(&mut wire, &value);
            put_source(&mut wire, source);
        }
        wire
    }

    /// The hints from untrusted bytes.
    pub fn from_wire(wire: &[u8]) -> Result<Hints, WireError> {
        let mut reader = Reader { rest: wire };
        if reader.array().map(u32::from_le_bytes)? != MAGIC {
            return Err(WireError::NotHints);
        }
        let mut hints = Hints::default();
        for _ in 0..reader.array().map(u16::from_le_bytes)? {
            let name = reader.text()?;
            let index =
                Hints::position(name).ok_or_else(|| WireError::UnknownHint(name.to_owned()))?;
            let value = reader.text()?;
            (Hints::DEFINITIONS[index].set)(&mut hints, value).ok_or_else(|| {
                WireError::BadValue {
                    hint: name.to_owned(),
                    value: value.to_owned(),
                }
            })?;
            hints.sources[index] = reader.source()?;
        }
        match reader.rest.len() {
            0 => Ok(hints),
            trailing => Err(WireError::Trailing(trailing)),
        }
    }
}

fn put_text(wire: &mut Vec<u8>, text: &str) {
    let len = u16::try_from(text.len()).expect("texts on the wire are bounded by the caller");
    wire.extend(len.to_le_bytes());
    wire.extend(text.as_bytes());
}

fn put_source(wire: &mut Vec<u8>, source: &Source) {
    let code = match source {
        Source::Default => 0,
        Source::HintsFile => 1,
        Source::Call => 2,
        Source::Environment => 3,
        Source::Adjusted(_) => 4,
        Source::Measured => 5,
    };
    wire.push(code);
    if let Source::Adjusted(reason) = source {
        put_text(wire, bounded(reason));
    }
}

/// As much of `text` as an entry can hold.
fn bounded(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn text(&mut self) -> Result<&'a str, WireError> {
        let len = u16::from_le_bytes(self.array()?);
        std::str::from_utf8(self.bytes(usize::from(len))?).map_err(|_| WireError::NotText)
    }

    fn source(&mut self) -> Result<Source, WireError> {
        let [code] = self.array()?;
        Ok(match code {
            // Defaults are not sent, so 0 is no source here.
            1 => Source::HintsFile,
            2 => Source::Call,
            3 => Source::Environment,
            4 => Source::Adjusted(self.text()?.to_owned().into()),
            5 => Source::Measured,
            _ => return Err(WireError::BadSource(code)),
        })
    }
}

/// Why bytes are not hints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes do not begin like hints of this version.
    NotHints,
    /// They end too early.
    Truncated,
    /// That many bytes follow the hints.
    Trailing(usize),
    /// A text is not UTF-8.
    NotText,
    /// A hint that this version does not know.
    UnknownHint(String),
    /// A value that the hint does not allow.
    BadValue {
        /// The hint.
        hint: String,
        /// The value.
        value: String,
    },
    /// A source that this version does not know.
    BadSource(u8),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::NotHints => write!(f, "not a hints message of this version"),
            WireError::Truncated => write!(f, "the hints message ends too early"),
            WireError::Trailing(len) => write!(f, "{len} bytes follow the hints message"),
            WireError::NotText => write!(f, "the hints message contains text that is not UTF-8"),
            WireError::UnknownHint(name) => {
                write!(f, "the hints message contains unknown hint `{name}`")
            }
            WireError::BadValue { hint, value } => {
                write!(
                    f,
                    "the hints message sets `{hint}` to `{value}`, which is not allowed"
                )
            }
            WireError::BadSource(code) => {
                write!(f, "the hints message contains unknown source {code}")
            }
        }
    }
}

impl std::error::Error for WireError {}
