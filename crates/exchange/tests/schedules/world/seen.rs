//! What schedules have come across.

use pario_exchange::{Action, Contents, Finished, Form, Kind, Message};

/// What schedules have come across: a test of the tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: u64,
    pub(crate) packed_windows: u64,
    pub(crate) shared_slices: u64,
    pub(crate) staged: u64,
    pub(crate) in_place: u64,
    pub(crate) eager: u64,
    pub(crate) discards: u64,
    pub(crate) extra_buffers: u64,
    pub(crate) refusals: u64,
    pub(crate) losses: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: Seen) {
        self.events += other.events;
        self.packed_windows += other.packed_windows;
        self.shared_slices += other.shared_slices;
        self.staged += other.staged;
        self.in_place += other.in_place;
        self.eager += other.eager;
        self.discards += other.discards;
        self.extra_buffers += other.extra_buffers;
        self.refusals += other.refusals;
        self.losses += other.losses;
    }

    pub(crate) fn is_complete(&self) -> bool {
        let counts = [
            self.packed_windows,
            self.shared_slices,
            self.staged,
            self.in_place,
            self.eager,
            self.discards,
            self.extra_buffers,
            self.refusals,
            self.losses,
        ];
        counts.into_iter().all(|count| count > 0)
    }

    pub(super) fn note(&mut self, action: &Action) {
        let count = match action {
            Action::Transfer {
                contents: Contents::Packed,
                ..
            } => &mut self.packed_windows,
            Action::Control {
                message: Message::Offer { slice, .. },
                ..
            } if slice.form == Form::Image && slice.parts.len() > 1 => &mut self.shared_slices,
            Action::Control {
                message: Message::Discard { .. },
                ..
            } => &mut self.discards,
            Action::Arrange { .. } => &mut self.staged,
            Action::Receive { span, .. } if matches!(span.buffer.kind, Kind::Window(_)) => {
                &mut self.in_place
            }
            Action::TransferEager { .. } => &mut self.eager,
            Action::Finish(Finished::Lost { .. }) => &mut self.losses,
            _ => return,
        };
        *count += 1;
    }
}
