//! The documentation page, generated from the definitions.

use crate::definition::{Definition, Group, Moment, Scope};
use crate::table::Hints;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Hints

<!-- Generated from crates/hints/src/table.rs by `cargo xtask docs` -->

A hint gives pario information about a file or controls how it is accessed. Hints
are key-value pairs in the info argument of a call, in a file, or in
the environment. They do not affect the results of correct programs.

Precedence, from lowest to highest:

1. the default;
2. the hints file named by `ROMIO_HINTS` (`/etc/romio-hints` if it is not set):
   preferences of a machine or user, which programs may override, as in ROMIO;
3. the info argument of the call;
4. the environment variable `PARIO_HINTS`: a value set for one run takes precedence,
   and it may be the only means to try a hint on a program.

`PARIO_HINTS` holds `key=value` pairs separated by `;` or, if it contains no `=`, the
name of a file. `ROMIO_FSTYPE_FORCE=ufs` acts like `PARIO_HINTS=pario_driver=ufs`. Files
hold one hint per line, `key value` or `key=value`; `#` starts a comment. If a key occurs
more than once in the `ROMIO_HINTS` file, the first line is used, as in ROMIO.
Values are case-insensitive. Unknown hints are ignored; malformed values of known hints
are ignored with a warning. `MPI_File_get_info` returns the hints in force.
";

/// Hints of other implementations that have no effect in pario.
const WITHOUT_EFFECT: &str = "
## Other implementations' hints without effect

Programs and libraries may set these; pario ignores them silently.

| hint | why |
|---|---|
| `romio_lustre_co_ratio`, `romio_lustre_coll_threshold`, `romio_lustre_ds_in_coll` | the number of aggregators and the method follow from the stripes; `cb_nodes` and `pario_algorithm` set them |
| `romio_cb_fr_types`, `romio_min_fdomain_size` | `pario_partition` controls how the file is divided |
| `romio_aggregator_list`, `io_node_list`, `num_io_nodes` | `cb_nodes` and `cb_config_list` select the aggregators |
| `cb_block_size`, `chunked`, `chunked_item`, `chunked_size` | layouts are taken from the views |
| `romio_synchronized_flush`, `romio_visibility_immediate` | every call passes its data to the file system |
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
        Scope::File => "One value per file: if ranks differ, rank 0's is used, with a warning",
        Scope::Rank => "Each rank may have its own value",
    }
}
