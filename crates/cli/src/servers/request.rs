//! Requests to servers, from the transfers that the driver was asked for.

use std::collections::BTreeMap;

use pario_driver::{Direction, Event, Operation};
use pario_types::{Placement, Server};

/// A request for contiguous bytes of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) server: u64,
    pub(super) direction: Direction,
    /// Which object of the file, in the order of the file.
    pub(super) object: u64,
    /// Where it starts in the object.
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// The requests of one direction, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) requests: usize,
    /// Those of the server that got most.
    pub(super) most: usize,
    /// Those that start before the end of the preceding one of the same server.
    pub(super) backward: usize,
    pub(super) bytes: u64,
}

impl Count {
    /// Counts requests that are in the order in which the servers got them.
    pub(super) fn of(requests: &[Request], direction: Direction) -> Count {
        let mut count = Count::default();
        for own in by_server(requests, direction).into_values() {
            let ends = own.iter().map(|it| (it.object, it.offset + it.len));
            let pairs = own.iter().skip(1).zip(ends);
            count.backward += pairs
                .filter(|(it, end)| (it.object, it.offset) < *end)
                .count();
            count.requests += own.len();
            count.most = count.most.max(own.len());
            count.bytes += own.iter().map(|it| it.len).sum::<u64>();
        }
        count
    }
}

/// The requests of each server, in their order.
pub(super) fn by_server(requests: &[Request], direction: Direction) -> BTreeMap<u64, Vec<Request>> {
    let mut servers: BTreeMap<u64, Vec<Request>> = BTreeMap::new();
    for request in requests.iter().filter(|it| it.direction == direction) {
        servers.entry(request.server).or_default().push(*request);
    }
    servers
}

/// The requests that follow from transfers, in the order in which these began. A client sends one request
/// per object for contiguous bytes of the file.
pub(super) fn of_transfers(mut events: Vec<Event>, placement: &Placement) -> Vec<Request> {
    events.sort_by_key(|event| event.began);
    let mut requests = Vec::new();
    for event in events {
        let direction = match event.operation {
            Operation::Read => Direction::Read,
            Operation::Write => Direction::Write,
            _ => continue,
        };
        for (offset, len) in runs(&event.places) {
            requests.extend(of_run(placement, offset, len, direction));
        }
    }
    requests
}

/// Pieces that are adjacent in the file are one.
fn runs(places: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &(offset, len) in places {
        match runs.last_mut() {
            Some(last) if last.0 + last.1 == offset => last.1 += len,
            _ => runs.push((offset, len)),
        }
    }
    runs
}

fn of_run(placement: &Placement, offset: u64, len: u64, direction: Direction) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for part in placement.parts(offset..offset + len) {
        let object = ((part.component as u64) << 32) + part.object;
        let joined = requests
            .iter_mut()
            .find(|it| it.object == object && it.offset + it.len == part.object_offset);
        if let Some(joined) = joined {
            joined.len += part.len;
            continue;
        }
        requests.push(Request {
            server: match part.server {
                Server::Data(server) => server.into(),
                Server::Metadata | Server::Unknown => part.object,
            },
            direction,
            object,
            offset: part.object_offset,
            len: part.len,
        });
    }
    requests
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc, time::Duration};

    use pario_types::Striping;

    use super::*;

    fn event(began: u64, places: &[(u64, u64)]) -> Event {
        Event {
            operation: Operation::Write,
            path: Arc::from(Path::new("file")),
            places: places.to_vec(),
            bytes: 0,
            error: None,
            began: Duration::from_micros(began),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn transfers_become_requests_per_server() {
        let placement = Placement::uniform(Striping { unit: 10, count: 2 });
        // The later one first; the other spans both servers twice.
        let events = vec![event(7, &[(5, 3)]), event(2, &[(0, 15), (15, 25)])];
        let requests = of_transfers(events, &placement);
        let found: Vec<_> = requests
            .iter()
            .map(|it| (it.server, it.offset, it.len))
            .collect();
        assert_eq!(found, [(0, 0, 20), (1, 0, 20), (0, 5, 3)]);
        let expected = Count {
            requests: 3,
            most: 2,
            backward: 1,
            bytes: 43,
        };
        assert_eq!(Count::of(&requests, Direction::Write), expected);
        assert_eq!(Count::of(&requests, Direction::Read), Count::default());
    }
}
