//! One collective write and one read by one method, and the requests that came of them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use pario::{Basic, Datatype, File, Info, Mode, View};
use pario_driver::{
    Access, Create, Driver, Handle, Log, OpenHow, ServerCount, Storage, StripingRequest,
    WrappedDriver,
};
use pario_transport::threads::World;
use pario_types::{Placement, Striping};

use super::osds::Records;
use super::request::{Request, of_transfers};
use super::{Arguments, Method, is_complete};
use crate::failure::Failure;

/// How many files are created to find one with every stripe on a server of its own. CephFS places objects by a hash:
/// of 4 on 4 servers, all are on different ones in 9 % of the files.
const FILES_MAX: u32 = 500;

/// How long OSDs may take to record requests that they have carried out.
const RECORDING_MAX: Duration = Duration::from_secs(10);
const RECORDING_POLL: Duration = Duration::from_millis(50);

/// A new file whose stripes are on different servers, removed when dropped.
struct NewFile {
    driver: Arc<dyn Driver>,
    path: PathBuf,
    placement: Placement,
    /// Its number, if the file system has one by which its servers know it.
    inode: Option<u64>,
}

/// The requests of a method, in the order of each server.
pub(super) fn run(
    arguments: &Arguments,
    method: &Method,
    nodes: u32,
    records: Option<&Records>,
) -> Result<Vec<Request>, Failure> {
    let failed = |reason: String| Failure::Method {
        method: method.name(),
        reason,
    };
    let file = NewFile::create(arguments).map_err(failed)?;
    let log = Log::new();
    let traced: Arc<dyn Driver> = Arc::new(WrappedDriver::new(file.driver.clone(), log.clone()));
    let ranks = arguments.ranks;
    let of_node: Vec<u32> = (0..ranks).map(|rank| rank * nodes / ranks).collect();
    let results = World::new(ranks).nodes(&of_node).run(|comm| {
        let opened = File::open_with(
            &comm,
            traced.clone(),
            &file.path,
            Mode::READ_WRITE,
            &hints(arguments, method)?,
        )?;
        if opened.placement().is_none() {
            opened.set_placement(Some(&file.placement))?;
        }
        let rank = comm.rank().0;
        opened.set_view(&view(arguments, rank)?)?;
        let data = vec![rank as u8 + 1; arguments.bytes_per_rank()];
        opened.write_at_all(0, &data[..])?;
        let mut back = vec![0; data.len()];
        opened.read_at_all(0, &mut back[..])?;
        opened.close()?;
        Ok::<_, pario::Error>(back == data)
    });
    for result in results {
        let result = result.map_err(|panic| failed(panic.to_string()))?;
        if !result.map_err(|error| failed(error.to_string()))? {
            return Err(Failure::Wrong {
                method: method.name(),
                fault: "a rank did not read what it wrote".to_owned(),
            });
        }
    }
    match (records, file.inode) {
        (Some(records), Some(inode)) => recorded(records, inode, arguments)
            .map_err(|error| failed(format!("cannot ask the OSDs: {error}"))),
        (Some(_), None) => Err(failed(
            "only files of the driver cephfs have OSDs".to_owned(),
        )),
        (None, _) => Ok(of_transfers(log.take(), &file.placement)),
    }
}

/// The requests that the OSDs have recorded. A thread of theirs makes the records some time after the requests.
fn recorded(records: &Records, inode: u64, arguments: &Arguments) -> io::Result<Vec<Request>> {
    let started = Instant::now();
    loop {
        let requests = records.requests(inode)?;
        if is_complete(arguments, &requests) || started.elapsed() > RECORDING_MAX {
            return Ok(requests);
        }
        thread::sleep(RECORDING_POLL);
    }
}

fn hints(arguments: &Arguments, method: &Method) -> pario::Result<Info> {
    let mut hints = vec![
        ("pario_algorithm", method.algorithm.to_owned()),
        ("cb_buffer_size", arguments.window.to_string()),
        // Past the client's cache, which would merge and delay requests.
        ("direct_read", "true".to_owned()),
        ("direct_write", "true".to_owned()),
    ];
    if let Some(partition) = method.partition {
        hints.push(("pario_partition", partition.to_owned()));
    }
    let pairs = hints.iter().map(|(name, value)| (*name, value.as_str()));
    Ok(Info::from_pairs(pairs)?)
}

/// Every `ranks`-th piece.
fn view(arguments: &Arguments, rank: u32) -> pario::Result<View> {
    let byte = Datatype::basic(Basic::Byte);
    let piece = Datatype::contiguous(arguments.piece, &byte)?;
    let period = arguments.piece * u64::from(arguments.ranks);
    let tile = Datatype::resized(&piece, 0, period as i64)?;
    Ok(View::new(u64::from(rank) * arguments.piece, &byte, &tile))
}

impl NewFile {
    fn create(arguments: &Arguments) -> Result<NewFile, String> {
        let resolved = pario_driver::resolve(&arguments.directory, None);
        let resolved = resolved.map_err(|error| error.to_string())?;
        let striping = Striping {
            unit: arguments.unit,
            count: arguments.servers.into(),
        };
        let request = StripingRequest {
            servers: Some(ServerCount::Exactly(arguments.servers)),
            unit: Some(arguments.unit),
            ..StripingRequest::default()
        };
        let how = OpenHow::new(Access::ReadWrite)
            .create(Create::Exclusive)
            .striping(request);
        for attempt in 0..FILES_MAX {
            let name = format!("pario-servers-{}-{attempt}", std::process::id());
            let path = resolved.path.join(name);
            let created = resolved.driver.open(&path, &how);
            let created = created.map_err(|error| format!("cannot create {path:?}: {error}"))?;
            let placement = created.facts().placement.clone();
            let file = NewFile {
                driver: resolved.driver.clone(),
                path,
                inode: inode(&*created),
                placement: placement.unwrap_or_else(|| Placement::uniform(striping)),
            };
            let closed = created.close();
            closed.map_err(|error| format!("cannot close {:?}: {error}", file.path))?;
            if file.placement.striping() != striping {
                let Striping { unit, count } = file.placement.striping();
                return Err(format!(
                    "a new file has {count} stripes of {unit} bytes: set --servers and --unit to that"
                ));
            }
            if file.is_on_different_servers() {
                return Ok(file);
            }
        }
        Err(format!(
            "none of {FILES_MAX} new files had its stripes on {} servers",
            arguments.servers
        ))
    }

    fn is_on_different_servers(&self) -> bool {
        match &self.placement.components()[0].storage {
            Storage::Servers(servers) => {
                let mut different = servers.clone();
                different.sort_unstable();
                different.dedup();
                different.len() == servers.len()
            }
            Storage::Metadata | Storage::Unallocated | Storage::Unknown => true,
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Err(error) = self.driver.delete(&self.path) {
            eprintln!("pario: cannot remove {:?}: {error}", self.path);
        }
    }
}

/// The number in the path by which other processes open a file of the driver cephfs.
fn inode(file: &dyn Handle) -> Option<u64> {
    file.node_path()?
        .strip_prefix("//inode")
        .ok()?
        .to_str()?
        .parse()
        .ok()
}
