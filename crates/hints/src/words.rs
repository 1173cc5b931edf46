//! Hints whose values are words.

use std::fmt;

use pario_types::{Client, LockProtocol};

/// A type whose values are words, matched case-insensitively.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// Each value with the word that names it and other spellings of it.
    const WORDS: &'static [(Self, &'static str, &'static [&'static str])];
}

/// The word that names a value.
pub(crate) fn name<W: Word>(value: W) -> &'static str {
    let named = W::WORDS.iter().find(|(known, _, _)| *known == value);
    named.map_or("", |(_, word, _)| word)
}

macro_rules! words {
    ($(
        $(#[doc = $doc:literal])+
        $type:ident { $( $(#[doc = $value_doc:literal])+ $value:ident = $word:literal $(| $synonym:literal)* ),+ $(,)? }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $( $(#[doc = $value_doc])+ $value ),+ }

        impl Word for $type {
            const WORDS: &'static [(Self, &'static str, &'static [&'static str])] =
                &[$( ($type::$value, $word, &[$($synonym),*]) ),+];
        }
    )+};
}

words! {
    /// Whether non-contiguous accesses may be sieved.
    Sieving {
        /// If the pattern suggests it and it is safe.
        Automatic = "automatic" | "auto",
        /// Whenever it is safe, whatever the pattern.
        Enable = "enable" | "true",
        /// Never.
        Disable = "disable" | "false",
    }
    /// How a non-contiguous access is carried out.
    AccessMethod {
        /// One call per piece.
        Direct = "direct",
        /// Vectored or batched calls.
        List = "list",
        /// Whole extents through a buffer.
        Sieve = "sieve",
    }
    /// When a write may read, modify and write back bytes other than its own.
    Rmw {
        /// Between NFS clients, on GlusterFS and on CephFS through FUSE, through views with small
        /// pieces and gaps; on local file systems where a lease shows that nobody else has the file
        /// open; elsewhere as `Never`.
        Automatic = "automatic" | "auto",
        /// Only where there can be no other writer (`UNIQUE_OPEN`).
        Never = "never",
        /// Whenever it is faster; in return every write on the handle locks its range.
        Locked = "locked",
    }
    /// What carries out nonblocking operations.
    AsyncMethod {
        /// io_uring if the kernel has it, otherwise threads.
        Automatic = "automatic" | "auto",
        /// io_uring.
        Uring = "uring" | "io_uring",
        /// I/O threads.
        Pool = "pool" | "threads",
    }
    /// How a large number of small pieces with gaps between them is written.
    ScatteredWrites {
        /// Through a mapping of the file where that is safe and faster.
        Automatic = "automatic" | "auto",
        /// By one call per contiguous run.
        Calls = "calls",
    }
    /// Whether memory that aliases the pages of the file is copied through a buffer.
    StagedCopies {
        /// If that is faster on this machine, by a measurement.
        Automatic = "automatic" | "auto",
        /// Always.
        Enable = "enable" | "true",
        /// Never.
        Disable = "disable" | "false",
    }
    /// Where the shared file pointer is kept.
    SharedPointer {
        /// In memory if all ranks share it, otherwise in a file.
        Automatic = "automatic" | "auto",
        /// In memory that the ranks share.
        Memory = "memory",
        /// In a locked file next to the data.
        File = "file",
        /// At rank 0.
        Owner = "owner",
        /// Each rank has a log, and the logs are merged.
        Logs = "logs",
    }
    /// Whether collective calls use aggregators (collective buffering).
    Buffering {
        /// If the pattern suggests it.
        Automatic = "automatic" | "auto",
        /// Always.
        Enable = "enable" | "true",
        /// Never: every rank accesses the file independently.
        Disable = "disable" | "false",
    }
    /// How data moves between ranks and aggregators in collective calls.
    Exchange {
        /// Through shared memory.
        Shared = "shared",
        /// Messages between ranks and aggregators that have data to exchange.
        Messages = "messages",
        /// A message from each rank to each aggregator in each round.
        AllToAll = "alltoall" | "alltoallw",
        /// Combined per node, then one message per node and aggregator.
        TwoLayer = "two-layer" | "two_layer",
    }
}

impl Word for LockProtocol {
    const WORDS: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (LockProtocol::None, "none", &[]),
        (LockProtocol::Server, "server", &[]),
        (LockProtocol::Token, "token", &[]),
    ];
}

impl Word for Client {
    const WORDS: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (Client::Local, "local", &[]),
        (Client::Kernel, "kernel", &[]),
        (Client::Library, "library", &[]),
    ];
}

impl Exchange {
    /// All of them, in the order in which ties are resolved.
    pub const ALL: [Exchange; 4] = [
        Exchange::Shared,
        Exchange::Messages,
        Exchange::AllToAll,
        Exchange::TwoLayer,
    ];

    /// Its name, in hints and explanations.
    pub fn name(self) -> &'static str {
        name(self)
    }

    /// The exchange of that name.
    pub fn by_name(name: &str) -> Option<Exchange> {
        Exchange::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl AccessMethod {
    /// All of them.
    pub const ALL: [AccessMethod; 3] = [
        AccessMethod::Direct,
        AccessMethod::List,
        AccessMethod::Sieve,
    ];

    /// Its name, in hints and explanations.
    pub fn name(self) -> &'static str {
        name(self)
    }
}

impl fmt::Display for AccessMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
