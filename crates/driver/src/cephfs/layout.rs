//! How files are divided into objects: layouts, the placement that follows from
//! them, and the layout of a new file.

use std::{
    ffi::{CStr, c_int},
    io, thread,
    time::{Duration, Instant},
};

use super::{
    attribute,
    library::{Inode, User},
};
use crate::{Component, Creation, Placement, ServerCount, Storage, Striping, StripingRequest};

/// A layout: stripe units go round-robin to a set of objects until these have
/// their full size; then the next set begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) stripe_unit: u32,
    pub(super) stripe_count: u32,
    pub(super) object_size: u32,
}

/// Stripe units are multiples of this.
const UNIT_BYTES: u64 = 64 << 10;

/// How many objects are looked up when a file is opened. The OSDs of objects
/// beyond them count as unknown.
const OBJECTS_MAX: u64 = 256;

/// How long a client that has just mounted may take to learn where its OSDs are.
const MAP_WAIT: Duration = Duration::from_secs(1);
const MAP_POLL: Duration = Duration::from_millis(1);

impl Layout {
    /// The stripes; `None` if the numbers contradict each other.
    pub(super) fn striping(self) -> Option<Striping> {
        let is_valid = self.stripe_unit > 0
            && self.stripe_count > 0
            && self.object_size > 0
            && self.object_size.is_multiple_of(self.stripe_unit);
        is_valid.then_some(Striping {
            unit: self.stripe_unit.into(),
            count: self.stripe_count.into(),
        })
    }

    /// Bytes per set of objects.
    fn set_bytes(self) -> u64 {
        u64::from(self.object_size) * u64::from(self.stripe_count)
    }

    /// Where each object that is looked up starts in the file, set by set.
    fn objects(self) -> impl Iterator<Item = u64> {
        let (count, unit) = (u64::from(self.stripe_count), u64::from(self.stripe_unit));
        let sets = (OBJECTS_MAX / count).max(1);
        let set_bytes = self.set_bytes();
        (0..sets).flat_map(move |set| (0..count).map(move |object| set * set_bytes + object * unit))
    }

    /// The placement with these OSDs of the first objects. The ranges do not
    /// depend on the size of the file, so that all processes see the same ones.
    fn placement(self, osds: &[Option<u32>]) -> Option<Placement> {
        let striping = self.striping()?;
        let set_bytes = self.set_bytes();
        let sets = osds.chunks_exact(self.stripe_count as usize).zip(0u64..);
        let mut components: Vec<_> = sets
            .map(|(osds, set)| Component {
                file: set * set_bytes..(set + 1) * set_bytes,
                striping,
                storage: match osds.iter().copied().collect() {
                    Some(osds) => Storage::Servers(osds),
                    None => Storage::Unknown,
                },
            })
            .collect();
        let known = components.last().map_or(0, |last| last.file.end);
        components.push(Component {
            file: known..u64::MAX,
            striping,
            storage: Storage::Unknown,
        });
        Placement::new(components)
    }
}

/// Which OSDs hold the file, as far as its path leads to it; `None` if its layout is
/// not understood.
pub(super) fn placement(file: &Inode, path: Option<&CStr>, flags: c_int) -> Option<Placement> {
    let layout = file.layout().ok()?;
    layout.striping()?;
    let look_up = |path| file.osds_at(path, flags, layout.objects()).ok();
    let osds = path.filter(|_| knows_osds(file)).and_then(look_up);
    // The same ranges as on processes that know more.
    let osds = osds.unwrap_or_else(|| layout.objects().map(|_| None).collect());
    layout.placement(&osds)
}

/// Whether the client knows the OSDs, after a moment to learn of them.
fn knows_osds(file: &Inode) -> bool {
    let start = Instant::now();
    loop {
        match file.knows_osds() {
            Ok(false) if start.elapsed() < MAP_WAIT => thread::sleep(MAP_POLL),
            known => return known.unwrap_or(false),
        }
    }
}

/// Sets the layout of a new, empty file as far as it is requested.
pub(super) fn set(file: &Inode, request: &StripingRequest, user: &User) -> Option<Creation> {
    if !request.is_explicit() {
        return None;
    }
    let set = |value: &str| file.set_attribute(attribute::LAYOUT, value.as_bytes(), user);
    Some(attribute::attempt(attributes(file, request), set))
}

/// The value of `ceph.file.layout` for a request.
fn attributes(file: &Inode, request: &StripingRequest) -> io::Result<String> {
    let osds = || file.client().osds();
    requested(file.layout()?, request, osds)
}

/// The same, for a file that would have the default layout.
pub(super) fn requested(
    default: Layout,
    request: &StripingRequest,
    osds: impl FnOnce() -> io::Result<u32>,
) -> io::Result<String> {
    let invalid = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    if request.first_server.is_some() || request.stripes_per_server > 1 {
        let message = "CephFS places objects by a hash of their names: the first server and the \
                       stripes per server cannot be set";
        return invalid(message.to_owned());
    }
    let unit = request.unit.unwrap_or(default.stripe_unit.into());
    if !unit.is_multiple_of(UNIT_BYTES) || u32::try_from(unit).is_err() {
        return invalid(format!(
            "the stripe unit {unit} is not a multiple of {UNIT_BYTES} below 4 GiB"
        ));
    }
    let count = match request.servers {
        None => default.stripe_count,
        Some(ServerCount::Exactly(count)) => count,
        Some(ServerCount::All) => osds()?,
    };
    let object_size = u64::from(default.object_size).next_multiple_of(unit);
    let layout = format!("stripe_unit={unit} stripe_count={count} object_size={object_size}");
    Ok(match &request.pool {
        Some(pool) => format!("{layout} pool={pool}"),
        None => layout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Layout = Layout {
        stripe_unit: 4 << 20,
        stripe_count: 1,
        object_size: 4 << 20,
    };

    fn asked(request: StripingRequest) -> io::Result<String> {
        requested(DEFAULT, &request, || Ok(7))
    }

    #[test]
    fn hints_become_layouts() {
        let request = StripingRequest {
            servers: Some(ServerCount::Exactly(4)),
            unit: Some(1 << 16),
            ..StripingRequest::default()
        };
        let narrow = "stripe_unit=65536 stripe_count=4 object_size=4194304";
        assert_eq!(asked(request.clone()).unwrap(), narrow);
        let all = StripingRequest {
            servers: Some(ServerCount::All),
            unit: Some(5 << 20),
            pool: Some("fast".to_owned()),
            ..StripingRequest::default()
        };
        let wide = "stripe_unit=5242880 stripe_count=7 object_size=5242880 pool=fast";
        assert_eq!(asked(all).unwrap(), wide);
        let odd = StripingRequest {
            unit: Some(1000),
            ..request.clone()
        };
        assert!(asked(odd).unwrap_err().to_string().contains("1000"));
        let first = StripingRequest {
            first_server: Some(3),
            ..request
        };
        assert!(asked(first).unwrap_err().to_string().contains("hash"));
    }

    #[test]
    fn each_set_of_objects_is_a_component() {
        let layout = Layout {
            stripe_unit: 1 << 16,
            stripe_count: 2,
            object_size: 1 << 17,
        };
        let objects: Vec<_> = layout.objects().take(4).collect();
        let set = 1 << 18;
        assert_eq!(objects, [0, 1 << 16, set, set + (1 << 16)]);
        let placement = layout
            .placement(&[Some(3), Some(0), Some(1), None])
            .unwrap();
        let storage: Vec<_> = placement
            .components()
            .iter()
            .map(|it| (it.file.start, it.storage.clone()))
            .collect();
        let expected = [
            (0, Storage::Servers(vec![3, 0])),
            (set, Storage::Unknown),
            (2 * set, Storage::Unknown),
        ];
        assert_eq!(storage, expected);
        assert_eq!(placement.striping().unit, 1 << 16);
        let torn = Layout {
            object_size: 100,
            ..layout
        };
        assert_eq!(torn.placement(&[]), None);
    }
}
