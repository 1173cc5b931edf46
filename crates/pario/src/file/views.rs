//! Setting and querying the view.

use std::sync::Arc;

use pario_transport::Rank;

use super::rank_views::{self, Hinting};
use super::{File, Inner};
use crate::{
    Error, ErrorKind, Info, Mode, Result,
    collective_call::CollectiveCall,
    view::{Displacement, FlattenedView, Use, View},
};

/// # Views
///
/// ```
/// # use pario::{Datatype, File, Info, Mode, View, threads};
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// // Rank 0 sees the even numbers of the file, rank 1 the odd ones.
/// let number = Datatype::of::<i32>();
/// let every_second = Datatype::resized(&number, 0, 8)?;
/// file.set_view(&View::new(4 * u64::from(comm.rank()), &number, &every_second))?;
/// file.write_at_all(0, &[comm.rank() as i32; 10])?;
/// assert_eq!(file.byte_offset(3)?, 24 + 4 * u64::from(comm.rank()));
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Sets the view of this rank and moves both pointers to its start. *Collective*; the data
    /// representation and the extent of the etype must be the same on all ranks.
    pub fn set_view(&self, view: &View) -> Result<()> {
        self.set_view_with(view, &Info::new())
    }

    /// Sets the view, and changes hints as [`File::set_info`] does. Ranks may pass hints or not.
    /// *Collective*.
    pub fn set_view_with(&self, view: &View, info: &Info) -> Result<()> {
        let inner = &self.inner;
        let hinting = match info.is_empty() {
            true => Hinting::None,
            false => Hinting::Some,
        };
        inner.merge_logs(CollectiveCall::SetView)?;
        let any = inner
            .collectively(CollectiveCall::SetView, || inner.set_view(view, hinting))
            .map_err(|error| inner.name_error(error, "set_view"))?;
        match any {
            Hinting::Some => self.set_info(info),
            Hinting::None => Ok(()),
        }
    }

    /// The current view. Its displacement is always in bytes.
    pub fn view(&self) -> View {
        self.inner.view().view()
    }
}

impl Inner {
    /// Returns whether any rank passes hints.
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

    /// The view of a sequential file starts at the position of the shared pointer once all
    /// ranks have arrived, so this takes one more agreement.
    fn set_view_at_pointer(&self, view: &View, hinting: Hinting) -> Result<Hinting> {
        self.begin(CollectiveCall::SetView, self.check_view(view))?;
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

    /// Pending operations keep the view that they began with and need not be waited for. An
    /// active split call must be: if it is an ordered one, it reads the shared pointer only
    /// when it is carried out, and setting a view resets that. All ranks have begun the split
    /// call by now.
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

    /// Exchanges the views, compares them, and puts them into effect.
    fn adopt(
        &self,
        mine: Result<FlattenedView>,
        hinting: Hinting,
        before: &FlattenedView,
    ) -> Result<Hinting> {
        self.meet(CollectiveCall::SetView, mine.as_ref().err())?;
        let (rank_views, hinting) = rank_views::exchange(&*self.comm, &mine, hinting, before)?;
        self.share_description(&rank_views)?;
        let protocol = self.write_protocol(&rank_views)?;
        let view = Arc::new(mine?.with_rank_views(rank_views));
        {
            let mut pointer = self.pointer();
            self.state.settings.change(|it| {
                it.view = view;
                it.protocol = protocol;
            });
            *pointer = 0;
            self.shared_pointer.advance_generation();
        }
        self.refresh_placement()?;
        Ok(hinting)
    }
}
