//! Direct access: one call per contiguous piece of the file.

use pario_driver::Outcome;

use super::{
    Job, Method,
    batches::{Batching, run_batches},
};

pub(super) struct Direct;

impl Method for Direct {
    fn run(&self, job: &Job<'_>, _buffer: &mut [u8]) -> Outcome {
        run_batches(job, Batching::EachFilePiece)
    }
}
