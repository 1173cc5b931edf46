//! Launchers of batch systems, played by scripts: ranks have of the environment what the launcher's
//! documented options pass on, and nothing else. The ranks are started by a real MPI's launcher.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::host::Host;
use crate::run::TestResult;

use super::command::write_program;

/// A launcher.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    Srun,
    Jsrun,
    Aprun,
}

/// Slurm: `--export`, as one word or two, or the variable that sbatch sets.
const SRUN: &str = r#"
export_list=${SLURM_EXPORT_ENV-ALL}
while :; do
    case "$1" in
        -n) ranks=$2; shift 2 ;;
        --export=*) export_list=${1#--export=}; shift ;;
        --export) export_list=$2; shift 2 ;;
        -*) echo "srun: unknown option $1" >&2; exit 2 ;;
        *) break ;;
    esac
done
IFS=,
for entry in $export_list; do
    case "$entry" in
        ALL) everything=yes ;;
        NONE | NIL) [ "$entry" = "$export_list" ] || { echo "srun: $entry is not alone" >&2; exit 2; } ;;
        *=*) set -- "$entry" "$@" ;;
        *) eval "set -- \"$entry=\$$entry\" \"\$@\"" ;;
    esac
done
unset IFS
"#;

/// Options of a name: the value follows, or is that of the environment.
const ASSIGNING: &str = r#"
while :; do
    case "$1" in
        -n) ranks=$2; shift 2 ;;
        OPTION)
            case "$2" in
                *=*) given="$given $2" ;;
                *) eval "given=\"\$given $2=\$$2\"" ;;
            esac
            shift 2 ;;
        -*) echo "$0: unknown option $1" >&2; exit 2 ;;
        *) break ;;
    esac
done
set -- $given "$@"
"#;

impl Batch {
    pub(super) const ALL: [Batch; 3] = [Batch::Srun, Batch::Jsrun, Batch::Aprun];

    pub(super) fn name(self) -> &'static str {
        match self {
            Batch::Srun => "srun",
            Batch::Jsrun => "jsrun",
            Batch::Aprun => "aprun",
        }
    }

    /// Writes the script, which starts ranks by a host's launcher.
    pub(super) fn script(self, host: &Host, directory: &Path) -> TestResult<PathBuf> {
        let options = match self {
            Batch::Srun => SRUN.to_owned(),
            Batch::Jsrun => ASSIGNING.replace("OPTION", "-E"),
            Batch::Aprun => ASSIGNING.replace("OPTION", "-e"),
        };
        let launch = host.launch_with(&[]);
        let mut own = String::new();
        for (name, value) in &launch.variables {
            write!(own, " '{name}={}'", value.display()).expect("a text takes everything");
        }
        let launcher = launch.words[0].display();
        let text = format!(
            "#!/bin/sh\nset -f\nranks=1 everything= given=\n{options}\
             [ -n \"$everything\" ] || clear=-i\n\
             exec env $clear \"PATH=$PATH\" \"HOME=$HOME\"{own} '{launcher}' -n \"$ranks\" env \"$@\"\n"
        );
        let path = directory.join(self.name());
        write_program(&path, &text)?;
        Ok(path)
    }
}

/// A line with such a launcher.
pub(super) struct Case {
    pub(super) batch: Batch,
    pub(super) name: &'static str,
    /// Options of `pario run`.
    pub(super) of_pario: &'static [&'static str],
    /// Options of the launcher.
    pub(super) options: &'static [&'static str],
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// What pario or the ranks must say.
    pub(super) printed: &'static [&'static str],
}

const PLAIN: Case = Case {
    batch: Batch::Srun,
    name: "plain",
    of_pario: &[],
    options: &[],
    variables: &[],
    printed: &[],
};

/// A hint with a comma, which Slurm's list cannot hold.
const HINT: &[&str] = &["--hint", "cb_config_list=*:1,*:1"];

const HINT_PRINTED: &[&str] = &["cb_config_list = *:1,*:1"];

pub(super) const CASES: [Case; 10] = [
    PLAIN,
    Case {
        name: "export-none",
        options: &["--export=NONE"],
        ..PLAIN
    },
    Case {
        name: "export-in-two-words",
        options: &["--export", "NONE"],
        ..PLAIN
    },
    Case {
        name: "export-nil",
        options: &["--export=NIL"],
        ..PLAIN
    },
    Case {
        name: "export-list",
        options: &["--export=HOME,OTHER=1"],
        ..PLAIN
    },
    Case {
        name: "sbatch-exports-none",
        variables: &[("SLURM_EXPORT_ENV", "NONE")],
        ..PLAIN
    },
    Case {
        name: "hint-with-comma",
        of_pario: HINT,
        options: &["--export=NONE"],
        printed: HINT_PRINTED,
        ..PLAIN
    },
    Case {
        batch: Batch::Jsrun,
        of_pario: HINT,
        printed: HINT_PRINTED,
        ..PLAIN
    },
    Case {
        batch: Batch::Jsrun,
        name: "named",
        options: &["-E", "HOME"],
        variables: &[("PARIO_THREADS", "multiple")],
        ..PLAIN
    },
    Case {
        batch: Batch::Aprun,
        of_pario: HINT,
        printed: HINT_PRINTED,
        ..PLAIN
    },
];
