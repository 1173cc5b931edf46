//! Copies and file transfers, token by token.

use pario_exchange::{
    Accesses, Action, Buffer, Contents, Direction, Event, Failure, Job, Outcome, Place, Progress,
    Rank, Realm, Span,
};

use super::{NOTHING, OF_FILE, Token, World};
use crate::case::{Bytes, Fault};

impl World<'_> {
    /// Does what a copy or transfer does, at its end.
    pub(super) fn complete(&mut self, rank: Rank, action: Action) -> Event<Bytes> {
        let accesses = self.case.accesses.clone();
        let direction = self.case.setting.direction;
        match action {
            Action::Copy {
                job,
                realm,
                file,
                buffer,
                place,
                among,
            } => {
                for (nth, offset) in accesses.part(rank, realm, file).iter().enumerate() {
                    let at = self.place(realm, place, nth, *offset);
                    let index = accesses.index(rank, *offset);
                    match direction {
                        Direction::Write => {
                            self.buffer(buffer)[at] = self.memory[rank.index()][index];
                        }
                        Direction::Read => {
                            self.memory[rank.index()][index] = self.buffer(buffer)[at];
                        }
                    }
                }
                let copied = self.copied.entry(buffer).or_insert(0);
                *copied += 1;
                assert!(*copied <= among, "{buffer:?}: {copied} ranks of {among}");
                let is_last = *copied == among;
                if is_last {
                    self.copied.remove(&buffer);
                }
                Event::CopiedOwn { job, is_last }
            }
            Action::Arrange {
                job,
                realm,
                file,
                staging,
                window,
                parts,
            } => {
                for it in parts {
                    let offsets = accesses.part(it.part.rank, realm, file.clone());
                    assert_eq!(offsets.len() as u64, it.part.bytes);
                    for (nth, offset) in offsets.iter().enumerate() {
                        let at = self.place(realm, it.place, nth, *offset);
                        let from = it.at as usize + nth;
                        match direction {
                            Direction::Write => {
                                self.buffer(window)[at] = self.buffer(staging)[from];
                            }
                            Direction::Read => {
                                self.buffer(staging)[from] = self.buffer(window)[at];
                            }
                        }
                    }
                }
                Event::Copied(job)
            }
            Action::Transfer {
                job,
                realm,
                file,
                buffer,
                contents,
                parts,
            } => {
                let mut bytes = Vec::new();
                match contents {
                    Contents::Image => {
                        for rank in (0..self.memory.len() as u32).map(Rank) {
                            bytes.extend_from_slice(accesses.part(rank, realm, file.clone()));
                        }
                        bytes.sort_unstable();
                        bytes.dedup();
                        let image = Place::Image {
                            origin: file.start,
                            at: 0,
                        };
                        let at = |offset: &u64| (*offset, self.place(realm, image, 0, *offset));
                        let placed = bytes.iter().map(at).collect();
                        self.transfer(rank, job, buffer, placed)
                    }
                    Contents::Packed => {
                        let mut placed = Vec::new();
                        for part in parts {
                            let offsets = accesses.part(part.rank, realm, file.clone());
                            assert_eq!(offsets.len() as u64, part.bytes);
                            let first = placed.len();
                            let at = offsets.iter().zip(first..);
                            placed.extend(at.map(|(offset, at)| (*offset, at)));
                        }
                        placed.sort_unstable();
                        self.transfer(rank, job, buffer, placed)
                    }
                }
            }
            Action::Pack { job, buffer } => {
                let tokens = self.memory[rank.index()].clone();
                self.buffer(buffer)[..tokens.len()].copy_from_slice(&tokens);
                Event::Copied(job)
            }
            Action::Unpack { job, spans, stop } => {
                let tokens = self.gather(&spans);
                assert_eq!(tokens.len(), self.memory[rank.index()].len());
                let below = accesses.offsets[rank.index()].partition_point(|it| *it < stop);
                self.memory[rank.index()][..below].copy_from_slice(&tokens[..below]);
                Event::Copied(job)
            }
            Action::TransferEager { job, parts, .. } => self.transfer_eager(rank, job, parts),
            action => unreachable!("{action:?} is not pending"),
        }
    }

    pub(super) fn place(&self, realm: Realm, place: Place, nth: usize, offset: u64) -> usize {
        match place {
            Place::Packed { at } => at as usize + nth,
            Place::Image { origin, at } => {
                (at + self.case.accesses.realm_bytes(realm, origin..offset)) as usize
            }
        }
    }

    /// Where a transfer stops, of these bytes, and whether by an error.
    pub(super) fn stop(&mut self, placed: &[(u64, usize)]) -> Outcome {
        let failing = self.case.fault == Fault::Failures && self.random.u8(0..3) == 0;
        let stop = match self.case.fault {
            _ if failing && !placed.is_empty() => {
                Some(placed[self.random.usize(0..placed.len())].0)
            }
            Fault::End(end) => placed.iter().map(|it| it.0).find(|offset| *offset >= end),
            _ => None,
        };
        Outcome {
            stop,
            error: (failing && stop.is_some()).then(|| [7].into()),
        }
    }

    pub(super) fn transfer(
        &mut self,
        rank: Rank,
        job: Job,
        buffer: Buffer,
        placed: Vec<(u64, usize)>,
    ) -> Event<Bytes> {
        let outcome = self.stop(&placed);
        for (offset, at) in placed {
            if outcome.stop.is_some_and(|stop| offset >= stop) {
                continue;
            }
            match self.case.setting.direction {
                Direction::Write => {
                    let token = self.buffer(buffer)[at];
                    self.write(offset, token);
                }
                Direction::Read => self.buffer(buffer)[at] = OF_FILE | offset,
            }
        }
        self.note(rank, &outcome);
        Event::Transferred { job, outcome }
    }

    pub(super) fn transfer_eager(
        &mut self,
        rank: Rank,
        job: Job,
        parts: Vec<(Rank, Vec<Span>)>,
    ) -> Event<Bytes> {
        let accesses = self.case.accesses.clone();
        let mut placed: Vec<(u64, usize)> = Vec::new();
        for (part, _) in &parts {
            placed.extend(accesses.offsets[part.index()].iter().map(|it| (*it, 0)));
        }
        placed.sort_unstable();
        let outcome = self.stop(&placed);
        let stop = outcome.stop.unwrap_or(u64::MAX);
        for (part, spans) in parts {
            let offsets = &accesses.offsets[part.index()];
            let mut places = spans
                .iter()
                .flat_map(|span| span.range.clone().map(|at| (span.buffer, at)));
            for offset in offsets {
                let (buffer, at) = places.next().expect("all data of a rank is there");
                if *offset >= stop {
                    continue;
                }
                match self.case.setting.direction {
                    Direction::Write => {
                        let token = self.buffer(buffer)[at as usize];
                        self.write(*offset, token);
                    }
                    Direction::Read => self.buffer(buffer)[at as usize] = OF_FILE | offset,
                }
            }
            assert!(places.next().is_none());
        }
        self.note(rank, &outcome);
        Event::Transferred { job, outcome }
    }

    /// A byte goes to the file: it must be one that a rank has for it.
    pub(super) fn write(&mut self, offset: u64, token: Token) {
        assert_ne!(
            token, NOTHING,
            "byte {offset} is written before it is there"
        );
        let rank = Rank((token >> 32) as u32 - 1);
        let index = token as u32 as usize;
        let place = self.case.accesses.offsets[rank.index()][index];
        assert_eq!(
            place, offset,
            "byte {index} of {rank:?} is written to a wrong place"
        );
        let owners = &self.case.accesses.offsets;
        let owners = owners.iter().filter(|it| it.binary_search(&offset).is_ok());
        let before = std::mem::replace(&mut self.file[offset as usize], token);
        assert!(
            before == NOTHING || owners.count() > 1,
            "byte {offset} is written twice"
        );
    }

    pub(super) fn note(&mut self, rank: Rank, outcome: &Outcome) {
        let failure = outcome.error.clone().map(|detail| Failure { rank, detail });
        self.note_progress(Progress {
            stop: outcome.stop.unwrap_or(u64::MAX),
            failure,
        });
    }

    /// What the ranks have to agree on: the lowest stop, and the failure of
    /// the lowest rank.
    fn note_progress(&mut self, progress: Progress) {
        self.failed.stop = self.failed.stop.min(progress.stop);
        let known = self.failed.failure.take().into_iter();
        let failures = known.chain(progress.failure);
        self.failed.failure = failures.min_by_key(|failure| failure.rank);
    }

    /// A rank moves its own data, or not.
    pub(super) fn move_alone(&mut self, rank: Rank) -> Event<Bytes> {
        let offsets = self.case.accesses.offsets[rank.index()].clone();
        let is_failing = !offsets.is_empty() && self.random.u8(0..8) == 0;
        let stop = is_failing.then(|| offsets[self.random.usize(0..offsets.len())]);
        for (index, offset) in offsets.into_iter().enumerate() {
            if stop.is_some_and(|stop| offset >= stop) {
                break;
            }
            match self.case.setting.direction {
                Direction::Write => self.write(offset, self.memory[rank.index()][index]),
                Direction::Read => self.memory[rank.index()][index] = OF_FILE | offset,
            }
        }
        let failure = is_failing.then(|| Failure {
            rank,
            detail: [8].into(),
        });
        let stop = stop.unwrap_or(u64::MAX);
        let progress = Progress { stop, failure };
        self.note_progress(progress.clone());
        Event::MovedAlone(progress)
    }
}
