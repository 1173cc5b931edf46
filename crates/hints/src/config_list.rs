//! `cb_config_list`: how many aggregators each node may have.
//!
//! A list of `node:count` parted by commas. A node is its number or `*` for
//! every node that is not named itself; a count is a number or `*` for all
//! its ranks; without a count it is one. Nodes are asked in the order of the
//! list.

use std::{fmt, str::FromStr};

/// A parsed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigList {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    node: Node,
    most: Most,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Any,
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Most {
    All,
    Count(u32),
}

/// Why a text is no such list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigListError {
    entry: String,
}

impl fmt::Display for ConfigListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not an entry of cb_config_list: allowed are {}",
            self.entry,
            ConfigList::ALLOWED
        )
    }
}

impl std::error::Error for ConfigListError {}

impl FromStr for ConfigList {
    type Err = ConfigListError;

    fn from_str(text: &str) -> Result<ConfigList, ConfigListError> {
        let entry = |entry: &str| {
            let entry = entry.trim();
            Entry::parse(entry).ok_or_else(|| ConfigListError {
                entry: entry.to_owned(),
            })
        };
        let entries = text.split(',').map(entry).collect::<Result<_, _>>()?;
        Ok(ConfigList { entries })
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Entry> {
        let (node, most) = text.split_once(':').unwrap_or((text, "1"));
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten()
        };
        Some(Entry {
            node: match node.trim() {
                "*" => Node::Any,
                name => Node::Number(number(name)?),
            },
            most: match most.trim() {
                "*" => Most::All,
                count => Most::Count(number(count)?),
            },
        })
    }
}

impl fmt::Display for ConfigList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match entry.node {
                Node::Any => f.write_str("*:")?,
                Node::Number(node) => write!(f, "{node}:")?,
            }
            match entry.most {
                Most::All => f.write_str("*")?,
                Most::Count(count) => write!(f, "{count}")?,
            }
        }
        Ok(())
    }
}

impl ConfigList {
    /// What a list may hold, as the end of a sentence.
    pub(crate) const ALLOWED: &'static str = "entries node:count parted by commas, with the number \
        of a node or *, and a number or *, as in *:1 or 0:2,3:*";

    /// The ranks of each node that may aggregate, the lowest of the node;
    /// nodes in the order of the list. `nodes` are names and ranks.
    pub fn eligible(&self, nodes: &[(u32, Vec<u32>)]) -> Vec<(u32, Vec<u32>)> {
        let named = |name: u32| {
            self.entries
                .iter()
                .any(|entry| entry.node == Node::Number(name))
        };
        let mut chosen: Vec<(u32, Vec<u32>)> = Vec::new();
        for entry in &self.entries {
            let matching = nodes.iter().filter(|(name, _)| match entry.node {
                Node::Any => !named(*name),
                Node::Number(number) => *name == number,
            });
            for (name, ranks) in matching {
                if chosen.iter().any(|(known, _)| known == name) {
                    continue;
                }
                let most = match entry.most {
                    Most::All => ranks.len(),
                    Most::Count(count) => ranks.len().min(count as usize),
                };
                if most > 0 {
                    chosen.push((*name, ranks[..most].to_vec()));
                }
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<(u32, Vec<u32>)> {
        vec![(0, vec![0, 3, 6]), (1, vec![1, 4]), (2, vec![2, 5])]
    }

    fn eligible(text: &str) -> Vec<Vec<u32>> {
        let list: ConfigList = text.parse().unwrap();
        let ranks = list.eligible(&nodes());
        ranks.into_iter().map(|(_, ranks)| ranks).collect()
    }

    #[test]
    fn lists_choose_ranks() {
        assert_eq!(eligible("*:1"), [[0], [1], [2]]);
        assert_eq!(eligible("*"), [[0], [1], [2]]);
        assert_eq!(eligible("*:*"), [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
        assert_eq!(eligible("2:2, *:1"), [vec![2, 5], vec![0], vec![1]]);
        assert_eq!(eligible("*:1,0:2"), [vec![1], vec![2], vec![0, 3]]);
        assert_eq!(eligible("1"), [[1]]);
        assert_eq!(eligible("1:0,*:1"), [[0], [2]]);
        assert_eq!(eligible("7:2"), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn what_is_printed_parses() {
        for text in ["*:1", "0:2,*:*", "5:0"] {
            let list: ConfigList = text.parse().unwrap();
            assert_eq!(list.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "host:1", "*:", ":1", "1:2:3", "*:-1", "1,,2"] {
            let error = text.parse::<ConfigList>().unwrap_err();
            assert!(error.to_string().contains("cb_config_list"), "{text}");
        }
    }
}
