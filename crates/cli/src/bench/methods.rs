//! The methods that are compared: one line each.

use super::memory::Frame;

/// Which calls move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// `write_at`, `read_at`: each rank for itself.
    Independent,
    /// `iwrite_at`, `iread_at`: several in flight on each rank.
    Nonblocking,
    /// `write_at_all`, `read_at_all`: all ranks together.
    Collective,
}

/// Which driver keeps the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// Files of the operating system, through POSIX calls.
    Posix,
    /// The same files, through io_uring.
    Uring,
    /// Files in the memory of the process.
    Mem,
}

impl Store {
    /// Its name: in the table, and before the colon of a file's name.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Store::Posix => "posix",
            Store::Uring => "uring",
            Store::Mem => "mem",
        }
    }
}

/// A way to write and read the array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Which driver keeps the file.
    pub(crate) store: Store,
    /// How the block lies in memory.
    pub(crate) frame: Frame,
    /// Which calls move the data.
    pub(crate) call: Call,
    /// Hints given at open.
    pub(crate) hints: &'static [(&'static str, &'static str)],
}

type Hints = &'static [(&'static str, &'static str)];

const DIRECT: Hints = &[("pario_way_write", "direct"), ("pario_way_read", "direct")];
const LIST: Hints = &[("pario_way_write", "list"), ("pario_way_read", "list")];
/// Ranks share the file, so read-modify-write needs every write to lock its range.
const SIEVE: Hints = &[
    ("pario_way_write", "sieve"),
    ("pario_way_read", "sieve"),
    ("pario_rmw", "locked"),
];
const AUTOMATIC: Hints = &[];

/// All methods, in the order of the table.
pub(crate) const METHODS: &[Method] = &[
    independent("direct", Store::Posix, Frame::None, DIRECT),
    independent("list", Store::Posix, Frame::None, LIST),
    independent("sieve", Store::Posix, Frame::None, SIEVE),
    independent("automatic", Store::Posix, Frame::None, AUTOMATIC),
    independent("direct", Store::Posix, Frame::Ghost, DIRECT),
    independent("list", Store::Posix, Frame::Ghost, LIST),
    independent("sieve", Store::Posix, Frame::Ghost, SIEVE),
    independent("automatic", Store::Posix, Frame::Ghost, AUTOMATIC),
    method(
        "nonblocking",
        Store::Posix,
        Frame::None,
        Call::Nonblocking,
        AUTOMATIC,
    ),
    method(
        "collective",
        Store::Posix,
        Frame::None,
        Call::Collective,
        AUTOMATIC,
    ),
    method(
        "collective",
        Store::Posix,
        Frame::Ghost,
        Call::Collective,
        AUTOMATIC,
    ),
    independent("list", Store::Uring, Frame::None, LIST),
    independent("automatic", Store::Uring, Frame::None, AUTOMATIC),
    independent("automatic", Store::Mem, Frame::None, AUTOMATIC),
];

const fn independent(name: &'static str, store: Store, frame: Frame, hints: Hints) -> Method {
    method(name, store, frame, Call::Independent, hints)
}

const fn method(
    name: &'static str,
    store: Store,
    frame: Frame,
    call: Call,
    hints: Hints,
) -> Method {
    Method {
        name,
        store,
        frame,
        call,
        hints,
    }
}

impl Method {
    /// Name, driver and memory in one line.
    pub(crate) fn label(&self) -> String {
        format!(
            "{}, {}, {}",
            self.name,
            self.store.prefix(),
            self.frame.label()
        )
    }

    /// Whether any of the words occurs in its label; no words ask for all methods.
    pub(crate) fn is_wanted(&self, words: &[String]) -> bool {
        words.is_empty()
            || words
                .iter()
                .any(|word| self.label().contains(word.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_methods() {
        let chosen = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            METHODS
                .iter()
                .filter(|method| method.is_wanted(&words))
                .count()
        };
        assert_eq!(chosen(&[]), METHODS.len());
        assert_eq!(chosen(&["nothing of the kind"]), 0);
        assert_eq!(chosen(&["mem"]), 1);
        assert_eq!(chosen(&["mem", "uring"]), 3);
    }

    #[test]
    fn labels_are_distinct() {
        let mut labels: Vec<_> = METHODS.iter().map(Method::label).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), METHODS.len());
    }

    #[test]
    fn every_hint_is_one_that_pario_knows() {
        for (name, value) in METHODS.iter().flat_map(|method| method.hints) {
            let mut info = pario_hints::Info::new();
            info.set(name, value).unwrap();
            let resolved = pario_hints::Hints::resolve(&info, &pario_hints::Sources::none());
            assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
            assert!(
                pario_hints::Hints::DEFINITIONS
                    .iter()
                    .any(|definition| definition.name == *name),
                "{name} is no hint"
            );
        }
    }
}
