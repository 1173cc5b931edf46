//! What ranks saw, or should see: values by step and key.

use std::collections::BTreeMap;
use std::fmt;

/// Longer contents are recorded as their length and a hash, as the C program does.
const SHOWN: usize = 4096;

/// One rank's values, by the number of the step and the name of the value.
pub(super) type Values = BTreeMap<(usize, String), Value>;

/// A value: a word, or one that the standard leaves open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Word(String),
    Open,
}

impl Value {
    pub(super) fn agrees(&self, other: &Value) -> bool {
        matches!(self, Value::Open) || matches!(other, Value::Open) || self == other
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Word(word) => f.write_str(word),
            Value::Open => f.write_str("anything"),
        }
    }
}

/// Bytes as they are recorded.
pub(super) fn bytes(bytes: &[u8]) -> String {
    if bytes.len() > SHOWN {
        return hash(bytes);
    }
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("={digits}")
}

/// The length and a hash.
pub(super) fn hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("#{}:{hash:016x}", bytes.len())
}

/// What is known of a case that was run.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// What each rank recorded.
    Finished(Vec<Values>),
    /// It did not end in time; the last step that a rank recorded.
    Hung(usize),
    /// A rank ended early; the last step that a rank recorded, and the end of what was printed.
    Crashed(usize, String),
}

/// The cases of one rank's record that it finished, by number, and what it saw of an unfinished one.
pub(super) struct RankRecord {
    pub(super) finished: BTreeMap<usize, Values>,
    pub(super) last_step: usize,
    pub(super) has_hung: bool,
}

pub(super) fn parse(text: &str) -> RankRecord {
    let mut record = RankRecord {
        finished: BTreeMap::new(),
        last_step: 0,
        has_hung: false,
    };
    let mut values = Values::new();
    for line in text.lines() {
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        match head {
            "case" => {
                values = Values::new();
                record.last_step = 0;
            }
            "end" => {
                if let Ok(number) = rest.parse() {
                    record.finished.insert(number, std::mem::take(&mut values));
                }
            }
            "hang" => record.has_hung = true,
            _ => {
                let Some((step, key)) = head.split_once('.') else {
                    continue;
                };
                let Ok(step) = step.parse() else { continue };
                record.last_step = record.last_step.max(step);
                values.insert((step, key.into()), Value::Word(rest.into()));
            }
        }
    }
    record
}
