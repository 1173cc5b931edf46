//! `cb_config_list`: how many aggregators each node may have.
//!
//! A comma-separated list of `node:count`. A node is a host name, a node number, or
//! `*` for every node that is not listed; a count is a number or `*` for
//! all its ranks; the default is one. Nodes are considered in the order of the
//! list.
//!
//! The list alone does not determine which node has a host name:
//! [`ConfigList::locate`] resolves the names.

use std::{fmt, str::FromStr};

/// A parsed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigList {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    node: Node,
    most: Most,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Any,
    Number(u32),
    /// A host name, and the nodes that have it.
    Host {
        name: String,
        nodes: Vec<u32>,
    },
}

impl Node {
    /// Whether the entry names this node, rather than matching all.
    fn names(&self, node: u32) -> bool {
        match self {
            Node::Any => false,
            Node::Number(number) => *number == node,
            Node::Host { nodes, .. } => nodes.contains(&node),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Most {
    All,
    Count(u32),
}

/// An invalid entry of a `cb_config_list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigListError {
    entry: String,
}

impl fmt::Display for ConfigListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid entry {:?} in cb_config_list; allowed: {}",
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
                name if name.is_empty() || name.contains('*') => return None,
                name => match number(name) {
                    Some(number) => Node::Number(number),
                    None => Node::Host {
                        name: name.to_owned(),
                        nodes: Vec::new(),
                    },
                },
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
            match &entry.node {
                Node::Any => f.write_str("*:")?,
                Node::Number(node) => write!(f, "{node}:")?,
                Node::Host { name, .. } => write!(f, "{name}:")?,
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
    /// The allowed values, as the end of a sentence.
    pub(crate) const ALLOWED: &'static str = "a comma-separated list of node:count, where node is \
        a host name, a node number or *, and count is a number or *, as in *:1 or node7:2,node9:*";

    /// Whether it contains host names, which have to be [located].
    ///
    /// [located]: ConfigList::locate
    pub fn has_hosts(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| matches!(entry.node, Node::Host { .. }))
    }

    /// Resolves host names to nodes.
    pub fn locate<'a>(&mut self, hosts: impl Iterator<Item = (u32, &'a str)> + Clone) {
        for entry in &mut self.entries {
            if let Node::Host { name, nodes } = &mut entry.node {
                let named = hosts.clone().filter(|(_, host)| is_same_host(name, host));
                *nodes = named.map(|(node, _)| node).collect();
                nodes.sort_unstable();
                nodes.dedup();
            }
        }
    }

    /// The ranks that may aggregate, the lowest of each node; nodes in the order of
    /// the list. `nodes` are node numbers and their ranks.
    pub fn eligible(&self, nodes: &[(u32, Vec<u32>)]) -> Vec<(u32, Vec<u32>)> {
        let named = |node: u32| self.entries.iter().any(|entry| entry.node.names(node));
        let mut chosen: Vec<(u32, Vec<u32>)> = Vec::new();
        for entry in &self.entries {
            let matching = nodes.iter().filter(|(node, _)| match entry.node {
                Node::Any => !named(*node),
                _ => entry.node.names(*node),
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

/// Whether two names denote the same host: they are equal apart from case, or one
/// omits the domain of the other.
fn is_same_host(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let qualified = one.contains('.') && other.contains('.');
    match qualified {
        true => one.eq_ignore_ascii_case(other),
        false => short(one).eq_ignore_ascii_case(&short(other)),
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
    fn hosts_are_named() {
        let located = |text: &str| {
            let mut list: ConfigList = text.parse().unwrap();
            assert!(list.has_hosts(), "{text}");
            let hosts = [
                (0, "a.cluster"),
                (1, "b.cluster"),
                (2, "c"),
                (0, "a.cluster"),
            ];
            list.locate(hosts.into_iter());
            let ranks = list.eligible(&nodes());
            ranks.into_iter().map(|(_, ranks)| ranks).collect()
        };
        let none: [Vec<u32>; 0] = [];
        let check = |text: &str, expected: &[Vec<u32>]| {
            let found: Vec<Vec<u32>> = located(text);
            assert_eq!(found, expected, "{text}");
        };
        check("b", &[vec![1]]);
        check("C:2,a.cluster", &[vec![2, 5], vec![0]]);
        check("a:*", &[vec![0, 3, 6]]);
        check("c.cluster:1,b:0,*:2", &[vec![2], vec![0, 3]]);
        // A host where no rank runs, as in ROMIO.
        check("elsewhere:4,*:1", &[vec![0], vec![1], vec![2]]);
        check("elsewhere,a.other", &none);
        assert!(!"*:1,2:2".parse::<ConfigList>().unwrap().has_hosts());
    }

    #[test]
    fn what_is_printed_parses() {
        for text in ["*:1", "0:2,*:*", "5:0", "node7.cluster:2,*:1"] {
            let list: ConfigList = text.parse().unwrap();
            assert_eq!(list.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "host:", "*:", ":1", "1:2:3", "*:-1", "1,,2", "node*:1"] {
            let error = text.parse::<ConfigList>().unwrap_err();
            assert!(error.to_string().contains("cb_config_list"), "{text}");
        }
    }
}
