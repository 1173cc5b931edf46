//! Compact text form of plans: one line per aggregator.

use std::fmt;

use crate::{
    Group, Members, Plan, Realm, Rounds, Segments, Signal, Timed, WindowWriter, number::Counted,
    select::Ranks,
};

/// Maximum number of lines per list; further entries are only counted.
const LINES: usize = 16;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Individual => f.write_str("every rank moves its own data"),
            Plan::PrivateSieve { buffer_bytes } => write!(
                f,
                "every rank reads the region through a buffer of {buffer_bytes} bytes and keeps its own data"
            ),
            Plan::Rounds(rounds) => rounds.fmt(f),
            Plan::Segments(segments) => segments.fmt(f),
            Plan::Timed(timed) => timed.fmt(f),
            Plan::Prefetch(rounds) => {
                write!(f, "prefetch, then every rank reads its own data: {rounds}")
            }
        }
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writer = match self.writer {
            WindowWriter::Aggregator => "their aggregators",
            WindowWriter::Anyone => "any rank",
        };
        write!(
            f,
            "{}, windows of {} bytes moved by {writer}",
            Counted(self.aggregators.len() as u64, "aggregator"),
            self.window_bytes
        )?;
        lines(f, &self.aggregators, |f, aggregator| {
            write!(f, "rank {}: {}", aggregator.rank, aggregator.realm)?;
            if let Members::Some(members) = &aggregator.members {
                write!(f, " for ranks {}", Ranks(members))?;
            }
            match aggregator.turn {
                None => Ok(()),
                Some(turn) => write!(f, ", in turn at server {}, {}", turn.server, turn.signal),
            }
        })
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} of {} bytes per rank",
            Counted(self.groups.len() as u64, "group"),
            Counted(self.cycles, "cycle"),
            self.segment_bytes
        )?;
        lines(f, &self.groups, |f, group: &Group| {
            write!(f, "rank {} for {}", group.aggregator, Ranks(&group.members))
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Signal::StartedUs(us) => write!(f, "{us} microseconds apart"),
            Signal::Complete => f.write_str("each after the previous one is complete"),
        }
    }
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "every rank moves its own data, {}, groups one after the other, {}",
            Counted(self.sets.len() as u64, "set"),
            self.signal
        )?;
        lines(f, &self.sets, |f, groups: &Vec<Vec<u32>>| {
            for (index, group) in groups.iter().take(LINES).enumerate() {
                let then = if index > 0 { ", then " } else { "" };
                write!(f, "{then}{}", Ranks(group))?;
            }
            match groups.len().checked_sub(LINES) {
                Some(more @ 1..) => write!(f, ", and {more} more groups"),
                _ => Ok(()),
            }
        })
    }
}

impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file();
        if self.bytes() == 0 {
            return f.write_str("nothing");
        }
        match self.tile() {
            None => write!(f, "bytes {}..{}", file.start, file.end),
            Some((at, len, distance)) => write!(
                f,
                "{len} of every {distance} bytes from {at} within {}..{}, {} bytes",
                file.start,
                file.end,
                self.bytes()
            ),
        }
    }
}

fn lines<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    line: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for item in items.iter().take(LINES) {
        f.write_str("\n  ")?;
        line(f, item)?;
    }
    match items.len().checked_sub(LINES) {
        Some(more @ 1..) => write!(f, "\n  and {more} more"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Client, Striping, decide,
        testing::{Fixture, dense, strided},
    };

    fn printed(algorithm: &str, partition: &str, fixture: &Fixture) -> String {
        let mut fixture = fixture.clone();
        fixture.tuning.algorithm = Some(algorithm.into());
        fixture.tuning.partition = Some(partition.into());
        let case = fixture.case();
        decide(&case).plan(&case).to_string()
    }

    fn fixture() -> Fixture {
        let mut fixture = Fixture::new((0..3).map(|rank| dense(rank * 1000, 1000)).collect());
        fixture.facts.striping = Some(Striping {
            unit: 500,
            count: 2,
        });
        fixture.facts.client = Client::Library;
        fixture.tuning.aggregators = Some(2);
        fixture
    }

    #[test]
    fn plans_print_compactly() {
        let fixture = fixture();
        assert_eq!(
            printed("two-phase", "aligned", &fixture),
            "2 aggregators, windows of 16777216 bytes moved by their aggregators\n  \
             rank 0: bytes 0..1500\n  \
             rank 1: bytes 1500..3000"
        );
        assert_eq!(
            printed("two-phase", "static-cyclic", &fixture),
            "2 aggregators, windows of 16777216 bytes moved by their aggregators\n  \
             rank 0: 500 of every 1000 bytes from 0 within 0..3000, 1500 bytes\n  \
             rank 1: 500 of every 1000 bytes from 500 within 0..3000, 1500 bytes"
        );
        assert_eq!(
            printed("static-segmentation", "even", &fixture),
            "2 groups, 1 cycle of 8388608 bytes per rank\n  rank 0 for [0]\n  rank 1 for 1-2"
        );
        assert_eq!(
            printed("resonant-timed", "even", &fixture),
            "every rank moves its own data, 1 set, groups one after the other, 500 microseconds apart\n  0-1, then [2]"
        );
        assert!(printed("dynamic-segmentation", "even", &fixture).contains("for ranks 1-2"));
    }

    #[test]
    fn long_lists_are_truncated() {
        let accesses = (0..64).map(|rank| strided(rank * 8, 8, 512, 8 << 20));
        let mut fixture = Fixture::new(accesses.collect());
        fixture.tuning.aggregators = Some(64);
        let text = printed("two-phase", "even", &fixture);
        assert!(text.ends_with("and 48 more"), "{text}");
    }
}
