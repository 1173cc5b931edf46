//! The parameters of a workload: `hpio:region=64,spacing=128`.

use std::collections::BTreeMap;

/// The largest number that a parameter may be.
const NUMBER_MAX: u64 = 1 << 40;

/// The parameters that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Parses `name=value,name=value`; every name must be one of the `known` ones, which come with
    /// their meanings.
    pub(crate) fn parse(text: &str, known: &[(&str, &str)]) -> Result<Self, String> {
        let mut parameters = Parameters::default();
        for assignment in text.split(',').filter(|text| !text.is_empty()) {
            let (name, value) = assignment.split_once('=').ok_or_else(|| {
                format!("`{assignment}` is not a parameter: write name=value, as in region=64")
            })?;
            parameters.set(name, value, known)?;
        }
        Ok(parameters)
    }

    /// Sets one more.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &str,
        known: &[(&str, &str)],
    ) -> Result<(), String> {
        if !known.iter().any(|(known, _)| *known == name) {
            let known: Vec<_> = known.iter().map(|(known, _)| *known).collect();
            return Err(format!(
                "unknown parameter `{name}`; parameters are {}",
                known.join(", ")
            ));
        }
        self.0.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// A number of at least one.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64, String> {
        match self.number_or_zero(name, default)? {
            0 => Err(format!("{name} must be at least 1")),
            number => Ok(number),
        }
    }

    pub(crate) fn number_or_zero(&self, name: &str, default: u64) -> Result<u64, String> {
        match self.0.get(name) {
            None => Ok(default),
            Some(text) => parse_size(text).map_err(|reason| format!("{name}: {reason}")),
        }
    }

    /// One of some words, the first of which is the default.
    pub(crate) fn word(&self, name: &str, words: &[&'static str]) -> Result<&'static str, String> {
        let Some(text) = self.0.get(name) else {
            return Ok(words[0]);
        };
        let word = words.iter().find(|word| *word == text);
        word.copied()
            .ok_or_else(|| format!("{name} must be {}, not `{text}`", words.join(" or ")))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// A number with an optional K, M or G (powers of 1024).
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a number: write it as in 64, 64K or 1M"))?;
    number
        .checked_mul(1 << shift)
        .filter(|number| *number <= NUMBER_MAX)
        .ok_or_else(|| format!("{text} exceeds {NUMBER_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[(&str, &str)] = &[("region", "bytes"), ("type", "which datatype")];

    #[test]
    fn choices_are_read() {
        let parameters = Parameters::parse("region=4K,type=long", KNOWN).unwrap();
        assert_eq!(parameters.number("region", 1), Ok(4096));
        assert_eq!(parameters.word("type", &["short", "long"]), Ok("long"));
        let none = Parameters::parse("", KNOWN).unwrap();
        assert_eq!(none.number("region", 7), Ok(7));
        assert_eq!(none.word("type", &["short", "long"]), Ok("short"));
    }

    #[test]
    fn wrong_choices_are_named() {
        let wrong = |text: &str| Parameters::parse(text, KNOWN).unwrap_err();
        assert!(wrong("region").contains("name=value"));
        assert!(wrong("colour=red").contains("parameters are region, type"));
        let zero = Parameters::parse("region=0,type=odd", KNOWN).unwrap();
        assert!(zero.number("region", 1).is_err());
        assert!(zero.word("type", &["short", "long"]).is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("3"), Ok(3));
        assert_eq!(parse_size("2m"), Ok(2 << 20));
        for wrong in ["", "K", "-1", "1.5", "99999999999G", "1000000G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
