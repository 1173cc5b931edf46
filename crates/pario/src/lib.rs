//! Parallel files for programs whose ranks work together: MPI-IO for Rust.
//!
//! Ranks open a [`File`] together, each sets a [`View`] of the bytes that are
//! its own, and reads and writes through it. Ranks are threads of this
//! process ([`threads`]) or processes forked from it ([`processes`]).
//!
//! ```
//! use pario::{Basic, Datatype, File, Info, Mode, View, threads};
//!
//! # let path = std::env::temp_dir().join(format!("pario-doc-{}", std::process::id()));
//! // Four ranks write the columns of a table; the file holds its rows.
//! let results = threads::run(4, |comm| {
//!     let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
//!     let file = File::open(&comm, &path, mode, &Info::new())?;
//!     let double = Datatype::basic(Basic::Double);
//!     let column = Datatype::resized(&double, 0, 4 * 8)?;
//!     let rank = u64::from(comm.rank().0);
//!     file.set_view(&View::new(8 * rank, &double, &column))?;
//!
//!     let mine = [rank as f64; 1000];
//!     assert_eq!(file.write_at(0, &mine)?.bytes(), 8000);
//!     file.sync()?;
//!
//!     file.set_view(&View::new(0, &double, &double))?;
//!     let mut row = [0.0; 4];
//!     file.read_at(4 * 7, &mut row)?;
//!     assert_eq!(row, [0.0, 1.0, 2.0, 3.0]);
//!     file.close()?;
//!     Ok::<(), pario::Error>(())
//! });
//! for result in results {
//!     result.expect("no rank panics")?;
//! }
//! # Ok::<(), pario::Error>(())
//! ```

mod access;
mod agree;
mod buffer;
mod collective;
mod condition;
mod error;
mod file;
mod job;
mod mode;
mod operation;
mod request;
mod shared_pointer;
mod status;
mod unreported;
mod view;
mod warning;
mod writer_lock;

pub use access::{AccessMethod, Selection};
pub use buffer::{Element, Owned, Source, Target};
pub use collective::plan_facts;
pub use error::{Error, ErrorKind, Result};
pub use file::{Atomicity, File, Seek, Split};
pub use job::{Environment, Job, Process};
pub use mode::Mode;
pub use request::{Request, Scope, ScopedRequest, scope};
pub use status::Status;
pub use unreported::Unreported;
pub use view::{Displacement, View};
pub use warning::{is_first_of_job, print_line, set_warning_handler, warn, warn_of};

pub use pario_datarep as datarep;
pub use pario_driver as driver;
pub use pario_hints as hints;
pub use pario_hints::Info;
pub use pario_layout as layout;
pub use pario_layout::{Basic, Darray, Datatype, Distribution, Layout, Order};
pub use pario_transport as transport;
pub use pario_transport::{Rank, Transport, processes, threads};
