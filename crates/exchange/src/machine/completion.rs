//! Completed jobs.

use super::Machine;
use crate::{Accesses, Job, Outcome, Span, jobs::Doing, relay::Relay};

impl<A: Accesses> Machine<A> {
    /// The ranks of the group have filled or emptied their parts of a buffer.
    pub(super) fn moved(&mut self, key: Job) {
        match self.core.jobs.finish(key) {
            Doing::Load {
                slice,
                buffer,
                send,
            } => self.relay.loaded(&mut self.core, &slice, buffer, send),
            Doing::Fill(window) => self.with(window, |it, core| it.filled(core, window)),
            doing => panic!("{doing:?} waits for no copy"),
        }
    }

    pub(super) fn received(&mut self, job: Job, bytes: u64) {
        let doing = self.core.jobs.finish(job);
        if self.lost.is_some() {
            return;
        }
        match doing {
            Doing::Receive {
                window,
                file,
                parts,
                staging,
                tag,
            } => {
                let staged = staging.map(|staging| (staging, parts));
                self.with(window, |it, core| {
                    it.received(core, window, file, staged, tag);
                });
            }
            Doing::RelayReceive { slice, buffer, tag } => {
                assert_eq!(slice.bytes, bytes, "the length of a slice is agreed");
                Relay::received(&mut self.core, slice, buffer, tag);
            }
            doing => panic!("{doing:?} is not a receive"),
        }
    }

    pub(super) fn copied_own(&mut self, job: Job, is_last: bool) {
        let doing = self.core.jobs.finish(job);
        if self.lost.is_some() {
            return;
        }
        match doing {
            Doing::Copy { asker, key, bytes } => {
                let asker = (asker, key);
                self.member.copied(&mut self.core, asker, bytes, is_last);
            }
            doing => panic!("{doing:?} is not a copy of this rank's data"),
        }
    }

    pub(super) fn completed(&mut self, job: Job) {
        let doing = self.core.jobs.finish(job);
        if self.lost.is_some() {
            return;
        }
        match doing {
            Doing::Scatter { window, staging } => {
                self.with(window, |it, core| it.scattered(core, window, staging));
            }
            Doing::Gather {
                window,
                rest,
                staging: buffer,
                tag,
                bytes,
            } => {
                let range = 0..bytes;
                let span = Span { buffer, range };
                self.with(window, |it, core| {
                    it.gathered(core, window, rest, tag, span)
                });
            }
            Doing::Send {
                window,
                rest,
                staging,
            } => self.with(window, |it, core| it.sent(core, window, rest, staging)),
            Doing::RelaySend { realm, buffer } => self.relay.free(&mut self.core, realm, buffer),
            Doing::Pack => {
                let step = self.entering.packed(&mut self.core);
                self.step(step);
            }
            Doing::Unpack => {
                let step = self.entering.unpacked(&mut self.core);
                self.step(step);
            }
            doing => panic!("{doing:?} is neither a send nor a copy"),
        }
    }

    pub(super) fn transferred(&mut self, job: Job, outcome: Outcome) {
        let doing = self.core.jobs.finish(job);
        if self.lost.is_some() {
            return;
        }
        match doing {
            Doing::Transfer(window) => {
                self.with(window, |it, core| it.transferred(core, window, outcome));
            }
            Doing::TransferEager => {
                let step = self.entering.transferred(&mut self.core, outcome);
                self.step(step);
            }
            doing => panic!("{doing:?} is not a transfer"),
        }
    }
}
