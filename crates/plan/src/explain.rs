//! Explanations of decisions: the call, the facts, what was chosen or rejected
//! and why, and the plan.

use std::fmt;

use crate::{
    Case, Client, Decision, Direction, Facts, LockProtocol, Plan, Stripes, decide,
    locks::{self, LockCount},
    number::Counted,
};

/// The decision for a case and the reasons; displays as text.
#[derive(Debug)]
pub struct Explanation<'a> {
    case: &'a Case<'a>,
    decision: Decision,
    plan: Plan,
}

impl<'a> Explanation<'a> {
    /// Decides and plans.
    pub fn of(case: &'a Case<'a>) -> Explanation<'a> {
        let decision = decide(case);
        let plan = decision.plan(case);
        Explanation {
            case,
            decision,
            plan,
        }
    }

    /// The decision.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The locks that the plan needs, where servers manage them.
    pub fn locks(&self) -> Option<LockCount> {
        match self.case.facts.lock_protocol {
            LockProtocol::Server => locks::count(self.case, &self.plan),
            LockProtocol::None | LockProtocol::Token => None,
        }
    }

    /// The resulting plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "call: {}", Call(self.case))?;
        writeln!(f, "facts: {}", self.case.facts)?;
        writeln!(f, "{}", self.decision)?;
        write!(f, "plan: {}", self.plan)?;
        if let Some(rounds) = rounds(&self.plan) {
            write!(f, "\nat most {}", Counted(rounds, "round"))?;
        }
        match self.locks() {
            None => Ok(()),
            Some(locks) => write!(
                f,
                "\nlocks: {} for {}, {} revoked, {} shared",
                Counted(locks.requests, "request"),
                Counted(locks.pairs, "client-server pair"),
                locks.revoked,
                Counted(locks.shared_stripes, "stripe"),
            ),
        }
    }
}

/// The maximum number of windows of an aggregator.
fn rounds(plan: &Plan) -> Option<u64> {
    let (Plan::Rounds(rounds) | Plan::Prefetch(rounds)) = plan else {
        return None;
    };
    let windows = |realm: &crate::Realm| realm.windows(rounds.window_bytes);
    rounds.aggregators.iter().map(|it| windows(&it.realm)).max()
}

/// The pattern of a call.
struct Call<'a>(&'a Case<'a>);

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = self.0;
        let pattern = case.pattern();
        let region = case.region();
        let direction = match case.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let density = u128::from(pattern.bytes) * 100;
        let density = density
            .checked_div(pattern.region_bytes.into())
            .unwrap_or(0);
        write!(
            f,
            "{direction} by {} on {}: {} in {} of {} on average, in {}..{} ({density} % data), \
             {}interleaved",
            Counted(case.ranks().into(), "rank"),
            Counted(pattern.nodes as u64, "node"),
            Counted(pattern.bytes, "byte"),
            Counted(pattern.pieces, "piece"),
            Counted(pattern.piece_bytes, "byte"),
            region.start,
            region.end,
            if pattern.is_interleaved { "" } else { "not " },
        )
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed = self.placement.as_ref().map(|it| it.stripes().clone());
        match placed.or(self.striping.map(Stripes::from)) {
            Some(stripes) => {
                if stripes.share_servers() {
                    write!(f, "{} ", stripes.striping.count)?;
                }
                let unit = Counted(stripes.striping.unit, "byte");
                let servers = Counted(stripes.servers(), "server");
                write!(f, "stripes of {unit} over {servers}")?;
            }
            None => write!(f, "striping unknown")?,
        }
        if let Some(placement) = &self.placement
            && placement.components().len() > 1
        {
            write!(
                f,
                " in the longest of {} components",
                placement.components().len()
            )?;
        }
        match self.lock_protocol {
            LockProtocol::None => write!(f, ", no locks between clients")?,
            LockProtocol::Server => write!(f, ", servers manage locks")?,
            LockProtocol::Token => write!(f, ", token holders manage locks")?,
        }
        if let Some(bytes) = self.lock_granularity {
            write!(f, " of {bytes} bytes")?;
        }
        match self.client {
            Client::Local if self.in_memory => write!(f, ", a local file system in memory")?,
            Client::Local => write!(f, ", a local file system")?,
            Client::Kernel => write!(f, ", the client is each node's kernel")?,
            Client::Library => write!(f, ", the client is each process")?,
        }
        write!(f, ", blocks of {} bytes", self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, strided};

    #[test]
    fn facts_count_servers_not_stripes() {
        let mut fixture = Fixture::new(vec![strided(0, 8, 40, 800)]);
        fixture.overstripe(100, &[3, 4, 3, 4]);
        let text = fixture.facts.to_string();
        assert!(
            text.starts_with("4 stripes of 100 bytes over 2 servers"),
            "{text}"
        );
    }

    #[test]
    fn explanations_name_what_was_chosen_and_rejected() {
        let mut fixture = Fixture::new((0..4).map(|rank| strided(rank * 8, 8, 40, 800)).collect());
        fixture.tuning.partition = Some("by-server".into());
        fixture.tuning.exchange = Some("carrier-pigeon".into());
        let case = fixture.case();
        let text = Explanation::of(&case).to_string();
        for expected in [
            "call: write by 4 ranks on 1 node: 3200 bytes in 400 pieces of 8 bytes",
            "(80 % data), interleaved",
            "facts: striping unknown",
            "algorithm two-phase",
            "individual: priority 10",
            "by-server was requested, but is unfit",
            "\"carrier-pigeon\" was requested, but is unknown",
            "aggregators [0]: one stream of windows",
            "plan: 1 aggregator, windows",
            "at most 1 round",
        ] {
            assert!(text.contains(expected), "no {expected:?} in\n{text}");
        }
    }
}
