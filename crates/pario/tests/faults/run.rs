//! One run of a scenario with faults to come, and what must hold after it.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use pario::ErrorKind;
use pario_driver::{Driver, Faults, Posix, WrappedDriver};
use pario_transport::threads;

use crate::{
    ground::{assert_no_descriptors, canaries, contents, fill},
    model::Model,
    player::Case,
    scenario::{Scenario, Telling},
};

/// Where faults come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// What the driver is asked goes wrong.
    WrappedDriver,
    /// The system calls below the POSIX driver go wrong.
    Below,
}

/// What runs of a scenario have in common.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) ranks: u32,
    pub(crate) inner: &'a Arc<dyn Driver>,
    pub(crate) place: Place,
    pub(crate) path: &'a Path,
}

impl Setting<'_> {
    pub(crate) fn name(&self) -> String {
        let (scenario, driver) = (&self.scenario.name, self.inner.name());
        format!(
            "{scenario}, {} ranks, {:?} {driver}",
            self.ranks, self.place
        )
    }

    /// The ranks, on their nodes.
    pub(crate) fn world(&self) -> threads::World {
        let nodes: Vec<u32> = (0..self.ranks)
            .map(|rank| rank / self.scenario.ranks_per_node)
            .collect();
        threads::World::new(self.ranks).nodes(&nodes)
    }
}

pub(crate) struct Run<'a> {
    pub(crate) case: Case<'a>,
    pub(crate) faults: Faults,
    inner: &'a dyn Driver,
    name: String,
}

impl<'a> Run<'a> {
    /// A fresh file, and a driver with these faults to come.
    pub(crate) fn new(
        setting: &Setting<'a>,
        faults: Faults,
        errors: Vec<ErrorKind>,
        name: String,
    ) -> Run<'a> {
        fill(&**setting.inner, setting.path);
        let driver: Arc<dyn Driver> = match setting.place {
            Place::WrappedDriver => {
                Arc::new(WrappedDriver::new(setting.inner.clone(), faults.clone()))
            }
            Place::Below => Arc::new(Posix::new().with_interference(Arc::new(faults.clone()))),
        };
        let case = Case {
            scenario: setting.scenario,
            driver,
            path: setting.path,
            model: Mutex::new(Model::new(canaries())),
            errors,
            failures: AtomicU64::new(0),
        };
        Run {
            case,
            faults,
            inner: &**setting.inner,
            name,
        }
    }

    /// Once all ranks are through: the file holds what it must, and no one
    /// holds the file.
    pub(crate) fn check_file(&self) {
        let Run { case, name, .. } = self;
        let found = contents(self.inner, case.path);
        let model = case.model.lock().unwrap();
        assert_eq!(model.wrong_size(found.len() as u64), None, "{name}");
        assert_eq!(model.wrong_bytes(0.., &found), None, "{name}");
        if self.inner.is_mounted() {
            assert_no_descriptors(case.path, name);
        }
    }

    /// Someone was told of a fault if there was one that means failure.
    pub(crate) fn check_telling(&self) {
        let failed = self.case.failures.load(Ordering::Relaxed) > 0;
        let faulty = self.faults.fired() > 0 && !self.case.errors.is_empty();
        if faulty && !failed && self.case.scenario.telling == Telling::Perhaps {
            return;
        }
        assert_eq!(failed, faulty, "{}: were they told?", self.name);
    }
}
