//! The exchange of a collective call between nodes, as a state machine that
//! does no I/O.
//!
//! In two-phase I/O a few ranks, the *aggregators*, each own a part of the
//! file, a *realm*, and move it in *windows* of the collective buffer's size.
//! Every other rank exchanges its data with them. This crate decides who does
//! what next; it never touches a byte, a file, a communicator, a clock or a
//! thread. For each rank and call there is one [`Machine`]. A driver loop
//! feeds it [`Event`]s (the call was entered, a message arrived, a receive, a
//! send, a copy or a file transfer is complete, a rank is gone) and carries out
//! the [`Action`]s that come back. Buffers are names with a capacity, data is
//! ranges of the file.
//!
//! The same machine runs in three places: in the library, under a scheduler
//! that tries random and adversarial orders of events (`tests/schedules`), and with 65,536 ranks
//! in virtual time ([`simulate`]).
//!
//! # Groups and layers
//!
//! Ranks that share memory, usually those of a node, form a *group*
//! ([`Groups`]). Within a group nothing is sent: a rank copies its bytes
//! directly into the buffer of another, and they exchange notes. Between
//! groups, one rank of each group, the *relay*, sends and receives what belongs
//! to a realm, so that there is one data message per node and window. Relays are
//! an agreed function of group and realm and are spread over the group. Where
//! a relay might be busy elsewhere while its node waits, each rank relays for
//! itself ([`Groups::without_layer`]); where ranks share no memory, every rank is
//! a group of its own ([`Groups::alone`]).
//!
//! # A call
//!
//! **Entry.** The entries of the ranks go up a tree of depth log(nodes) + log(ranks
//! per node) (`Up`), a decision comes down (`Down`). If all ranks together move
//! no more than [`Limits::eager_bytes`], data travels with these messages and the
//! root alone accesses the file: two nodes exchange one message each way.
//! Otherwise the decision is the table of entries, equal neighbours merged, and
//! every node makes the plan from it ([`Action::Plan`]). If a rank's arguments
//! are wrong, the decision is its error.
//!
//! **Writing.** Only the aggregator cuts windows ([`Accesses`] answers how much
//! data is where). For each window, in ascending order:
//!
//! ```text
//! aggregator                       relay of another group         its ranks
//!   take a window buffer
//!   post receive (source, tag)
//!   Grant(range, parts, tag) ----> take a node buffer
//!                                  Move(range, place) ---------->  copy
//!                                             <----------  Moved (the last one)
//!   receive complete <------------ send (tag)
//!   all slices in: write the window
//! ```
//!
//! The ranks of the aggregator's own group get the `Move` directly and copy into
//! the window. A message lands in its final place if the group's part is one
//! run of the window; otherwise it goes through a staging buffer. There are up
//! to [`Limits::depth`] windows in flight: while one is written, the next is
//! being filled.
//!
//! **Reading** is the mirror image. Windows are read ahead as far as there
//! are buffers, and handed out in ascending order: `Offer(range, parts)` to
//! the relay, which posts the receive and answers `Ready(tag)`; then the data
//! is sent. If the ranks of a group want the same bytes, these travel once
//! ([`Form::Image`]).
//!
//! **Windows without gaps.** If the data in a window's reach would fill less than
//! half of the buffer, the window is extended over the gaps until its data
//! fills the buffer, and holds the ranks' parts side by side
//! ([`Contents::Packed`]). Windows end at multiples of [`Limits::unit`] where
//! there is one within reach.
//!
//! **Failures and ends of files** take the same path. After a transfer that
//! stopped, the aggregator answers for the rest of its realm with one `Discard`
//! per relay, which passes it on (`Skip`). A rank is done when all its bytes have
//! been requested or discarded, so both sides always agree on what is still to
//! come, and no receive is left over. Windows below the stop
//! that are in flight are still moved.
//!
//! **The end.** When a rank has no data left and its realms are done, it reports
//! the lowest byte that could not be moved and the first error up the tree
//! (`Agree`); the result comes down (`Agreed`). Relays work on until then. A
//! rank's count is its data below the stop. [`Action::Finish`] comes with
//! nothing outstanding, except after [`Event::PeerLost`]: then the machine
//! waits for its own copies and transfers only, and returns the buffers that a
//! request or another rank may still access, to be parked.
//!
//! # The driver loop
//!
//! The loop owns the bytes. It takes completions from transport, file and
//! copies, calls [`Machine::handle`], carries out what comes back, and ends with
//! [`Action::Finish`]. No action may wait for another rank.
//!
//! | action | what the loop does | event when complete |
//! |---|---|---|
//! | `Plan` | accesses and plan from the table, once per node | `Planned`, `MovedAlone` |
//! | `Control` | sends [`Message::to_wire`] and the payload on the control communicator | |
//! | `Notify` | puts the message into the shared-memory queue of a rank of the node | |
//! | `Receive` | posts a receive from that source with that tag on the data communicator | `Received` |
//! | `Send` | starts a send there | `Sent` |
//! | `Copy` | copies between the program's buffer and a shared buffer, and counts the ranks that have | `CopiedOwn` |
//! | `Arrange` | copies between a staging buffer and a window | `Copied` |
//! | `Transfer` | hands the window's runs to the file, on an I/O worker if the call has several windows | `Transferred` |
//! | `Pack`, `Unpack` | copies this rank's data of an eager call | `Copied` |
//! | `TransferEager` | accesses the file for all ranks | `Transferred` |
//! | `TryAcquire` | looks into the pool | `Acquired`, `Refused`, later `SpaceFreed` |
//! | `Release` | gives a buffer back | |
//! | `Finish` | returns to the program | |
//!
//! Messages of a call that come before it is entered stay in the loop's queue, or
//! go to the machine at once: it keeps what it cannot use yet.
//!
//! # Why it cannot deadlock
//!
//! A data message is granted after its receive is posted, and sent without
//! waiting for anything but copies. So a node buffer that is filled always
//! becomes free again, a granted slice always arrives, and a full window waits
//! for the file only. Each (call, realm) has one reserved buffer of each kind;
//! more are asked for with [`Action::TryAcquire`], which never waits. Orders for
//! one realm are served in the order in which they came.
//!
//! # Bounds
//!
//! [`Limits::memory_max`] is the maximum memory of a rank in bytes. It depends on the
//! number of realms that a rank aggregates or relays for, not on the data, its
//! pieces or the number of ranks. A rank is asked about windows that it has data
//! in; an aggregator asks about ranks that have data in its window, and once
//! per call about each [contributor](Accesses::contributors) to its realm. At
//! most one data message per tag is under way to a rank, and tags are recycled
//! below [`Tag::BOUND`]. [`Counters`] has the actual costs of a machine.

#![forbid(unsafe_code)]

mod accesses;
mod action;
mod aggregator;
mod agree;
mod core;
mod counters;
mod cut;
mod enter;
mod event;
mod groups;
mod ids;
mod jobs;
mod limits;
mod machine;
mod member;
mod message;
mod planned;
mod pool;
mod relay;
pub mod simulate;
mod table;
mod tree;
mod wire;

pub use accesses::{Accesses, Packing};
pub use action::{Action, Contents, Placement};
pub use counters::Counters;
pub use event::{Event, Finished, Outcome};
pub use groups::{Groups, Layer};
pub use ids::{Buffer, Job, Kind, Rank, Realm, Span, Tag};
pub use limits::{Limits, Setting};
pub use machine::Machine;
pub use message::{Decision, Form, Message, Part, Place, Progress, Slice};
pub use pario_types::Direction;
pub use planned::Planned;
pub use table::{Entry, Failure, Table};
