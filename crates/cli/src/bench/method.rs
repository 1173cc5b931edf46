//! Methods: which calls move the data, through which driver, with which hints.
//!
//! A method is written as words joined by `+`: an algorithm, a partition, an exchange, a way of
//! independent access, a kind of call, a driver. `two-phase+static-cyclic+messages` forces three
//! choices and leaves the others to pario; `automatic` leaves all of them.

use pario_plan::Exchange;
use pario_plan::algorithm::ALGORITHMS;
use pario_plan::partition::PARTITIONS;

use crate::facts;

/// Which calls move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// `write_at_all`, `read_at_all`: all ranks together.
    Collective,
    /// `iwrite_at_all`, `iread_at_all`.
    NonblockingCollective,
    /// `write_at_all_begin`, `read_at_all_begin` and their ends.
    Split,
    /// `write_at`, `read_at`: each rank for itself.
    Independent,
    /// `iwrite_at`, `iread_at`.
    Nonblocking,
    /// No calls of pario: each rank moves as many bytes in a row with plain system calls.
    Raw,
}

/// What a word of a method means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Nothing is forced.
    Automatic,
    /// A kind of calls.
    Calls(Calls),
    /// Independent calls that reach the file in this way.
    Way(&'static str),
    /// A driver.
    Driver(&'static str),
    /// An algorithm of collective calls.
    Algorithm(&'static str),
    /// A partition of the file.
    Partition(&'static str),
    /// An exchange between ranks.
    Exchange(Exchange),
    /// Writes may read, change and write back.
    Rmw,
}

/// The driver of methods that name none.
const POSIX: &str = "posix";

/// The words that are not names of algorithms, partitions or exchanges.
const WORDS: &[(&str, Word)] = &[
    ("automatic", Word::Automatic),
    ("collective", Word::Calls(Calls::Collective)),
    ("icollective", Word::Calls(Calls::NonblockingCollective)),
    ("split", Word::Calls(Calls::Split)),
    ("independent", Word::Calls(Calls::Independent)),
    ("nonblocking", Word::Calls(Calls::Nonblocking)),
    ("direct", Word::Way("direct")),
    ("list", Word::Way("list")),
    ("sieve", Word::Way("sieve")),
    ("rmw", Word::Rmw),
    ("uring", Word::Driver("uring")),
    ("mapped", Word::Driver("mapped")),
    ("mem", Word::Driver("mem")),
];

/// Methods that are compared when none is asked for, besides every algorithm.
const USUAL: &[&str] = &[
    "automatic",
    "automatic+rmw",
    "icollective",
    "independent",
    "nonblocking",
    "direct",
    "list",
    "sieve",
    "list+uring",
    "automatic+mem",
];

/// A way to write and read.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    /// Its name in the table.
    pub(crate) name: String,
    /// Which calls move the data.
    pub(crate) calls: Calls,
    /// Which driver keeps the file.
    pub(crate) driver: &'static str,
    /// Hints given at open.
    pub(crate) hints: Vec<(String, String)>,
    /// The algorithm that is forced.
    pub(crate) algorithm: Option<&'static str>,
    /// The partition that is forced.
    pub(crate) partition: Option<&'static str>,
    /// The exchange that is forced.
    pub(crate) exchange: Option<Exchange>,
}

impl Method {
    /// The yardstick.
    pub(crate) fn raw() -> Method {
        Method {
            calls: Calls::Raw,
            ..Method::named("raw POSIX")
        }
    }

    /// Collective calls that leave all choices to pario.
    pub(crate) fn automatic() -> Method {
        Method::named("automatic")
    }

    fn named(name: &str) -> Method {
        Method {
            name: name.to_owned(),
            calls: Calls::Collective,
            driver: POSIX,
            hints: Vec::new(),
            algorithm: None,
            partition: None,
            exchange: None,
        }
    }

    /// Reads words joined by `+`.
    pub(crate) fn parse(text: &str) -> Result<Method, String> {
        let mut method = Method::named(text);
        for name in text.split('+') {
            let word = lookup(name).ok_or_else(|| unknown(name))?;
            method.add(word);
        }
        Ok(method)
    }

    /// Gives a hint as well.
    pub(crate) fn hint(&mut self, name: &str, value: &str) {
        self.hints.push((name.to_owned(), value.to_owned()));
    }

    fn add(&mut self, word: Word) {
        match word {
            Word::Automatic => {}
            Word::Calls(calls) => self.calls = calls,
            Word::Way(way) => {
                self.calls = Calls::Independent;
                self.hint("pario_way_write", way);
                self.hint("pario_way_read", way);
                if way == "sieve" {
                    // Ranks share the file, so read-modify-write needs every write to lock.
                    self.add(Word::Rmw);
                }
            }
            Word::Driver(driver) => self.driver = driver,
            Word::Algorithm(name) => {
                self.algorithm = Some(name);
                self.hint("pario_algorithm", name);
            }
            Word::Partition(name) => {
                self.partition = Some(name);
                self.hint("pario_partition", name);
            }
            Word::Exchange(exchange) => {
                self.exchange = Some(exchange);
                self.hint("pario_exchange", exchange.name());
            }
            Word::Rmw => self.hint("pario_rmw", "locked"),
        }
    }

    /// Whether some choice of collective calls is forced.
    pub(crate) fn is_forced(&self) -> bool {
        self.algorithm.is_some() || self.partition.is_some() || self.exchange.is_some()
    }

    /// Whether pario could have chosen it by itself: it neither rests on a promise of the user nor
    /// on another driver.
    pub(crate) fn is_choosable(&self) -> bool {
        let promised = self.hints.iter().any(|(name, _)| name == "pario_rmw");
        self.calls != Calls::Raw && self.driver == POSIX && !promised
    }

    /// The hint of this method that pario does not know, if any.
    pub(crate) fn unknown_hint(&self) -> Option<&str> {
        let mut names = self.hints.iter().map(|(name, _)| name.as_str());
        names.find(|name| !facts::is_hint(name))
    }
}

/// The methods that are compared when none is asked for.
pub(crate) fn usual() -> Vec<Method> {
    let algorithms = ALGORITHMS.iter().map(|it| it.name());
    USUAL[..1]
        .iter()
        .copied()
        .chain(algorithms)
        .chain(USUAL[1..].iter().copied())
        .map(|name| Method::parse(name).expect("the usual methods are made of known words"))
        .filter(|method| method.unknown_hint().is_none())
        .collect()
}

fn lookup(name: &str) -> Option<Word> {
    let listed = WORDS.iter().find(|(word, _)| *word == name);
    let algorithm = || ALGORITHMS.iter().find(|it| it.name() == name);
    let partition = || PARTITIONS.iter().find(|it| it.name() == name);
    let exchange = || Exchange::by_name(name);
    listed
        .map(|(_, word)| *word)
        .or_else(|| algorithm().map(|it| Word::Algorithm(it.name())))
        .or_else(|| partition().map(|it| Word::Partition(it.name())))
        .or_else(|| exchange().map(Word::Exchange))
}

fn unknown(name: &str) -> String {
    let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
    let algorithms: Vec<_> = ALGORITHMS.iter().map(|it| it.name()).collect();
    let partitions: Vec<_> = PARTITIONS.iter().map(|it| it.name()).collect();
    let exchanges = Exchange::ALL.map(Exchange::name);
    format!(
        "`{name}` is no method; join with + any of\n  calls and ways: {}\n  algorithms: {}\n  \
         partitions: {}\n  exchanges: {}",
        words.join(", "),
        algorithms.join(", "),
        partitions.join(", "),
        exchanges.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_add_up() {
        let method = Method::parse("two-phase+even+messages").unwrap();
        assert_eq!(method.calls, Calls::Collective);
        assert_eq!(method.algorithm, Some("two-phase"));
        let names: Vec<_> = method.hints.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["pario_algorithm", "pario_partition", "pario_exchange"]
        );
        let method = Method::parse("sieve+uring").unwrap();
        assert_eq!((method.calls, method.driver), (Calls::Independent, "uring"));
        assert_eq!(method.hints.len(), 3);
    }

    #[test]
    fn an_unknown_word_gets_the_list() {
        let reason = Method::parse("two-phase+telepathy").unwrap_err();
        assert!(reason.contains("`telepathy` is no method"), "{reason}");
        assert!(reason.contains("private-sieve") && reason.contains("group-cyclic"));
    }

    #[test]
    fn usual_methods_are_distinct_and_their_values_are_allowed() {
        let mut names: Vec<_> = usual().into_iter().map(|it| it.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), usual().len());
        for (name, value) in usual().iter().flat_map(|method| &method.hints) {
            let mut info = pario_hints::Info::new();
            info.set(name, value).unwrap();
            let resolved = pario_hints::Hints::resolve(&info, &pario_hints::Sources::none());
            assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
        }
    }
}
