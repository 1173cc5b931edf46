//! What all trials share: the hosts, the library, and the list of what passed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use libtest_mimic::{Failed, Trial};

use crate::host::{self, Host};
use crate::library;

/// How a trial ends; the error is a text for the reader of the log.
pub(crate) type Verdict<T = ()> = Result<T, String>;

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

/// What all trials share.
pub(crate) struct Run {
    pub(crate) effort: Effort,
    pub(crate) hosts: Vec<Host>,
    library: Verdict<PathBuf>,
    entries: Mutex<Vec<Entry>>,
}

impl Run {
    pub(crate) fn new(effort: Effort) -> Arc<Self> {
        Arc::new(Run {
            effort,
            hosts: host::all(),
            library: library::find(),
            entries: Mutex::default(),
        })
    }

    /// The library under test.
    pub(crate) fn library(&self) -> Verdict<&Path> {
        self.library.as_deref().map_err(Clone::clone)
    }

    pub(crate) fn host(&self, name: &str) -> &Host {
        let mut hosts = self.hosts.iter();
        hosts
            .find(|host| host.name == name)
            .unwrap_or_else(|| panic!("no host is called {name}"))
    }

    /// Looks at the results so far.
    pub(crate) fn with_entries<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(
            &self
                .entries
                .lock()
                .expect("no trial panics while it holds it"),
        )
    }

    fn note(&self, entry: Entry) {
        let mut entries = self
            .entries
            .lock()
            .expect("no trial panics while it holds it");
        entries.push(entry);
    }
}

/// A trial `HOST/SUITE/DETAIL`, whose result also goes to the page.
pub(crate) fn trial(
    run: &Arc<Run>,
    host: &'static str,
    suite: &str,
    detail: &str,
    body: impl FnOnce(&Run, &Host) -> Verdict + Send + 'static,
) -> Trial {
    let run = Arc::clone(run);
    let suite = suite.to_owned();
    Trial::test(format!("{host}/{suite}/{detail}"), move || {
        let under = run.host(host);
        let verdict = under.check().and_then(|()| body(&run, under));
        run.note(Entry {
            host,
            suite,
            has_passed: verdict.is_ok(),
        });
        verdict.map_err(Failed::from)
    })
}
