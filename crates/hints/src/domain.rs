//! The allowed values of a hint: how they are parsed, formatted and described.

use crate::config_list::ConfigList;
use crate::style::AccessStyle;
use crate::words::{Word, name};
use std::marker::PhantomData;
use std::ops::RangeInclusive;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// A set of allowed values.
///
/// `parse(&format(v))` is `v` for every allowed `v`: the wire form relies on it.
pub(crate) trait Domain {
    /// The type of the values.
    type Value;
    /// The value that `text` names, if it is allowed.
    fn parse(&self, text: &str) -> Option<Self::Value>;
    /// `value` as text; `None` for a hint that is not set.
    fn format(&self, value: &Self::Value) -> Option<String>;
    /// What is allowed, as the end of a sentence.
    fn allowed(&self) -> String;
}

/// A number of bytes, with an optional suffix k, m or g (powers of 1024).
pub(crate) struct Bytes(pub(crate) RangeInclusive<u64>);

impl Domain for Bytes {
    type Value = u64;

    fn parse(&self, text: &str) -> Option<u64> {
        parse_bytes(text).filter(|bytes| self.0.contains(bytes))
    }

    fn format(&self, value: &u64) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        let (low, high) = (in_units(*self.0.start()), in_units(*self.0.end()));
        format!("bytes from {low} to {high}, with an optional suffix k, m or g")
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match lower[digits.len()..].trim_start() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        _ => return None,
    };
    parse_digits(digits)?.checked_mul(unit)
}

/// `str::parse` would also accept a sign.
fn parse_digits(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// `bytes` with the largest unit that divides it.
pub(crate) fn in_units(bytes: u64) -> String {
    [(GIB, " GiB"), (MIB, " MiB"), (KIB, " KiB")]
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .map_or_else(
            || bytes.to_string(),
            |(unit, name)| format!("{}{name}", bytes / unit),
        )
}

/// A plain number.
pub(crate) struct Number(pub(crate) RangeInclusive<u64>);

impl Domain for Number {
    type Value = u64;

    fn parse(&self, text: &str) -> Option<u64> {
        parse_digits(text).filter(|number| self.0.contains(number))
    }

    fn format(&self, value: &u64) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.0.start(), self.0.end())
    }
}

/// `true` or `false`, or ROMIO's `enable` and `disable`.
pub(crate) struct Flag;

impl Domain for Flag {
    type Value = bool;

    fn parse(&self, text: &str) -> Option<bool> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "enable" => Some(true),
            "false" | "disable" => Some(false),
            _ => None,
        }
    }

    fn format(&self, value: &bool) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        "true, false (or enable, disable)".to_owned()
    }
}

/// ROMIO's `enable` or `disable`; `automatic` means `disable` in pario.
pub(crate) struct Switch;

impl Domain for Switch {
    type Value = bool;

    fn parse(&self, text: &str) -> Option<bool> {
        match text.to_ascii_lowercase().as_str() {
            "automatic" => Some(false),
            _ => Flag.parse(text),
        }
    }

    fn format(&self, value: &bool) -> Option<String> {
        let word = if *value { "enable" } else { "disable" };
        Some(word.to_owned())
    }

    fn allowed(&self) -> String {
        "enable, disable (or true, false)".to_owned()
    }
}

/// A number of servers, or -1 for all of them.
pub(crate) struct Servers;

impl Servers {
    const MAX: i64 = MIB as i64;
}

impl Domain for Servers {
    type Value = i64;

    fn parse(&self, text: &str) -> Option<i64> {
        let number = text.parse().ok()?;
        (-1..=Servers::MAX).contains(&number).then_some(number)
    }

    fn format(&self, value: &i64) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        format!("a number from 0 to {}, or -1 for all servers", Servers::MAX)
    }
}

/// The number of a server, or -1 for any.
pub(crate) struct FirstServer;

impl FirstServer {
    const MAX: i64 = u16::MAX as i64 - 1;
}

impl Domain for FirstServer {
    type Value = i64;

    fn parse(&self, text: &str) -> Option<i64> {
        let number = text.parse().ok()?;
        (-1..=FirstServer::MAX).contains(&number).then_some(number)
    }

    fn format(&self, value: &i64) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        format!(
            "a number from 0 to {}, or -1 for any server",
            FirstServer::MAX
        )
    }
}

/// One of the words of `W`.
pub(crate) struct Words<W>(PhantomData<W>);

impl<W: Word> Words<W> {
    pub(crate) const ANY: Words<W> = Words(PhantomData);
}

impl<W: Word> Domain for Words<W> {
    type Value = W;

    fn parse(&self, text: &str) -> Option<W> {
        let named = |word: &str| word.eq_ignore_ascii_case(text);
        W::WORDS
            .iter()
            .find(|(_, word, synonyms)| {
                named(word) || synonyms.iter().any(|synonym| named(synonym))
            })
            .map(|(value, _, _)| *value)
    }

    fn format(&self, value: &W) -> Option<String> {
        Some(name(*value).to_owned())
    }

    fn allowed(&self) -> String {
        let words: Vec<&str> = W::WORDS.iter().map(|(_, word, _)| *word).collect();
        words.join(", ")
    }
}

/// A choice that is left to pario unless the user makes it.
pub(crate) struct Automatic<D>(pub(crate) D);

impl<D: Domain> Domain for Automatic<D> {
    type Value = Option<D::Value>;

    fn parse(&self, text: &str) -> Option<Option<D::Value>> {
        let automatic = ["automatic", "auto"];
        match automatic.iter().any(|word| word.eq_ignore_ascii_case(text)) {
            true => Some(None),
            false => self.0.parse(text).map(Some),
        }
    }

    fn format(&self, value: &Option<D::Value>) -> Option<String> {
        match value {
            None => Some("automatic".to_owned()),
            Some(value) => self.0.format(value),
        }
    }

    fn allowed(&self) -> String {
        format!("automatic, {}", self.0.allowed())
    }
}

/// Permission bits as an octal number.
pub(crate) struct Permissions;

impl Permissions {
    const ALL: u32 = 0o777;
}

impl Domain for Permissions {
    type Value = u32;

    fn parse(&self, text: &str) -> Option<u32> {
        parse_digits(text)?;
        u32::from_str_radix(text, 8)
            .ok()
            .filter(|bits| *bits <= Permissions::ALL)
    }

    fn format(&self, value: &u32) -> Option<String> {
        Some(format!("{value:o}"))
    }

    fn allowed(&self) -> String {
        format!("an octal number from 0 to {:o}", Permissions::ALL)
    }
}

/// A short name: letters, digits, `_`, `-` and `+`.
///
/// Everything from a colon on is dropped: ROMIO reports `UFS: Generic ROMIO driver`
/// and names drivers by prefixes like `ufs:`.
pub(crate) struct Name;

impl Name {
    const MAX_LEN: usize = 32;
}

impl Domain for Name {
    type Value = String;

    fn parse(&self, text: &str) -> Option<String> {
        let text = text.split(':').next().unwrap_or("").trim_end();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+".contains(&byte);
        let well_formed = (1..=Name::MAX_LEN).contains(&text.len()) && text.bytes().all(plain);
        well_formed.then(|| text.to_ascii_lowercase())
    }

    fn format(&self, value: &String) -> Option<String> {
        Some(value.clone())
    }

    fn allowed(&self) -> String {
        format!(
            "a name of 1 to {} letters, digits, `_`, `-` or `+`",
            Name::MAX_LEN
        )
    }
}

/// Any text.
pub(crate) struct Text;

impl Domain for Text {
    type Value = String;

    fn parse(&self, text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn format(&self, value: &String) -> Option<String> {
        Some(value.clone())
    }

    fn allowed(&self) -> String {
        "text".to_owned()
    }
}

/// MPI's list of access styles.
pub(crate) struct Styles;

impl Domain for Styles {
    type Value = AccessStyle;

    fn parse(&self, text: &str) -> Option<AccessStyle> {
        AccessStyle::parse(text)
    }

    fn format(&self, value: &AccessStyle) -> Option<String> {
        (!value.is_empty()).then(|| value.words().collect::<Vec<_>>().join(","))
    }

    fn allowed(&self) -> String {
        AccessStyle::allowed()
    }
}

/// ROMIO's list of nodes and how many aggregators each may have.
pub(crate) struct Nodes;

impl Domain for Nodes {
    type Value = ConfigList;

    fn parse(&self, text: &str) -> Option<ConfigList> {
        text.parse().ok()
    }

    fn format(&self, value: &ConfigList) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        ConfigList::ALLOWED.to_owned()
    }
}

/// Bytes and servers, separated by a comma.
pub(crate) struct Striping;

impl Striping {
    const UNIT: Bytes = Bytes(1..=GIB);
    const COUNT: Number = Number(1..=MIB);
}

impl Domain for Striping {
    type Value = pario_types::Striping;

    fn parse(&self, text: &str) -> Option<pario_types::Striping> {
        let (unit, count) = text.split_once(',')?;
        Some(pario_types::Striping {
            unit: Striping::UNIT.parse(unit.trim())?,
            count: Striping::COUNT.parse(count.trim())?,
        })
    }

    fn format(&self, value: &pario_types::Striping) -> Option<String> {
        Some(format!("{},{}", value.unit, value.count))
    }

    fn allowed(&self) -> String {
        format!(
            "unit,count: {}; servers, {}",
            Striping::UNIT.allowed(),
            Striping::COUNT.allowed()
        )
    }
}

/// A hint that may be unset.
pub(crate) struct Maybe<D>(pub(crate) D);

impl<D: Domain> Domain for Maybe<D> {
    type Value = Option<D::Value>;

    fn parse(&self, text: &str) -> Option<Self::Value> {
        self.0.parse(text).map(Some)
    }

    fn format(&self, value: &Self::Value) -> Option<String> {
        value.as_ref().and_then(|value| self.0.format(value))
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn striping_is_a_unit_and_a_count() {
        let parsed = Striping.parse("64k, 4").unwrap();
        assert_eq!((parsed.unit, parsed.count), (65536, 4));
        assert_eq!(Striping.format(&parsed).as_deref(), Some("65536,4"));
        for text in ["", "64k", "64k,", ",4", "0,4", "64k,0", "64k,4,1", "4,-1"] {
            assert_eq!(Striping.parse(text), None, "{text:?}");
        }
    }
}
