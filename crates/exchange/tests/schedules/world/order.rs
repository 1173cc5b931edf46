//! What may happen next, and what does.

use fastrand::Rng;
use pario_exchange::{Action, Event, Groups, Kind, Rank};

use super::World;
use crate::case::Bytes;

/// Something that may happen next.
#[derive(Debug)]
pub(super) enum Item {
    Enter(Rank),
    Plan(Rank),
    Deliver {
        from: Rank,
        to: Rank,
    },
    /// A copy or a transfer is carried out and complete.
    Complete(Rank, Action),
    /// One that was carried out when it started is complete.
    Completed(Rank, Event<Bytes>),
    Sent(usize),
    Received(usize),
    Answer(Rank, Kind),
    SpaceFreed(Rank),
    Lose(Rank, Rank),
}

impl Item {
    fn is_transfer(&self) -> bool {
        matches!(
            self,
            Item::Complete(_, Action::Transfer { .. } | Action::TransferEager { .. })
                | Item::Completed(_, Event::Transferred { .. })
        )
    }

    fn is_copy(&self) -> bool {
        match self {
            Item::Complete(..) => !self.is_transfer(),
            Item::Completed(_, event) => {
                matches!(event, Event::Copied(_) | Event::CopiedOwn { .. })
            }
            _ => false,
        }
    }

    fn is_from(&self, one: Rank, other: Rank) -> bool {
        matches!(self, Item::Deliver { from, to } if (*from, *to) == (one, other))
    }

    /// The rank that it happens to.
    pub(super) fn rank(&self, world: &World<'_>) -> Rank {
        match self {
            Item::Enter(rank) | Item::Plan(rank) => *rank,
            Item::Complete(rank, _) | Item::Completed(rank, _) => *rank,
            Item::Deliver { to, .. } => *to,
            Item::Answer(rank, _) | Item::SpaceFreed(rank) | Item::Lose(rank, _) => *rank,
            Item::Sent(at) => world.transits[*at].from,
            Item::Received(at) => world.transits[*at].to,
        }
    }
}

/// The order in which events happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Any,
    First,
    Last,
    /// Those of one rank happen only when there are no others.
    Starve(Rank),
    /// The same for the ranks of one group.
    StarveGroup(u32),
    /// The same for messages from one rank to another.
    SlowChannel(Rank, Rank),
    /// The same for file transfers.
    SlowFile,
    /// The same for data messages.
    SlowData,
    /// The same for copies.
    SlowCopies,
}

impl Order {
    pub(super) fn random(random: &mut Rng, groups: &Groups) -> Order {
        let ranks = groups.ranks();
        let mut any = || Rank(random.u32(0..ranks));
        let (one, other) = (any(), any());
        match random.u8(0..13) {
            0 => Order::First,
            1 => Order::Last,
            2 => Order::Starve(one),
            7 => Order::SlowChannel(one, other),
            3 => Order::StarveGroup(random.u32(0..groups.count())),
            4 => Order::SlowFile,
            5 => Order::SlowData,
            6 => Order::SlowCopies,
            _ => Order::Any,
        }
    }
}

impl World<'_> {
    /// The index of the item that happens next.
    pub(super) fn choose(&mut self) -> Option<usize> {
        let count = self.items.len();
        if count == 0 {
            return None;
        }
        let any = self.random.usize(0..count);
        let prefers = |item: &Item| match self.order {
            Order::Starve(rank) => item.rank(self) != rank,
            Order::StarveGroup(group) => self.case.setting.groups.of(item.rank(self)) != group,
            Order::SlowChannel(one, other) => !item.is_from(one, other),
            Order::SlowFile => !item.is_transfer(),
            Order::SlowCopies => !item.is_copy(),
            Order::SlowData => !matches!(item, Item::Sent(_) | Item::Received(_)),
            Order::Any | Order::First | Order::Last => true,
        };
        match self.order {
            Order::First => Some(0),
            Order::Last => Some(count - 1),
            _ => {
                let around = (any..count).chain(0..any);
                let mut preferred = around.filter(|at| prefers(&self.items[*at]));
                Some(preferred.next().unwrap_or(any))
            }
        }
    }
}
