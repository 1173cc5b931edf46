//! What the ranks agree on before they open a file: mode, name, hints, and how they see the file
//! system.

use std::path::Path;

use pario_driver::{FileSystem, MountView};
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

/// One exchange, unless names differ: the modes must be equal, and rank 0's hints are used. `seen` is how
/// this rank sees the file system of the name, or, if all names are equal, of its directory.
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
    let sharing = match names {
        Names::Equal => FileSharing::of(parts.iter().map(|[_, mount, _]| *mount)),
        // What a rank has seen may be the directory of its name, and the directories may differ.
        Names::Different => {
            let mine = sharing::describe_name(path, &resolved.hints, None);
            let all = agree::gather_in(CollectiveCall::Open, comm, Ok(mine))?;
            FileSharing::of(all.iter().map(Vec::as_slice))
        }
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
