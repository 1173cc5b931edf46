//! Which bytes of a window the ranks really touch. Coverage is proved from
//! the runs: byte sums prove nothing where ranks may overlap.

mod apart;
mod covered;

pub use apart::disjoint;
pub use covered::covered;

/// Whether ranks' bytes are known not to overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No byte of the file belongs to two ranks.
    Disjoint,
    /// It could not be shown cheaply.
    Unknown,
}
