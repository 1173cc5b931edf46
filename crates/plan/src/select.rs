//! The choice between methods: every candidate answers with a priority and a
//! reason, names that were asked for win, and the decision can explain itself.

use std::fmt;

use crate::{
    Case, PersistentRealms, Plan, Verdict,
    aggregators::{self, Aggregators},
    algorithm::{self, ALGORITHMS, Algorithm, Choices},
    partition::{self, PARTITIONS, Partition},
};

/// What was chosen, and what everyone said.
pub struct Decision {
    /// The algorithm.
    pub algorithm: &'static dyn Algorithm,
    /// The partition.
    pub partition: &'static dyn Partition,
    /// The aggregators.
    pub aggregators: Aggregators,
    /// What each algorithm answered.
    pub algorithms: Vec<(&'static str, Verdict)>,
    /// What each partition answered.
    pub partitions: Vec<(&'static str, Verdict)>,
}

/// Chooses for a case.
pub fn decide(case: &Case<'_>) -> Decision {
    let algorithms: Vec<_> = ALGORITHMS
        .iter()
        .map(|it| (it.name(), it.suit(case)))
        .collect();
    let asked = case
        .tuning
        .algorithm
        .as_deref()
        .and_then(algorithm::by_name);
    let algorithm = asked
        .filter(|asked| asked.suit(case).priority().is_some())
        .unwrap_or_else(|| best(ALGORITHMS, |it| it.suit(case)));
    let partitions: Vec<_> = PARTITIONS
        .iter()
        .map(|it| (it.name(), it.suit(case)))
        .collect();
    let asked = case
        .tuning
        .partition
        .as_deref()
        .and_then(partition::by_name);
    let partition = algorithm
        .partition(case)
        .or(asked.filter(|asked| asked.suit(case).priority().is_some()))
        .unwrap_or_else(|| best(PARTITIONS, |it| it.suit(case)));
    let aggregators = aggregators::choose(case);
    Decision {
        algorithm,
        partition,
        aggregators,
        algorithms,
        partitions,
    }
}

/// The candidate with the highest priority, the first of equals.
fn best<T: ?Sized>(candidates: &[&'static T], suit: impl Fn(&T) -> Verdict) -> &'static T {
    let mut best = candidates[0];
    let mut highest = suit(best).priority();
    for candidate in &candidates[1..] {
        let priority = suit(candidate).priority();
        if priority > highest {
            (best, highest) = (*candidate, priority);
        }
    }
    best
}

impl Decision {
    /// The plan of what was decided.
    pub fn plan(&self, case: &Case<'_>) -> Plan {
        let choices = Choices {
            partition: self.partition,
            aggregators: &self.aggregators.ranks,
        };
        self.algorithm.plan(case, &choices)
    }

    /// What later calls must keep to.
    pub fn remember(&self, case: &Case<'_>) -> Option<PersistentRealms> {
        self.partition.remember(case, &self.aggregators.ranks)
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("algorithm", &self.algorithm.name())
            .field("partition", &self.partition.name())
            .field("aggregators", &self.aggregators)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "algorithm {}", self.algorithm.name())?;
        for (name, verdict) in &self.algorithms {
            writeln!(f, "  {name}: {verdict}")?;
        }
        writeln!(f, "partition {}", self.partition.name())?;
        for (name, verdict) in &self.partitions {
            writeln!(f, "  {name}: {verdict}")?;
        }
        write!(
            f,
            "aggregators {:?}: {}",
            self.aggregators.ranks, self.aggregators.reason
        )
    }
}
