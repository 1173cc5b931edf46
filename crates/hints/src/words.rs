//! Hints whose values are words.

use std::fmt;

use pario_types::{Client, LockProtocol};

/// A type whose values are words, matched without regard to case.
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
        /// Where the pattern suggests it and it is safe.
        Automatic = "automatic" | "auto",
        /// Wherever it is safe, whatever the pattern.
        Enable = "enable" | "true",
        /// Never.
        Disable = "disable" | "false",
    }
    /// How a non-contiguous access reaches the file.
    AccessMethod {
        /// One call a piece.
        Direct = "direct",
        /// Vectored or batched calls.
        List = "list",
        /// Whole extents through a buffer.
        Sieve = "sieve",
    }
    /// When a write may read, change and write back bytes that are not its own.
    Rmw {
        /// Only where no one else can be writing (`UNIQUE_OPEN`).
        Never = "never",
        /// Whenever it pays; in return every write on the handle locks its range.
        Locked = "locked",
    }
    /// What carries nonblocking operations.
    AsyncMethod {
        /// io_uring where the kernel offers it, otherwise threads.
        Automatic = "automatic" | "auto",
        /// io_uring.
        Uring = "uring" | "io_uring",
        /// I/O threads.
        Pool = "pool" | "threads",
    }
    /// Where the shared file pointer lives.
    SharedPointer {
        /// In memory where all ranks can reach it, otherwise in a file.
        Automatic = "automatic" | "auto",
        /// In memory that the ranks share.
        Memory = "memory",
        /// In a locked file beside the data.
        File = "file",
    }
    /// Whether collective calls gather data in aggregators.
    Buffering {
        /// Where the pattern suggests it.
        Automatic = "automatic" | "auto",
        /// Always.
        Enable = "enable" | "true",
        /// Never: every rank for itself.
        Disable = "disable" | "false",
    }
    /// How data gets from rank to rank in collective calls.
    Exchange {
        /// Through memory that the ranks share.
        Shared = "shared",
        /// A message from each rank to each owner that has something of it.
        Messages = "messages",
        /// A message from each rank to each owner in each round.
        AllToAll = "alltoall" | "alltoallw",
        /// By node first, then one message a node and owner.
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
