//! List access: many pieces per call. The driver joins neighbours into vectored
//! calls or submits the batch at once.

use pario_driver::Outcome;

use super::{
    Job, Method,
    batches::{Batching, run_batches},
};

pub(super) struct List;

impl Method for List {
    fn run(&self, job: &Job<'_>, _buffer: &mut [u8]) -> Outcome {
        run_batches(job, Batching::Pieces(job.hints.pario_list_pieces as usize))
    }
}
