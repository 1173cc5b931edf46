//! The rules that hold whatever the design: a test's name starts with the
//! number of its rule.
//!
//! | rule | what | tested in |
//! |---|---|---|
//! | 1 | windows with holes, read-modify-write | `safety`, `locked_writes`; between NFS clients in `rewriting`; every combination in `concurrency` |
//! | 2 | incoherent file systems between nodes | `several-hosts` of the drop-in library |
//! | 3 | no mapped files, no signal handlers | `safety`; `processes` |
//! | 4 | locks of ranks and of threads | `safety`; the driver's conformance suite |
//! | 5 | atomic collective writes | `safety` (whole calls, in rank order); `concurrency` |
//! | 6 | coverage proved from runs | `safety` (sieve windows); collective windows in `collective` |
//! | 7 | shared segments are plain data | `processes`; the transport's conformance suite |
//! | 8 | common memory is proved, not assumed | `processes`; the transport's conformance suite |
//! | 9 | a killed rank | `processes`; the transport's conformance suite; `survivors` of the drop-in library |
//! | 10 | nothing at load, descriptors, forked children | `processes` |
//! | 11 | waiting ranks sleep | `processes` |
//! | 12 | opposite orders of nonblocking operations | `flight` |
//! | 13 | completion under MPI | programs `completion`, `mixed_errors`, `progress` of the drop-in library |
//! | 14 | pointers, pending requests | `flight`; programs `odd_views`, `freed` of the drop-in library |
//! | 15 | split calls | `collective` |
//! | 16 | requests that are dropped or forgotten | `flight` |
//! | 17 | counts are prefixes | `results`; every fault in `faults` |
//! | 18 | sync and close | `results` |
//! | 19 | files that are dropped | `results` |
//! | 20 | arguments that must match | `results` |
//! | 21 | filetypes | `views`; the layout's oracle; programs `odd_views`, `uncommitted` of the drop-in library |
//! | 22 | data representations | `views`; the datarep's tests |
//! | 23 | modes, views, pointers | `views` |
//! | 24 | views between nodes | not here: `collective`, and the tests of plans |
//! | 25 | copy slice and transfer unit | `scale` (staged chunks and sieve windows) |
//! | 26 | bounded memory | `processes` (a process of its own to measure) |
//! | 26a | plans from shared facts | `scale` |
//! | 27 | calls of libc | `interception` |
//! | 28 | GPU buffers | `switches` of the drop-in library |
//! | 29 | off switch | `switches` of the drop-in library |
//! | 30 | thousands of cycles | `cycles` and the programs `*_cycles` of the drop-in library |
//! | 31 | hints are never errors | `hostile_hints` |
//! | 32 | unlocks that fail | `faults`; the driver's `interference` |
//!
//! `messages` looks at what errors say, `scale` also at sizes past 32 bits.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;

mod flight;
mod locked_writes;
mod messages;
mod results;
mod rewriting;
mod safety;
mod scale;
mod views;
