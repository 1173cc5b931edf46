//! What plans need to know about a file system.

/// Where the client of a file system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// Nowhere: the file system is on the node's own disks or in its memory.
    Local,
    /// In the node's kernel, with servers elsewhere.
    Kernel,
    /// In a library of each process, with servers elsewhere.
    Library,
}

impl Client {
    /// Whether the processes of a node share the client and its cache, so that
    /// any of them can move any byte.
    pub fn is_shared(self) -> bool {
        self != Client::Library
    }
}

/// How a file system keeps writers apart (Liao 2008).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockProtocol {
    /// It does not, or only within the node's kernel.
    None,
    /// Each server manages the locks of its stripes (Lustre).
    Server,
    /// The holder of a token grants further locks (GPFS).
    Token,
}

/// Who sees a completed write of one node without further steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coherence {
    /// Every node that mounts the file system.
    Everywhere,
    /// Processes of the same node only.
    WithinNode,
    /// Nothing is promised between nodes; within one the kernel's cache is
    /// coherent.
    Unknown,
}
