//! The documentation page, from the definitions.

use crate::definition::{Definition, Group, Moment, Scope};
use crate::table::Hints;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Hints

<!-- Generated from crates/hints/src/table.rs by `cargo xtask docs` -->

A hint tells pario something about a file or asks for a way to treat it. Hints
are given as keys and values in the info argument of a call, in a file, or in
the environment. The results of correct programs do not depend on them.

Where several give the same hint, the strongest counts, from the weakest:

1. the default;
2. the hints file that `ROMIO_HINTS` names (`/etc/romio-hints` without it): the
   preferences of a machine or a user, which a program that knows better
   overrides, as in ROMIO;
3. the info argument of the call;
4. the variable `PARIO_HINTS`: who sets it for one run means that run, and may
   have no other way to try a hint on a program.

`PARIO_HINTS` holds `key=value` pairs separated by `;`, or, without any `=`, the
name of a file. `ROMIO_FSTYPE_FORCE=ufs` is `pario_driver=ufs` there. Files hold
one hint per line, `key value` or `key=value`; `#` starts a comment. In the file
of `ROMIO_HINTS`, the first of several lines with the same key counts, as in ROMIO.
Words are read without regard to case. A hint that pario does not know is ignored; a malformed
value of one that it knows is ignored with a warning. The info that a file
returns lists the hints in force.
";

/// Names that exist elsewhere and do nothing here.
const WITHOUT_EFFECT: &str = "
## Hints of others that have no effect

Programs and libraries may set them; they are ignored without a word.

| hint | why |
|---|---|
| `start_iodevice`, `romio_lustre_co_ratio` | striping is set when a file is created, by the file system's own tools; pario reads it from the file |
| `romio_cb_fr_types`, `romio_min_fdomain_size` | `pario_partition` says how the file is divided |
| `romio_aggregator_list`, `io_node_list`, `num_io_nodes` | `cb_nodes` and `cb_config_list` say who aggregates |
| `cb_block_size`, `chunked`, `chunked_item`, `chunked_size` | layouts are taken from the views |
| `romio_synchronized_flush`, `romio_visibility_immediate` | data is handed to the file system in every call |
";

/// The page `docs/hints.md`.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in Group::ALL {
        write!(page, "\n## {group}\n").expect("writing to a string does not fail");
        for definition in Hints::DEFINITIONS
            .iter()
            .filter(|definition| definition.group == group)
        {
            page.push_str(&section(definition));
        }
    }
    page.push_str(WITHOUT_EFFECT);
    page
}

fn section(definition: &Definition) -> String {
    let mut lines = vec![
        String::new(),
        format!("### `{}`", definition.name),
        String::new(),
    ];
    lines.extend(definition.doc.iter().map(|line| line.trim().to_owned()));
    lines.push(String::new());
    if definition.moment != Moment::Reported {
        let default = match definition.value(&Hints::default()) {
            Some(value) => format!("`{value}`"),
            None => "not set".to_owned(),
        };
        lines.push(format!("- Default: {default}"));
        lines.push(format!("- Allowed: {}", definition.allowed()));
    }
    if !definition.aliases.is_empty() {
        lines.push(format!(
            "- Also known as: `{}`",
            definition.aliases.join("`, `")
        ));
    }
    lines.push(format!("- {}", moment_sentence(definition.moment)));
    if definition.moment != Moment::Reported {
        lines.push(format!("- {}", scope_sentence(definition.scope)));
    }
    lines.join("\n") + "\n"
}

fn moment_sentence(moment: Moment) -> &'static str {
    match moment {
        Moment::Open => "Can be set at open",
        Moment::Always => "Can be set at open and later",
        Moment::Reported => "Reported by pario; cannot be set",
    }
}

fn scope_sentence(scope: Scope) -> &'static str {
    match scope {
        Scope::File => {
            "One value for the file: where ranks differ, rank 0's counts, with a warning"
        }
        Scope::Rank => "Each rank may have its own value",
    }
}
