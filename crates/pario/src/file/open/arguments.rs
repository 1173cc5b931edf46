//! What the ranks agree on before they open a file: mode, name, hints, and how they see the file
//! system.

use std::path::Path;

use pario_driver::{FileSystem, MountView, Sharing};
use pario_hints::{Hints, Info, Sources};
use pario_transport::Transport;

use super::{
    ROOT,
    length_prefixed::{split_at_length, with_length},
};
use crate::{
    Error, ErrorKind, Mode, Result, agree,
    collective_call::CollectiveCall,
    file::{
        deferral, hints,
        sharing::{self, FileSharing},
    },
    machine::MachineProfile,
};

/// Whether all ranks passed the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Names {
    Equal,
    Different,
}

/// What the ranks agree on before they open the file.
pub(super) struct Arguments {
    pub(super) hints: Hints,
    pub(super) names: Names,
    pub(super) sharing: FileSharing,
    pub(super) choice: deferral::Choice,
}

/// One exchange: the modes must be equal, and rank 0's hints are used. `seen` is how this rank sees the
/// file system of the name, or of its directory if the name leads to no other mount on rank 0. If names
/// differ, or what was seen does not fit together, all ranks look up their names in a second exchange.
pub(super) fn agree_on_arguments(
    comm: &dyn Transport,
    path: &Path,
    mode: Mode,
    info: &Info,
    seen: Option<MountView>,
    see_file_system: impl FnOnce(&Hints) -> Option<FileSystem>,
) -> Result<Arguments> {
    let mut resolved = Hints::resolve(info, &Sources::from_environment());
    let mine = mode.validate().map(|()| {
        let hints = &resolved.hints;
        let choice = match comm.rank() {
            ROOT => deferral::Choice::new(hints, comm, || see_file_system(hints)).code(),
            _ => 0,
        };
        let mount = match comm.size() {
            1 => Vec::new(),
            _ => sharing::describe_name(path, hints, seen),
        };
        [
            &mode.bits().to_le_bytes(),
            &[choice][..],
            &MachineProfile::to_send(comm, hints).to_wire(),
            &with_length(&hints.to_wire())[..],
            &with_length(&mount),
            path.as_os_str().as_encoded_bytes(),
        ]
        .concat()
    });
    let all = agree::gather_in(CollectiveCall::Open, comm, mine)?;
    let modes: Vec<Vec<u8>> = all.iter().map(|message| message[..4].to_vec()).collect();
    agree::same(&modes, "the access mode")?;
    let parts: Vec<_> = all.iter().map(|message| taken_apart(message)).collect();
    let names = match parts.iter().all(|[.., name]| *name == parts[0][2]) {
        true => Names::Equal,
        false => Names::Different,
    };
    hints::report(
        comm,
        &resolved.warnings,
        parts.iter().map(|[wire, ..]| *wire),
    );
    if parts[0][0] != parts[comm.rank().index()][0] {
        let theirs = Hints::from_wire(parts[0][0]).map_err(|error| {
            Error::new(ErrorKind::Io, "rank 0 sent hints that cannot be read").with_source(error)
        })?;
        resolved.hints.agree(&theirs);
    }
    MachineProfile::adopt(
        comm,
        |rank| profile(&all[rank.index()]),
        &mut resolved.hints,
    );
    if let Some(looks) = resolved.hints.pario_wait_looks {
        pario_transport::request_looks(u32::try_from(looks).unwrap_or(u32::MAX));
    }
    hints::locate_hosts(comm, &mut resolved.hints)?;
    let seen = FileSharing::of(parts.iter().map(|[_, mount, _]| *mount));
    let sharing = match (&names, &seen.sharing) {
        // Ranks may have seen the directories of their names, from which different names, or equal ones
        // in different working directories, can lead to one file.
        (Names::Different, _) | (_, Sharing::Incoherent(_)) => {
            let mine = sharing::describe_name(path, &resolved.hints, None);
            let all = agree::gather(comm, Ok(mine))?;
            FileSharing::of(all.iter().map(Vec::as_slice))
        }
        _ => seen,
    };
    Ok(Arguments {
        hints: resolved.hints,
        names,
        sharing,
        choice: deferral::Choice::from_code(all[ROOT.index()][4]),
    })
}

/// Where the profile of the machine is in such a message: after the mode and the choice.
const PROFILE_AT: usize = 5;

fn profile(message: &[u8]) -> MachineProfile {
    let wire = message[PROFILE_AT..].first_chunk();
    wire.map_or_else(MachineProfile::default, MachineProfile::from_wire)
}

/// The hints, the mount and the name of such a message.
fn taken_apart(message: &[u8]) -> [&[u8]; 3] {
    let (hints, rest) = split_at_length(&message[PROFILE_AT + MachineProfile::WIRE_BYTES..]);
    let (mount, name) = split_at_length(rest);
    [hints, mount, name]
}

#[cfg(test)]
mod tests {
    use pario_transport::threads;

    use super::*;

    /// A coherent file system that is not that of any file here.
    fn elsewhere() -> MountView {
        let head = [0, 1, 4];
        let numbers = [7_u64, 7].map(u64::to_le_bytes).concat();
        let wire = [&head[..], &numbers, b"kind", b"source"].concat();
        MountView::from_wire(&wire).expect("a view")
    }

    fn sharing_of(seen: impl Fn(u32) -> Option<MountView> + Sync) -> Vec<Sharing> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ranks = threads::run(2, |comm| {
            let seen = seen(comm.rank().0);
            let (path, info) = (file.path(), Info::new());
            agree_on_arguments(&*comm, path, Mode::READ_ONLY, &info, seen, |_| None)
        });
        let agreed = ranks.into_iter().map(|rank| rank.expect("no rank panics"));
        agreed.map(|it| it.unwrap().sharing.sharing).collect()
    }

    /// One rank has looked at the directory of a name that leads out of it.
    #[test]
    fn names_are_looked_up_if_what_was_seen_does_not_fit_together() {
        let one_cache = vec![Sharing::OneCache; 2];
        assert_eq!(sharing_of(|_| None), one_cache);
        assert_eq!(sharing_of(|_| Some(elsewhere())), one_cache);
        assert_eq!(sharing_of(|rank| (rank == 1).then(elsewhere)), one_cache);
        assert_eq!(sharing_of(|rank| (rank == 0).then(elsewhere)), one_cache);
    }
}
