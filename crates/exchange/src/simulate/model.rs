//! The cluster on which the ranks run.

/// Times in nanoseconds, rates in bytes per microsecond (MB/s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// From the end of a send to the arrival, between nodes.
    pub link_latency_ns: u64,
    /// Of each node's link, in each direction.
    pub link_rate: u64,
    /// From a note to its arrival, within a node.
    pub note_latency_ns: u64,
    /// The time that a rank needs to handle an event.
    pub event_ns: u64,
    /// Of a rank's copies.
    pub copy_rate: u64,
    /// Of a file transfer, in which its server is free for others.
    pub file_latency_ns: u64,
    /// Of each file server.
    pub file_rate: u64,
    /// The number of file servers. Stripes are assigned to them round-robin.
    pub servers: u64,
    /// The length of a stripe.
    pub stripe_bytes: u64,
}

impl Default for Model {
    /// A cluster of about 2020: 100 Gbit/s links and 64 servers of 2 GB/s.
    fn default() -> Model {
        Model {
            link_latency_ns: 1500,
            link_rate: 12_000,
            note_latency_ns: 150,
            event_ns: 100,
            copy_rate: 8_000,
            file_latency_ns: 200_000,
            file_rate: 2_000,
            servers: 64,
            stripe_bytes: 4 << 20,
        }
    }
}

/// The time that some bytes take at a rate.
pub(super) fn duration_ns(bytes: u64, rate: u64) -> u64 {
    bytes * 1000 / rate.max(1)
}
