//! What all trials share: the hosts, the library, and the list of what passed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use libtest_mimic::{Failed, Trial};

use crate::host::{self, Host};
use crate::library;

/// How a trial ends; the error is a text for the reader of the log.
pub(crate) type TestResult<T = ()> = Result<T, String>;

const UNPOISONED: &str = "no trial panics while it holds the list";

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Chosen pairs of programs and hosts, a few minutes.
    Short,
    /// Every program under every host.
    Full,
}

impl Effort {
    pub(crate) fn from_environment() -> Self {
        match std::env::var_os("PARIO_FULL") {
            Some(value) if value == "1" => Effort::Full,
            _ => Effort::Short,
        }
    }
}

/// One trial's place in the page of results, and how it ended.
pub(crate) struct Entry {
    pub(crate) host: &'static str,
    pub(crate) suite: String,
    pub(crate) has_passed: bool,
}

/// A suite that a host cannot run, and why.
pub(crate) struct Skip {
    host: &'static str,
    suite: String,
    reason: &'static str,
}

impl Skip {
    pub(crate) fn new(host: &'static str, suite: &str, reason: &'static str) -> Self {
        let suite = suite.to_owned();
        Skip {
            host,
            suite,
            reason,
        }
    }
}

/// What all trials share.
pub(crate) struct Run {
    pub(crate) effort: Effort,
    pub(crate) hosts: Vec<Host>,
    library: TestResult<PathBuf>,
    entries: Mutex<Vec<Entry>>,
    skips: Mutex<Vec<Skip>>,
}

impl Run {
    pub(crate) fn new(effort: Effort) -> Arc<Self> {
        Arc::new(Run {
            effort,
            hosts: host::all(),
            library: library::find(),
            entries: Mutex::default(),
            skips: Mutex::default(),
        })
    }

    /// The library under test.
    pub(crate) fn library(&self) -> TestResult<&Path> {
        self.library.as_deref().map_err(Clone::clone)
    }

    pub(crate) fn host(&self, name: &str) -> &Host {
        let mut hosts = self.hosts.iter();
        hosts
            .find(|host| host.name == name)
            .unwrap_or_else(|| panic!("no host is called {name}"))
    }

    /// The results so far.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().expect(UNPOISONED)
    }

    /// What is left out.
    pub(crate) fn skips(&self) -> MutexGuard<'_, Vec<Skip>> {
        self.skips.lock().expect(UNPOISONED)
    }
}

/// A trial `HOST/SUITE/DETAIL`, whose result also goes to the page.
pub(crate) fn trial(
    run: &Arc<Run>,
    host: &'static str,
    suite: &str,
    detail: &str,
    body: impl FnOnce(&Run, &Host) -> TestResult + Send + 'static,
) -> Trial {
    let run = Arc::clone(run);
    let suite = suite.to_owned();
    Trial::test(format!("{host}/{suite}/{detail}"), move || {
        let under = run.host(host);
        let result = under.check().and_then(|()| body(&run, under));
        run.entries().push(Entry {
            host,
            suite,
            has_passed: result.is_ok(),
        });
        result.map_err(Failed::from)
    })
}

/// A suite that cannot run under a host: a trial that is ignored. Who asks for those is told why.
pub(crate) fn skipped(run: &Run, skip: Skip) -> Trial {
    let (name, reason) = (format!("{}/{}", skip.host, skip.suite), skip.reason);
    run.skips().push(skip);
    Trial::test(name, move || Err(Failed::from(reason))).with_ignored_flag(true)
}

/// What is left out: a line for each host and reason, with the suites.
pub(crate) fn left_out(skips: &[Skip]) -> Vec<String> {
    let mut suites: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for skip in skips {
        let same = suites.entry((skip.host, skip.reason)).or_default();
        same.push(&skip.suite);
    }
    let lines = suites.into_iter();
    lines
        .map(|((host, reason), suites)| format!("{host}: {}: {reason}", suites.join(", ")))
        .collect()
}
