//! A bound on how long a step of a test may take.

use std::{
    io::{self, Write},
    process,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

/// Ends the test program when a step hangs: the threads of a hung rank cannot
/// be ended in any other way, and a test that waits for ever tells nobody
/// anything.
pub(crate) struct Watchdog(Sender<String>);

impl Watchdog {
    /// Starts to watch; every step may take up to `limit`.
    pub(crate) fn new(limit: Duration) -> Watchdog {
        let (sender, steps) = mpsc::channel::<String>();
        thread::spawn(move || {
            let mut step = "the start".to_owned();
            loop {
                match steps.recv_timeout(limit) {
                    Ok(next) => step = next,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        // Not `eprintln`: the test harness would keep it.
                        let message = format!("hung for {limit:?}: {step}\n");
                        let _ = io::stderr().write_all(message.as_bytes());
                        process::abort();
                    }
                }
            }
        });
        Watchdog(sender)
    }

    /// The next step begins.
    pub(crate) fn step(&self, name: impl Into<String>) {
        self.0
            .send(name.into())
            .expect("the watchdog outlives its owner");
    }
}
