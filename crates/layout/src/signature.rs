//! The sequence of basic types of a datatype.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::{Basic, TypeError};

/// The basic types of a datatype in type-map order, in compact form.
///
/// Like a layout, a signature repeats forever: element indices and byte positions may exceed
/// those of one instance of the datatype. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Signature(Option<Arc<Node>>);

#[derive(Debug)]
struct Node {
    elements: u64,
    /// Number of elements per type, so that sizes need no walk.
    counts: BasicCounts,
    kind: Kind,
}

type BasicCounts = BTreeMap<Basic, u64>;

#[derive(Debug)]
enum Kind {
    Run(Basic),
    /// Two or more copies of something that is not a run.
    Repeat(Arc<Node>),
    /// Parts, each with the number of elements before it.
    Sequence(Box<[(u64, Arc<Node>)]>),
}

/// Whether one signature repeats another is decided from at most this many of its parts; if those
/// match, all are assumed to.
const PROVEN_PLACES_MAX: usize = 1 << 16;

/// Size of an element of each type in some representation.
type SizeOf<'a> = &'a dyn Fn(Basic) -> u64;

impl Node {
    fn run(basic: Basic, elements: u64) -> Arc<Self> {
        let (counts, kind) = (BasicCounts::from([(basic, elements)]), Kind::Run(basic));
        Arc::new(Self {
            elements,
            counts,
            kind,
        })
    }

    fn repeat(count: u64, child: &Arc<Node>) -> Result<Arc<Self>, TypeError> {
        if count == 1 {
            return Ok(Arc::clone(child));
        }
        let elements = child.elements.checked_mul(count);
        let elements = elements.ok_or_else(|| TypeError::overflow("the number of elements"))?;
        let counts = child
            .counts
            .iter()
            .map(|(&basic, &each)| (basic, each * count))
            .collect();
        let kind = match &child.kind {
            Kind::Run(basic) => Kind::Run(*basic),
            Kind::Repeat(grandchild) => Kind::Repeat(Arc::clone(grandchild)),
            Kind::Sequence(_) => Kind::Repeat(Arc::clone(child)),
        };
        Ok(Arc::new(Self {
            elements,
            counts,
            kind,
        }))
    }

    fn sequence(nodes: Vec<Arc<Node>>) -> Result<Arc<Self>, TypeError> {
        let (mut elements, mut counts) = (0_u64, BasicCounts::new());
        let mut starts = Vec::with_capacity(nodes.len());
        for node in nodes {
            let start = elements;
            let sum = elements.checked_add(node.elements);
            elements = sum.ok_or_else(|| TypeError::overflow("the number of elements"))?;
            for (&basic, &count) in &node.counts {
                *counts.entry(basic).or_default() += count;
            }
            starts.push((start, node));
        }
        let kind = Kind::Sequence(starts.into_boxed_slice());
        Ok(Arc::new(Self {
            elements,
            counts,
            kind,
        }))
    }

    /// Bytes of one instance.
    fn size(&self, size_of: SizeOf<'_>) -> u128 {
        let bytes = |(&basic, &count)| u128::from(count) * u128::from(size_of(basic));
        self.counts.iter().map(bytes).sum()
    }

    /// Bytes of the first `elements` elements, which must not exceed one instance.
    fn bytes_of(&self, elements: u64, size_of: SizeOf<'_>) -> u128 {
        if elements == self.elements {
            return self.size(size_of);
        }
        match &self.kind {
            Kind::Run(basic) => u128::from(elements) * u128::from(size_of(*basic)),
            Kind::Repeat(child) => {
                let (whole, rest) = (elements / child.elements, elements % child.elements);
                u128::from(whole) * child.size(size_of) + child.bytes_of(rest, size_of)
            }
            Kind::Sequence(parts) => parts
                .iter()
                .take_while(|(start, _)| *start < elements)
                .map(|(start, part)| part.bytes_of(part.elements.min(elements - start), size_of))
                .sum(),
        }
    }

    /// The element containing byte `byte`, which must be within one instance, and the byte's
    /// position in it.
    fn element_at(&self, mut byte: u128, size_of: SizeOf<'_>) -> (u64, u64) {
        match &self.kind {
            Kind::Run(basic) => {
                let size = u128::from(size_of(*basic));
                ((byte / size) as u64, (byte % size) as u64)
            }
            Kind::Repeat(child) => {
                let size = child.size(size_of);
                let (element, inside) = child.element_at(byte % size, size_of);
                ((byte / size) as u64 * child.elements + element, inside)
            }
            Kind::Sequence(parts) => {
                for (start, part) in parts {
                    let size = part.size(size_of);
                    if byte < size {
                        let (element, inside) = part.element_at(byte, size_of);
                        return (start + element, inside);
                    }
                    byte -= size;
                }
                (self.elements, 0)
            }
        }
    }

    /// The type of element `element` of one instance, and how many equal ones follow (itself
    /// included) before the tree changes.
    fn run_at(&self, element: u64) -> (Basic, u64) {
        match &self.kind {
            Kind::Run(basic) => (*basic, self.elements - element),
            Kind::Repeat(child) => child.run_at(element % child.elements),
            Kind::Sequence(parts) => {
                let index = parts.partition_point(|(start, _)| *start <= element) - 1;
                let (start, part) = &parts[index];
                part.run_at(element - start)
            }
        }
    }

    /// Whether every element equals the one at its position in the endless repetition of
    /// `period`, when this node starts at element `phase`. `proven` holds nodes and phases
    /// already checked.
    fn repeats(&self, period: &Node, phase: u64, proven: &mut HashSet<(usize, u64)>) -> bool {
        let place = (std::ptr::from_ref(self).addr(), phase);
        if proven.contains(&place) || proven.len() >= PROVEN_PLACES_MAX {
            return true;
        }
        let moved = |elements: u64| {
            let element = u128::from(phase) + u128::from(elements);
            (element % u128::from(period.elements)) as u64
        };
        let repeats = match &self.kind {
            Kind::Run(basic) => period.is_run_at(phase, *basic, self.elements),
            Kind::Repeat(child) => {
                // The phases of the copies recur after at most one period's worth of copies; from
                // then on, all are proven.
                let copies = (self.elements / child.elements).min(period.elements);
                (0..copies).all(|copy| child.repeats(period, moved(copy * child.elements), proven))
            }
            Kind::Sequence(parts) => parts
                .iter()
                .all(|(start, part)| part.repeats(period, moved(*start), proven)),
        };
        if repeats {
            proven.insert(place);
        }
        repeats
    }

    /// Whether the endless repetition of this node has `count` elements of type `basic` from
    /// element `phase` on.
    fn is_run_at(&self, phase: u64, basic: Basic, count: u64) -> bool {
        // A run longer than one instance must be the whole instance.
        let (mut at, mut left) = (phase, count.min(self.elements));
        while left > 0 {
            let (expected, run) = self.run_at(at % self.elements);
            if expected != basic {
                return false;
            }
            left -= run.min(left);
            at = (at + run) % self.elements;
        }
        true
    }
}

impl PartialEq for Signature {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => same(one, other, &mut HashSet::new()),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for Signature {}

/// Whether two nodes are equal. `proven` holds pairs of sequences known to be equal, since a node
/// may occur many times at each of many levels.
fn same(one: &Arc<Node>, other: &Arc<Node>, proven: &mut HashSet<(usize, usize)>) -> bool {
    if Arc::ptr_eq(one, other) {
        return true;
    }
    if one.elements != other.elements || one.counts != other.counts {
        return false;
    }
    match (&one.kind, &other.kind) {
        (Kind::Run(_), Kind::Run(_)) => true,
        (Kind::Repeat(one), Kind::Repeat(other)) => same(one, other, proven),
        (Kind::Sequence(parts), Kind::Sequence(others)) if parts.len() == others.len() => {
            let pair = (Arc::as_ptr(one).addr(), Arc::as_ptr(other).addr());
            if proven.contains(&pair) {
                return true;
            }
            let mut pairs = parts.iter().zip(others);
            let equal = pairs.all(|((start, part), (other_start, other))| {
                start == other_start && same(part, other, proven)
            });
            equal && proven.insert(pair)
        }
        _ => false,
    }
}

impl Signature {
    pub(crate) fn empty() -> Self {
        Self(None)
    }

    pub(crate) fn basic(basic: Basic) -> Self {
        Self(Some(Node::run(basic, 1)))
    }

    pub(crate) fn repeat(&self, count: u64) -> Result<Self, TypeError> {
        match &self.0 {
            Some(node) if count > 0 => Ok(Self(Some(Node::repeat(count, node)?))),
            _ => Ok(Self::empty()),
        }
    }

    pub(crate) fn sequence(parts: &[Signature]) -> Result<Self, TypeError> {
        let mut joined: Vec<Arc<Node>> = Vec::with_capacity(parts.len());
        for node in parts.iter().filter_map(|part| part.0.as_ref()) {
            push_part(&mut joined, node)?;
        }
        let Some(first) = joined.first() else {
            return Ok(Self::empty());
        };
        if joined
            .iter()
            .all(|node| same(node, first, &mut HashSet::new()))
        {
            let count = joined.len() as u64;
            return Ok(Self(Some(Node::repeat(count, first)?)));
        }
        Ok(Self(Some(Node::sequence(joined)?)))
    }

    /// The basic type, if all elements have the same.
    pub fn uniform(&self) -> Option<Basic> {
        match self.0.as_deref()?.kind {
            Kind::Run(basic) => Some(basic),
            _ => None,
        }
    }

    /// Number of basic elements in one instance.
    pub fn elements(&self) -> u64 {
        self.0.as_ref().map_or(0, |node| node.elements)
    }

    /// Bytes of one instance whose elements take `size_of` bytes each; `None` if the sum does not
    /// fit in 64 bits.
    pub fn size_in(&self, size_of: &dyn Fn(Basic) -> u64) -> Option<u64> {
        self.bytes_of(self.elements(), size_of)
    }

    /// Bytes of the first `elements` elements; `None` if the sum does not fit in 64 bits or if
    /// there are no elements to repeat.
    pub fn bytes_of(&self, elements: u64, size_of: &dyn Fn(Basic) -> u64) -> Option<u64> {
        let Some(node) = &self.0 else {
            return (elements == 0).then_some(0);
        };
        let (whole, rest) = (elements / node.elements, elements % node.elements);
        let copies = node
            .bytes_of(node.elements, size_of)
            .checked_mul(whole.into())?;
        let bytes = copies.checked_add(node.bytes_of(rest, size_of))?;
        u64::try_from(bytes).ok()
    }

    /// The element containing byte `byte` of the packed sequence, and the byte's position in it.
    /// `None` if there are no elements, or none with a size.
    pub fn element_at(&self, byte: u64, size_of: &dyn Fn(Basic) -> u64) -> Option<(u64, u64)> {
        let node = self.0.as_ref()?;
        let size = node.size(size_of);
        if size == 0 {
            return None;
        }
        let (whole, rest) = (u128::from(byte) / size, u128::from(byte) % size);
        let (element, inside) = node.element_at(rest, size_of);
        let before = u64::try_from(whole).ok()?.checked_mul(node.elements)?;
        Some((before.checked_add(element)?, inside))
    }

    /// The runs of equal basic types in a range of elements; adjacent runs are joined.
    pub fn runs(&self, elements: Range<u64>) -> SignatureRuns<'_> {
        SignatureRuns {
            node: self.0.as_deref(),
            position: elements.start,
            end: elements.end,
        }
    }

    /// Whether this signature is a whole number of repetitions of `period`.
    pub(crate) fn repeats(&self, period: &Signature) -> bool {
        match (&self.0, &period.0) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(node), Some(period)) => {
                let whole = node.elements.is_multiple_of(period.elements);
                // A repetition of a repetition of `period` repeats `period`.
                let period = match &period.kind {
                    Kind::Repeat(child) => child,
                    _ => period,
                };
                whole
                    && (same(node, period, &mut HashSet::new())
                        || node.repeats(period, 0, &mut HashSet::new()))
            }
        }
    }
}

/// Appends a part; adjacent runs of one type are joined.
fn push_part(parts: &mut Vec<Arc<Node>>, node: &Arc<Node>) -> Result<(), TypeError> {
    if let Some(last) = parts.last_mut()
        && let (Kind::Run(previous), Kind::Run(basic)) = (&last.kind, &node.kind)
        && previous == basic
    {
        let elements = last.elements.checked_add(node.elements);
        let elements = elements.ok_or_else(|| TypeError::overflow("the number of elements"))?;
        *last = Node::run(*basic, elements);
        return Ok(());
    }
    parts.push(Arc::clone(node));
    Ok(())
}

/// Runs of equal basic types; see [`Signature::runs`].
#[derive(Clone, Debug)]
pub struct SignatureRuns<'a> {
    node: Option<&'a Node>,
    position: u64,
    end: u64,
}

impl SignatureRuns<'_> {
    /// The run at the current position, cut at the end of the range.
    fn here(&self) -> Option<(Basic, u64)> {
        let left = self.end.saturating_sub(self.position);
        let node = self.node.filter(|_| left > 0)?;
        if let Kind::Run(basic) = node.kind {
            return Some((basic, left));
        }
        let (basic, run) = node.run_at(self.position % node.elements);
        Some((basic, run.min(left)))
    }
}

impl Iterator for SignatureRuns<'_> {
    type Item = (Basic, u64);

    fn next(&mut self) -> Option<(Basic, u64)> {
        let (basic, mut count) = self.here()?;
        self.position += count;
        while let Some((_, more)) = self.here().filter(|(next, _)| *next == basic) {
            count += more;
            self.position += more;
        }
        Some((basic, count))
    }
}
