//! The collective calls of a file, as the ranks name them to each other.

use std::fmt;

use pario_driver::Direction;

use crate::operation::{Call, Position};

/// A collective call. In their own context, nonblocking and split calls go by the blocking one's
/// name ([`CollectiveCall::of`]); their own names tell them from blocking calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveCall {
    Open,
    Close,
    SetView,
    SetInfo,
    SetSize,
    Preallocate,
    Sync,
    SetAtomicity,
    SetPlacement,
    SeekShared,
    ReadAtAll,
    ReadAll,
    ReadOrdered,
    WriteAtAll,
    WriteAll,
    WriteOrdered,
    IreadAtAll,
    IreadAll,
    IwriteAtAll,
    IwriteAll,
    ReadAtAllBegin,
    ReadAllBegin,
    ReadOrderedBegin,
    WriteAtAllBegin,
    WriteAllBegin,
    WriteOrderedBegin,
}

impl CollectiveCall {
    /// In the order of declaration.
    const ALL: [(CollectiveCall, &'static str); 26] = [
        (CollectiveCall::Open, "open"),
        (CollectiveCall::Close, "close"),
        (CollectiveCall::SetView, "set_view"),
        (CollectiveCall::SetInfo, "set_info"),
        (CollectiveCall::SetSize, "set_size"),
        (CollectiveCall::Preallocate, "preallocate"),
        (CollectiveCall::Sync, "sync"),
        (CollectiveCall::SetAtomicity, "set_atomicity"),
        (CollectiveCall::SetPlacement, "set_placement"),
        (CollectiveCall::SeekShared, "seek_shared"),
        (CollectiveCall::ReadAtAll, "read_at_all"),
        (CollectiveCall::ReadAll, "read_all"),
        (CollectiveCall::ReadOrdered, "read_ordered"),
        (CollectiveCall::WriteAtAll, "write_at_all"),
        (CollectiveCall::WriteAll, "write_all"),
        (CollectiveCall::WriteOrdered, "write_ordered"),
        (CollectiveCall::IreadAtAll, "iread_at_all"),
        (CollectiveCall::IreadAll, "iread_all"),
        (CollectiveCall::IwriteAtAll, "iwrite_at_all"),
        (CollectiveCall::IwriteAll, "iwrite_all"),
        (CollectiveCall::ReadAtAllBegin, "read_at_all_begin"),
        (CollectiveCall::ReadAllBegin, "read_all_begin"),
        (CollectiveCall::ReadOrderedBegin, "read_ordered_begin"),
        (CollectiveCall::WriteAtAllBegin, "write_at_all_begin"),
        (CollectiveCall::WriteAllBegin, "write_all_begin"),
        (CollectiveCall::WriteOrderedBegin, "write_ordered_begin"),
    ];

    /// The call of a collective data access.
    pub(crate) fn of(call: Call) -> CollectiveCall {
        match (call.direction, call.position) {
            (Direction::Read, Position::At(_)) => CollectiveCall::ReadAtAll,
            (Direction::Read, Position::Ordered(_)) => CollectiveCall::ReadOrdered,
            (Direction::Read, Position::Individual | Position::Shared) => CollectiveCall::ReadAll,
            (Direction::Write, Position::At(_)) => CollectiveCall::WriteAtAll,
            (Direction::Write, Position::Ordered(_)) => CollectiveCall::WriteOrdered,
            (Direction::Write, Position::Individual | Position::Shared) => CollectiveCall::WriteAll,
        }
    }

    /// The nonblocking or split call that starts a collective data access.
    pub(crate) fn in_background(call: Call) -> CollectiveCall {
        let is_split = call.name.ends_with("_begin");
        match (call.direction, call.position, is_split) {
            (Direction::Read, Position::Ordered(_), _) => CollectiveCall::ReadOrderedBegin,
            (Direction::Write, Position::Ordered(_), _) => CollectiveCall::WriteOrderedBegin,
            (Direction::Read, Position::At(_), true) => CollectiveCall::ReadAtAllBegin,
            (Direction::Read, Position::At(_), false) => CollectiveCall::IreadAtAll,
            (Direction::Read, _, true) => CollectiveCall::ReadAllBegin,
            (Direction::Read, _, false) => CollectiveCall::IreadAll,
            (Direction::Write, Position::At(_), true) => CollectiveCall::WriteAtAllBegin,
            (Direction::Write, Position::At(_), false) => CollectiveCall::IwriteAtAll,
            (Direction::Write, _, true) => CollectiveCall::WriteAllBegin,
            (Direction::Write, _, false) => CollectiveCall::IwriteAll,
        }
    }

    pub(crate) fn named(name: &str) -> Option<CollectiveCall> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(call, _)| *call)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether it is a nonblocking or split call.
    pub(crate) fn is_in_background(self) -> bool {
        self as u8 >= CollectiveCall::IreadAtAll as u8
    }

    /// Whether it accesses data in rank order.
    pub(crate) fn is_ordered(self) -> bool {
        self.name().contains("_ordered")
    }

    /// A number from 1 to 127 that stands for the call in messages.
    pub(crate) fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The call that a number stands for; zero stands for none.
    pub(crate) fn from_code(code: u8) -> Option<CollectiveCall> {
        let index = usize::from(code.checked_sub(1)?);
        Self::ALL.get(index).map(|(call, _)| *call)
    }

    /// Whether two ranks may make these calls at the same time. Explicit offsets match individual
    /// pointers: the standard does not allow that, but programs that do it work with ROMIO.
    pub(crate) fn matches(self, other: CollectiveCall) -> bool {
        let by_offset = |call| match call {
            CollectiveCall::ReadAll => CollectiveCall::ReadAtAll,
            CollectiveCall::WriteAll => CollectiveCall::WriteAtAll,
            call => call,
        };
        by_offset(self) == by_offset(other)
    }
}

impl fmt::Display for CollectiveCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_codes_and_names() {
        for (call, name) in CollectiveCall::ALL {
            assert_eq!(CollectiveCall::from_code(call.code()), Some(call));
            assert_eq!(CollectiveCall::named(name), Some(call));
            assert_eq!(call.to_string(), name);
            assert!((1..128).contains(&call.code()));
        }
        assert_eq!(CollectiveCall::from_code(0), None);
        assert_eq!(CollectiveCall::from_code(127), None);
        assert_eq!(CollectiveCall::named("write_at"), None);
    }

    #[test]
    fn calls_in_the_background_have_the_names_of_their_functions() {
        let positions = [Position::At(0), Position::Individual];
        for (position, name) in positions.into_iter().zip(["at_all", "all"]) {
            for name in [format!("iread_{name}"), format!("read_{name}_begin")] {
                let call = Call::read(name.clone().leak(), position);
                assert_eq!(CollectiveCall::in_background(call).name(), name);
            }
            for name in [format!("iwrite_{name}"), format!("write_{name}_begin")] {
                let call = Call::write(name.clone().leak(), position);
                assert_eq!(CollectiveCall::in_background(call).name(), name);
            }
        }
        let ordered = Call::write("write_ordered_begin", Position::Ordered(0));
        let call = CollectiveCall::in_background(ordered);
        assert_eq!(call.name(), "write_ordered_begin");
        assert!(call.is_in_background() && call.is_ordered());
    }

    #[test]
    fn reads_and_writes_match_wherever_they_start() {
        assert!(CollectiveCall::WriteAll.matches(CollectiveCall::WriteAtAll));
        assert!(!CollectiveCall::WriteAll.matches(CollectiveCall::ReadAll));
        assert!(!CollectiveCall::WriteAll.matches(CollectiveCall::WriteOrdered));
        assert!(!CollectiveCall::SetSize.matches(CollectiveCall::Preallocate));
    }
}
