//! The fault countdown: the n-th operation of a driver fails, for n = 1, 2, 3
//! and so on until a run meets no fault, through all calls of a file. Never a
//! hang, never a success that isn't, never a byte changed outside of what was
//! asked, and collective calls end in the same way on all ranks.
#![allow(clippy::unwrap_used)] // tests may

mod countdown;
mod ground;
mod lens;
mod limits;
mod methods;
mod model;
mod one_rank;
mod player;
mod random;
mod run;
mod scenario;
#[path = "../common/seeds.rs"]
mod seeds;
#[path = "../common/watchdog.rs"]
mod watchdog;
