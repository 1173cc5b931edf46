//! What a case does: how the file is opened, and steps that all ranks take
//! together, with a meeting of the ranks behind each.

use pario::{Basic, Mode, Seek};

use crate::{
    drivers::DriverKind,
    representation::Stored,
    spec::{Spec, TypeMap},
};

/// A whole case.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The node of each rank: some are on different (simulated) nodes.
    pub(crate) nodes: Vec<u32>,
    /// What the file holds before it is opened; `None` if there is no file.
    pub(crate) before: Option<Filling>,
    pub(crate) opening: Opening,
    pub(crate) steps: Vec<Step>,
}

/// Random bytes, by the seed they come out of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) len: usize,
    pub(crate) seed: u64,
}

impl Filling {
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        fastrand::Rng::with_seed(self.seed).fill(&mut bytes);
        bytes
    }
}

impl Scenario {
    pub(crate) fn ranks(&self) -> usize {
        self.nodes.len()
    }
}

/// How the file is opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) driver: DriverKind,
    pub(crate) mode: Mode,
    pub(crate) hints: Vec<Hint>,
}

impl Opening {
    /// Whether a step may write bytes back that nobody asked to write: a hint
    /// or the promise of being alone allows it, the promise of several ranks
    /// only where they act together. A lease proves the same, also to ranks of one
    /// node that act separately, unless a hint excludes leases.
    pub(crate) fn may_write_back(&self, nodes: &[u32], step: &Step) -> bool {
        let rmw = |value: &str| self.hints.contains(&("pario_rmw", value.to_owned()));
        let is_together =
            nodes.len() == 1 || matches!(step, Step::Together(_) | Step::InFlight { .. });
        let is_one_node = nodes.iter().all(|node| *node == nodes[0]);
        let may_be_leased = !rmw("never") && (is_together || is_one_node);
        let is_alone = is_together && self.mode.contains(Mode::UNIQUE_OPEN);
        rmw("locked") || may_be_leased || is_alone
    }
}

/// A hint's name and value.
pub(crate) type Hint = (&'static str, String);

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Every rank does its own, all at the same time.
    Each(Vec<Plan>),
    /// A collective access.
    Together(Vec<Access>),
    /// Several, one after the other; nonblocking ones are waited for in an
    /// order that comes out of the seed.
    InFlight {
        /// Of each call, what each rank does.
        calls: Vec<Vec<Access>>,
        wait_seed: u64,
    },
    /// Every rank writes as much of the same data at the shared pointer, in
    /// whatever order they come.
    Race(Access),
    SetView(Vec<ViewSpec>),
    SetSize(u64),
    Preallocate(u64),
    Sync,
    SetAtomicity(pario::Atomicity),
    SeekShared(i64, Seek),
    SetInfo(Vec<Hint>),
    Reopen(Opening),
}

/// What one rank does in a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    /// The order in which requests are waited for comes out of this.
    pub(crate) wait_seed: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Access(Access),
    Seek(i64, Seek),
    ByteOffset(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) direction: Direction,
    pub(crate) place: Place,
    pub(crate) manner: Manner,
    pub(crate) memory: MemorySpec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Where an access starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    At(u64),
    Individual,
    Shared,
    /// By the shared pointer, in rank order: collective only.
    Ordered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Blocking,
    /// Nonblocking, with a buffer that the request owns.
    Owned,
    /// Nonblocking, with a borrowed buffer.
    Scoped,
    /// Begun and ended: collective only.
    Split,
}

/// Items of a datatype in a buffer that has a margin on both sides.
#[derive(Clone, Debug)]
pub(crate) struct MemorySpec {
    pub(crate) spec: Spec,
    pub(crate) count: u64,
    /// The buffer's content comes out of this.
    pub(crate) fill: u64,
}

/// Bytes around the data that must stay as they are.
const MARGIN: i64 = 8;

/// A memory in detail.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Every element with the index of its first byte.
    pub(crate) elements: Vec<(Basic, usize)>,
    pub(crate) origin: usize,
    pub(crate) bytes: Vec<u8>,
}

impl MemorySpec {
    pub(crate) fn buffer(&self) -> Buffer {
        let map = self.spec.map(&Basic::size);
        let copies = (0..self.count as i64).map(|index| index * map.extent());
        let places: Vec<(Basic, i64)> = copies
            .flat_map(|by| {
                map.elements
                    .iter()
                    .map(move |(basic, at)| (*basic, at + by))
            })
            .collect();
        let low = places.iter().map(|(_, at)| *at).min().unwrap_or(0).min(0);
        let ends = places.iter().map(|(basic, at)| at + basic.size() as i64);
        let high = ends.max().unwrap_or(0).max(0);
        let origin = (MARGIN - low) as usize;
        let filling = Filling {
            len: origin + (high + MARGIN) as usize,
            seed: self.fill,
        };
        let elements = places
            .into_iter()
            .map(|(basic, at)| (basic, (origin as i64 + at) as usize));
        Buffer {
            elements: elements.collect(),
            origin,
            bytes: filling.bytes(),
        }
    }
}

impl Buffer {
    /// Whether some byte belongs to two elements.
    pub(crate) fn overlaps(&self) -> bool {
        let mut seen = vec![false; self.bytes.len()];
        let indices = self
            .elements
            .iter()
            .flat_map(|(basic, at)| *at..at + basic.size() as usize);
        indices
            .into_iter()
            .any(|index| std::mem::replace(&mut seen[index], true))
    }

    /// Makes every element one that can be stored.
    pub(crate) fn tame(&mut self, stored: Stored) {
        for (basic, at) in &self.elements {
            stored.tame(*basic, &mut self.bytes[*at..at + basic.size() as usize]);
        }
    }
}

/// What a rank sees.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ViewSpec {
    /// `None` is the shared pointer's place, in sequential files.
    pub(crate) displacement: Option<u64>,
    pub(crate) etype: Spec,
    pub(crate) filetype: Spec,
    pub(crate) stored: Stored,
}

impl ViewSpec {
    pub(crate) fn bytes() -> ViewSpec {
        ViewSpec {
            displacement: Some(0),
            etype: Spec::Basic(Basic::Byte),
            filetype: Spec::Basic(Basic::Byte),
            stored: Stored::Native,
        }
    }

    fn file_map(&self, spec: &Spec) -> TypeMap {
        spec.map(&|basic| self.stored.size(basic))
    }
}

/// A view in detail.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) spec: ViewSpec,
    pub(crate) displacement: u64,
    /// The bytes of one tile, in order.
    tile: Vec<i64>,
    extent: i64,
    /// Bytes of an etype in the file.
    pub(crate) etype_bytes: u64,
}

impl View {
    pub(crate) fn new(spec: &ViewSpec, displacement: u64) -> View {
        let size_of = |basic| spec.stored.size(basic);
        let map = spec.file_map(&spec.filetype);
        let etype = spec.file_map(&spec.etype);
        View {
            spec: spec.clone(),
            displacement,
            tile: map.bytes(&size_of),
            extent: map.extent(),
            etype_bytes: etype.bytes(&size_of).len() as u64,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tile.is_empty()
    }

    /// The byte of the file where data byte `k` lies.
    pub(crate) fn offset(&self, k: u64) -> u64 {
        let size = self.tile.len() as u64;
        let tile = (k / size) as i64 * self.extent;
        (self.displacement as i64 + tile + self.tile[(k % size) as usize]) as u64
    }

    /// Etypes in so many bytes of the file.
    pub(crate) fn etypes_within(&self, bytes: u64) -> u64 {
        let tiles = bytes / self.extent.max(1) as u64 + 1;
        tiles * self.tile.len() as u64 / self.etype_bytes.max(1)
    }

    fn two_tiles(&self) -> Vec<i64> {
        let second = self.tile.iter().map(|at| at + self.extent);
        self.tile.iter().copied().chain(second).collect()
    }

    pub(crate) fn is_increasing(&self) -> bool {
        self.two_tiles().is_sorted_by(|a, b| a < b)
    }

    /// Whether some byte of the file is shown twice.
    pub(crate) fn overlaps(&self) -> bool {
        let Some(high) = self.tile.iter().max() else {
            return false;
        };
        if self.extent == 0 {
            return true;
        }
        let tiles = high / self.extent + 2;
        let all =
            (0..tiles).flat_map(|tile| self.tile.iter().map(move |at| at + tile * self.extent));
        let mut seen = std::collections::HashSet::new();
        all.into_iter().any(|at| !seen.insert(at))
    }
}
