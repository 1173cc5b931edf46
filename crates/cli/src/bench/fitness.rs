//! Whether a method that is asked for can be used at all: pario would silently use another one.

use pario_hints::Hints;
use pario_plan::{Access, Case, Facts, History, Tuning, Verdict, algorithm, partition};

use super::method::Method;
use crate::facts;
use crate::measure::{Direction, accesses};
use crate::workload::Step;

/// What verdicts rest on: the machine and the file system.
pub(crate) struct Fitness(pub(crate) Facts);

impl Fitness {
    /// Why a method cannot be used for some call of the ranks, `steps` being the calls by rank.
    pub(crate) fn reason(
        &self,
        method: &Method,
        direction: Direction,
        steps: &[&[Step]],
    ) -> Option<String> {
        if !method.forces_collective_calls() {
            return None;
        }
        let (hints, _) = facts::hints(&method.hints).ok()?;
        let calls = steps.first().map_or(0, |steps| steps.len());
        (0..calls).find_map(|call| {
            let accesses = accesses(steps, call)?;
            self.verdict(method, direction, &accesses, &hints)
        })
    }

    fn verdict(
        &self,
        method: &Method,
        direction: Direction,
        accesses: &[Access],
        hints: &Hints,
    ) -> Option<String> {
        let direction = direction.into();
        let facts = self.0.clone().mimicking(hints);
        let tuning = Tuning::from_hints(hints, direction);
        let history = History::default();
        let case = Case::new(direction, accesses, &facts, &tuning, &history);
        let algorithm = method.forced.algorithm.and_then(algorithm::by_name);
        let partition = method.forced.partition.and_then(partition::by_name);
        let verdicts = [
            algorithm.map(|it| it.suit(&case)),
            partition.map(|it| it.suit(&case)),
            method.forced.exchange.map(|it| it.suit(&case)),
        ];
        verdicts.into_iter().flatten().find_map(|it| match it {
            Verdict::Unfit { reason } => Some(reason.into_owned()),
            Verdict::Suits { .. } => None,
        })
    }
}
