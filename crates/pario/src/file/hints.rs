//! Hints of an open file: warnings about them, and the nodes that they name.

use pario_driver::{
    Component, Creation, ExpectedUse, Facts, FileSystem, Handle, Placement, ServerCount, Storage,
    Striping, StripingRequest,
};
use pario_hints::{Hints, Info, Source, Warning};
use pario_plan::requested_aggregators;
use pario_transport::{Rank, Transport};

use crate::{
    Mode, Result,
    warning::{speaks_for, warn},
};

/// Warns about hints that are ignored or that differ between ranks. One rank warns for all, so
/// that each warning appears once; `wires` are the hints of every rank.
pub(super) fn report<'a>(
    comm: &dyn Transport,
    warnings: &[Warning],
    wires: impl Iterator<Item = &'a [u8]> + Clone,
) {
    for warning in warnings {
        if speaks_for(comm, &warning.source) {
            warn(&warning.to_string());
        }
    }
    let Some(first) = wires.clone().next() else {
        return;
    };
    let mut others: Vec<_> = wires.filter(|wire| *wire != first).collect();
    // Hints differ because the ranks passed different ones.
    if others.is_empty() || !speaks_for(comm, &Source::Call) {
        return;
    }
    others.sort_unstable();
    others.dedup();
    let Ok(hints) = Hints::from_wire(first) else {
        return;
    };
    let mut reported = Vec::new();
    for theirs in others
        .into_iter()
        .filter_map(|wire| Hints::from_wire(wire).ok())
    {
        for difference in theirs.differences(&hints) {
            // One example per hint.
            if !reported.contains(&difference.hint) {
                warn(&difference.to_string());
                reported.push(difference.hint);
            }
        }
    }
}

/// Determines the nodes whose host names `cb_config_list` contains. *Collective*, with hints
/// that the ranks have agreed on.
pub(super) fn locate_hosts(comm: &dyn Transport, hints: &mut Hints) -> Result<()> {
    let source = source_of(hints, "cb_config_list");
    let Some(list) = hints.cb_config_list.as_mut().filter(|it| it.has_hosts()) else {
        return Ok(());
    };
    let own = rustix::system::uname();
    let names = comm.all_gather(own.nodename().to_bytes())?;
    let names: Vec<_> = names.iter().map(|it| String::from_utf8_lossy(it)).collect();
    let nodes = nodes(comm);
    list.locate(nodes.iter().copied().zip(names.iter().map(|name| &**name)));
    let alone: Vec<_> = nodes.into_iter().map(|node| (node, vec![0])).collect();
    if list.eligible(&alone).is_empty() && speaks_for(comm, &source) {
        warn(&format!(
            "the hint cb_config_list={list} is ignored: no rank runs on a host that it allows (rank 0 runs on {})",
            names[0]
        ));
    }
    Ok(())
}

fn source_of(hints: &Hints, hint: &str) -> Source {
    hints.source(hint).cloned().unwrap_or(Source::Default)
}

/// The node of each rank.
fn nodes(comm: &dyn Transport) -> Vec<u32> {
    let ranks = 0..comm.size();
    ranks.map(|rank| comm.node_of(Rank(rank)).0).collect()
}

/// The placement of a new file that hints request, or what to choose one from.
pub(super) fn striping_request(comm: &dyn Transport, mode: Mode, hints: &Hints) -> StripingRequest {
    if !mode.contains(Mode::CREATE) {
        return StripingRequest::default();
    }
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let request = StripingRequest {
        servers: match hints.striping_factor {
            None | Some(0) => None,
            Some(count) => {
                Some(u32::try_from(count).map_or(ServerCount::All, ServerCount::Exactly))
            }
        },
        unit: hints.striping_unit.filter(|unit| *unit > 0),
        first_server: hints.start_iodevice.and_then(|it| u32::try_from(it).ok()),
        pool: hints.pario_pool.clone(),
        stripes_per_server: small(hints.overstriping_ratio),
        expected: None,
    };
    if request.is_explicit() || !hints.pario_choose_striping {
        return request;
    }
    let mut nodes = nodes(comm);
    nodes.sort_unstable();
    nodes.dedup();
    // Ranks on one node are served by one client.
    let expected = (nodes.len() > 1).then(|| ExpectedUse {
        nodes: small(nodes.len() as u64),
        bytes: hints.pario_expected_size,
    });
    StripingRequest {
        expected,
        ..request
    }
}

/// Warns if a new file does not have the striping that was requested. The rank that created it
/// knows.
pub(super) fn report_striping(comm: &dyn Transport, mode: Mode, hints: &Hints, file: &dyn Handle) {
    match file.creation() {
        Some(Creation::Refused { reason }) => warn(&format!(
            "the striping hints are not honoured, and the file has the default striping: {reason}"
        )),
        Some(_) => {}
        None => {
            if mode.contains(Mode::CREATE)
                && let Some(warning) = missed_striping(hints, file.facts())
                && speaks_for(comm, &source_of(hints, "striping_factor"))
            {
                warn(&warning);
            }
        }
    }
}

fn missed_striping(hints: &Hints, facts: &Facts) -> Option<String> {
    // 0 asks for the file system's default.
    let factor = hints.striping_factor.filter(|count| *count != 0);
    let unit = hints.striping_unit.filter(|unit| *unit != 0);
    let is_met = facts.striping.is_some_and(|it| {
        factor.is_none_or(|count| u64::try_from(count) == Ok(it.count))
            && unit.is_none_or(|unit| unit == it.unit)
    });
    let is_settable = facts.file_system.sets_stripes();
    if factor.is_none() && unit.is_none()
        || is_met
        || is_settable
        || !facts.file_system.stripes_files()
    {
        return None;
    }
    Some(format!(
        "the hints striping_factor and striping_unit are not honoured: pario leaves the striping of new files to \
         {}; set it for the directory with the file system's own tools",
        facts.file_system
    ))
}

/// Adds what is known about an open file to its hints, under ROMIO's names.
pub(super) fn publish(info: &mut Info, comm: &dyn Transport, hints: &Hints, facts: &Facts) {
    // Numbers and short words always fit into an info value.
    let mut set = |key: &str, value: String| drop(info.set(key, &value));
    // Only if they do not depend on the call.
    if let Some(ranks) = requested_aggregators(&nodes(comm), hints) {
        set("cb_nodes", ranks.len().to_string());
        let ranks: Vec<_> = ranks.iter().map(u32::to_string).collect();
        set("romio_aggregator_list", ranks.join(" "));
    }
    if let Some(Striping { unit, count }) = facts.striping {
        set("striping_factor", count.to_string());
        set("striping_unit", unit.to_string());
    }
    if let (FileSystem::Lustre, Some(placement)) = (&facts.file_system, &facts.placement) {
        publish_layout(info, hints, placement);
    }
}

/// Adds the layout of a file on Lustre, so that a new file that is opened with this info gets the
/// same one, whatever this file's hints requested.
fn publish_layout(info: &mut Info, hints: &Hints, placement: &Placement) {
    let mut set = |key: &str, value: &str| drop(info.set(key, value));
    let (servers, ratio) = overstriping(placement.longest());
    set("striping_factor", &servers.to_string());
    set("overstriping_ratio", &ratio.to_string());
    // New files need not start on the same server unless the program asked for one.
    if let (Some(_), Some(first)) = (hints.start_iodevice, first_server(placement)) {
        set("start_iodevice", &first.to_string());
    }
    match placement.pool() {
        Some(pool) => set("pario_pool", pool),
        // It fails if the program asked for none.
        None => drop(info.remove("pario_pool")),
    }
}

/// A number of servers and of stripes per server that request as many stripes as a component has,
/// with several on one server if that is so.
fn overstriping(component: &Component) -> (u64, u64) {
    let stripes = component.striping.count;
    let Storage::Servers(servers) = &component.storage else {
        return (stripes, 1);
    };
    let mut distinct = servers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let most = stripes.div_ceil(distinct.len().max(1) as u64);
    let ratio = (most..stripes).find(|ratio| stripes.is_multiple_of(*ratio));
    let ratio = ratio.unwrap_or(stripes);
    (stripes / ratio, ratio)
}

/// The server of a file's first stripe, if known.
fn first_server(placement: &Placement) -> Option<u32> {
    match &placement.components()[0].storage {
        Storage::Servers(servers) => servers.first().copied(),
        Storage::Metadata | Storage::Unallocated | Storage::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pario_driver::{Client, LockReach};
    use pario_hints::Sources;

    fn hints(pairs: &[(&str, &str)]) -> Hints {
        let info = Info::from_pairs(pairs.iter().copied()).unwrap();
        Hints::resolve(&info, &Sources::none()).hints
    }

    #[test]
    fn servers_and_stripes_per_server_request_the_same_stripes() {
        let of = |servers: &[u32]| {
            overstriping(&Component {
                file: 0..u64::MAX,
                striping: Striping {
                    unit: 1 << 20,
                    count: servers.len() as u64,
                },
                storage: Storage::Servers(servers.to_vec()),
            })
        };
        assert_eq!(of(&[3]), (1, 1));
        assert_eq!(of(&[3, 0, 1]), (3, 1));
        assert_eq!(of(&[0, 1, 2, 3, 0, 1, 2, 3]), (4, 2));
        // Not the same number on each: the product still counts.
        assert_eq!(of(&[0, 1, 2, 0, 1, 2, 0, 1]), (2, 4));
        assert_eq!(of(&[0, 1, 0]), (1, 3));
    }

    #[test]
    fn striping_that_is_not_honoured_is_reported() {
        let of = |file_system: FileSystem| Facts {
            coherence: file_system.coherence(),
            file_system,
            mount_point: None,
            block_size: 4096,
            direct_alignment: None,
            striping: None,
            placement: None,
            lock_granularity: None,
            client: Client::Kernel,
            source: String::new(),
            locks: LockReach::Everywhere,
        };
        let mut facts = of(FileSystem::PanFs);
        let missed = |pairs: &[(&str, &str)], facts: &Facts| missed_striping(&hints(pairs), facts);
        let wide = &[("striping_factor", "8"), ("striping_unit", "1m")];
        assert!(missed(wide, &facts).unwrap().contains("panfs"));
        // An existing file keeps its striping where new ones get the requested one.
        assert_eq!(missed(wide, &of(FileSystem::Lustre)), None);
        assert!(missed(&[("striping_factor", "-1")], &facts).is_some());
        assert_eq!(missed(&[], &facts), None);
        assert_eq!(missed(&[("striping_factor", "0")], &facts), None);
        // The directory has the requested striping.
        facts.striping = Some(Striping {
            unit: 1 << 20,
            count: 8,
        });
        assert_eq!(missed(wide, &facts), None);
        assert!(missed(&[("striping_factor", "4")], &facts).is_some());
        // Nothing is lost if files are not striped.
        facts = of(FileSystem::Ext);
        assert_eq!(missed(wide, &facts), None);
    }
}
