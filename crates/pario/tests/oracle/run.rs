//! Runs a scenario with the library and compares every result.

use std::{path::Path, sync::Arc};

use pario::{Displacement, File, Info, View};
use pario_driver::{Access as DriverAccess, Batch, Create, Driver, Log, OpenHow};
use pario_transport::Transport;

use crate::{
    access::{run_collective, run_in_flight, run_plan},
    compare::{Check, same, same_bytes, same_result},
    drivers::{self, DriverKind},
    model::{Model, Outcome},
    scenario::{Action, Opening, Plan, Scenario, Step, ViewSpec},
};

/// A scenario with what it must give.
pub(crate) struct Trial<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) last: Model,
    pub(crate) path: &'a Path,
    /// What traced files were asked to do.
    pub(crate) log: Log,
}

impl Trial<'_> {
    /// Runs it: `world` lets all ranks live one life, and says what came of
    /// each.
    pub(crate) fn run(&self, world: impl FnOnce(&Trial<'_>) -> Vec<Check>) -> Check {
        self.prepare();
        let failures: Vec<String> = world(self)
            .into_iter()
            .enumerate()
            .filter_map(|(rank, check)| Some(format!("rank {rank}: {}", check.err()?)))
            .collect();
        let checked = match failures.is_empty() {
            true => self.check_remains(),
            false => Err(causes(failures)),
        };
        let _ = match self.storage() {
            Some(storage) => storage.delete(self.path),
            None => std::fs::remove_file(self.path),
        };
        checked
    }

    fn storage(&self) -> Option<Arc<dyn Driver>> {
        self.scenario.opening.driver.storage()
    }

    fn prepare(&self) {
        let Some(filling) = self.scenario.before else {
            return;
        };
        let bytes = filling.bytes();
        if let Some(storage) = self.storage() {
            let how = OpenHow::new(DriverAccess::Write).create(Create::IfMissing);
            let file = storage.open(self.path, &how).expect("the file opens");
            let written = file.transfer(&Batch::write(0, &bytes)).into_result();
            assert_eq!(written.expect("it can be written"), bytes.len() as u64);
            file.close().expect("it can be closed");
        } else {
            std::fs::write(self.path, bytes).expect("the directory can be written");
        }
    }

    fn contents(&self) -> std::io::Result<Vec<u8>> {
        let Some(storage) = self.storage() else {
            return std::fs::read(self.path);
        };
        let file = storage.open(self.path, &OpenHow::new(DriverAccess::Read))?;
        let mut bytes = vec![0; file.size()? as usize];
        file.transfer(&Batch::read(0, &mut bytes)).into_result()?;
        file.close()?;
        Ok(bytes)
    }

    fn check_remains(&self) -> Check {
        if !self.last.is_deleted_at_close() {
            let bytes = self.contents().map_err(|error| error.to_string())?;
            return same_bytes("the file", &bytes, &self.last.file);
        }
        same("the file's existence", self.contents().is_ok(), false)
    }

    fn open(&self, comm: &Arc<dyn Transport>, opening: &Opening) -> Result<File, String> {
        let info = info(&opening.hints);
        let file = match opening.driver {
            DriverKind::Posix => File::open(comm, self.path, opening.mode, &info),
            kind => {
                let driver = kind.driver(&self.log);
                File::open_with(comm, driver, self.path, opening.mode, &info)
            }
        };
        file.map_err(|error| error.to_string())
    }

    /// What one rank does and checks.
    pub(crate) fn live(&self, comm: &Arc<dyn Transport>) -> Check {
        let mut rank = Rank {
            index: comm.rank().index(),
            trial: self,
            opening: &self.scenario.opening,
            comm,
            file: self.open(comm, &self.scenario.opening)?,
        };
        for (index, (step, outcome)) in self.scenario.steps.iter().zip(&self.outcomes).enumerate() {
            rank.take(step, outcome)
                .map_err(|why| format!("step {index}: {why}"))?;
        }
        rank.meet()?;
        if rank.index == 0 {
            let bytes = self.contents().map_err(|error| error.to_string())?;
            same_bytes("the open file", &bytes, &self.last.file)?;
        }
        rank.meet()?;
        rank.file.close().map_err(|error| error.to_string())
    }
}

/// Without the ranks that only saw another one give up, unless all did.
fn causes(failures: Vec<String>) -> String {
    let consequence = |failure: &&String| failure.ends_with("is lost: it has returned");
    let (_, causes): (Vec<_>, Vec<_>) = failures.iter().partition(consequence);
    match causes.is_empty() {
        true => failures.join("\n"),
        false => causes.into_iter().cloned().collect::<Vec<_>>().join("\n"),
    }
}

fn info(hints: &[(&'static str, String)]) -> Info {
    let pairs = hints.iter().map(|(name, value)| (*name, value.as_str()));
    Info::from_pairs(pairs).expect("hints are well formed")
}

fn view(spec: &ViewSpec) -> View {
    let displacement = match spec.displacement {
        Some(bytes) => Displacement::Bytes(bytes),
        None => Displacement::Current,
    };
    View::new(0, &spec.etype.build(), &spec.filetype.build())
        .at(displacement)
        .representation(spec.stored.name())
}

struct Rank<'a> {
    index: usize,
    trial: &'a Trial<'a>,
    /// How the file was opened last.
    opening: &'a Opening,
    comm: &'a Arc<dyn Transport>,
    file: File,
}

impl<'a> Rank<'a> {
    fn meet(&self) -> Check {
        self.comm.barrier().map_err(|error| error.to_string())
    }

    fn take(&mut self, step: &'a Step, outcome: &Outcome) -> Check {
        let file = &self.file;
        let result = match step {
            Step::Each(plans) => {
                run_plan(file, &plans[self.index], &outcome.ranks[self.index])?;
                Ok(())
            }
            Step::Together(accesses) => {
                let expected = &outcome.ranks[self.index][0];
                run_collective(file, &accesses[self.index], expected)?;
                Ok(())
            }
            Step::InFlight { calls, wait_seed } => {
                let mine: Vec<_> = calls.iter().map(|call| &call[self.index]).collect();
                run_in_flight(file, &mine, &outcome.ranks[self.index], *wait_seed)?;
                Ok(())
            }
            Step::Race(access) => {
                let plan = Plan {
                    actions: vec![Action::Access(access.clone())],
                    wait_seed: 0,
                };
                run_plan(file, &plan, &outcome.ranks[self.index])?;
                Ok(())
            }
            Step::SetView(specs) => file.set_view(&view(&specs[self.index])),
            Step::SetSize(bytes) => file.set_size(*bytes),
            Step::Preallocate(bytes) => file.preallocate(*bytes),
            Step::Sync => file.sync(),
            Step::SetAtomicity(atomicity) => file.set_atomicity(*atomicity),
            Step::SeekShared(offset, from) => file.seek_shared(*offset, *from),
            Step::SetInfo(hints) => file.set_info(&info(hints)),
            Step::Reopen(opening) => {
                file.close().map_err(|error| error.to_string())?;
                self.file = self.trial.open(self.comm, opening)?;
                self.opening = opening;
                Ok(())
            }
        };
        let expected = outcome.result.unwrap_or(Ok(()));
        same_result("the call", &result, expected)?;
        self.meet()?;
        self.check_state(step, outcome)?;
        self.meet()
    }

    fn check_state(&self, step: &Step, outcome: &Outcome) -> Check {
        let events = match self.index {
            0 => self.trial.log.take(),
            _ => Vec::new(),
        };
        let nodes = &self.trial.scenario.nodes;
        if !self.opening.may_write_back(nodes, step) {
            let stray = drivers::stray_write(&events, &outcome.written);
            same("a byte written that nobody asked for", stray, None)?;
        }
        let size = self.file.size().map_err(|error| error.to_string())?;
        same("the size", size, outcome.size)?;
        match self.file.mode().contains(pario::Mode::SEQUENTIAL) {
            true => Ok(()),
            false => {
                let shared = self.file.position_shared();
                let shared = shared.map_err(|error| error.to_string())?;
                same("the shared pointer", shared, outcome.shared)
            }
        }
    }
}
