//! What runs in the background: I/O threads and io_uring.

mod pool;

pub use pool::{THREADS_MAX, spawn};
