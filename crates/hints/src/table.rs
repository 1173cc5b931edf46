//! The table of all hints. To add one, add one entry.

use pario_types::{Client, LockProtocol};

use crate::config_list::ConfigList;
use crate::definition::{Definition, Group, Moment, Scope};
use crate::domain::*;
use crate::source::Source;
use crate::style::AccessStyle;
use crate::words::{AccessMethod, AsyncMethod, Buffering, Exchange, Rmw, SharedPointer, Sieving};

macro_rules! hints {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty = $default:expr, $domain:expr;
        $group:ident, $scope:ident, $moment:ident $(, alias $alias:literal)*;
    )+) => {
        /// The hints in force for a file.
        ///
        /// Fields that are changed directly keep the source they had:
        /// [`Hints::adjust`] changes them and notes why.
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
            /// What is known of each hint, in the order of the documentation.
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

/// Larger buffers than this are a slip of the keyboard.
const BUFFER_MAX: u64 = 64 * GIB;

hints! {
    /// Size of the buffer through which a read is sieved: each system call
    /// reads that much of the file, and the wanted pieces are copied out.
    ind_rd_buffer_size: u64 = 4 * MIB, Bytes(1..=BUFFER_MAX);
    Noncontiguous, Rank, Always;

    /// Size of the buffer through which a write is sieved (read, changed,
    /// written back). It is also the longest range that is locked at once.
    ind_wr_buffer_size: u64 = 512 * KIB, Bytes(1..=BUFFER_MAX);
    Noncontiguous, Rank, Always;

    /// Whether reads may be sieved. `enable` sieves every non-contiguous read,
    /// `disable` none, `automatic` those whose pattern suggests it.
    /// `pario_read_method` is stronger where it is not `automatic`.
    romio_ds_read: Sieving = Sieving::Automatic, Words::<Sieving>::ANY;
    Noncontiguous, Rank, Always;

    /// Whether writes may be sieved. A sieved write also writes back bytes
    /// that it only read, so whatever this says it happens only where
    /// `pario_rmw` or the access mode `UNIQUE_OPEN` allows it, and never in a
    /// write-only file. `pario_write_method` is stronger where it is not
    /// `automatic`.
    romio_ds_write: Sieving = Sieving::Automatic, Words::<Sieving>::ANY;
    Noncontiguous, Rank, Always;

    /// How a non-contiguous read reaches the file: one call a piece
    /// (`direct`), vectored or batched calls (`list`), whole extents through
    /// a buffer (`sieve`), or whichever suits the access (`automatic`).
    pario_read_method: Option<AccessMethod> = None, Automatic(Words::<AccessMethod>::ANY);
    Noncontiguous, Rank, Always, alias "pario_way_read";

    /// The same for writes. `sieve` becomes `list` where a sieved write is
    /// not allowed.
    pario_write_method: Option<AccessMethod> = None, Automatic(Words::<AccessMethod>::ANY);
    Noncontiguous, Rank, Always, alias "pario_way_write";

    /// The most pieces that one vectored or batched call carries.
    pario_list_pieces: u64 = 4096, Number(1..=MIB);
    Noncontiguous, Rank, Always;

    /// The automatic choice sieves where one piece and the gap after it
    /// together are at most this long on average. Past it, separate calls are
    /// faster however dense the data.
    pario_sieve_extent: u64 = 16 * KIB, Bytes(0..=BUFFER_MAX);
    Noncontiguous, Rank, Always, alias "romio_cb_ds_threshold";

    /// The automatic choice sieves only where at least this percentage of the
    /// bytes between the first and the last are wanted.
    pario_sieve_density: u64 = 5, Number(0..=100);
    Noncontiguous, Rank, Always;

    /// Whether writes may read a range, change it and write it back. `never`
    /// leaves it to files opened `UNIQUE_OPEN`, where no one else writes.
    /// `locked` allows it everywhere, and in return every write on the handle,
    /// contiguous ones too, locks its range: a lock on one side only would
    /// protect nothing.
    pario_rmw: Rmw = Rmw::Never, Words::<Rmw>::ANY;
    Noncontiguous, File, Open;

    /// What carries nonblocking operations: io_uring (`uring`), I/O threads
    /// (`pool`), or io_uring where the kernel offers it (`automatic`). Where it
    /// does not, `uring` is the same as `pool`.
    pario_async: AsyncMethod = AsyncMethod::Automatic, Words::<AsyncMethod>::ANY;
    Nonblocking, Rank, Open;

    /// The most memory that pario itself holds for the nonblocking operations
    /// of one file on one rank. Operations that would need more wait their
    /// turn; one always goes on, however small this is.
    pario_inflight_bytes: u64 = 64 * MIB, Bytes(1..=BUFFER_MAX);
    Nonblocking, Rank, Always;

    /// Nonblocking operations of at most this many bytes per rank are carried out
    /// in the call that starts them where that takes no longer than a copy: writes
    /// to the page cache of a local file system, reads of what is cached, files in
    /// memory. Handing them to another thread takes longer than the transfer.
    /// 0 hands over all of them.
    pario_inline_bytes: u64 = 64 * KIB, Bytes(0..=BUFFER_MAX);
    Nonblocking, Rank, Always;

    /// Whether collective reads gather data in aggregators: always (`enable`,
    /// by two-phase), never (`disable`: every rank for itself), or where the
    /// pattern suggests it. `pario_algorithm` is stronger.
    romio_cb_read: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Always;

    /// The same for collective writes.
    romio_cb_write: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Always;

    /// The same for both, for whichever of `romio_cb_read` and
    /// `romio_cb_write` is `automatic`.
    collective_buffering: Option<bool> = None, Maybe(Flag);
    Collective, File, Always;

    /// The most bytes that an aggregator gathers before it moves them.
    cb_buffer_size: u64 = 16 * MIB, Bytes(1..=BUFFER_MAX);
    Collective, File, Always;

    /// How many ranks aggregate. Not set, it follows from the nodes, the
    /// servers and the amount of data.
    cb_nodes: Option<u64> = None, Maybe(Number(1..=u32::MAX as u64));
    Collective, File, Always;

    /// How many ranks of each node may aggregate. Nodes are given by their host
    /// names, by their numbers from 0 on, or as `*` for all that are not given
    /// themselves; they are asked in the order of the list. Names of hosts
    /// where no rank runs are skipped.
    cb_config_list: Option<ConfigList> = None, Maybe(Nodes);
    Collective, File, Always;

    /// Boundary at which the parts of the file that belong to different
    /// aggregators meet. Not set, the file system's locks, stripes or blocks
    /// say where.
    romio_cb_fr_alignment: Option<u64> = None, Maybe(Bytes(1..=BUFFER_MAX));
    Collective, File, Always;

    /// Whether parts of the file keep their aggregator from the first
    /// collective call on. `pario_partition` is stronger.
    romio_cb_pfr: bool = false, Switch;
    Collective, File, Always;

    /// Whether the program accesses the file by collective calls only. They
    /// then gather data in aggregators: `romio_cb_read` and `romio_cb_write`
    /// become `enable`, whatever else sets them. Independent accesses work all
    /// the same.
    romio_no_indep_rw: bool = false, Flag;
    Collective, File, Open;

    /// How the file is divided among aggregators, by name: `even`, `aligned`,
    /// `static-cyclic`, `group-cyclic`, `persistent`, `persistent-aligned`,
    /// `by-server`, `file-layout`, `stripe-multiple`, `neighbours`,
    /// `balanced`. Not set, locks, striping and pattern decide.
    pario_partition: Option<String> = None, Maybe(Name);
    Collective, File, Always;

    /// How collective calls are carried out, by name: `individual`,
    /// `private-sieve`, `two-phase`, `static-segmentation`,
    /// `dynamic-segmentation`, `one-per-server`, `resonant`,
    /// `resonant-prefetch`, `resonant-timed`. Not set, or where the method
    /// cannot carry out a call, pattern and file system decide.
    pario_algorithm: Option<String> = None, Maybe(Name);
    Collective, File, Always;

    /// How data gets from rank to rank: through shared memory, by messages to
    /// whoever has something to exchange, by messages to all, or by node
    /// first. `romio_cb_alltoall` is the same as `alltoall` when it is
    /// enabled.
    pario_exchange: Option<Exchange> = None, Automatic(Words::<Exchange>::ANY);
    Collective, File, Always;

    /// Whether ranks send a message to every owner in each round, for
    /// networks made for that. `pario_exchange` is stronger.
    romio_cb_alltoall: Buffering = Buffering::Automatic, Words::<Buffering>::ANY;
    Collective, File, Always;

    /// The bytes that are gathered at once where ranks share memory: as much
    /// as stays in the processor's cache. At most `cb_buffer_size`.
    pario_slice_bytes: u64 = 256 * KIB, Bytes(1..=BUFFER_MAX);
    Collective, File, Always;

    /// Bytes with which one process saturates its path to the file system:
    /// aggregators are so few that each has that much.
    pario_saturation_bytes: u64 = MIB, Bytes(1..=BUFFER_MAX);
    Collective, File, Always;

    /// Stripes in a block of the partition `stripe-multiple`.
    pario_stripe_multiple: u64 = 2, Number(1..=MIB);
    Collective, File, Always;

    /// Agents a server of the resonant algorithms.
    pario_agents_per_server: u64 = 1, Number(1..=MIB);
    Collective, File, Always;

    /// Microseconds between the turns of the algorithm `resonant-timed`.
    pario_timed_delay_us: u64 = 500, Number(0..=1_000_000);
    Collective, File, Always;

    /// Striping that collective calls treat the file as having, whatever the
    /// file system says: the length of a stripe and the number of servers.
    pario_assume_striping: Option<pario_types::Striping> = None, Maybe(Striping);
    Assumptions, File, Open, alias "pario_mimic_striping";

    /// Bytes that a lock of the file system is taken to cover at least.
    pario_assume_lock_granularity: Option<u64> = None, Maybe(Bytes(1..=BUFFER_MAX));
    Assumptions, File, Open, alias "pario_mimic_lock_granularity";

    /// Who is taken to manage the file system's locks.
    pario_assume_lock_protocol: Option<LockProtocol> = None, Maybe(Words::<LockProtocol>::ANY);
    Assumptions, File, Open, alias "pario_mimic_lock_protocol";

    /// Where the file system's client is taken to run.
    pario_assume_client: Option<Client> = None, Maybe(Words::<Client>::ANY);
    Assumptions, File, Open, alias "pario_mimic_client";

    /// Whether reads bypass the kernel's cache (`O_DIRECT`). Unaligned edges
    /// go through an aligned buffer.
    direct_read: bool = false, Flag;
    File, File, Open;

    /// Whether writes bypass the kernel's cache (`O_DIRECT`). Unaligned edges
    /// go through the cache, so that no byte is written that was not asked
    /// for.
    direct_write: bool = false, Flag;
    File, File, Open;

    /// Over how many servers a file that open creates is striped. pario does
    /// not set the striping of new files: where the file system could have
    /// it otherwise, open warns. `MPI_File_get_info` reports the striping that
    /// the file has, where the file system tells.
    striping_factor: Option<i64> = None, Maybe(Servers);
    File, File, Open;

    /// The length of the stripes of a file that open creates. The same holds.
    striping_unit: Option<u64> = None, Maybe(Bytes(0..=BUFFER_MAX));
    File, File, Open;

    /// Permissions of a file that open creates, in octal. Not set, they are
    /// 666 less the process's umask.
    file_perm: Option<u32> = None, Maybe(Permissions);
    File, File, Open;

    /// The driver that carries the file, by its name (`ufs`, `uring`,
    /// `mapped`, `mem`, ...). Not set, the prefix of the file name says which, or
    /// else it is `posix`. `mapped` stores small pieces that lie close together
    /// in a mapping of the file, on tmpfs, ext4, XFS and F2FS: a program whose
    /// file another one shortens at that moment is ended by a signal, and
    /// profilers do not see the stores.
    pario_driver: Option<String> = None, Maybe(Name);
    File, File, Open, alias "romio_filesystem_type";

    /// Whether the drop-in library leaves the file to the MPI's own MPI-IO.
    /// The environment variable `PARIO_DISABLE` does the same for all files,
    /// or for those whose path matches one of its patterns.
    pario_disable: bool = false, Flag;
    File, File, Open;

    /// Where the shared file pointer lives: in memory that the ranks share,
    /// in a locked file beside the data, or in memory where all ranks can
    /// reach it (`automatic`). `memory` becomes `file` where they share none.
    pario_shared_pointer: SharedPointer = SharedPointer::Automatic, Words::<SharedPointer>::ANY;
    File, File, Open;

    /// Whether close makes the data durable first, as sync does.
    pario_sync_on_close: bool = false, Flag;
    File, File, Always;

    /// How the program will access the file. `sequential` asks the kernel to
    /// read ahead more, `random` and `reverse_sequential` not at all,
    /// `read_once` and `write_once` not to keep the data. The other words of
    /// the standard are accepted and have no effect.
    access_style: AccessStyle = AccessStyle::default(), Styles;
    File, Rank, Always;

    /// The name that the file was opened by.
    filename: Option<String> = None, Maybe(Text);
    Information, Rank, Reported;

    /// How many processes will typically access the file. Reported as given.
    nb_proc: Option<u64> = None, Maybe(Number(1..=u32::MAX as u64));
    Information, File, Open;
}
