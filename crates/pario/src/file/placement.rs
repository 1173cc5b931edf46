//! Where the bytes of a file are, as a value that programs read and set (Chaarawi 2011's fcache,
//! section 3.4).

use std::sync::Arc;

use pario_driver::{Placement, Storage, Striping};
use pario_transport::Rank;

use super::{File, Inner, placement_wire};
use crate::{Result, agree, collective_call::CollectiveCall};

/// # Placement
///
/// ```
/// use pario::{File, Info, Mode, threads};
/// use pario::placement::{Placement, Server, Striping};
///
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:placed", mode, &Info::new())?;
/// // Four servers, 64 KiB on each in turn. Collective calls plan with it from now on.
/// let striping = Striping { unit: 64 << 10, count: 4 };
/// file.set_placement(Some(&Placement::uniform(striping)))?;
///
/// let placement = file.placement().unwrap();
/// let parts: Vec<_> = placement.parts(60 << 10..70 << 10).collect();
/// assert_eq!((parts[0].object, parts[0].object_offset, parts[0].len), (0, 60 << 10, 4 << 10));
/// assert_eq!((parts[1].object, parts[1].object_offset, parts[1].len), (1, 0, 6 << 10));
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Which servers hold which bytes of the file, if that is known: as set by
    /// [`set_placement`](File::set_placement), else as the file system reported it at open. What
    /// was not decided then is queried again when a view is set.
    pub fn placement(&self) -> Option<Placement> {
        let set = self.inner.settings().placement.clone();
        set.or_else(|| self.inner.reported_placement())
    }

    /// Sets which servers hold which bytes, for the plans of later collective calls; `None` goes
    /// back to what the file system reported. The hint `pario_assume_striping` takes precedence.
    /// Data is not moved, and a placement that is wrong costs time only. *Collective*, with the
    /// same placement on all ranks.
    pub fn set_placement(&self, placement: Option<&Placement>) -> Result<()> {
        let inner = &self.inner;
        let mine = inner
            .check_open()
            .map(|()| placement.map_or_else(Vec::new, placement_wire::to_wire));
        let call = CollectiveCall::SetPlacement;
        inner
            .collectively(call, || inner.begin_with(call, mine))
            .and_then(|all| agree::same(&all, "the placement"))
            .map_err(|error| inner.name_error(error, "set_placement"))?;
        inner.state.settings.change(|it| {
            it.placement = placement.cloned();
            // Plans are kept for as long as the hints are the same.
            it.hints = Arc::new((*it.hints).clone());
        });
        Ok(())
    }

    /// The components of the placement in a few words.
    pub(super) fn explain_placement(&self) -> String {
        let Some(placement) = self.placement() else {
            return "unknown".to_owned();
        };
        let components = placement.components().iter().map(|component| {
            let Striping { unit, count } = component.striping;
            let servers = match &component.storage {
                Storage::Servers(servers) => format!("servers {servers:?}"),
                Storage::Metadata => "the metadata server".to_owned(),
                Storage::Unallocated => format!("{count} objects that are not allocated yet"),
                Storage::Unknown => format!("{count} servers"),
            };
            let start = component.file.start;
            format!("from byte {start} on, stripes of {unit} bytes on {servers}")
        });
        components.collect::<Vec<_>>().join("; ")
    }
}

impl Inner {
    /// The placement that the file system reported last.
    pub(super) fn reported_placement(&self) -> Option<Placement> {
        let later = self.settings().reported_placement.clone();
        later.or_else(|| self.handle.facts().placement.clone())
    }

    /// Queries the placement again if the file system had not decided all of it: progressive
    /// files on Lustre get stripes when they are written. Rank 0's answer counts, so that all ranks
    /// plan alike. *Collective*; all ranks know the same ranges.
    pub(super) fn refresh_placement(&self) -> Result<()> {
        let Some(known) = self.reported_placement().filter(|it| !it.is_complete()) else {
            return Ok(());
        };
        let wire = agree::broadcast(&*self.comm, Rank(0), || {
            let current = self.handle.current_placement();
            Ok(current.map_or_else(Vec::new, |it| placement_wire::to_wire(&it)))
        })?;
        let current = placement_wire::from_wire(&wire);
        let planned_with = |it: &Placement| (it.fingerprint(), it.sharing_fingerprint());
        if let Some(current) = current.filter(|it| planned_with(it) != planned_with(&known)) {
            self.state.settings.change(|it| {
                it.reported_placement = Some(current);
                // Plans are kept for as long as the hints are the same.
                it.hints = Arc::new((*it.hints).clone());
            });
        }
        Ok(())
    }
}
