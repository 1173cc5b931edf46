//! Methods: which calls move the data, through which driver, with which hints.
//!
//! A method is written as words joined by `+`: an algorithm, a partition, an exchange, a method of
//! independent access, a kind of call, a driver. `two-phase+static-cyclic+messages` forces three
//! choices and leaves the others to pario; `automatic` leaves all of them.

use pario_hints::Info;
use pario_plan::Exchange;
use pario_plan::algorithm::{self, ALGORITHMS};
use pario_plan::partition::{self, PARTITIONS};

use crate::facts;

/// Which calls move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// `write_at_all`, `read_at_all`.
    Collective,
    /// `iwrite_at_all`, `iread_at_all`.
    NonblockingCollective,
    /// `write_at_all_begin`, `read_at_all_begin` and their ends.
    Split,
    /// `write_at`, `read_at`.
    Independent,
    /// `iwrite_at`, `iread_at`.
    Nonblocking,
    /// Not pario: each rank moves the same amount contiguously with plain system calls.
    Raw,
}

impl Calls {
    /// Whether every rank makes the call and returns when it is complete.
    pub(crate) fn is_blocking_collective(self) -> bool {
        self == Calls::Collective
    }

    fn is_collective(self) -> bool {
        matches!(
            self,
            Calls::Collective | Calls::NonblockingCollective | Calls::Split
        )
    }
}

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Forces nothing.
    Automatic,
    Calls(Calls),
    /// Independent calls with this access method.
    Access(&'static str),
    Driver(&'static str),
    Algorithm(&'static str),
    Partition(&'static str),
    Exchange(Exchange),
    /// Writes may read, modify and write back.
    Rmw,
}

/// The default driver, unless the directory selects one.
pub(super) const DEFAULT_DRIVER: &str = "posix";

/// The driver of files in memory, whatever the directory.
pub(super) const MEMORY: &str = "mem";

/// Words other than the names of algorithms, partitions and exchanges.
const WORDS: &[(&str, Word)] = &[
    ("automatic", Word::Automatic),
    ("collective", Word::Calls(Calls::Collective)),
    ("icollective", Word::Calls(Calls::NonblockingCollective)),
    ("split", Word::Calls(Calls::Split)),
    ("independent", Word::Calls(Calls::Independent)),
    ("nonblocking", Word::Calls(Calls::Nonblocking)),
    ("direct", Word::Access("direct")),
    ("list", Word::Access("list")),
    ("sieve", Word::Access("sieve")),
    ("rmw", Word::Rmw),
    ("uring", Word::Driver("uring")),
    ("mapped", Word::Driver("mapped")),
    (MEMORY, Word::Driver(MEMORY)),
];

/// Methods that are compared by default, in addition to every algorithm.
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

/// The choices that are forced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forced {
    pub(crate) algorithm: Option<&'static str>,
    pub(crate) partition: Option<&'static str>,
    pub(crate) exchange: Option<Exchange>,
    /// How independent writes and reads access the file.
    access: [Option<String>; 2],
    is_rmw: bool,
}

impl Forced {
    /// The choices that hints force.
    fn by(hints: &Info) -> Forced {
        let value = |name| hints.get(name).filter(|value| *value != "automatic");
        let access = ["pario_write_method", "pario_read_method"];
        Forced {
            algorithm: value("pario_algorithm")
                .and_then(algorithm::by_name)
                .map(|it| it.name()),
            partition: value("pario_partition")
                .and_then(partition::by_name)
                .map(|it| it.name()),
            exchange: value("pario_exchange").and_then(Exchange::by_name),
            access: access.map(|name| value(name).map(str::to_owned)),
            is_rmw: value("pario_rmw") == Some("locked"),
        }
    }

    /// Whether some choice of collective calls is forced.
    fn is_collective(&self) -> bool {
        self.algorithm.is_some() || self.partition.is_some() || self.exchange.is_some()
    }

    /// The forced choices that apply to some calls, as words.
    fn words(&self, calls: Calls) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if calls.is_collective() {
            let exchange = self.exchange.map(Exchange::name);
            let names = [self.algorithm, self.partition, exchange];
            words.extend(names.into_iter().flatten().map(str::to_owned));
        } else {
            match &self.access {
                [write, read] if write == read => words.extend(write.clone()),
                [write, read] => {
                    words.extend(
                        write
                            .iter()
                            .map(|method| format!("pario_write_method={method}")),
                    );
                    words.extend(
                        read.iter()
                            .map(|method| format!("pario_read_method={method}")),
                    );
                }
            }
        }
        // Sieved writes imply it.
        if self.is_rmw && !words.iter().any(|word| word == "sieve") {
            words.push("rmw".to_owned());
        }
        words
    }
}

/// How to write and read.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    /// Its name in tables: what actually runs.
    pub(crate) name: String,
    pub(crate) calls: Calls,
    pub(crate) driver: String,
    /// Hints passed at open.
    pub(crate) hints: Vec<(String, String)>,
    pub(crate) forced: Forced,
}

impl Method {
    /// The baseline.
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
            driver: DEFAULT_DRIVER.to_owned(),
            hints: Vec::new(),
            forced: Forced::default(),
        }
    }

    /// Reads words joined by `+`.
    pub(crate) fn parse(text: &str) -> Result<Method, String> {
        let mut method = Method::named(text);
        let (mut collective, mut independent) = (None, None);
        for name in text.split('+') {
            let word = lookup(name).ok_or_else(|| unknown(name))?;
            match word {
                Word::Calls(calls) if calls.is_collective() => collective = Some(name),
                Word::Algorithm(_) | Word::Partition(_) | Word::Exchange(_) => {
                    collective = Some(name);
                }
                Word::Calls(_) | Word::Access(_) => independent = Some(name),
                Word::Automatic | Word::Driver(_) | Word::Rmw => {}
            }
            method.add(word);
        }
        match (collective, independent) {
            (Some(collective), Some(independent)) => Err(format!(
                "method `{text}`: {collective} applies to collective calls and {independent} to \
                 independent ones; choose one of them"
            )),
            _ => Ok(method),
        }
    }

    fn hint(&mut self, name: &str, value: &str) {
        self.hints.push((name.to_owned(), value.to_owned()));
    }

    fn add(&mut self, word: Word) {
        match word {
            Word::Automatic => {}
            Word::Calls(calls) => self.calls = calls,
            Word::Access(method) => {
                // An access method does not exclude nonblocking calls.
                if self.calls.is_collective() {
                    self.calls = Calls::Independent;
                }
                self.forced.access = [Some(method.to_owned()), Some(method.to_owned())];
                self.hint("pario_write_method", method);
                self.hint("pario_read_method", method);
                if method == "sieve" {
                    // Ranks share the file, so read-modify-write requires every write to lock.
                    self.add(Word::Rmw);
                }
            }
            Word::Driver(driver) => self.driver = driver.to_owned(),
            Word::Algorithm(name) => {
                self.forced.algorithm = Some(name);
                self.hint("pario_algorithm", name);
            }
            Word::Partition(name) => {
                self.forced.partition = Some(name);
                self.hint("pario_partition", name);
            }
            Word::Exchange(exchange) => {
                self.forced.exchange = Some(exchange);
                self.hint("pario_exchange", exchange.name());
            }
            Word::Rmw => {
                self.forced.is_rmw = true;
                self.hint("pario_rmw", "locked");
            }
        }
    }

    /// Adds hints from the command line. They and those of the environment may override the
    /// words: the method is then named after what is in force.
    pub(crate) fn with_hints(mut self, hints: &[(String, String)]) -> Result<Method, String> {
        let asked = self.words();
        self.hints.extend_from_slice(hints);
        if let Some((name, _)) = self.hints.iter().find(|(name, _)| !facts::is_hint(name)) {
            return Err(facts::unknown_hint(name));
        }
        let (in_force, _) = facts::hints(&self.hints)?;
        let in_force = in_force.to_info();
        self.forced = Forced::by(&in_force);
        if let Some(driver) = in_force.get("pario_driver") {
            self.driver = driver.to_owned();
        }
        let words = self.words();
        if words != asked {
            self.name = words.join("+");
        }
        Ok(self)
    }

    /// Its words.
    fn words(&self) -> Vec<String> {
        let forced = self.forced.words(self.calls);
        let calls = WORDS
            .iter()
            .find(|(_, word)| *word == Word::Calls(self.calls));
        let calls = match (self.calls, &self.forced.access) {
            // What is forced implies these.
            (Calls::Collective, _) if self.forced.is_collective() => None,
            (Calls::Independent, [Some(write), Some(read)]) if write == read => None,
            (Calls::Collective, _) => Some("automatic"),
            _ => calls.map(|(name, _)| *name),
        };
        let driver = (self.driver != DEFAULT_DRIVER).then(|| self.driver.clone());
        let calls = calls.map(str::to_owned).into_iter();
        calls.chain(forced).chain(driver).collect()
    }

    /// Whether some choice of its collective calls is forced.
    pub(crate) fn forces_collective_calls(&self) -> bool {
        self.calls.is_collective() && self.forced.is_collective()
    }

    /// Whether pario could have chosen it by itself: it depends neither on a user's assurance nor
    /// on another driver.
    pub(crate) fn is_choosable(&self) -> bool {
        self.calls != Calls::Raw && self.driver == DEFAULT_DRIVER && !self.forced.is_rmw
    }
}

/// The methods that are compared by default.
pub(crate) fn usual() -> Vec<Method> {
    let algorithms = ALGORITHMS.iter().map(|it| it.name());
    USUAL[..1]
        .iter()
        .copied()
        .chain(algorithms)
        .chain(USUAL[1..].iter().copied())
        .map(|name| Method::parse(name).expect("the usual methods are made of known words"))
        .collect()
}

fn lookup(name: &str) -> Option<Word> {
    let listed = WORDS.iter().find(|(word, _)| *word == name);
    listed
        .map(|(_, word)| *word)
        .or_else(|| algorithm::by_name(name).map(|it| Word::Algorithm(it.name())))
        .or_else(|| partition::by_name(name).map(|it| Word::Partition(it.name())))
        .or_else(|| Exchange::by_name(name).map(Word::Exchange))
}

fn unknown(name: &str) -> String {
    let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
    let algorithms: Vec<_> = ALGORITHMS.iter().map(|it| it.name()).collect();
    let partitions: Vec<_> = PARTITIONS.iter().map(|it| it.name()).collect();
    let exchanges = Exchange::ALL.map(Exchange::name);
    format!(
        "unknown method `{name}`; methods are these words, joined by +\n  calls, access and \
         drivers: {}\n  algorithms: {}\n  partitions: {}\n  exchanges: {}",
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
        assert_eq!(method.forced.algorithm, Some("two-phase"));
        let names: Vec<_> = method.hints.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["pario_algorithm", "pario_partition", "pario_exchange"]
        );
        let method = Method::parse("sieve+uring").unwrap();
        assert_eq!(
            (method.calls, method.driver.as_str()),
            (Calls::Independent, "uring")
        );
        assert_eq!(method.hints.len(), 3);
    }

    #[test]
    fn an_unknown_word_gets_the_list() {
        let reason = Method::parse("two-phase+telepathy").unwrap_err();
        assert!(reason.contains("unknown method `telepathy`"), "{reason}");
        assert!(reason.contains("private-sieve") && reason.contains("group-cyclic"));
    }

    /// `two-phase+sieve` once ran independent calls under that name.
    #[test]
    fn collective_and_independent_words_do_not_mix() {
        for text in ["two-phase+sieve", "sieve+two-phase", "split+independent"] {
            let reason = Method::parse(text).unwrap_err();
            assert!(reason.contains("choose one of them"), "{reason}");
        }
        assert!(Method::parse("list+nonblocking").is_ok());
    }

    /// `--method two-phase --hint pario_algorithm=individual` once printed a row named two-phase.
    #[test]
    fn methods_are_named_after_what_runs() {
        let name = |text: &str, hint: &str| {
            let (name, value) = hint.split_once('=').unwrap();
            let hints = [(name.to_owned(), value.to_owned())];
            Method::parse(text)
                .unwrap()
                .with_hints(&hints)
                .unwrap()
                .name
        };
        for (text, hint, expected) in [
            ("two-phase", "pario_algorithm=individual", "individual"),
            ("automatic", "pario_algorithm=two-phase", "two-phase"),
            ("two-phase+even", "cb_nodes=2", "two-phase+even"),
            ("automatic+rmw", "pario_exchange=messages", "messages+rmw"),
            (
                "independent",
                "pario_read_method=list",
                "independent+pario_read_method=list",
            ),
            ("sieve", "pario_algorithm=two-phase", "sieve"),
            ("list", "pario_driver=mapped", "list+mapped"),
            ("automatic", "pario_rmw=locked", "automatic+rmw"),
        ] {
            assert_eq!(name(text, hint), expected, "{text} with {hint}");
        }
    }

    #[test]
    fn usual_methods_are_distinct_and_their_values_are_allowed() {
        let mut names: Vec<_> = usual().into_iter().map(|it| it.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), usual().len());
        for method in usual() {
            let (_, warnings) = facts::hints(&method.hints).unwrap();
            assert!(warnings.is_empty(), "{warnings:?}");
            let name = method.name.clone();
            assert_eq!(method.with_hints(&[]).unwrap().name, name);
        }
    }
}
