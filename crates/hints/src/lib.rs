//! pario's hints.
//!
//! A hint is defined once, as one entry of the table in `table.rs`: its name
//! and aliases, type, default, allowed values, scope and documentation. The
//! typed struct [`Hints`], parsing, the listing that `get_info` returns, the
//! wire form, the explanation of where a value came from and `docs/hints.md`
//! are all derived from that entry.
//!
//! ```
//! use pario_hints::{Hints, Info, Sources};
//!
//! let mut info = Info::new();
//! info.set("ind_rd_buffer_size", "64k")?;
//! info.set("romio_ds_write", "perhaps")?;
//! let resolved = Hints::resolve(&info, &Sources::none());
//! assert_eq!(resolved.hints.ind_rd_buffer_size, 65536);
//! assert_eq!(resolved.warnings[0].hint, "romio_ds_write");
//! # Ok::<(), pario_hints::InfoError>(())
//! ```
//!
//! # Precedence
//!
//! From lowest to highest:
//!
//! 1. the default;
//! 2. the hints file named by `ROMIO_HINTS` (`/etc/romio-hints` if it is not
//!    set): preferences of a machine or user, which programs may override,
//!    exactly as in ROMIO;
//! 3. the info argument of the call;
//! 4. `PARIO_HINTS` in the environment: a value set for one run takes
//!    precedence, and it is the only means to try a hint on a program that
//!    cannot be changed.
//!
//! If ranks differ in a hint of [`Scope::File`], rank 0's value is used
//! ([`Hints::agree`]).

mod config_list;
mod definition;
mod docs;
mod domain;
mod info;
mod resolve;
mod source;
mod style;
mod table;
mod wire;
mod words;

pub use config_list::{ConfigList, ConfigListError};
pub use definition::{Definition, Group, Moment, Scope};
pub use docs::markdown;
pub use info::{Info, InfoError, MAX_KEY_LEN, MAX_VALUE_LEN};
pub use resolve::{Difference, Resolved};
pub use source::{Source, Sources, Warning};
pub use style::{AccessStyle, Advice};
pub use table::{Hints, SievedAccess};
pub use wire::WireError;
pub use words::{
    AccessMethod, AsyncMethod, Buffering, Exchange, Rmw, ScatteredWrites, SharedPointer, Sieving,
    StagedCopies,
};
