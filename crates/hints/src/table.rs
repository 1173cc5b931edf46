//! The table of all hints. To add one, add one entry.

use pario_types::{Client, LockProtocol};

use crate::config_list::ConfigList;
use crate::definition::{Definition, Group, Moment, Scope};
use crate::domain::*;
use crate::source::Source;
use crate::style::AccessStyle;
use crate::words::{
    AccessMethod, AsyncMethod, Buffering, Exchange, Rmw, ScatteredWrites, SharedPointer, Sieving,
    StagedCopies,
};

macro_rules! hints {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty = $default:expr, $domain:expr;
        $group:ident, $scope:ident, $moment:ident $(, alias $alias:literal)*;
    )+) => {
        /// The hints in force for a file.
        ///
        /// Fields that are assigned directly keep their source;
        /// [`Hints::adjust`] changes fields and records the reason.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Hints {
            $( $(#[doc = $doc])+ pub $name: $type, )+
            /// Where each value came from, in the order of [`Hints::DEFINITIONS`].
            pub(crate) sources: [Source; COUNT],
        }

        const COUNT: usize = [$(stringify!($name)),+].len();

        impl Default for Hints {
            fn default() -> Hints {
                Hints { $( $name: $default, )+ sources: [const { Source::Default }; COUNT] }
            }
        }

        impl Hints {
            /// The definition of each hint, in the order of the documentation.
            pub const DEFINITIONS: &'static [Definition] = &[$( Definition {
                name: stringify!($name),
                aliases: &[$($alias),*],
                doc: &[$($doc),+],
                group: Group::$group,
                scope: Scope::$scope,
                moment: Moment::$moment,
                allowed: || $domain.allowed(),
                set: |hints, text| {
                    hints.$name = $domain.parse(text)?;
                    Some(())
                },
                get: |hints| $domain.format(&hints.$name),
                copy: |hints, from| hints.$name.clone_from(&from.$name),
            } ),+];
        }
    };
}

/// A larger buffer is a typing error.
const BUFFER_MAX: u64 = 64 * GIB;

/// `pario_call_bytes` if it is neither set nor measured.
const CALL_BYTES: u64 = 8 * KIB;
/// `pario_cache_bytes` if it is neither set nor known.
const CACHE_BYTES: u64 = 512 * KIB;
/// The values of `pario_cache_bytes`.
pub(crate) const CACHE_RANGE: std::ops::RangeInclusive<u64> = 64 * KIB..=GIB;
/// Window sizes, in calls: their time is then a few percent of that of the copies.
const CALLS_PER_WINDOW: u64 = 32;
/// The range of window sizes that are chosen.
const WINDOW_BYTES: std::ops::RangeInclusive<u64> = 64 * KIB..=MIB;

/// The kinds of accesses that differ in the longest extents that are sieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SievedAccess {
    /// A read of a file in memory. The kernel copies files of tmpfs page by page.
    MemoryRead,
    /// A write to such a file. Sieving reads it first.
    MemoryWrite,
    /// A local file system with storage. The units of its cache are larger, and data that is not
    /// in it is better read in one call.
    LocalStorage,
    /// Any other: a call is assumed to take longer.
    Other,
}

impl SievedAccess {
    /// `pario_sieve_extent` if it is not set, in eighths of a call.
    ///
    /// Pieces of 0.5 to 4 KB took the same time with and without sieving, where a call counted as
    /// much as 8 KiB, at extents of 5 to 9 KB in reads from tmpfs, 3 to 8 KB in writes to it, and 8
    /// to 14 KB on ext4. The last value was not measured.
    fn eighths_of_call(self) -> u64 {
        match self {
            SievedAccess::MemoryRead => 6,
            SievedAccess::MemoryWrite => 5,
            SievedAccess::LocalStorage => 12,
            SievedAccess::Other => 16,
        }
    }
}

impl Hints {
    /// The number of bytes that are copied in the time of a system call.
    pub fn call_bytes(&self) -> u64 {
        self.pario_call_bytes.unwrap_or(CALL_BYTES)
    }

    /// The length of a piece with the gap after it up to which an access is sieved.
    pub fn sieve_extent(&self, access: SievedAccess) -> u64 {
        self.pario_sieve_extent
            .unwrap_or_else(|| access.eighths_of_call() * self.call_bytes() / 8)
    }

    /// The size of a window that stays in a core's cache, of which the other half is left to the
    /// data, and in which calls cost little: what `pario_slice_bytes` is for few ranks.
    pub fn cached_window_bytes(&self) -> u64 {
        let cache = self.pario_cache_bytes.unwrap_or(CACHE_BYTES);
        let enough = CALLS_PER_WINDOW.saturating_mul(self.call_bytes());
        let power = enough.min(cache / 2).checked_ilog2().unwrap_or(0);
        (1 << power).clamp(*WINDOW_BYTES.start(), *WINDOW_BYTES.end())
    }
}

hints! {
    /// Buffer size for sieved reads: each system call reads that much of the
    /// file, and the requested pieces are copied out. If it is not set, files of
    /// local file systems are read `pario_slice_bytes` at a time, or what that
    /// is for few ranks.
    ind_rd_buffer_size: u64 = 4 * MIB, Bytes(1..=BUFFER_MAX);
    Noncontiguous, Rank, Always;

    /// Buffer size for sieved writes (read, modify, write back). It is also the
    /// range that is locked at once; where a lock is a request to a server, up to
    /// four times that range is locked at once.
    ind_wr_buffer_size: u64 = 512 * KIB, Bytes(1..=BUFFER_MAX);
    Noncontiguous, Rank, Always;

    /// Whether reads may be sieved. `enable` sieves every non-contiguous read,
    /// `disable` none, `automatic` those whose pattern suggests it.
    /// `pario_read_method` takes precedence unless it is `automatic`.
    romio_ds_read: Sieving = Sieving::Automatic, Words::<Sieving>::ANY;
    Noncontiguous, File, Always;

    /// Whether writes may be sieved. A sieved write also writes back bytes
    /// that it only read, so whatever the value, writes are sieved only if
    /// `pario_rmw` or the access mode `UNIQUE_OPEN` allows it, and in a
    /// write-only file only on NFS, if the user may read it.
    /// `pario_write_method` takes precedence unless it is `automatic`.
    romio_ds_write: Sieving = Sieving::Automatic, Words::<Sieving>::ANY;
    Noncontiguous, File, Always;

    /// Method for non-contiguous reads: one call per piece (`direct`),
    /// vectored or batched calls (`list`), whole extents through a buffer
    /// (`sieve`), or whichever suits the access (`automatic`).
    pario_read_method: Option<AccessMethod> = None, Automatic(Words::<AccessMethod>::ANY);
    Noncontiguous, File, Always, alias "pario_way_read";

    /// Method for non-contiguous writes, likewise. `sieve` becomes `list`
    /// where sieved writes are not allowed.
    pario_write_method: Option<AccessMethod> = None, Automatic(Words::<AccessMethod>::ANY);
    Noncontiguous, File, Always, alias "pario_way_write";

    /// Maximum number of pieces per vectored or batched call.
    pario_list_pieces: u64 = 4096, Number(1..=MIB);
    Noncontiguous, Rank, Always;

    /// The automatic choice sieves if a piece and the gap after it together
    /// are at most this long on average. Beyond that, separate calls are
    /// faster however dense the data. `automatic` is 3/4 of `pario_call_bytes`
    /// in reads from tmpfs, 5/8 in writes to it, 3/2 on other local file
    /// systems (2 where whole blocks are rewritten), and 2 elsewhere: usually 6,
    /// 5, 12 and 16 KiB.
    pario_sieve_extent: Option<u64> = None, Automatic(Bytes(0..=BUFFER_MAX));
    Noncontiguous, File, Always, alias "romio_cb_ds_threshold";

    /// The automatic choice sieves only if at least this percentage of the
    /// bytes between the first and the last is requested.
    pario_sieve_density: u64 = 5, Number(0..=100);
    Noncontiguous, File, Always;

    /// Whether writes may read, modify and write back a range. `never`
    /// restricts this to files opened with `UNIQUE_OPEN`, which have no other
    /// writers. `locked` allows it everywhere; in return every write on the
    /// handle, contiguous ones included, locks its range, or is part of a
    /// collective call that has locked it: a lock that only
    /// one side takes would protect nothing. `automatic` is `never`, except that
    /// on NFS seen through several clients, on GlusterFS and on CephFS through
    /// FUSE it is `locked` while the view of any rank has small pieces with gaps:
    /// every piece would be a request to a server otherwise. On local file
    /// systems, it also lets ranks on one node write back gaps under a lease of
    /// the kernel, which shows that nobody else has the file open. Whoever opens
    /// the file at that moment waits for a few milliseconds. Independent writes
    /// of several ranks then use one open description of the file.
    pario_rmw: Rmw = Rmw::Automatic, Words::<Rmw>::ANY;
    Noncontiguous, File, Open;

    /// How a large number of small pieces with gaps between them is written
    /// where sieving is not possible. `automatic`: on local file systems, the
    /// kernel copies up to 1024 pieces per call into a mapping of the file if
    /// there are at least `pario_stored_pieces` per page; nothing but the pieces
    /// is written. `calls`: one call per contiguous run, for libraries that
    /// intercept file calls and have to see all of them; `pario_async=pool`
    /// implies it.
    pario_scattered_writes: ScatteredWrites = ScatteredWrites::Automatic, Words::<ScatteredWrites>::ANY;
    Noncontiguous, Rank, Open;

    /// Whether data in memory that starts a few bytes past the page boundaries
    /// of the file, as large blocks from `malloc` do, is copied through another
    /// buffer. On some processors the kernel's copy runs at half its speed or
    /// less then, and two copies are faster. `automatic` measures which is
    /// faster, when a process first moves such data; `pario doctor` prints the
    /// result.
    pario_staged_copies: StagedCopies = StagedCopies::Automatic, Words::<StagedCopies>::ANY;
    Machine, Rank, Always;

    /// Number of bytes that are copied in the time of a system call. Pieces of
    /// half this size and more are moved by a call each where ranks do not
    /// interleave; interleaved ones from this size on if they are read, from
    /// twice this size on if at most four ranks write them to a file on tmpfs,
    /// from eight times this size on if more do, and from 32 times this size on
    /// in writes to other file systems. A rank with a
    /// single piece of half this size or more moves it before it knows of the
    /// others. The hint also decides about `pario_sieve_extent` and
    /// `pario_slice_bytes`. `automatic` measures
    /// it on rank 0's node, to the nearest power of two from 4 KiB to 32 KiB.
    pario_call_bytes: Option<u64> = None, Automatic(Bytes(64..=MIB));
    Machine, File, Open;

    /// Size of the cache that each core has for itself. `automatic` is what the
    /// kernel of rank 0's node reports (level 2), and 512 KiB if it reports
    /// nothing.
    pario_cache_bytes: Option<u64> = None, Automatic(Bytes(CACHE_RANGE));
    Machine, File, Open;

    /// Number of pieces per page of the file from which small pieces are written
    /// through a mapping (`pario_scattered_writes`): preparing a page takes as
    /// long as some calls. `automatic` measures how many, when a process first
    /// writes a list for which it makes a difference: one with 2 to 16 pieces per
    /// page.
    pario_stored_pieces: Option<u64> = None, Automatic(Number(1..=4096));
    Machine, Rank, Open;

    /// How often a rank that waits for another rank of its node looks whether it
    /// can go on, before it yields its core for the first time. `automatic` looks
    /// for 5 us if every rank has a core, otherwise for 50 ns; each process
    /// measures how many looks that is. A number applies to all waits of the
    /// process from then on. The largest takes some 250 us, in which another rank
    /// may need the core.
    pario_wait_looks: Option<u64> = None, Automatic(Number(0..=10_000));
    Machine, Rank, Open;

    /// What carries out nonblocking operations: io_uring (`uring`), I/O threads
    /// (`pool`), or io_uring if the kernel has it (`automatic`). If it does
    /// not, and on FUSE, `uring` is the same as `pool`.
    pario_async: AsyncMethod = AsyncMethod::Automatic, Words::<AsyncMethod>::ANY;
    Nonblocking, Rank, Open;

    /// Maximum memory that pario itself uses for packing, conversion, sieving and
    /// nonblocking operations, per file and rank. Operations that would exceed it
    /// wait, or do without; one always proceeds, however small the limit.
    pario_inflight_bytes: u64 = 64 * MIB, Bytes(1..=BUFFER_MAX);
    Nonblocking, Rank, Always;

    /// Nonblocking operations of at most this many bytes per rank run in the
    /// call that starts them if that takes no longer than a copy: writes to the
    /// page cache of a local file system, reads of cached data, files in
    /// memory. Handing them to another thread would take longer than the
    /// transfer. 0 hands over all of them.
    pario_inline_bytes: u64 = 64 * KIB, Bytes(0..=BUFFER_MAX);
    Nonblocking, Rank, Always;

    /// Collective buffering for reads: always (`enable`, by two-phase), never
    /// (`disable`: every rank reads independently), or if the pattern suggests
    /// it (`automatic`). `pario_algorithm` takes precedence.
    romio_cb_read: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Always;

    /// Collective buffering for writes, likewise.
    romio_cb_write: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Always;

    /// Collective buffering for both reads and writes; applies to whichever of
    /// `romio_cb_read` and `romio_cb_write` is `automatic`.
    collective_buffering: Option<bool> = None, Maybe(Flag);
    Collective, File, Always;

    /// Collective buffer size: the most bytes that an aggregator moves at once.
    /// Where the kernel caches the file and there are no stripes to fill, pario
    /// moves less at once between nodes: 32 KiB per rank, but at least 2 MiB.
    cb_buffer_size: u64 = 16 * MIB, Bytes(1..=BUFFER_MAX);
    Collective, File, Always;

    /// Number of aggregators. If not set, it is derived from the nodes, the
    /// servers and the amount of data. Where servers manage locks (Lustre),
    /// writes have more aggregators than the file has objects only if this asks
    /// for them.
    cb_nodes: Option<u64> = None, Maybe(Number(1..=u32::MAX as u64));
    Collective, File, Always;

    /// Maximum number of aggregators per node. Nodes are given by host name,
    /// by number (from 0), or as `*` for all that are not listed; they are
    /// considered in the order of the list. Hosts without ranks are skipped.
    cb_config_list: Option<ConfigList> = None, Maybe(Nodes);
    Collective, File, Always;

    /// Alignment of the boundaries between aggregators' file realms. If not
    /// set, it follows from the file system's locks, stripes or blocks.
    romio_cb_fr_alignment: Option<u64> = None, Maybe(Bytes(1..=BUFFER_MAX));
    Collective, File, Always;

    /// Whether file realms persist from the first collective call on.
    /// `pario_partition` takes precedence.
    romio_cb_pfr: bool = false, Switch;
    Collective, File, Always;

    /// Declares that the program makes collective accesses only. Collective
    /// buffering is then on: `romio_cb_read` and `romio_cb_write` become
    /// `enable`, whatever their values; and open is deferred, unless
    /// `pario_deferred_open` is `disable`. Independent accesses still work.
    romio_no_indep_rw: bool = false, Flag;
    Collective, File, Open;

    /// Whether only some ranks open the file at first: one per node, and the
    /// aggregators that `cb_nodes` or `cb_config_list` determine. The others open
    /// it when they first access it by themselves. `automatic` does so if nodes
    /// have several ranks and the file is on a parallel file system (Lustre,
    /// GPFS, CephFS, BeeGFS, PanFS, OrangeFS), where each open is a request to a
    /// server, or if `romio_no_indep_rw` is set. Where ranks of a node cannot
    /// reach each other's descriptors, or the file system is not coherent between
    /// the nodes of the file, all ranks open the file whatever the value.
    pario_deferred_open: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Open;

    /// How the file is divided among aggregators: `even`, `aligned`,
    /// `static-cyclic`, `group-cyclic`, `persistent`, `persistent-aligned`,
    /// `by-server`, `file-layout`, `stripe-multiple`, `neighbours` or
    /// `balanced`. If not set, the choice depends on locks, striping and
    /// pattern.
    pario_partition: Option<String> = None, Maybe(Name);
    Collective, File, Always;

    /// Algorithm for collective calls: `individual`, `private-sieve`,
    /// `two-phase`, `static-segmentation`, `dynamic-segmentation`,
    /// `one-per-server`, or `resonant`, which has three forms: ranks whose data
    /// is in rank order take turns at the servers (`resonant-timed`), reads are
    /// prefetched by one agent per server (`resonant-prefetch`), and otherwise
    /// these agents move the data of all ranks (`resonant-agents`). The forms
    /// can be requested by their own names, for experiments.
    /// If not set, or if the algorithm cannot carry out a call, the choice
    /// depends on pattern and file system.
    pario_algorithm: Option<String> = None, Maybe(Name);
    Collective, File, Always;

    /// How data moves between ranks and aggregators: through shared memory
    /// (`shared`), in one message per rank and window (`messages`), or in one
    /// message per node and window (`two-layer`). `alltoall` calls
    /// `MPI_Ialltoallw` once per round of windows, straight between the ranks'
    /// memory and the windows: for experiments. It is meant for blocking calls of
    /// ranks on several nodes, without `MPI_THREAD_MULTIPLE`; elsewhere it means
    /// `messages`.
    pario_exchange: Option<Exchange> = None, Automatic(Words::<Exchange>::ANY);
    Collective, File, Always;

    /// `enable` is the same as `pario_exchange=alltoall`; `pario_exchange` takes
    /// precedence.
    romio_cb_alltoall: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Always;

    /// Window size where ranks share memory, at most `cb_buffer_size`. If not
    /// set, it is 32 times `pario_call_bytes`, but at most half of
    /// `pario_cache_bytes`, so that it stays in the processor's cache: usually
    /// 256 KiB. With many ranks it is up to four times `pario_call_bytes` per
    /// rank, rounded up to a power of two.
    pario_slice_bytes: Option<u64> = None, Maybe(Bytes(1..=BUFFER_MAX));
    Collective, File, Always;

    /// Bytes with which one process saturates its path to the file system: the
    /// number of aggregators is limited so that each has at least that much.
    pario_saturation_bytes: u64 = MIB, Bytes(1..=BUFFER_MAX);
    Collective, File, Always;

    /// Stripes per block in the partition `stripe-multiple`.
    pario_stripe_multiple: u64 = 2, Number(1..=MIB);
    Collective, File, Always;

    /// Agents per server in the resonant algorithms. Several agents send their
    /// requests in the order of the file: each tells the others how far it has
    /// started.
    pario_agents_per_server: u64 = 1, Number(1..=MIB);
    Collective, File, Always;

    /// Microseconds from the start of a rank's requests to its signal to the next
    /// ones in the resonant algorithms: requests that were sent that much earlier
    /// arrive first.
    pario_timed_delay_us: u64 = 500, Number(0..=1_000_000);
    Collective, File, Always;

    /// The striping that collective calls assume, whatever the file system
    /// reports: the length of a stripe and the number of servers.
    pario_assume_striping: Option<pario_types::Striping> = None, Maybe(Striping);
    Assumptions, File, Open, alias "pario_mimic_striping";

    /// The assumed granularity of the file system's locks.
    pario_assume_lock_granularity: Option<u64> = None, Maybe(Bytes(1..=BUFFER_MAX));
    Assumptions, File, Open, alias "pario_mimic_lock_granularity";

    /// The assumed lock protocol of the file system.
    pario_assume_lock_protocol: Option<LockProtocol> = None, Maybe(Words::<LockProtocol>::ANY);
    Assumptions, File, Open, alias "pario_mimic_lock_protocol";

    /// Where the file system's client is assumed to run: there is none, because
    /// the file system is `local`, or it is in the node's `kernel`, or in a
    /// `library` of each process.
    pario_assume_client: Option<Client> = None, Maybe(Words::<Client>::ANY);
    Assumptions, File, Open, alias "pario_mimic_client";

    /// Whether a process is assumed to be able to go on while its requests are
    /// under way. If not, the resonant algorithms do not prefetch, and ranks that
    /// take turns at a server wait for each other's transfers to end.
    pario_assume_nonblocking: Option<bool> = None, Maybe(Flag);
    Assumptions, File, Open;

    /// Whether reads bypass the page cache (`O_DIRECT`). Unaligned edges go
    /// through an aligned buffer.
    direct_read: bool = false, Flag;
    File, File, Open;

    /// Whether writes bypass the page cache (`O_DIRECT`). Unaligned edges go
    /// through the cache, so that only the program's bytes are written.
    direct_write: bool = false, Flag;
    File, File, Open;

    /// Number of servers over which a new file is striped; 0 leaves it to the
    /// file system. Honoured on Lustre, BeeGFS and CephFS. If the file system refuses,
    /// or on other file systems that stripe files, the file has the default and
    /// open prints a warning. Existing files keep their striping.
    /// `MPI_File_get_info` reports the actual striping if the file system
    /// provides it.
    striping_factor: Option<i64> = None, Maybe(Servers);
    File, File, Open;

    /// Stripe length of a new file; 0 leaves it to the file system. Lustre and
    /// CephFS have multiples of 64 KiB, BeeGFS powers of two from 64 KiB on. Honoured like
    /// `striping_factor`.
    striping_unit: Option<u64> = None, Maybe(Bytes(0..=BUFFER_MAX));
    File, File, Open;

    /// The server of the first stripe of a new file, on Lustre. -1 leaves it to
    /// the file system.
    start_iodevice: Option<i64> = None, Maybe(FirstServer);
    File, File, Open, alias "romio_lustre_start_iodevice";

    /// The pool of servers for a new file, on Lustre and CephFS.
    pario_pool: Option<String> = None, Maybe(Text);
    File, File, Open;

    /// The configuration file of the Ceph cluster, for the driver `cephfs`. By
    /// default that of `CEPH_CONF`, else `/etc/ceph/ceph.conf`.
    pario_ceph_conf: Option<String> = None, Maybe(Text);
    File, File, Open;

    /// The user of the Ceph cluster as which files are accessed, for the driver
    /// `cephfs`, such as `admin` for `client.admin`. By default that of the mount
    /// for names on a mounted CephFS, else the one that `CEPH_ARGS` names, else
    /// `admin`. Permissions of files are those of the process's own user.
    pario_ceph_user: Option<String> = None, Maybe(Text);
    File, File, Open;

    /// Stripes per server of a new file, on Lustre (overstriping): the file has
    /// `striping_factor` times as many stripes. 0 and 1 mean one.
    overstriping_ratio: u64 = 1, Number(0..=2000);
    File, File, Open, alias "lustre_overstriping_ratio", alias "romio_lustre_overstriping_ratio";

    /// Whether pario chooses the striping of new files on Lustre if no hint
    /// requests one, the ranks are on several nodes, and the default of the
    /// directory is a single stripe: one stripe per node, up to 8 or as
    /// `pario_expected_size` suggests. The default of a directory that is
    /// composite, in a pool or has several stripes is always left.
    pario_choose_striping: bool = true, Flag;
    File, File, Open;

    /// The size that a new file is expected to have in the end.
    pario_expected_size: Option<u64> = None, Maybe(Bytes(0..=1 << 60));
    File, File, Open;

    /// Whether writes on Lustre that consist of whole pages are made under a group
    /// lock, which all ranks hold together, instead of one lock per piece: collective
    /// writes in which every rank has whole pages of its own, and independent ones of
    /// many pieces. Everyone else who accesses the file waits until the call ends, and
    /// each call ends with the data on the servers.
    pario_group_lock: bool = false, Flag;
    File, File, Open;

    /// Whether ranks on several nodes that write their own data to a file on Lustre
    /// request locks on exactly its pages in advance, all of a call together, instead
    /// of locks on ranges as long as possible, which interleaved writers take from
    /// each other. Not tried on a real Lustre.
    pario_lock_ahead: bool = false, Flag;
    File, File, Open;

    /// Whether aggregators tell GPFS the range of the file that they access in a
    /// collective call, and at its end that they are done with it (`gpfs_fcntl`'s
    /// access range and free range), so that nodes get the tokens of their blocks
    /// together and do not have to take them away from each other. Needs
    /// `libgpfs.so`; without it, and on other file systems, it has no effect. Not
    /// tried on a real GPFS.
    pario_gpfs_ranges: bool = false, Flag;
    File, File, Always;

    /// Permissions of a new file, in octal. If not set, 666 less the process's
    /// umask.
    file_perm: Option<u32> = None, Maybe(Permissions);
    File, File, Open;

    /// The driver for the file (`ufs`, `uring`, `mapped`, `cephfs`, `mem`, ...). If not
    /// set, the prefix of the file name selects it; the default is `posix`.
    /// `mapped` stores small pieces that are close together through a mapping of
    /// the file, on tmpfs, ext4, XFS and F2FS: if another program truncates the
    /// file at that moment, the program is killed by a signal, and profilers do
    /// not see the stores.
    pario_driver: Option<String> = None, Maybe(Name);
    File, File, Open, alias "romio_filesystem_type";

    /// Whether the drop-in library leaves the file to the MPI's own MPI-IO. The
    /// environment variable `PARIO_DISABLE` does this for all files, or for
    /// those whose path matches one of its patterns.
    pario_disable: bool = false, Flag;
    File, File, Open;

    /// Where the shared file pointer is kept: in shared memory (`memory`), in a
    /// locked file next to the data (`file`), at rank 0, which the other ranks
    /// send messages to (`owner`), or in memory if all ranks share it, else in a
    /// file (`automatic`). `memory` becomes `file` if they do not. `owner` needs
    /// no locks of the file system. All of them give each position once, whatever
    /// the ranks do at the same time. Between nodes, `owner` needs an MPI that is
    /// initialised with `MPI_THREAD_MULTIPLE`; otherwise accesses of other
    /// ranks wait until rank 0 calls the MPI or accesses a file.
    ///
    /// `logs` is for files that are opened write-only and only appended to:
    /// each rank writes what it writes at the shared pointer to a log of its own,
    /// a file without a name next to the data, and waits for nobody. The next
    /// collective call that needs the data or the position (close, sync, set_view,
    /// seek_shared, ordered writes, set_size, preallocate, set_atomicity) writes
    /// the logs to the file, in the order of the nodes' clocks. Until then the data
    /// is not in the file, and the position that a rank sees does not include what
    /// others have written. In other files, and in atomic mode, it means
    /// `automatic`.
    pario_shared_pointer: SharedPointer = SharedPointer::Automatic, Words::<SharedPointer>::ANY;
    File, File, Open;

    /// Whether close makes the data durable first, as sync does.
    pario_sync_on_close: bool = false, Flag;
    File, File, Always;

    /// How the program will access the file. `sequential` makes the kernel read
    /// ahead more, `random` and `reverse_sequential` not at all; `read_once` and
    /// `write_once` ask it not to keep the data. The standard's other values are
    /// accepted and have no effect.
    access_style: AccessStyle = AccessStyle::default(), Styles;
    File, Rank, Always;

    /// The name by which the file was opened.
    filename: Option<String> = None, Maybe(Text);
    Information, Rank, Reported;

    /// Number of processes that will typically access the file. Reported as given.
    nb_proc: Option<u64> = None, Maybe(Number(1..=u32::MAX as u64));
    Information, File, Open;
}
