//! Setting and asking for the view.

use std::sync::Arc;

use pario_transport::Rank;

use super::rank_views::{self, Hinting};
use super::{File, Inner};
use crate::{
    Error, ErrorKind, Info, Mode, Result, agree,
    view::{Displacement, FlattenedView, Use, View},
};

impl File {
    /// Sets what this rank sees of the file and moves both pointers to its
    /// start. *Collective*; the data representation and the extent of the
    /// etype must be the same on all ranks.
    pub fn set_view(&self, view: &View) -> Result<()> {
        self.set_view_with(view, &Info::new())
    }

    /// Likewise, and changes hints that can change while a file is open, as
    /// [`File::set_info`] does. Ranks may bring hints or not. *Collective*.
    pub fn set_view_with(&self, view: &View, info: &Info) -> Result<()> {
        let inner = &self.inner;
        let hinting = match info.is_empty() {
            true => Hinting::None,
            false => Hinting::Some,
        };
        let any = inner
            .set_view(view, hinting)
            .map_err(|error| inner.name_error(error, "set_view"))?;
        match any {
            Hinting::Some => self.set_info(info),
            Hinting::None => Ok(()),
        }
    }

    /// The view in force. Its displacement is always in bytes.
    pub fn view(&self) -> View {
        self.inner.view().view()
    }
}

impl Inner {
    /// Tells whether any rank brings hints.
    fn set_view(&self, view: &View, hinting: Hinting) -> Result<Hinting> {
        if view.displacement() == Displacement::Current {
            return self.set_view_at_pointer(view, hinting);
        }
        let before = self.view();
        let mine = self.check_view(view).and_then(|()| {
            let flattened = FlattenedView::new(view, 0, self.usage(), Some(&before))?;
            self.prepare_generation()?;
            Ok(flattened)
        });
        self.adopt(mine, hinting, &before)
    }

    /// A sequential file's view starts where the shared pointer stands once
    /// all ranks have arrived, so they meet once more.
    fn set_view_at_pointer(&self, view: &View, hinting: Hinting) -> Result<Hinting> {
        agree::agree(&*self.comm, self.check_view(view))?;
        let before = self.view();
        let mine = self.shared_pointer.load().and_then(|position| {
            let current = before.file_byte(position)?;
            let flattened = FlattenedView::new(view, current, self.usage(), Some(&before))?;
            self.prepare_generation()?;
            Ok(flattened)
        });
        self.adopt(mine, hinting, &before)
    }

    fn check_view(&self, view: &View) -> Result<()> {
        self.check_open()?;
        self.wait_for_split()?;
        let sequential = self.mode.contains(Mode::SEQUENTIAL);
        match (sequential, view.displacement()) {
            (true, Displacement::Bytes(_)) => Err(Error::new(
                ErrorKind::UnsupportedOperation,
                "a file opened SEQUENTIAL allows only views with Displacement::Current",
            )),
            (false, Displacement::Current) => Err(Error::argument(
                "Displacement::Current is allowed only in files opened SEQUENTIAL",
            )),
            _ => Ok(()),
        }
    }

    /// Operations keep the view that they began with, so pending ones are no
    /// obstacle. An ordered split call finds its place by the shared pointer
    /// when its turn comes, and setting a view resets that: so an active split
    /// call, which all ranks have begun by now, is waited for.
    fn wait_for_split(&self) -> Result<()> {
        match self.check_no_split() {
            Ok(()) => Ok(()),
            Err(_) => self.wait_for_operations(),
        }
    }

    fn usage(&self) -> Use {
        if self.mode.can_write() {
            Use::Writable
        } else {
            Use::ReadOnly
        }
    }

    fn prepare_generation(&self) -> Result<()> {
        match self.comm.rank() {
            Rank(0) => self.shared_pointer.prepare_generation(),
            _ => Ok(()),
        }
    }

    /// The ranks meet, compare, and take their views.
    fn adopt(
        &self,
        mine: Result<FlattenedView>,
        hinting: Hinting,
        before: &FlattenedView,
    ) -> Result<Hinting> {
        let (rank_views, hinting) = rank_views::exchange(&*self.comm, &mine, hinting, before)?;
        let view = Arc::new(mine?.with_rank_views(rank_views));
        let mut pointer = self.pointer();
        self.state.settings.change(|it| it.view = view);
        *pointer = 0;
        self.shared_pointer.advance_generation();
        Ok(hinting)
    }
}
