//! MPI's info object: an ordered list of keys and values.

use std::fmt;

/// The longest key in bytes (`MPI_MAX_INFO_KEY` without C's final NUL).
pub const MAX_KEY_LEN: usize = 255;
/// The longest value in bytes (`MPI_MAX_INFO_VAL` without C's final NUL).
pub const MAX_VALUE_LEN: usize = 1024;

/// An ordered list of unique keys with their values.
///
/// Keys keep the order in which they were first set, which is the order of
/// `MPI_Info_get_nthkey`. Leading and trailing spaces of keys and values are
/// stripped, as the standard requires for Fortran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    entries: Vec<(String, String)>,
}

impl Info {
    /// An empty list.
    pub fn new() -> Info {
        Info::default()
    }

    /// Sets `key`; a key that exists keeps its position.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), InfoError> {
        let key = check_key(key)?;
        let value = value.trim();
        if value.len() > MAX_VALUE_LEN {
            return Err(InfoError::ValueTooLong {
                key: key.to_owned(),
                len: value.len(),
            });
        }
        if value.contains('\0') {
            return Err(InfoError::ValueWithNul {
                key: key.to_owned(),
            });
        }
        match self
            .entries
            .iter_mut()
            .find(|(existing, _)| existing == key)
        {
            Some((_, old)) => value.clone_into(old),
            None => self.entries.push((key.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let key = key.trim();
        self.iter()
            .find_map(|(existing, value)| (existing == key).then_some(value))
    }

    /// Removes `key` and returns its value; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Result<String, InfoError> {
        let key = check_key(key)?;
        match self
            .entries
            .iter()
            .position(|(existing, _)| existing == key)
        {
            Some(index) => Ok(self.entries.remove(index).1),
            None => Err(InfoError::NoSuchKey {
                key: key.to_owned(),
            }),
        }
    }

    /// The key at `index`, counted from 0.
    pub fn key(&self, index: usize) -> Option<&str> {
        self.entries.get(index).map(|(key, _)| key.as_str())
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// A list of the given pairs; a later pair replaces an earlier one with the
    /// same key.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Info, InfoError> {
        let mut info = Info::new();
        for (key, value) in pairs {
            info.set(key, value)?;
        }
        Ok(info)
    }
}

fn check_key(key: &str) -> Result<&str, InfoError> {
    let key = key.trim();
    if key.is_empty() {
        return Err(InfoError::EmptyKey);
    }
    if key.len() > MAX_KEY_LEN {
        return Err(InfoError::KeyTooLong { len: key.len() });
    }
    if key.contains('\0') {
        return Err(InfoError::KeyWithNul);
    }
    Ok(key)
}

/// Why an [`Info`] rejected a key or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InfoError {
    /// The key is empty or consists of spaces.
    EmptyKey,
    /// The key is longer than [`MAX_KEY_LEN`].
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The key contains a NUL, which C cannot express.
    KeyWithNul,
    /// The value is longer than [`MAX_VALUE_LEN`].
    ValueTooLong {
        /// Its key.
        key: String,
        /// Its length in bytes.
        len: usize,
    },
    /// The value contains a NUL, which C cannot express.
    ValueWithNul {
        /// Its key.
        key: String,
    },
    /// The list has no such key.
    NoSuchKey {
        /// The key requested.
        key: String,
    },
}

impl fmt::Display for InfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InfoError::EmptyKey => write!(f, "an info key must not be empty"),
            InfoError::KeyTooLong { len } => {
                write!(
                    f,
                    "an info key of {len} bytes is too long: at most {MAX_KEY_LEN} are allowed"
                )
            }
            InfoError::KeyWithNul => write!(f, "an info key must not contain NUL"),
            InfoError::ValueTooLong { key, len } => write!(
                f,
                "the value of info key `{key}` has {len} bytes: at most {MAX_VALUE_LEN} are allowed"
            ),
            InfoError::ValueWithNul { key } => {
                write!(f, "the value of info key `{key}` must not contain NUL")
            }
            InfoError::NoSuchKey { key } => write!(f, "there is no info key `{key}`"),
        }
    }
}

impl std::error::Error for InfoError {}
