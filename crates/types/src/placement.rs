//! Where the bytes of a file are stored: a map from ranges of the file to
//! servers and their objects (Chaarawi 2011's fcache, section 3.4).

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
    sync::Arc,
};

use crate::{Stripes, Striping};

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
    /// Those of each component.
    stripes: Arc<[Stripes]>,
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
    /// Not allocated yet; several stripes of a cycle may come to share a server.
    Unallocated,
    /// Not reported, or not allocated yet on servers that will all be different.
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
                Storage::Unallocated | Storage::Unknown => true,
            };
            !it.file.is_empty() && it.striping.unit > 0 && it.striping.count > 0 && servers_match
        };
        let is_valid = !components.is_empty() && ascend && components.iter().all(is_valid);
        is_valid.then(|| Placement::of(components))
    }

    fn of(components: Vec<Component>) -> Placement {
        Placement {
            stripes: components.iter().map(Component::stripes).collect(),
            components: components.into(),
            pool: None,
        }
    }

    /// The same striping in the whole file, on servers that are not known.
    pub fn uniform(striping: Striping) -> Placement {
        Placement::of(vec![Component {
            file: 0..u64::MAX,
            striping,
            storage: Storage::Unknown,
        }])
    }

    /// The same ranges and stripes, with servers that are to be queried again: for
    /// ranks that see different ones.
    #[must_use]
    pub fn undecided(&self) -> Placement {
        let components = self.components.iter().map(|component| Component {
            storage: match (component.striping.count, &component.storage) {
                (1, Storage::Unallocated) => Storage::Unknown,
                (1, storage) => storage.clone(),
                _ => Storage::Unallocated,
            },
            ..component.clone()
        });
        Placement::of(components.collect()).with_pool(self.pool())
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

    /// The stripes of the longest component.
    pub fn stripes(&self) -> &Stripes {
        let components = self.components.iter().zip(self.stripes.iter());
        let longest = components.max_by_key(|it| it.0.len());
        longest.expect("a placement has components").1
    }

    /// Whether every byte has a place that is decided.
    pub fn is_complete(&self) -> bool {
        let mut end = 0;
        let follow = self.components.iter().all(|component| {
            let follows = component.file.start <= end;
            end = component.file.end;
            follows && component.storage != Storage::Unallocated
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
    /// without a known place. Where components with the same striping differ in
    /// which stripes share a server, the section counts as if none did.
    pub fn sections(&self, file: Range<u64>) -> Vec<(Range<u64>, Option<Stripes>)> {
        let mut sections: Vec<(Range<u64>, Option<Stripes>)> = Vec::new();
        let mut add = |range: Range<u64>, stripes: Option<&Stripes>| match sections.last_mut() {
            _ if range.is_empty() => {}
            Some((last, same)) if same.as_ref() == stripes => last.end = range.end,
            Some((last, Some(same))) if Some(same.striping) == stripes.map(|it| it.striping) => {
                last.end = range.end;
                *same = same.striping.into();
            }
            _ => sections.push((range, stripes.cloned())),
        };
        let mut at = file.start;
        for (component, stripes) in self.components.iter().zip(self.stripes.iter()) {
            let start = component.file.start.clamp(at, file.end.max(at));
            let end = component.file.end.clamp(start, file.end.max(start));
            add(at..start, None);
            add(start..end, Some(stripes));
            at = end;
        }
        add(at..file.end, None);
        sections
    }

    /// A number that is the same for placements in which the same stripes share
    /// servers or may come to, whatever their ranges; 0 if none do. Plans depend on
    /// this and on [`fingerprint`](Placement::fingerprint).
    pub fn sharing_fingerprint(&self) -> u64 {
        let is_undecided = |it: &Component| it.storage == Storage::Unallocated;
        let is_shared = self.stripes.iter().any(Stripes::share_servers);
        if !is_shared && !self.components.iter().any(is_undecided) {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        for (component, stripes) in self.components.iter().zip(self.stripes.iter()) {
            (stripes, is_undecided(component)).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A number that is the same for placements with the same ranges and
    /// stripes. Objects are allocated while a file is written, so that ranks may
    /// see different servers.
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

    fn stripes(&self) -> Stripes {
        match &self.storage {
            Storage::Servers(servers) => Stripes::on(self.striping, servers),
            Storage::Metadata | Storage::Unallocated | Storage::Unknown => self.striping.into(),
        }
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
            Storage::Unallocated | Storage::Unknown => Server::Unknown,
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
                .map(|(range, stripes)| (range, stripes.map_or(0, |it| it.striping.count)))
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
        assert_eq!(
            same.sections(5..20),
            [(5..20, Some(same.stripes().clone()))]
        );
    }

    #[test]
    fn sections_know_which_stripes_share_a_server() {
        let on = |file, servers: &[u32]| Component {
            storage: Storage::Servers(servers.to_vec()),
            ..component(file, 10, 4)
        };
        let servers = |parts: Vec<Component>| -> Vec<u64> {
            let placement = Placement::new(parts).unwrap();
            let sections = placement.sections(0..1000).into_iter();
            sections.filter_map(|it| Some(it.1?.servers())).collect()
        };
        let pairs = on(0..100, &[8, 9, 8, 9]);
        assert_eq!(servers(vec![pairs.clone()]), [2]);
        let elsewhere = on(100..u64::MAX, &[3, 1, 3, 1]);
        assert_eq!(
            servers(vec![pairs.clone(), elsewhere]),
            [2],
            "the same ones share"
        );
        let others = on(100..u64::MAX, &[3, 3, 1, 1]);
        let mixed = Placement::new(vec![pairs.clone(), others]).unwrap();
        assert_eq!(
            mixed.sections(0..200),
            [(0..200, Some(mixed.striping().into()))]
        );
        assert_eq!(mixed.sections(0..50)[0].1.as_ref().unwrap().servers(), 2);

        let undecided = mixed.undecided();
        assert_eq!(undecided.fingerprint(), mixed.fingerprint());
        assert_eq!(undecided.stripes().servers(), 4);
        let numbers = [mixed, undecided].map(|it| it.sharing_fingerprint());
        assert!(numbers[0] != numbers[1] && !numbers.contains(&0));
        let apart = Placement::new(vec![on(0..u64::MAX, &[4, 3, 2, 1])]).unwrap();
        assert_eq!(apart.sharing_fingerprint(), 0);
    }

    #[test]
    fn what_is_not_allocated_may_be_queried_again() {
        let unallocated = Component {
            storage: Storage::Unallocated,
            ..component(0..u64::MAX, 10, 4)
        };
        let placement = Placement::new(vec![unallocated]).unwrap();
        assert!(!placement.is_complete());
        assert!(Placement::uniform(placement.striping()).is_complete());
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
