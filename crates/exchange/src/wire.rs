//! Messages as bytes: little-endian, without padding, checked when read.

use std::{ops::Range, sync::Arc};

use crate::{
    Buffer, Decision, Entry, Failure, Form, Job, Kind, Message, Part, Place, Progress, Rank, Realm,
    Slice, Table, Tag, table::Stretch,
};

/// Something with a form in bytes.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// `None` if the bytes are not such a thing.
    fn get(bytes: &mut &[u8]) -> Option<Self>;
}

impl Message {
    /// Its form on the wire, without its payload.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.wire_bytes() as usize);
        self.write_to(&mut out);
        out
    }

    /// Appends its form on the wire.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        self.put(out);
    }

    /// A message and what follows it: its payload. `None` if the bytes are
    /// not a message.
    pub fn from_wire(mut bytes: &[u8]) -> Option<(Message, &[u8])> {
        let message = Message::get(&mut bytes)?;
        Some((message, bytes))
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn get(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

/// Structs and newtypes, field by field.
macro_rules! fields {
    ($($type:ident { $($field:tt),* })*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn get(bytes: &mut &[u8]) -> Option<Self> {
                Some($type { $($field: Wire::get(bytes)?),* })
            }
        }
    )*};
}

fields! {
    Rank { 0 }
    Realm { 0 }
    Tag { 0 }
    Job { 0 }
    Buffer { owner, kind, index }
    Part { rank, bytes }
    Slice { realm, file, form, parts, bytes }
    Progress { stop, failure }
    Failure { rank, detail }
    Entry { first, len, flags, failure }
    Stretch { first, ranks, entry }
    Table { stretches }
}

/// Enums: a byte, then the fields of the variant.
macro_rules! variants {
    ($($type:ident { $(
        $code:literal => $variant:ident $(($it:ident))? $({ $($field:ident),* })?
    ),* })*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($type::$variant $(($it))? $({ $($field),* })? => {
                        out.push($code);
                        $($it.put(out);)?
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn get(bytes: &mut &[u8]) -> Option<Self> {
                match u8::get(bytes)? {
                    $($code => {
                        $(let $it = Wire::get(bytes)?;)?
                        $($(let $field = Wire::get(bytes)?;)*)?
                        Some($type::$variant $(($it))? $({ $($field),* })?)
                    })*
                    _ => None,
                }
            }
        }
    )*};
}

variants! {
    Form { 0 => Parts, 1 => Image }
    Place { 0 => Image { origin, at }, 1 => Packed { at } }
    Kind {
        0 => Window(realm), 1 => Staging(realm), 2 => Node(realm),
        3 => Eager, 4 => EagerWindow, 5 => Arrival
    }
    Decision { 0 => Plan(table), 1 => Over(progress) }
    Message {
        0 => Up { table, is_eager },
        1 => Down(decision),
        2 => Taken,
        3 => Grant { slice, tag },
        4 => Offer { slice, key },
        5 => Ready { key, tag },
        6 => Discard { realm, file, ranks },
        7 => Move { key, realm, file, buffer, place, among },
        8 => Moved { key },
        9 => Skip { realm, file },
        10 => Agree(progress),
        11 => Agreed(progress)
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        match u8::get(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for Range<u64> {
    fn put(&self, out: &mut Vec<u8>) {
        self.start.put(out);
        self.end.put(out);
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        Some(u64::get(bytes)?..u64::get(bytes)?)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(it) = self {
            it.put(out);
        }
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        Some(match bool::get(bytes)? {
            true => Some(T::get(bytes)?),
            false => None,
        })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|it| it.put(out));
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let count = u32::get(bytes)?;
        // Grows with what is there, not with what is claimed.
        (0..count).map(|_| T::get(bytes)).collect()
    }
}

impl Wire for Arc<[u8]> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self);
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let len = u32::get(bytes)? as usize;
        let (detail, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        Some(detail.into())
    }
}

impl Wire for Arc<Table> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().put(out);
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        <Table as Wire>::get(bytes).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Message> {
        let failure = Some(Failure {
            rank: Rank(7),
            detail: Arc::from(*b"no space"),
        });
        let entry = |len, failure| Entry {
            first: 3,
            len,
            flags: 2,
            failure,
        };
        let tables = [
            Table::one(Rank(4), entry(9, None)),
            Table::one(Rank(7), entry(1, failure.clone())),
        ];
        let table = Table::merge(tables.into_iter());
        let slice = Slice {
            realm: Realm(2),
            file: 100..900,
            form: Form::Image,
            parts: vec![
                Part {
                    rank: Rank(1),
                    bytes: 70,
                },
                Part {
                    rank: Rank(3),
                    bytes: 1 << 40,
                },
            ],
            bytes: 800,
        };
        let buffer = |kind| Buffer {
            owner: Rank(5),
            kind,
            index: 6,
        };
        let progress = Progress { stop: 77, failure };
        let (key, realm, file, tag) = (Job(11), Realm(2), 5..6, Tag(32767));
        let place = Place::Image { origin: 5, at: 1 };
        let kind = Kind::Window(realm);
        vec![
            Message::Up {
                table: table.clone(),
                is_eager: true,
            },
            Message::Down(Decision::Plan(Arc::new(table))),
            Message::Down(Decision::Over(Progress::ALL)),
            Message::Taken,
            Message::Grant {
                slice: slice.clone(),
                tag,
            },
            Message::Offer { slice, key },
            Message::Ready { key, tag },
            Message::Discard {
                realm,
                file: file.clone(),
                ranks: vec![Rank(1), Rank(2)],
            },
            Message::Move {
                key,
                realm,
                file: file.clone(),
                buffer: buffer(kind),
                place,
                among: 1,
            },
            Message::Move {
                key,
                realm,
                file: file.clone(),
                buffer: buffer(Kind::Eager),
                place: Place::Packed { at: 2 },
                among: 300,
            },
            Message::Moved { key },
            Message::Skip { realm, file },
            Message::Agree(progress.clone()),
            Message::Agreed(progress),
        ]
    }

    #[test]
    fn messages_survive_the_wire() {
        for message in samples() {
            let mut wire = message.to_wire();
            assert_eq!(wire.len() as u64, message.wire_bytes(), "{message:?}");
            wire.extend(b"payload");
            let expected = (message, b"payload".as_slice());
            assert_eq!(Message::from_wire(&wire), Some(expected));
        }
    }

    #[test]
    fn damaged_messages_are_refused_and_do_not_panic() {
        let mut random = fastrand::Rng::with_seed(1);
        for message in samples() {
            let wire = message.to_wire();
            for len in 0..wire.len() {
                assert_eq!(
                    Message::from_wire(&wire[..len]),
                    None,
                    "{message:?} cut at {len}"
                );
            }
            for _ in 0..1000 {
                let mut damaged = wire.clone();
                let at = random.usize(0..damaged.len());
                damaged[at] = random.u8(..);
                if let Some((read, _)) = Message::from_wire(&damaged) {
                    assert_eq!(
                        Message::from_wire(&read.to_wire()).map(|it| it.0),
                        Some(read)
                    );
                }
            }
        }
    }
}
