//! The end of a call: the results of subtrees go up the tree, the result of the
//! call comes down.

use crate::{Accesses, Message, Progress, Rank, core::Core, tree::Tree};

#[derive(Debug)]
pub(crate) struct Agreement {
    tree: Tree,
    /// Children that have not reported.
    awaited: usize,
    is_done: bool,
    result: Option<Progress>,
}

impl Agreement {
    pub(crate) fn new(tree: Tree) -> Agreement {
        Agreement {
            awaited: tree.children.len(),
            tree,
            is_done: false,
            result: None,
        }
    }

    /// Whether this rank's own part is reported.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    pub(crate) fn result(&self) -> Option<&Progress> {
        self.result.as_ref()
    }

    /// This rank's own part in the call is over; it may still relay.
    pub(crate) fn done<A: Accesses>(&mut self, core: &mut Core<A>) {
        self.is_done = true;
        self.go_up(core);
    }

    pub(crate) fn up<A: Accesses>(&mut self, core: &mut Core<A>, progress: Progress) {
        core.progress.merge(progress);
        self.awaited -= 1;
        self.go_up(core);
    }

    fn go_up<A: Accesses>(&mut self, core: &mut Core<A>) {
        if self.awaited > 0 || !self.is_done {
            return;
        }
        let progress = core.progress.clone();
        match self.tree.parent {
            Some(parent) => core.tell(parent, Message::Agree(progress)),
            None => self.down(core, progress),
        }
    }

    pub(crate) fn down<A: Accesses>(&mut self, core: &mut Core<A>, progress: Progress) {
        let children: Vec<Rank> = self.tree.children.clone();
        for child in children {
            core.tell(child, Message::Agreed(progress.clone()));
        }
        self.result = Some(progress);
    }
}
