//! What plans need to know about a file system.

/// Where the client of a file system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// In the node's kernel: any process of the node can move any byte.
    Kernel,
    /// In a library of each process.
    Library,
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
