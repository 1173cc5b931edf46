//! Where the bytes of a file are stored: a map from ranges of the file to
//! servers and their objects (Chaarawi 2011's fcache, section 3.4).

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
    sync::Arc,
};

use crate::Striping;

/// The placement of a file: components in ascending order that do not overlap.
/// Nothing is known about bytes outside of them. Cheap to clone.
///
/// ```
/// use pario_types::{Component, Placement, Server, Storage, Striping};
///
/// // One stripe on server 7, then two stripes at a time on servers 3 and 5.
/// let first = Component {
///     file: 0..100,
///     striping: Striping { unit: 100, count: 1 },
///     storage: Storage::Servers(vec![7]),
/// };
/// let rest = Component {
///     file: 100..u64::MAX,
///     striping: Striping { unit: 50, count: 2 },
///     storage: Storage::Servers(vec![3, 5]),
/// };
/// let placement = Placement::new(vec![first, rest]).unwrap();
/// let servers: Vec<_> = placement.parts(90..160).map(|it| (it.server, it.len)).collect();
/// let expected = [(7, 10), (3, 50), (5, 10)].map(|(server, len)| (Server::Data(server), len));
/// assert_eq!(servers, expected);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    components: Arc<[Component]>,
    /// The pool of servers that it was restricted to, if any.
    pool: Option<Arc<str>>,
}

/// A range of the file with one striping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The range.
    pub file: Range<u64>,
    /// Its stripes, counted from byte 0 of the file.
    pub striping: Striping,
    /// Where the stripes are.
    pub storage: Storage,
}

/// Where the stripes of a component are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// On these servers, one per stripe of a cycle. A server may occur more
    /// than once, with an object each time (overstriping).
    Servers(Vec<u32>),
    /// On the metadata server.
    Metadata,
    /// Not allocated yet, or not reported.
    Unknown,
}

/// The server of a part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    /// A data server, by the file system's own number.
    Data(u32),
    /// The metadata server.
    Metadata,
    /// Not known; parts with the same component and object are on the same one.
    Unknown,
}

/// A contiguous part of the file in one object of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedPart {
    /// Where it starts in the file.
    pub file_offset: u64,
    /// Its length.
    pub len: u64,
    /// Its component, from 0 on.
    pub component: usize,
    /// Its server.
    pub server: Server,
    /// Which object of the component, from 0 on.
    pub object: u64,
    /// Where it starts in the object.
    pub object_offset: u64,
}

impl Placement {
    /// A placement with these components. `None` if there are none, if they
    /// overlap or do not ascend, if one is empty, or if the number of its
    /// servers is not that of its stripes.
    pub fn new(components: Vec<Component>) -> Option<Placement> {
        let ascend = components
            .windows(2)
            .all(|pair| pair[0].file.end <= pair[1].file.start);
        let is_valid = |it: &Component| {
            let servers_match = match &it.storage {
                Storage::Servers(servers) => servers.len() as u64 == it.striping.count,
                Storage::Metadata => it.striping.count == 1,
                Storage::Unknown => true,
            };
            !it.file.is_empty() && it.striping.unit > 0 && it.striping.count > 0 && servers_match
        };
        let is_valid = !components.is_empty() && ascend && components.iter().all(is_valid);
        is_valid.then(|| Placement {
            components: components.into(),
            pool: None,
        })
    }

    /// The same striping in the whole file, on servers that are not known.
    pub fn uniform(striping: Striping) -> Placement {
        Placement {
            components: Arc::new([Component {
                file: 0..u64::MAX,
                striping,
                storage: Storage::Unknown,
            }]),
            pool: None,
        }
    }

    /// The same on servers of a pool.
    #[must_use]
    pub fn with_pool(self, pool: Option<&str>) -> Placement {
        Placement {
            pool: pool.map(Arc::from),
            ..self
        }
    }

    /// The pool of servers that it was restricted to, if any.
    pub fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The striping of the longest component, which is the last one in files
    /// whose stripes grow with the file.
    pub fn striping(&self) -> Striping {
        self.longest().striping
    }

    /// The longest component; of equal ones, the last.
    pub fn longest(&self) -> &Component {
        let longest = self.components.iter().max_by_key(|it| it.len());
        longest.expect("a placement has components")
    }

    /// Whether every byte has a known place.
    pub fn is_complete(&self) -> bool {
        let mut end = 0;
        let follow = self.components.iter().all(|component| {
            let follows = component.file.start <= end;
            end = component.file.end;
            follows
        });
        follow && end == u64::MAX
    }

    /// Which servers hold a range of the file, and where. Bytes without a known
    /// place are skipped.
    pub fn parts(&self, file: Range<u64>) -> impl Iterator<Item = PlacedPart> {
        self.components
            .iter()
            .enumerate()
            .flat_map(move |(index, component)| component.parts(index, file.clone()))
    }

    /// The range of the file divided where the striping changes; `None` for bytes
    /// without a known place.
    pub fn sections(&self, file: Range<u64>) -> Vec<(Range<u64>, Option<Striping>)> {
        let mut sections: Vec<(Range<u64>, Option<Striping>)> = Vec::new();
        let mut add = |range: Range<u64>, striping| match sections.last_mut() {
            _ if range.is_empty() => {}
            Some((last, same)) if *same == striping => last.end = range.end,
            _ => sections.push((range, striping)),
        };
        let mut at = file.start;
        for component in self.components.iter() {
            let start = component.file.start.clamp(at, file.end.max(at));
            let end = component.file.end.clamp(start, file.end.max(start));
            add(at..start, None);
            add(start..end, Some(component.striping));
            at = end;
        }
        add(at..file.end, None);
        sections
    }

    /// A number that is the same for placements with the same ranges and
    /// stripes: all that plans may depend on. Objects are allocated while a file
    /// is written, so that ranks may see different servers.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for component in self.components.iter() {
            (&component.file, component.striping).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Component {
    /// Its length; empty components do not exist.
    #[expect(clippy::len_without_is_empty, reason = "components are not empty")]
    pub fn len(&self) -> u64 {
        self.file.end - self.file.start
    }

    fn parts(&self, index: usize, file: Range<u64>) -> impl Iterator<Item = PlacedPart> {
        let start = self.file.start.max(file.start);
        let end = self.file.end.min(file.end);
        let mut file_offset = start;
        self.striping.parts(start..end.max(start)).map(move |part| {
            let placed = PlacedPart {
                file_offset,
                len: part.len,
                component: index,
                server: self.storage.server(part.server),
                object: part.server,
                object_offset: part.local_offset,
            };
            file_offset += part.len;
            placed
        })
    }
}

impl Storage {
    fn server(&self, stripe: u64) -> Server {
        match self {
            Storage::Servers(servers) => Server::Data(servers[stripe as usize]),
            Storage::Metadata => Server::Metadata,
            Storage::Unknown => Server::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(file: Range<u64>, unit: u64, count: u64) -> Component {
        Component {
            file,
            striping: Striping { unit, count },
            storage: Storage::Unknown,
        }
    }

    fn growing() -> Placement {
        let components = vec![
            component(0..100, 100, 1),
            component(100..400, 50, 2),
            component(600..u64::MAX, 100, 4),
        ];
        Placement::new(components).unwrap()
    }

    #[test]
    fn parts_are_in_file_order_and_skip_unknown_ranges() {
        let parts: Vec<_> = growing()
            .parts(50..700)
            .map(|it| {
                (
                    it.file_offset,
                    it.len,
                    it.component,
                    it.object,
                    it.object_offset,
                )
            })
            .collect();
        assert_eq!(
            parts,
            [
                (50, 50, 0, 0, 50),
                (100, 50, 1, 0, 50),
                (150, 50, 1, 1, 50),
                (200, 50, 1, 0, 100),
                (250, 50, 1, 1, 100),
                (300, 50, 1, 0, 150),
                (350, 50, 1, 1, 150),
                (600, 100, 2, 2, 100),
            ]
        );
    }

    #[test]
    fn sections_cover_a_range_without_gaps() {
        let placement = growing();
        let sections = |range: Range<u64>| -> Vec<_> {
            let sections = placement.sections(range).into_iter();
            sections
                .map(|(range, striping)| (range, striping.map_or(0, |it| it.count)))
                .collect()
        };
        assert_eq!(sections(0..50), [(0..50, 1)]);
        assert_eq!(sections(50..150), [(50..100, 1), (100..150, 2)]);
        assert_eq!(sections(150..300), [(150..300, 2)]);
        let unknown = [(300..400, 2), (400..600, 0), (600..900, 4)];
        assert_eq!(sections(300..900), unknown);
        assert_eq!(sections(450..500), [(450..500, 0)]);
        assert_eq!(sections(700..900), [(700..900, 4)]);
        assert_eq!(sections(5..5), []);
        let late = Placement::new(vec![component(100..200, 10, 3)]).unwrap();
        let late: Vec<_> = late.sections(0..300).into_iter().map(|it| it.0).collect();
        assert_eq!(late, [0..100, 100..200, 200..300]);
        assert!(!placement.is_complete() && Placement::uniform(placement.striping()).is_complete());
        let same = vec![component(0..10, 10, 2), component(10..20, 10, 2)];
        let same = Placement::new(same).unwrap();
        assert_eq!(same.sections(5..20), [(5..20, Some(same.striping()))]);
    }

    #[test]
    fn contradictory_components_are_rejected() {
        let striping = Striping { unit: 10, count: 2 };
        assert_eq!(Placement::new(Vec::new()), None);
        for components in [
            vec![component(10..10, 10, 1)],
            vec![component(0..10, 0, 1)],
            vec![component(0..10, 10, 0)],
            vec![component(0..20, 10, 1), component(10..30, 10, 1)],
            vec![component(20..30, 10, 1), component(0..10, 10, 1)],
            vec![Component {
                file: 0..10,
                striping,
                storage: Storage::Servers(vec![1]),
            }],
        ] {
            assert_eq!(Placement::new(components.clone()), None, "{components:?}");
        }
    }

    #[test]
    fn fingerprints_depend_on_what_plans_depend_on() {
        let [mut known, mut other] = [0, 1].map(|_| component(0..10, 10, 1));
        known.storage = Storage::Servers(vec![3]);
        let number = |it: &Component| Placement::new(vec![it.clone()]).unwrap().fingerprint();
        assert_eq!(number(&known), number(&other));
        other.file.end = 20;
        assert_ne!(number(&known), number(&other));
    }
}
