//! Which bytes of a window the ranks access. Coverage is proved from the runs:
//! byte counts prove nothing, since ranks may overlap.

mod covered;
mod disjoint;

pub use covered::covered;
pub use disjoint::disjoint;

/// Whether ranks' bytes are known not to overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No byte of the file belongs to two ranks.
    Disjoint,
    /// Not proved at acceptable cost.
    Unknown,
}
