//! The last decision of the planner, and whether it holds for another call.

use pario_driver::Direction;
use pario_plan::{Access, Decision, Facts};

use crate::{collective::entry::Entry, operation::Operation, view::RankViews};

/// The last decision, and what it was made for.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) direction: Direction,
    pub(super) views: u64,
    pub(super) lengths: Vec<u64>,
    pub(super) place: Place,
    pub(super) decision: Decision,
    /// Whether every rank moves its own data, so that no plan need be made.
    pub(super) is_individual: bool,
}

impl Decided {
    pub(super) fn is_of(
        &self,
        operation: &Operation,
        place: Place,
        lengths: impl Iterator<Item = u64>,
    ) -> bool {
        (self.direction, self.views, self.place)
            == (
                operation.direction(),
                operation.view().rank_views().family,
                place,
            )
            && self.lengths.iter().copied().eq(lengths)
    }
}

/// What decisions depend on besides the amounts: which part of a file with several stripings is
/// accessed, and whether the ranks' data is cut by locks. The same for all calls where neither
/// stripes nor locks are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The components of the first and the last rank's data.
    components: [usize; 2],
    /// Whether the data of the first rank starts at a lock or stripe.
    is_aligned: bool,
}

impl Place {
    pub(super) fn of(operation: &Operation, entries: &[Entry], facts: &Facts) -> Place {
        let placement = facts.placement.as_ref();
        if placement.is_none() && facts.lock_granularity.is_none() {
            return Place::default();
        }
        let RankViews {
            shapes,
            displacements,
            ..
        } = operation.view().rank_views();
        let last = entries.len().saturating_sub(1);
        let [first, last] = [0, last].map(|rank| {
            let (shape, displacement) = (shapes.get(rank)?, displacements.get(rank)?);
            // A byte, whether the rank has data or not.
            let layout = shape.layout().ok()?.clone();
            let byte = Access::new(*displacement, layout, entries.get(rank)?.first, 1)?;
            Some(byte.span().start)
        });
        let component = |byte: Option<u64>| match (placement, byte) {
            (Some(placement), Some(byte)) => {
                let components = placement.components();
                components.partition_point(|it| it.file.end <= byte)
            }
            _ => 0,
        };
        let unit = match placement {
            Some(placement) => {
                let here = placement.components().get(component(first));
                here.map_or(facts.boundary(), |it| it.striping.unit)
            }
            None => facts.boundary(),
        };
        Place {
            components: [first, last].map(component),
            is_aligned: first.is_some_and(|byte| byte.is_multiple_of(unit)),
        }
    }
}
