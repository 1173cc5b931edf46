//! The slices of a window: what one data message carries for a group.

use std::ops::Range;

use super::{Aggregator, Rest, Window};
use crate::{
    Accesses, Direction, Form, Part, Place, Placement, Realm, Slice,
    core::Core,
    cut::{Shape, Share},
};

/// Where the aggregator keeps the message of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Landing {
    /// In the window, from here on, as it travels.
    Window(u64),
    /// In a staging buffer: its bytes go to several places of the window.
    Staging(Vec<Placement>),
}

#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) slice: Slice,
    pub(super) landing: Landing,
    /// Whether the group has no data after it in the window.
    pub(super) is_last: bool,
}

impl Aggregator {
    /// Cuts the next slice for a group.
    pub(super) fn next_slice<A: Accesses>(
        core: &Core<A>,
        realm: Realm,
        window: &Window,
        rest: &Rest,
    ) -> Planned {
        let shares = &window.shares[rest.shares.clone()];
        let slicing = Slicing {
            core,
            realm,
            window,
            shares,
        };
        if core.setting.direction == Direction::Read
            && let Some(planned) = slicing.image(&rest.file)
        {
            return planned;
        }
        let file = slicing.range(&rest.file);
        let is_last = file.end == rest.file.end;
        let parts = slicing.parts(&file);
        Planned {
            is_last,
            ..slicing.planned(file, parts)
        }
    }
}

struct Slicing<'a, A> {
    core: &'a Core<A>,
    realm: Realm,
    window: &'a Window,
    shares: &'a [Share],
}

impl<A: Accesses> Slicing<'_, A> {
    /// The parts of the ranks in a range. What they have in the whole window
    /// is known.
    fn parts(&self, file: &Range<u64>) -> Vec<Part> {
        let parts = self.shares.iter().map(|share| Part {
            rank: share.rank,
            bytes: match *file == self.window.file {
                true => share.bytes,
                false => self.core.bytes(share.rank, self.realm, file.clone()),
            },
        });
        parts.filter(|part| part.bytes > 0).collect()
    }

    fn sum(&self, file: &Range<u64>) -> u64 {
        self.parts(file).iter().map(|part| part.bytes).sum()
    }

    /// The longest range from the start of `file` whose packed bytes fit.
    fn range(&self, file: &Range<u64>) -> Range<u64> {
        let most = self.core.setting.limits.slice_bytes;
        if self.sum(file) <= most {
            return file.clone();
        }
        let (mut fits, mut too_long) = (file.start, file.end);
        while too_long - fits > 1 {
            let middle = fits + (too_long - fits) / 2;
            match self.sum(&(file.start..middle)) <= most {
                true => fits = middle,
                false => too_long = middle,
            }
        }
        assert!(
            fits > file.start,
            "a slice holds a byte of every rank of a group"
        );
        file.start..fits
    }

    /// A slice of packed parts.
    fn planned(&self, file: Range<u64>, parts: Vec<Part>) -> Planned {
        let slice = Slice {
            realm: self.realm,
            file,
            form: Form::Parts,
            bytes: parts.iter().map(|part| part.bytes).sum(),
            parts,
        };
        let landing = match self.at_in_window(&slice) {
            Some(at) => Landing::Window(at),
            None => Landing::Staging(self.placements(&slice)),
        };
        Planned {
            slice,
            landing,
            is_last: false,
        }
    }

    /// Where a slice of packed parts lies in the window, if in one place.
    fn at_in_window(&self, slice: &Slice) -> Option<u64> {
        match self.window.shape {
            Shape::Packed => {
                // A window that was read in part has holes between the parts.
                let is_dense = |pair: &[Share]| pair[0].at + pair[0].bytes == pair[1].at;
                let is_whole = slice.file == self.window.file;
                (is_whole && self.shares.windows(2).all(is_dense)).then_some(self.shares[0].at)
            }
            Shape::Image => {
                let mut expected = None;
                for part in &slice.parts {
                    let first = self.core.next(part.rank, self.realm, slice.file.start)?;
                    let last = self.core.last(part.rank, self.realm, slice.file.end)?;
                    let is_dense = self.image_bytes(&(first..last + 1)) == part.bytes;
                    if !is_dense || expected.is_some_and(|(_, next)| next != first) {
                        return None;
                    }
                    expected = Some((expected.map_or(first, |(first, _)| first), last + 1));
                }
                expected.map(|(first, _)| self.image_bytes(&(self.window.file.start..first)))
            }
        }
    }

    fn image_bytes(&self, file: &Range<u64>) -> u64 {
        self.core.accesses().realm_bytes(self.realm, file.clone())
    }

    fn placements(&self, slice: &Slice) -> Vec<Placement> {
        let window = self.window;
        let mut at = 0;
        let mut placements = Vec::with_capacity(slice.parts.len());
        for part in &slice.parts {
            let place = match window.shape {
                Shape::Image => Place::Image {
                    origin: window.file.start,
                    at: 0,
                },
                Shape::Packed => {
                    let share = self.shares.iter().find(|share| share.rank == part.rank);
                    let before = window.file.start..slice.file.start;
                    let before = self.core.bytes(part.rank, self.realm, before);
                    Place::Packed {
                        at: share.map_or(0, |share| share.at) + before,
                    }
                }
            };
            placements.push(Placement {
                part: *part,
                at,
                place,
            });
            at += part.bytes;
        }
        placements
    }

    /// A slice that carries the realm's bytes once for all ranks of the group
    /// that want them: if that is no longer than their parts.
    fn image(&self, file: &Range<u64>) -> Option<Planned> {
        if self.window.shape != Shape::Image {
            return None;
        }
        let firsts = self.shares.iter();
        let firsts = firsts.filter_map(|it| self.core.next(it.rank, self.realm, file.start));
        let start = firsts.min()?;
        let lasts = self.shares.iter();
        let lasts = lasts.filter_map(|it| self.core.last(it.rank, self.realm, file.end));
        let end = lasts.max()? + 1;
        if end <= start || self.sum(&(start..end)) < self.image_bytes(&(start..end)) {
            return None;
        }
        let most = self.core.setting.limits.slice_bytes;
        let reach = self.core.accesses().realm_end(self.realm, start, most);
        let file = start..end.min(reach);
        let slice = Slice {
            realm: self.realm,
            form: Form::Image,
            parts: self.parts(&file),
            bytes: self.image_bytes(&file),
            file,
        };
        let before = self.window.file.start..slice.file.start;
        let landing = Landing::Window(self.image_bytes(&before));
        let is_last = slice.file.end == end;
        Some(Planned {
            slice,
            landing,
            is_last,
        })
    }
}
