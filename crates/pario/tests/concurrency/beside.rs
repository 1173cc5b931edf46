//! Ranks that write pieces while other processes write into the holes.

use std::{
    fs, io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pario::{File, Info};
use pario_driver::{Driver, FileSystem, Posix};
use pario_transport::{Transport, threads};
use tempfile::TempDir;

use crate::{
    NEW, begin_case,
    careless::{Careless, Locks},
    directories::{directories, with_leases},
    disjoint::Open,
    neighbour::{self, Expected, Grid, StoreCount, Work, write_holes, write_pieces},
    run,
    ways::{Locking, Mapping, Way},
};

/// The argument with which this program is a neighbour: the file, the number of ranks, the grid, how
/// the neighbour writes and which one it is follow.
pub(crate) const ROLE: &str = "neighbour";

const GRIDS: [fn(u32) -> Grid; 2] = [Grid::records, Grid::blocks];
const RECORDS: usize = 0;

/// How neighbours write: by calls, by calls under locks, through a mapping, or by this library, on a
/// file system of the [`FILE_SYSTEMS`].
const CALLS: &str = "calls";
const LOCKS: &str = "locks";
const MAPPING: &str = "mapping";

/// Those on which gaps are rewritten under locks.
pub(crate) const FILE_SYSTEMS: &[&str] = &["gluster", "ceph-fuse"];

/// A file that is assumed to be on one of the [`FILE_SYSTEMS`].
fn posix_on(file_system: &str) -> Posix {
    let subtype = || file_system.to_owned();
    Posix::new().assuming(match file_system {
        "gluster" => FileSystem::Gluster,
        _ => FileSystem::Fuse { subtype: subtype() },
    })
}

const NEIGHBOUR_LOST: &str = "a neighbour lost what it wrote";

/// What ranks and neighbours do.
struct Case<'a> {
    ranks: u32,
    grid: usize,
    neighbours: &'a [&'a str],
    info: Info,
    expected: Expected,
}

impl Case<'_> {
    /// Runs forked ranks beside the neighbours; returns what anyone has lost.
    fn complaints(&self, path: &Path, open: Open<'_>) -> Vec<String> {
        begin_case();
        let numbered = self.neighbours.iter().enumerate();
        let neighbours: Vec<_> = numbered
            .map(|(number, way)| self.start(path, way, number))
            .collect();
        let work = Work {
            expected: self.expected.clone(),
            ..Work::new(GRIDS[self.grid](self.ranks), self.info.clone())
        };
        let have_begun = || (0..self.neighbours.len()).all(|it| sign(path, it).exists());
        let mut complaints = run(self.ranks, |comm| {
            write_pieces(comm, open, &work, &have_begun)
        });
        for (mut neighbour, way) in neighbours.into_iter().zip(self.neighbours) {
            drop(neighbour.stdin.take());
            if !neighbour.wait().unwrap().success() {
                complaints.push(format!("{NEIGHBOUR_LOST} by {way}"));
            }
        }
        complaints
    }

    fn lost_with(&self, driver: &Arc<dyn Driver>, path: &Path) -> Vec<String> {
        self.complaints(path, &|comm, info| {
            File::open_with(comm, driver.clone(), path, NEW, info)
        })
    }

    fn start(&self, path: &Path, way: &str, number: usize) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args([ROLE, path.to_str().unwrap()])
            .args([self.ranks as usize, self.grid].map(|number| number.to_string()))
            .args([way, &number.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// The file by which a neighbour says that it has begun.
fn sign(path: &Path, neighbour: usize) -> PathBuf {
    path.with_extension(neighbour.to_string())
}

/// What a neighbour does until its standard input ends.
pub(crate) fn be_neighbour(arguments: &[&str]) -> ExitCode {
    let [path, ranks, grid, way, number] = arguments else {
        return ExitCode::FAILURE;
    };
    let grid = GRIDS[grid.parse::<usize>().unwrap()](ranks.parse().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = stop.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        stop.store(true, Ordering::Release);
    });
    let (path, number) = (Path::new(path), number.parse().unwrap());
    let lost = threads::run(1, |comm| {
        write_holes(
            || open_by(way, path, &grid, &comm),
            (&grid, number),
            || fs::write(sign(path, number), []).unwrap(),
            || is_over.load(Ordering::Acquire),
        )
    });
    match lost[..] {
        [Ok(None)] => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn open_by(
    way: &str,
    path: &Path,
    grid: &Grid,
    comm: &Arc<dyn Transport>,
) -> io::Result<Box<dyn Way>> {
    let file = || fs::File::options().read(true).write(true).open(path);
    Ok(match way {
        CALLS => Box::new(file()?),
        LOCKS => Box::new(Locking(file()?)),
        MAPPING => Box::new(Mapping::new(path, grid.end())?),
        file_system => {
            // Not before the ranks have written, so that they have set their views: they could not
            // rewrite.
            let mut first = [0];
            file()?.read_exact_at(&mut first, 0)?;
            if first == [0] {
                return Err(io::ErrorKind::NotFound.into());
            }
            let driver = Arc::new(posix_on(file_system));
            Box::new(File::open_with(comm, driver, path, NEW, &Info::new()).unwrap())
        }
    })
}

/// What goes wrong in any of some directories.
fn in_each<C>(directories: &[TempDir], test: impl Fn(&Path) -> C) -> Vec<String>
where
    C: IntoIterator<Item = String>,
{
    let mut complaints = Vec::new();
    for directory in directories {
        let directory = tempfile::tempdir_in(directory).unwrap();
        let path = directory.path().join("file");
        let of_this = test(&path).into_iter();
        complaints.extend(of_this.map(|it| format!("{}: {it}", path.display())));
    }
    complaints
}

/// Programs that know nothing of this library and take no locks.
const STRANGERS: [&[&str]; 2] = [&[CALLS], &[MAPPING]];

pub(crate) fn neighbours(seed: u64, prefix: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for grid in 0..GRIDS.len() {
        for neighbours in STRANGERS {
            let case = Case {
                ranks: 1 + seed as u32 % 3,
                grid,
                neighbours,
                info: neighbour::info(),
                expected: Expected::Anything,
            };
            complaints.extend(in_each(&directories(), |path| {
                let name = format!("{prefix}{}", path.display());
                case.complaints(path, &|comm, info| File::open(comm, &name, NEW, info))
            }));
        }
    }
    complaints
}

/// Records are stored, however busy the machine is.
pub(crate) fn stores(seed: u64, _variant: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for neighbours in STRANGERS {
        let stores = Arc::new(StoreCount::default());
        let driver: Arc<dyn Driver> = Arc::new(Posix::new().with_interference(stores.clone()));
        let case = Case {
            ranks: 1 + seed as u32 % 3,
            grid: RECORDS,
            neighbours,
            info: neighbour::storing(),
            expected: Expected::Stores(stores),
        };
        complaints.extend(in_each(&directories(), |path| {
            case.lost_with(&driver, path)
        }));
    }
    complaints
}

/// Programs that lock what they write, and a handle of this library in another process.
pub(crate) fn rewriting_under_locks(seed: u64, file_system: &str) -> Vec<String> {
    let driver = Careless::over(posix_on(file_system), Locks::Kept);
    let case = Case {
        ranks: 1 + seed as u32 % 3,
        grid: RECORDS,
        neighbours: &[LOCKS, file_system],
        info: Info::new(),
        expected: Expected::Rewrites,
    };
    in_each(&directories(), |path| case.lost_with(&driver, path))
}

/// Every neighbour loses bytes beside ranks that have no locks and forge leases.
pub(crate) fn can_fail(_seed: u64, _variant: &str) -> Vec<String> {
    let forging = Careless::over(Posix::new(), Locks::Ignored);
    let mut complaints = Vec::new();
    for ranks in [1, 3] {
        for way in [CALLS, MAPPING] {
            complaints.extend(in_each(&with_leases(), |path| {
                complaint_if_kept(ranks, way, &forging, path)
            }));
        }
        for file_system in FILE_SYSTEMS {
            let careless = Careless::over(posix_on(file_system), Locks::Ignored);
            for way in [LOCKS, file_system] {
                complaints.extend(in_each(&directories(), |path| {
                    complaint_if_kept(ranks, way, &careless, path)
                }));
            }
        }
    }
    complaints
}

/// Complains if a neighbour loses nothing, however often it is tried.
fn complaint_if_kept(
    ranks: u32,
    way: &str,
    driver: &Arc<dyn Driver>,
    path: &Path,
) -> Option<String> {
    let case = Case {
        ranks,
        grid: RECORDS,
        neighbours: &[way],
        info: neighbour::info(),
        expected: Expected::Anything,
    };
    let loses = |attempt: u32| {
        let path = path.with_file_name(attempt.to_string());
        let lost = case.lost_with(driver, &path);
        lost.iter().any(|it| it.starts_with(NEIGHBOUR_LOST))
    };
    let is_kept = !(0..20).any(loses);
    is_kept.then(|| format!("{ranks} ranks beside {way} must lose bytes"))
}
