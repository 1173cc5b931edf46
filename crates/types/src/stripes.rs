//! Stripes and the servers that hold them.

use std::sync::Arc;

use crate::Striping;

/// Round-robin striping, of which several stripes of a cycle may be on one server
/// (overstriping). Servers are numbered from 0 on, in the order in which a cycle
/// reaches them. Cheap to clone.
///
/// ```
/// use pario_types::{Stripes, Striping};
///
/// let striping = Striping { unit: 10, count: 4 };
/// let stripes = Stripes::on(striping, &[7, 3, 7, 3]);
/// assert_eq!(stripes.servers(), 2);
/// assert_eq!(stripes.stripes_of(1), [1, 3]);
/// assert_eq!(Stripes::from(striping).servers(), 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stripes {
    /// Their length, and their number in a cycle.
    pub striping: Striping,
    /// The servers of a cycle's stripes; `None` if each has one of its own, or if
    /// nothing else is known.
    shared: Option<Arc<Shared>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shared {
    servers: u32,
    by_stripe: Vec<u32>,
}

impl From<Striping> for Stripes {
    /// Each stripe of a cycle on a server of its own.
    fn from(striping: Striping) -> Stripes {
        Stripes {
            striping,
            shared: None,
        }
    }
}

impl Stripes {
    /// The stripes of a cycle on these servers, by the file system's numbers.
    pub fn on(striping: Striping, servers: &[u32]) -> Stripes {
        debug_assert_eq!(striping.count, servers.len() as u64);
        let mut known = std::collections::HashMap::with_capacity(servers.len());
        let mut number = |server: &u32| {
            let next = known.len() as u32;
            *known.entry(*server).or_insert(next)
        };
        let by_stripe: Vec<u32> = servers.iter().map(&mut number).collect();
        let servers = known.len() as u32;
        let is_shared = u64::from(servers) < striping.count;
        Stripes {
            striping,
            shared: is_shared.then(|| Arc::new(Shared { servers, by_stripe })),
        }
    }

    /// Number of servers.
    pub fn servers(&self) -> u64 {
        match &self.shared {
            Some(shared) => shared.servers.into(),
            None => self.striping.count,
        }
    }

    /// Whether a server has several stripes of a cycle.
    pub fn share_servers(&self) -> bool {
        self.shared.is_some()
    }

    /// The server of a stripe, counted from byte 0 of the file.
    pub fn server_of_stripe(&self, stripe: u64) -> u64 {
        let place = stripe % self.striping.count;
        match &self.shared {
            Some(shared) => shared.by_stripe[place as usize].into(),
            None => place,
        }
    }

    /// The server of a byte.
    pub fn server_of(&self, file_byte: u64) -> u64 {
        self.server_of_stripe(file_byte / self.striping.unit)
    }

    /// The stripes of a server in the first cycle, ascending.
    pub fn stripes_of(&self, server: u64) -> Vec<u64> {
        match &self.shared {
            Some(shared) => {
                let stripes = (0..).zip(&shared.by_stripe);
                let is_there = |it: &(u64, &u32)| u64::from(*it.1) == server;
                stripes.filter(is_there).map(|it| it.0).collect()
            }
            None => vec![server],
        }
    }
}
