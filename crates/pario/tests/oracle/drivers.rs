//! The drivers that files are opened with.

use std::{
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pario_driver::{
    CallAction, CephFs, Driver, Event, Interference, Log, Mapped, Memory, Operation, Posix,
    SystemCall, Throttle, Uring, WrappedDriver,
};
use pario_types::Client;

use crate::probe::Probe;

/// A driver, wrapped or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverKind {
    Posix,
    Uring,
    Mapped,
    Memory,
    /// POSIX on a kernel that cuts every call short and interrupts many.
    Nagging,
    /// Slow enough that accesses overlap in time.
    Throttled,
    /// POSIX with a record of what is written.
    Traced,
    /// POSIX that claims a client of the file system in every process, so that small calls between
    /// nodes go to one rank.
    Library,
    /// POSIX that claims to be one of several NFS clients, so that small pieces are rewritten under
    /// locks.
    Uncached,
    /// CephFS by its library. Not one of all: it needs a cluster.
    #[allow(dead_code, reason = "the test between processes does not use it")]
    CephFs,
}

const LATENCY: Duration = Duration::from_micros(20);
const BYTES_PER_SECOND: NonZeroU64 = NonZeroU64::new(1 << 30).expect("not zero");

impl DriverKind {
    pub(crate) const ALL: [DriverKind; 9] = [
        DriverKind::Posix,
        DriverKind::Uring,
        DriverKind::Mapped,
        DriverKind::Memory,
        DriverKind::Nagging,
        DriverKind::Throttled,
        DriverKind::Traced,
        DriverKind::Library,
        DriverKind::Uncached,
    ];

    pub(crate) fn in_memory(self) -> bool {
        self == DriverKind::Memory
    }

    /// The driver that reaches the file, unless the kernel does.
    pub(crate) fn storage(self) -> Option<Arc<dyn Driver>> {
        match self {
            DriverKind::Memory => Some(Arc::new(Memory::new())),
            DriverKind::CephFs => Some(Arc::new(CephFs::new())),
            _ => None,
        }
    }

    /// Whether the driver claims a file system that is not the one of the files.
    pub(crate) fn assumes(self) -> bool {
        matches!(self, DriverKind::Library | DriverKind::Uncached)
    }

    /// Whether many small transfers take long.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, DriverKind::Throttled | DriverKind::CephFs)
    }

    /// The driver; a trace goes to `log`.
    pub(crate) fn driver(self, log: &Log) -> Arc<dyn Driver> {
        match self {
            DriverKind::Posix => Arc::new(Posix::new()),
            DriverKind::Uring => Arc::new(Uring),
            DriverKind::Mapped => Arc::new(Mapped),
            DriverKind::Memory => Arc::new(Memory::new()),
            DriverKind::CephFs => Arc::new(CephFs::new()),
            DriverKind::Nagging => {
                Arc::new(Posix::new().with_interference(Arc::new(Nag::default())))
            }
            DriverKind::Throttled => {
                let throttle = Throttle::new(LATENCY).bandwidth(BYTES_PER_SECOND);
                Arc::new(WrappedDriver::new(Arc::new(Posix::new()), throttle))
            }
            DriverKind::Library => Probe::with_facts(|facts| facts.client = Client::Library),
            DriverKind::Uncached => Probe::uncached(),
            DriverKind::Traced => Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone())),
        }
    }
}

/// Every third call is interrupted, every other moves half of its bytes.
#[derive(Debug, Default)]
struct Nag(AtomicU64);

impl Interference for Nag {
    fn before(&self, _call: SystemCall, bytes: usize) -> CallAction {
        match self.0.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => CallAction::Fail(libc::EINTR),
            _ if bytes < 2 => CallAction::Proceed,
            _ => CallAction::Shorten(bytes / 2),
        }
    }
}

/// The first byte that was written though nobody asked for it.
pub(crate) fn stray_write(events: &[Event], asked: &[bool]) -> Option<u64> {
    events
        .iter()
        .filter(|event| event.operation == Operation::Write)
        .flat_map(|event| &event.places)
        .flat_map(|(offset, len)| *offset..offset + len)
        .find(|byte| !asked.get(*byte as usize).is_some_and(|asked| *asked))
}
