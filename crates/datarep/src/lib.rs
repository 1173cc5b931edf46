//! Data representations: how a file holds values.
//!
//! `native` stores values as they are in memory, `internal` is pario's own
//! portable form, `external32` the standard's, and a program may register its
//! own ([`Registry::register`]). A [`Converter`] applies a representation to
//! the elements of a datatype, in pieces of any size.
//!
//! The owner of the buffer converts: only it knows the element types, and
//! transfers may split an element.

mod columns;
mod converter;
mod error;
mod fixed;
mod float;
mod kernels;
mod memory;
mod registry;
mod representation;
mod reverse;
mod sizes;
#[cfg(test)]
mod testing;
mod user;

pub use converter::{Converter, Elements};
pub use error::{DatarepError, UserError};
pub use registry::{MAX_NAME_LEN, Registry, external32, find, internal, native, register};
pub use representation::Representation;
pub use sizes::FileSizes;
pub use user::{
    Callback, CallbackFunction, Callbacks, Conversion, ExtentFunction, RunFunction, Transfer,
    UserRepresentation,
};
