//! MPI's `access_style`: a list of words, and the advice that follows from it.

/// The words of `access_style` that were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessStyle {
    words: u8,
}

/// Advice to the operating system about future accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Read ahead more than usual (`POSIX_FADV_SEQUENTIAL`).
    Sequential,
    /// Do not read ahead (`POSIX_FADV_RANDOM`).
    Random,
    /// Do not keep the data (`POSIX_FADV_NOREUSE`).
    NoReuse,
}

/// MPI's words, in the order of their bits.
const WORDS: [&str; 7] = [
    "read_once",
    "write_once",
    "read_mostly",
    "write_mostly",
    "sequential",
    "reverse_sequential",
    "random",
];

impl AccessStyle {
    /// Whether the user gave `word`.
    pub fn has(self, word: &str) -> bool {
        position(word).is_some_and(|bit| self.words & (1 << bit) != 0)
    }

    /// Whether no word was given.
    pub fn is_empty(self) -> bool {
        self.words == 0
    }

    /// The words that were given, in MPI's order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        WORDS
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| self.words & (1 << bit) != 0)
            .map(|(_, word)| word)
    }

    /// The advice that follows from the words.
    ///
    /// `sequential` together with `random` or `reverse_sequential` is
    /// contradictory, so no advice on order follows.
    pub fn advice(self) -> Vec<Advice> {
        let mut advice = Vec::new();
        let forward = self.has("sequential");
        // The kernel reads ahead forwards only: for backward accesses it would
        // fetch data that has been read already.
        let jumping = self.has("random") || self.has("reverse_sequential");
        match (forward, jumping) {
            (true, false) => advice.push(Advice::Sequential),
            (false, true) => advice.push(Advice::Random),
            _ => {}
        }
        if self.has("read_once") || self.has("write_once") {
            advice.push(Advice::NoReuse);
        }
        advice
    }

    /// Parses a list of words separated by commas.
    pub(crate) fn parse(text: &str) -> Option<AccessStyle> {
        text.split(',')
            .try_fold(AccessStyle::default(), |style, word| {
                Some(AccessStyle {
                    words: style.words | 1 << position(word)?,
                })
            })
    }

    /// The allowed values, for the documentation.
    pub(crate) fn allowed() -> String {
        format!("a comma-separated list of {}", WORDS.join(", "))
    }
}

fn position(word: &str) -> Option<usize> {
    let word = word.trim();
    WORDS
        .iter()
        .position(|known| known.eq_ignore_ascii_case(word))
}
