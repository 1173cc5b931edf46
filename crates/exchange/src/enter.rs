//! The start of a call: entries go up the tree, a decision comes down.
//!
//! If all ranks together move little, their data rides with the entries (or
//! with the decision, for reads), and the root carries the call out alone: one
//! message each way between two nodes. Entries with different flags may be of
//! ranks in different calls, so such a call is planned, which is left to the
//! driver loop. In a payload, the data of a subtree's
//! ranks lies in the order of the ranks.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    Accesses, Action, Buffer, Decision, Direction, Entry, Failure, Kind, Message, Outcome,
    Progress, Rank, Span, Table, core::Core, ids, jobs::Doing, tree::Tree,
};

/// Data of ranks, packed.
type Data = BTreeMap<Rank, Vec<Span>>;

/// The contribution of a subtree.
#[derive(Debug)]
struct Subtree {
    table: Table,
    is_eager: bool,
}

/// What follows from what happened.
#[derive(Debug)]
pub(crate) enum Step {
    /// The call goes on here.
    Wait,
    /// The call is planned.
    Plan(Arc<Table>),
    /// The call is over.
    Over(Progress),
}

#[derive(Debug)]
pub(crate) struct Entering {
    tree: Tree,
    own: Option<Subtree>,
    /// The contribution of each child; kept, because a child's answer depends on it.
    children: Vec<Option<Subtree>>,
    /// The data that is here: of an eager write on its way up, of an eager
    /// read on its way down.
    data: Data,
    arrivals: Vec<Buffer>,
    table: Option<Arc<Table>>,
    /// Set when the call is over but for copies of an eager read.
    over: Option<Progress>,
    /// Children of the group that still use this rank's spans.
    users: usize,
}

impl Entering {
    pub(crate) fn new(tree: Tree) -> Entering {
        Entering {
            children: tree.children.iter().map(|_| None).collect(),
            tree,
            own: None,
            data: Data::new(),
            arrivals: Vec::new(),
            table: None,
            over: None,
            users: 0,
        }
    }

    /// This rank's entry: packs what may ride with it.
    pub(crate) fn enter<A: Accesses>(&mut self, core: &mut Core<A>, entry: Entry) -> Step {
        let limit = core.setting.limits.eager_bytes;
        let (len, failed) = (entry.len, entry.failure.is_some());
        let is_eager = len <= limit && limit > 0 && entry.flags & Entry::NOT_EAGER == 0;
        self.own = Some(Subtree {
            table: Table::one(core.me, entry),
            is_eager,
        });
        if !is_eager || len == 0 || failed {
            return self.go_up(core);
        }
        core.use_memory(limit);
        let buffer = Buffer {
            owner: core.me,
            kind: Kind::Eager,
            index: 0,
        };
        if core.setting.direction == Direction::Write {
            self.data.insert(
                core.me,
                vec![Span {
                    buffer,
                    range: 0..len,
                }],
            );
            let job = core.jobs.start(Doing::Pack);
            core.counters.copies += 1;
            core.out.push(Action::Pack { job, buffer });
            return Step::Wait;
        }
        self.go_up(core)
    }

    /// This rank's data is packed.
    pub(crate) fn packed<A: Accesses>(&mut self, core: &mut Core<A>) -> Step {
        self.go_up(core)
    }

    /// A child's subtree has entered.
    pub(crate) fn up<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        from: Rank,
        (table, is_eager): (Table, bool),
        mut payload: Vec<Span>,
    ) -> Step {
        self.keep(core, &payload);
        if core.setting.direction == Direction::Write && is_eager {
            self.share_out(&table, &mut payload);
        }
        let child = self.child(from);
        self.children[child] = Some(Subtree { table, is_eager });
        self.go_up(core)
    }

    fn child(&self, rank: Rank) -> usize {
        let found = self.tree.children.iter().position(|child| *child == rank);
        found.expect("only children send entries")
    }

    /// Takes over the buffers that came with a message.
    fn keep<A: Accesses>(&mut self, core: &mut Core<A>, payload: &[Span]) {
        for span in payload {
            if span.buffer.kind == Kind::Arrival && span.buffer.owner == core.me {
                self.arrivals.push(span.buffer);
                core.use_memory(span.bytes());
            }
        }
    }

    /// Divides a payload among the ranks of a table.
    fn share_out(&mut self, table: &Table, payload: &mut Vec<Span>) {
        for (rank, entry) in table.entries().filter(|(_, entry)| entry.len > 0) {
            self.data.insert(rank, ids::split(payload, entry.len));
        }
    }

    /// When all children and this rank are in: sends the entries on, or
    /// decides.
    fn go_up<A: Accesses>(&mut self, core: &mut Core<A>) -> Step {
        let is_in = self.own.is_some() && self.children.iter().all(Option::is_some);
        if !is_in || core.jobs.local() > 0 || self.table.is_some() {
            return Step::Wait;
        }
        let all = || self.children.iter().chain([&self.own]).flatten();
        let table = Arc::new(Table::merge(all().map(|subtree| subtree.table.clone())));
        let is_eager = all().all(|subtree| subtree.is_eager)
            && table.bytes() <= core.setting.limits.eager_bytes
            && table.failure().is_none()
            && table.is_uniform();
        self.table = Some(table.clone());
        let Some(parent) = self.tree.parent else {
            return self.decide(core, table, is_eager);
        };
        let payload = match is_eager {
            true => std::mem::take(&mut self.data)
                .into_values()
                .flatten()
                .collect(),
            false => Vec::new(),
        };
        let table = Table::clone(&table);
        core.tell_with(parent, Message::Up { table, is_eager }, payload);
        Step::Wait
    }

    /// The root: carries out an eager call, or has everybody plan.
    fn decide<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        table: Arc<Table>,
        is_eager: bool,
    ) -> Step {
        let failure = table.failure().filter(|_| table.is_uniform());
        if let Some(failure) = failure {
            let progress = Progress {
                stop: 0,
                failure: Some(failure),
            };
            return self.down(core, Decision::Over(progress), Vec::new());
        }
        if !is_eager {
            return self.down(core, Decision::Plan(table), Vec::new());
        }
        if table.bytes() == 0 {
            return self.down(core, Decision::Over(Progress::ALL), Vec::new());
        }
        if core.setting.direction == Direction::Read {
            core.use_memory(core.setting.limits.eager_bytes);
            let buffer = Buffer {
                owner: core.me,
                kind: Kind::EagerWindow,
                index: 0,
            };
            let range = 0..table.bytes();
            self.share_out(&table, &mut vec![Span { buffer, range }]);
        }
        let job = core.jobs.start(Doing::TransferEager);
        core.counters.transfers += 1;
        let parts = self.data.clone().into_iter().collect();
        core.out.push(Action::TransferEager { job, table, parts });
        Step::Wait
    }

    /// The root's transfer of an eager call is over.
    pub(crate) fn transferred<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        outcome: Outcome,
    ) -> Step {
        let outcome_stop = outcome.stop.unwrap_or(u64::MAX);
        let progress = Progress {
            stop: outcome_stop,
            failure: outcome.error.map(|detail| Failure {
                rank: core.me,
                detail,
            }),
        };
        let payload = match core.setting.direction {
            Direction::Read if outcome_stop > 0 => self.data.values().flatten().cloned().collect(),
            _ => Vec::new(),
        };
        self.down(core, Decision::Over(progress), payload)
    }

    /// The decision: passes it on, with the data of each subtree.
    pub(crate) fn down<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        decision: Decision,
        mut payload: Vec<Span>,
    ) -> Step {
        self.keep(core, &payload);
        let is_read = !payload.is_empty();
        if is_read && let Some(table) = self.table.clone() {
            self.share_out(&table, &mut payload);
        }
        let mut subtrees = Vec::new();
        for (child, subtree) in self.tree.children.iter().zip(&self.children) {
            let ranks = subtree.iter().flat_map(|subtree| subtree.table.entries());
            let data = ranks.filter_map(|(rank, _)| self.data.get(&rank));
            let payload: Vec<Span> = match is_read {
                true => data.flatten().cloned().collect(),
                false => Vec::new(),
            };
            subtrees.push((*child, payload));
        }
        for (child, payload) in subtrees {
            if !payload.is_empty() && core.setting.groups.share(core.me, child) {
                self.users += 1;
            }
            core.tell_with(child, Message::Down(decision.clone()), payload);
        }
        match decision {
            Decision::Plan(table) => {
                self.release(core);
                Step::Plan(table)
            }
            Decision::Over(progress) => {
                self.unpack(core, progress.stop);
                self.over = Some(progress);
                self.end(core)
            }
        }
    }

    fn unpack<A: Accesses>(&self, core: &mut Core<A>, stop: u64) {
        let spans = match core.setting.direction {
            Direction::Read => self.data.get(&core.me).cloned().unwrap_or_default(),
            Direction::Write => Vec::new(),
        };
        if spans.is_empty() {
            return;
        }
        let job = core.jobs.start(Doing::Unpack);
        core.counters.copies += 1;
        core.out.push(Action::Unpack { job, spans, stop });
    }

    /// This rank's data of an eager read is unpacked.
    pub(crate) fn unpacked<A: Accesses>(&mut self, core: &mut Core<A>) -> Step {
        self.end(core)
    }

    /// A child of the group no longer uses this rank's spans.
    pub(crate) fn taken<A: Accesses>(&mut self, core: &mut Core<A>) -> Step {
        self.users -= 1;
        self.end(core)
    }

    fn end<A: Accesses>(&mut self, core: &mut Core<A>) -> Step {
        if self.users > 0 || core.jobs.local() > 0 {
            return Step::Wait;
        }
        let Some(progress) = self.over.take() else {
            return Step::Wait;
        };
        self.release(core);
        let used = core.setting.direction == Direction::Read && !self.data.is_empty();
        if let Some(parent) = self.tree.parent
            && used
            && core.setting.groups.share(core.me, parent)
        {
            core.tell(parent, Message::Taken);
        }
        Step::Over(progress)
    }

    fn release<A: Accesses>(&mut self, core: &mut Core<A>) {
        let released = self.arrivals.drain(..).map(Action::Release);
        core.out.extend(released);
    }

    /// How many children this rank has in the tree.
    pub(crate) fn children(&self) -> usize {
        self.tree.children.len()
    }

    /// The buffers that others may use, as long as the decision is not here.
    pub(crate) fn used<A: Accesses>(&self, core: &Core<A>) -> Vec<Buffer> {
        let own = |kind| Buffer {
            owner: core.me,
            kind,
            index: 0,
        };
        let eager = [own(Kind::Eager), own(Kind::EagerWindow)];
        let eager = match self.own.is_some() && core.setting.limits.eager_bytes > 0 {
            true => eager.to_vec(),
            false => Vec::new(),
        };
        self.arrivals.iter().copied().chain(eager).collect()
    }
}
