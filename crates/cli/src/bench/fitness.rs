//! Whether a requested method can be used at all: pario would silently fall back to another one.

use pario::internal::MachineProfile;
use pario_hints::Hints;
use pario_plan::{Access, Case, Facts, Fitness, History, Tuning, algorithm, partition};

use super::method::Method;
use crate::facts;
use crate::measure::{Direction, accesses};
use crate::workload::Step;

/// What fitness depends on: the machine and the file system.
pub(crate) struct MethodFitness(pub(crate) Facts);

impl MethodFitness {
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
        let (mut hints, _) = facts::hints(&method.hints).ok()?;
        MachineProfile::of_node().set(&mut hints);
        let calls = steps.first().map_or(0, |steps| steps.len());
        (0..calls).find_map(|call| {
            let accesses = accesses(steps, call)?;
            self.fitness(method, direction, &accesses, &hints)
        })
    }

    fn fitness(
        &self,
        method: &Method,
        direction: Direction,
        accesses: &[Access],
        hints: &Hints,
    ) -> Option<String> {
        let facts = self.0.clone().with_assumptions(hints);
        let tuning = Tuning::from_hints(hints, direction);
        let history = History::default();
        let case = Case::new(direction, accesses, &facts, &tuning, &history);
        let algorithm = method.forced.algorithm.and_then(algorithm::by_name);
        let partition = method.forced.partition.and_then(partition::by_name);
        let answers = [
            algorithm.map(|it| it.fitness(&case)),
            partition.map(|it| it.fitness(&case)),
            method
                .forced
                .exchange
                .map(|it| pario_plan::exchange::fitness(it, &case)),
        ];
        answers.into_iter().flatten().find_map(|it| match it {
            Fitness::Unfit { reason } => Some(reason.into_owned()),
            Fitness::Suits { .. } => None,
        })
    }
}
