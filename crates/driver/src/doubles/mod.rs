//! Doubles of file systems that are not at hand: they answer the calls of
//! [`FileControl`](crate::FileControl) for files that are elsewhere, byte for
//! byte. For tests.

pub mod beegfs;
pub mod lustre;
