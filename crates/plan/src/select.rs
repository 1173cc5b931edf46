//! Selection: every candidate reports its fitness, names requested in hints win
//! where they are usable, and the decision can explain itself.

use std::fmt;

use crate::{
    Case, Exchange, Fitness, PersistentRealms, Plan,
    aggregators::{self, Aggregators},
    algorithm::{ALGORITHMS, Algorithm, Decisions},
    exchange,
    partition::{PARTITIONS, Partition},
};

/// The selection and the fitness of every candidate.
pub struct Decision {
    /// The algorithm.
    pub algorithm: &'static dyn Algorithm,
    /// The partition.
    pub partition: &'static dyn Partition,
    /// The exchange.
    pub exchange: Exchange,
    /// The aggregators.
    pub aggregators: Aggregators,
    /// Fitness of each algorithm.
    pub algorithms: Candidates,
    /// Fitness of each partition.
    pub partitions: Candidates,
    /// Fitness of each exchange.
    pub exchanges: Candidates,
}

/// The candidates of one choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Name and fitness of each candidate.
    pub candidates: Vec<(&'static str, Fitness)>,
    /// The candidate requested by name, and whether it was used.
    pub requested: Option<Requested>,
}

/// A candidate requested by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// It was selected.
    Selected(String),
    /// No candidate has this name.
    Unknown(String),
    /// It is not usable in this case.
    Unfit(String),
    /// The algorithm requires another one.
    Overridden(String),
}

impl Candidates {
    /// Selects a candidate and returns its index: the requested one, else the
    /// first with the highest priority.
    fn of(
        candidates: Vec<(&'static str, Fitness)>,
        requested: Option<&str>,
    ) -> (usize, Candidates) {
        let best = (0..candidates.len())
            .rev()
            .max_by_key(|index| candidates[*index].1.priority())
            .unwrap_or(0);
        let (selected, requested) = match requested {
            None => (best, None),
            Some(name) => match candidates.iter().position(|(known, _)| *known == name) {
                None => (best, Some(Requested::Unknown(name.to_owned()))),
                Some(index) if candidates[index].1.priority().is_none() => {
                    (best, Some(Requested::Unfit(name.to_owned())))
                }
                Some(index) => (index, Some(Requested::Selected(name.to_owned()))),
            },
        };
        (
            selected,
            Candidates {
                candidates,
                requested,
            },
        )
    }
}

/// Selects algorithm, partition, exchange and aggregators for a case.
pub fn decide(case: &Case<'_>) -> Decision {
    let tuning = case.tuning;
    let candidates = ALGORITHMS.iter().map(|it| (it.name(), it.fitness(case)));
    let (index, algorithms) = Candidates::of(candidates.collect(), tuning.algorithm.as_deref());
    let algorithm = ALGORITHMS[index];

    let candidates = PARTITIONS.iter().map(|it| (it.name(), it.fitness(case)));
    let (index, mut partitions) = Candidates::of(candidates.collect(), tuning.partition.as_deref());
    let partition = match algorithm.partition(case) {
        None => PARTITIONS[index],
        Some(required) => {
            let name = tuning.partition.as_ref();
            partitions.requested = name.map(|name| Requested::Overridden(name.clone()));
            required
        }
    };

    let candidates = Exchange::ALL
        .iter()
        .map(|it| (it.name(), exchange::fitness(*it, case)));
    let (index, exchanges) = Candidates::of(candidates.collect(), tuning.exchange.as_deref());
    Decision {
        algorithm,
        partition,
        exchange: Exchange::ALL[index],
        aggregators: aggregators::choose(case),
        algorithms,
        partitions,
        exchanges,
    }
}

impl Decision {
    /// The plan that follows from the decision.
    pub fn plan(&self, case: &Case<'_>) -> Plan {
        let choices = Decisions {
            partition: self.partition,
            aggregators: &self.aggregators.ranks,
        };
        self.algorithm.plan(case, &choices)
    }

    /// State to keep for later calls.
    pub fn remember(&self, case: &Case<'_>) -> Option<PersistentRealms> {
        self.partition.remember(case, &self.aggregators.ranks)
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("algorithm", &self.algorithm.name())
            .field("partition", &self.partition.name())
            .field("exchange", &self.exchange)
            .field("aggregators", &self.aggregators)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "algorithm {}{}", self.algorithm.name(), self.algorithms)?;
        writeln!(f, "partition {}{}", self.partition.name(), self.partitions)?;
        writeln!(f, "exchange {}{}", self.exchange, self.exchanges)?;
        write!(
            f,
            "aggregators {}: {}",
            Ranks(&self.aggregators.ranks),
            self.aggregators.reason
        )
    }
}

impl fmt::Display for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.requested {
            None => {}
            Some(Requested::Selected(_)) => write!(f, ", as requested")?,
            Some(Requested::Unknown(name)) => {
                write!(f, "; {name:?} was requested, but is unknown")?
            }
            Some(Requested::Unfit(name)) => write!(f, "; {name} was requested, but is unfit")?,
            Some(Requested::Overridden(name)) => {
                write!(
                    f,
                    "; {name} was requested, but the algorithm requires this one"
                )?;
            }
        }
        for (name, fitness) in &self.candidates {
            write!(f, "\n  {name}: {fitness}")?;
        }
        Ok(())
    }
}

/// A list of ranks, abbreviated.
pub(crate) struct Ranks<'a>(pub(crate) &'a [u32]);

/// Maximum number of ranks printed.
const RANKS_PRINTED: usize = 8;

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [first, .., last] if self.0.is_sorted() && is_gapless(self.0) => {
                write!(f, "{first}-{last}")
            }
            ranks if ranks.len() <= RANKS_PRINTED => write!(f, "{ranks:?}"),
            ranks => write!(
                f,
                "{:?} and {} more",
                &ranks[..RANKS_PRINTED],
                ranks.len() - RANKS_PRINTED
            ),
        }
    }
}

fn is_gapless(ranks: &[u32]) -> bool {
    ranks.windows(2).all(|pair| pair[0] + 1 == pair[1])
}
