//! The choice between methods: every candidate answers with a priority and a
//! reason, names that were asked for win where they can be used, and the
//! decision can explain itself.

use std::fmt;

use crate::{
    Case, Exchange, Fitness, PersistentRealms, Plan,
    aggregators::{self, Aggregators},
    algorithm::{ALGORITHMS, Algorithm, Decisions},
    exchange,
    partition::{PARTITIONS, Partition},
};

/// What was chosen, and what everyone said.
pub struct Decision {
    /// The algorithm.
    pub algorithm: &'static dyn Algorithm,
    /// The partition.
    pub partition: &'static dyn Partition,
    /// The exchange.
    pub exchange: Exchange,
    /// The aggregators.
    pub aggregators: Aggregators,
    /// What each algorithm answered.
    pub algorithms: Answers,
    /// What each partition answered.
    pub partitions: Answers,
    /// What each exchange answered.
    pub exchanges: Answers,
}

/// What the candidates for one choice answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// Each candidate's name and verdict.
    pub answers: Vec<(&'static str, Fitness)>,
    /// What was asked for by name, and what became of that.
    pub asked: Option<Asked>,
}

/// A method that was asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It was taken.
    Taken(String),
    /// There is no such method.
    Unknown(String),
    /// It cannot be used in this case.
    Unfit(String),
    /// The algorithm does not leave the choice.
    Overruled(String),
}

impl Answers {
    /// Asks all candidates, and returns the index of the one to take: the one
    /// asked for, else the highest priority, the first of equals.
    fn of(answers: Vec<(&'static str, Fitness)>, asked: Option<&str>) -> (usize, Answers) {
        let best = (0..answers.len())
            .rev()
            .max_by_key(|index| answers[*index].1.priority())
            .unwrap_or(0);
        let (taken, asked) = match asked {
            None => (best, None),
            Some(name) => match answers.iter().position(|(known, _)| *known == name) {
                None => (best, Some(Asked::Unknown(name.to_owned()))),
                Some(index) if answers[index].1.priority().is_none() => {
                    (best, Some(Asked::Unfit(name.to_owned())))
                }
                Some(index) => (index, Some(Asked::Taken(name.to_owned()))),
            },
        };
        (taken, Answers { answers, asked })
    }
}

/// Chooses for a case.
pub fn decide(case: &Case<'_>) -> Decision {
    let tuning = case.tuning;
    let answers = ALGORITHMS.iter().map(|it| (it.name(), it.suit(case)));
    let (index, algorithms) = Answers::of(answers.collect(), tuning.algorithm.as_deref());
    let algorithm = ALGORITHMS[index];

    let answers = PARTITIONS.iter().map(|it| (it.name(), it.suit(case)));
    let (index, mut partitions) = Answers::of(answers.collect(), tuning.partition.as_deref());
    let partition = match algorithm.partition(case) {
        None => PARTITIONS[index],
        Some(insisted) => {
            let name = tuning.partition.as_ref();
            partitions.asked = name.map(|name| Asked::Overruled(name.clone()));
            insisted
        }
    };

    let answers = Exchange::ALL
        .iter()
        .map(|it| (it.name(), exchange::fitness(*it, case)));
    let (index, exchanges) = Answers::of(answers.collect(), tuning.exchange.as_deref());
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
    /// The plan of what was decided.
    pub fn plan(&self, case: &Case<'_>) -> Plan {
        let choices = Decisions {
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

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.asked {
            None => {}
            Some(Asked::Taken(_)) => write!(f, ", as asked for")?,
            Some(Asked::Unknown(name)) => write!(f, "; {name:?} was asked for, which is unknown")?,
            Some(Asked::Unfit(name)) => write!(f, "; {name} was asked for, but is unfit")?,
            Some(Asked::Overruled(name)) => {
                write!(
                    f,
                    "; {name} was asked for, but the algorithm needs this one"
                )?;
            }
        }
        for (name, fitness) in &self.answers {
            write!(f, "\n  {name}: {fitness}")?;
        }
        Ok(())
    }
}

/// A list of ranks, shortened.
pub(crate) struct Ranks<'a>(pub(crate) &'a [u32]);

/// Ranks of a list that are printed; of longer ones the first few.
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
