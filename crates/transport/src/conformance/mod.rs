//! The suite that every transport passes.
//!
//! A transport offers a [`Launcher`]; [`check`] runs every [`Case`] in worlds
//! of 1 to 7 ranks on one or several simulated nodes. Test programs that want a
//! line for each case go through [`cases`] and [`PLACEMENTS`] themselves.
//!
//! Random choices follow a seed, which a failure names: the environment
//! variable `PARIO_SEED` repeats it, and `PARIO_CASES` multiplies the number of
//! random trials.

mod collectives;
mod dice;
mod duplicates;
mod losses;
mod messages;
mod posted;
mod segments;
mod without_collectives;

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::{Result, Transport};

pub use dice::Dice;

/// What a rank does; the bytes come back to the launcher.
pub type Job<'a> = dyn Fn(Arc<dyn Transport>) -> Vec<u8> + Sync + 'a;

/// What became of a rank: the bytes it returned, or a sentence on its failure.
pub type Outcome = std::result::Result<Vec<u8>, String>;

/// A way to start worlds of ranks.
pub trait Launcher: Sync {
    /// The name of the transport.
    fn name(&self) -> &'static str;

    /// Runs a job as each rank of a world; `nodes[rank]` is its node. Returns
    /// when all ranks have ended.
    fn launch(&self, nodes: &[u32], job: &Job<'_>) -> Vec<Outcome>;

    /// Ends the calling rank without warning from any of its threads, if the
    /// transport has a way to do that.
    fn end_abruptly(&self) -> Option<fn()>;
}

/// The placements in which cases run: the node of each rank.
pub const PLACEMENTS: [&[u32]; 8] = [
    &[0],
    &[0, 0],
    &[0, 1],
    &[0, 0, 0],
    &[0, 0, 0, 0],
    &[0, 0, 1, 1],
    &[0, 0, 0, 0, 0, 0, 0],
    &[2, 0, 1, 0, 2, 0, 5],
];

/// One thing that a transport must do.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// For how many ranks it makes sense.
    pub ranks: RangeInclusive<u32>,
    /// Checks it; panics with what is wrong.
    pub check: fn(&Setting<'_>),
}

/// Where a case runs.
pub struct Setting<'a> {
    /// How to start a world.
    pub launcher: &'a dyn Launcher,
    /// The node of each rank.
    pub nodes: &'a [u32],
    /// What random choices follow.
    pub seed: u64,
    /// How many random trials to make.
    pub trials: u32,
}

impl<'a> Setting<'a> {
    /// The setting that the environment asks for.
    #[must_use]
    pub fn from_environment(launcher: &'a dyn Launcher, nodes: &'a [u32]) -> Self {
        const DEFAULT_SEED: u64 = 20_260_101;
        const DEFAULT_TRIALS: u32 = 10;
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let factor = number("PARIO_CASES").unwrap_or(1);
        let factor = u32::try_from(factor).unwrap_or(u32::MAX);
        Setting {
            launcher,
            nodes,
            seed: number("PARIO_SEED").unwrap_or(DEFAULT_SEED),
            trials: DEFAULT_TRIALS.saturating_mul(factor),
        }
    }

    /// The number of ranks.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Runs a job that must end well on each rank.
    ///
    /// # Panics
    /// When it does not.
    pub fn run(&self, job: impl Fn(&Arc<dyn Transport>) -> Result<()> + Sync) {
        let outcomes = self.launcher.launch(self.nodes, &|transport| {
            if let Err(error) = job(&transport) {
                panic!("{error}");
            }
            Vec::new()
        });
        let failures = outcomes.iter().enumerate().filter_map(|(rank, outcome)| {
            let failure = outcome.as_ref().err()?;
            Some(format!("rank {rank}: {failure}"))
        });
        let failures = failures.collect::<Vec<_>>();
        assert!(
            failures.is_empty(),
            "PARIO_SEED={}: {}",
            self.seed,
            failures.join("; ")
        );
    }

    /// Dice that all ranks throw alike, different for each `stream`.
    #[must_use]
    pub fn dice(&self, stream: u64) -> Dice {
        Dice::new(self.seed, stream)
    }
}

/// All cases.
#[must_use]
pub fn cases() -> Vec<Case> {
    let themes = [
        messages::cases(),
        posted::cases(),
        collectives::cases(),
        without_collectives::cases(),
        duplicates::cases(),
        segments::cases(),
        losses::cases(),
    ];
    themes.concat()
}

/// Runs every case in every placement that it makes sense for.
///
/// # Panics
/// When the transport does not conform.
pub fn check(launcher: &dyn Launcher) {
    for case in cases() {
        for nodes in PLACEMENTS {
            let setting = Setting::from_environment(launcher, nodes);
            if case.ranks.contains(&setting.size()) {
                (case.check)(&setting);
            }
        }
    }
}
