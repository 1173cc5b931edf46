//! Precedence, rejected values, and what is reported.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pario_hints::{
    AccessMethod, AccessStyle, Advice, AsyncMethod, Buffering, Definition, Hints, Info, Moment,
    Rmw, Scope, SharedPointer, SievedAccess, Sieving, Source, Sources,
};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

fn info(pairs: &[(&str, &str)]) -> Info {
    Info::from_pairs(pairs.iter().copied()).unwrap()
}

fn resolved(key: &str, value: &str) -> Hints {
    let resolved = Hints::resolve(&info(&[(key, value)]), &Sources::none());
    assert_eq!(resolved.warnings, [], "{key}={value}");
    resolved.hints
}

fn assert_refused(key: &str, value: &str) {
    let resolved = Hints::resolve(&info(&[(key, value)]), &Sources::none());
    assert_eq!(
        resolved.hints,
        Hints::default(),
        "{key}={value} changed something"
    );
    let [warning] = &resolved.warnings[..] else {
        panic!("{key}={value} gave {:?}", resolved.warnings)
    };
    assert_eq!(
        (warning.hint.as_str(), warning.value.as_str()),
        (key, value)
    );
    assert_eq!(warning.source, Source::Call);
    assert!(warning.to_string().contains(&warning.allowed));
}

fn variables(pario: Option<OsString>, romio: Option<OsString>) -> Sources {
    Sources::from_variables(move |name| match name {
        "PARIO_HINTS" => pario.clone(),
        // Empty rather than absent: the machine's own file is none of the test's business.
        "ROMIO_HINTS" => Some(romio.clone().unwrap_or_default()),
        _ => None,
    })
}

fn hints_file(directory: &tempfile::TempDir, name: &str, text: &str) -> OsString {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.into_os_string()
}

#[test]
fn names_and_aliases_are_unique_and_documented() {
    let mut names = HashSet::new();
    for definition in Hints::DEFINITIONS {
        for name in definition.aliases.iter().chain([&definition.name]) {
            assert!(names.insert(*name), "{name} is defined twice");
            assert!(name.len() <= pario_hints::MAX_KEY_LEN);
            assert_eq!(
                Hints::definition(name).map(|d| d.name),
                Some(definition.name)
            );
        }
        assert!(
            definition.doc.concat().trim().ends_with('.'),
            "{}",
            definition.name
        );
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let hints = Hints::default();
    assert_eq!(hints.ind_rd_buffer_size, 4 << 20);
    assert_eq!(hints.ind_wr_buffer_size, 512 << 10);
    assert_eq!(hints.sieve_extent(SievedAccess::Other), 16 << 10);
    assert_eq!(hints.sieve_extent(SievedAccess::MemoryRead), 6 << 10);
    assert_eq!(hints.pario_rmw, Rmw::Automatic);
    assert_eq!(hints.file_perm, None);
    for definition in Hints::DEFINITIONS {
        assert_eq!(hints.source(definition.name), Some(&Source::Default));
    }
}

#[test]
fn values_in_force_read_back_as_themselves() {
    let settable = |definition: &&Definition| definition.moment != Moment::Reported;
    for definition in Hints::DEFINITIONS.iter().filter(settable) {
        if let Some(value) = definition.value(&Hints::default()) {
            let hints = resolved(definition.name, &value);
            assert_eq!(definition.value(&hints), Some(value));
            assert_eq!(hints.source(definition.name), Some(&Source::Call));
        }
    }
}

#[test]
fn sizes_take_suffixes() {
    for (text, bytes) in [
        ("1", 1),
        ("00012", 12),
        ("64k", 65536),
        ("2 MiB", 2 << 20),
        ("3G", 3 << 30),
        ("7b", 7),
    ] {
        assert_eq!(
            resolved("ind_rd_buffer_size", text).ind_rd_buffer_size,
            bytes,
            "{text}"
        );
    }
    assert_eq!(
        resolved("ind_rd_buffer_size", " 64g ").ind_rd_buffer_size,
        64 << 30
    );
    for text in [
        "",
        "k",
        "-1",
        "+1",
        "0",
        "1.5m",
        "1t",
        "65g",
        "99999999999999999999",
        "0x10",
        "1k1",
        "18014398509481984k",
        "４k",
        "1 2",
        "k1",
    ] {
        assert_refused("ind_rd_buffer_size", text);
    }
}

#[test]
fn numbers_keep_their_range() {
    assert_eq!(
        resolved("pario_sieve_density", "100").pario_sieve_density,
        100
    );
    assert_eq!(resolved("pario_list_pieces", "1").pario_list_pieces, 1);
    for (key, value) in [
        ("pario_sieve_density", "101"),
        ("pario_sieve_density", "50%"),
        ("pario_list_pieces", "0"),
        ("pario_list_pieces", "1048577"),
        ("nb_proc", "0"),
    ] {
        assert_refused(key, value);
    }
}

#[test]
fn words_have_no_case() {
    assert_eq!(
        resolved("romio_ds_read", "DISABLE").romio_ds_read,
        Sieving::Disable
    );
    assert_eq!(
        resolved("romio_ds_write", "enable").romio_ds_write,
        Sieving::Enable
    );
    assert_eq!(
        resolved("pario_read_method", "Sieve").pario_read_method,
        Some(AccessMethod::Sieve)
    );
    assert_eq!(resolved("pario_rmw", "locked").pario_rmw, Rmw::Locked);
    assert_eq!(
        resolved("pario_async", "io_uring").pario_async,
        AsyncMethod::Uring
    );
    let pointer = resolved("pario_shared_pointer", "file").pario_shared_pointer;
    assert_eq!(pointer, SharedPointer::File);
    assert!(resolved("direct_read", "TRUE").direct_read);
    assert!(!resolved("direct_write", "disable").direct_write);
    for (key, value) in [
        ("romio_ds_read", "yes"),
        ("pario_write_method", "list sieve"),
        ("direct_read", "1"),
        ("pario_rmw", ""),
    ] {
        assert_refused(key, value);
    }
}

#[test]
fn permissions_are_octal() {
    assert_eq!(resolved("file_perm", "0640").file_perm, Some(0o640));
    assert_eq!(resolved("file_perm", "0").file_perm, Some(0));
    for text in ["888", "1777", "rw-r--r--", "-1", "0o640", ""] {
        assert_refused("file_perm", text);
    }
}

#[test]
fn drivers_are_names_and_romio_spells_them_its_way() {
    assert_eq!(
        resolved("pario_driver", "mem").pario_driver.as_deref(),
        Some("mem")
    );
    let renamed = resolved("pario_way_read", "list");
    assert_eq!(renamed.pario_read_method, Some(AccessMethod::List));
    let renamed = resolved("pario_mimic_lock_granularity", "4096");
    assert_eq!(renamed.pario_assume_lock_granularity, Some(4096));
    let alias = resolved("romio_filesystem_type", "UFS: Generic ROMIO driver");
    assert_eq!(alias.pario_driver.as_deref(), Some("ufs"));
    for text in ["", ":", "../ufs", "a b", &"x".repeat(33)] {
        assert_refused("pario_driver", text);
    }
}

#[test]
fn access_styles_become_advice() {
    let advice = |text| resolved("access_style", text).access_style.advice();
    assert_eq!(advice("sequential"), [Advice::Sequential]);
    assert_eq!(
        advice("read_once, Reverse_Sequential"),
        [Advice::Random, Advice::NoReuse]
    );
    assert_eq!(advice("sequential,random"), []);
    assert_eq!(advice("read_mostly,write_mostly"), []);
    assert_eq!(AccessStyle::default().advice(), []);
    assert_eq!(
        resolved("access_style", "random,read_once")
            .to_info()
            .get("access_style"),
        Some("read_once,random")
    );
    for text in ["", ",", "sequential,", "backwards"] {
        assert_refused("access_style", text);
    }
}

#[test]
fn unknown_hints_are_ignored() {
    let given = info(&[("cb_nodes_of_tomorrow", "7"), ("IND_RD_BUFFER_SIZE", "8")]);
    let resolved = Hints::resolve(&given, &Sources::none());
    assert_eq!(resolved.warnings, []);
    assert_eq!(resolved.hints, Hints::default());
}

#[test]
fn file_then_call_then_environment() {
    let directory = tempfile::tempdir().unwrap();
    let romio = hints_file(
        &directory,
        "romio",
        "# a machine's\nind_rd_buffer_size 1000 # small\n\nind_wr_buffer_size\t2000\nromio_ds_read=disable\n",
    );
    let sources = variables(
        Some("ind_wr_buffer_size=4000; pario_rmw = locked ;".into()),
        Some(romio),
    );
    let given = info(&[
        ("ind_rd_buffer_size", "3000"),
        ("ind_wr_buffer_size", "3000"),
    ]);
    let resolved = Hints::resolve(&given, &sources);
    assert_eq!(resolved.warnings, []);
    let hints = resolved.hints;
    assert_eq!(
        (hints.ind_rd_buffer_size, hints.source("ind_rd_buffer_size")),
        (3000, Some(&Source::Call))
    );
    assert_eq!(
        (hints.ind_wr_buffer_size, hints.source("ind_wr_buffer_size")),
        (4000, Some(&Source::Environment))
    );
    assert_eq!(
        (hints.romio_ds_read, hints.source("romio_ds_read")),
        (Sieving::Disable, Some(&Source::HintsFile))
    );
    assert_eq!(hints.pario_rmw, Rmw::Locked);
    let explanation = hints.explain();
    for line in [
        "ind_rd_buffer_size = 3000  [call]",
        "ind_wr_buffer_size = 4000  [environment]",
        "romio_ds_read = disable  [hints file]",
        "file_perm = (not set)  [default]",
    ] {
        assert!(
            explanation.lines().any(|found| found == line),
            "{line} not in\n{explanation}"
        );
    }
}

/// ROMIO keeps the first of two lines with the same key; later ones were meant
/// for something else, or are a default that an administrator appended.
#[test]
fn the_first_line_of_a_romio_file_counts() {
    let directory = tempfile::tempdir().unwrap();
    let text = "cb_nodes 4\nromio_cb_write enable\ncb_nodes 8\nromio_cb_write disable\n";
    let file = hints_file(&directory, "romio", text);
    let hints = Hints::resolve(&Info::new(), &variables(None, Some(file.clone()))).hints;
    assert_eq!(hints.cb_nodes, Some(4));
    assert_eq!(hints.romio_cb_write, Buffering::Enable);
    // `pario run --hint` appends to PARIO_HINTS, where the last counts.
    let hints = Hints::resolve(&Info::new(), &variables(Some(file), None)).hints;
    assert_eq!(hints.cb_nodes, Some(8));
}

#[test]
fn a_file_without_independent_accesses_is_buffered() {
    let given = info(&[("romio_no_indep_rw", "true"), ("romio_cb_write", "disable")]);
    let mut hints = Hints::resolve(&given, &Sources::none()).hints;
    let listed = hints.to_info();
    for (key, value) in [
        ("romio_no_indep_rw", "true"),
        ("romio_cb_read", "enable"),
        ("romio_cb_write", "enable"),
    ] {
        assert_eq!(listed.get(key), Some(value), "{key}");
    }
    hints.update(&info(&[("romio_cb_read", "disable")]));
    assert_eq!(hints.romio_cb_read, Buffering::Enable);
    assert_eq!(
        Hints::default().to_info().get("romio_no_indep_rw"),
        Some("false")
    );
}

/// The values that MPICH's `MPI_File_get_info` reports for a new file without
/// hints, as far as pario has the hint.
#[test]
fn romio_s_hints_are_spelled_as_romio_spells_them() {
    let listed = Hints::default().to_info();
    for (key, value) in [
        ("cb_buffer_size", "16777216"),
        ("romio_cb_read", "automatic"),
        ("romio_cb_write", "automatic"),
        ("romio_no_indep_rw", "false"),
        ("romio_cb_pfr", "disable"),
        ("romio_cb_alltoall", "automatic"),
        ("ind_rd_buffer_size", "4194304"),
        ("ind_wr_buffer_size", "524288"),
        ("romio_ds_read", "automatic"),
        ("romio_ds_write", "automatic"),
    ] {
        assert_eq!(listed.get(key), Some(value), "{key}");
    }
    let listed = resolved("romio_cb_pfr", "ENABLE").to_info();
    assert_eq!(listed.get("romio_cb_pfr"), Some("enable"));
}

#[test]
fn a_malformed_stronger_value_leaves_the_weaker_one() {
    let sources = variables(Some("ind_rd_buffer_size=lots".into()), None);
    let resolved = Hints::resolve(&info(&[("ind_rd_buffer_size", "1k")]), &sources);
    assert_eq!(resolved.hints.ind_rd_buffer_size, 1024);
    assert_eq!(
        resolved.hints.source("ind_rd_buffer_size"),
        Some(&Source::Call)
    );
    assert_eq!(resolved.warnings[0].source, Source::Environment);
}

#[test]
fn the_environment_may_name_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = hints_file(&directory, "mine", "direct_read true\n");
    let resolved = Hints::resolve(
        &info(&[("direct_read", "false")]),
        &variables(Some(file), None),
    );
    assert!(resolved.hints.direct_read);
    assert_eq!(
        resolved.hints.source("direct_read"),
        Some(&Source::Environment)
    );
}

#[test]
fn bad_files_and_lines_are_warnings() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing").into_os_string();
    let sources = variables(Some("/dev/null/none".into()), Some(missing));
    let warnings = Hints::resolve(&Info::new(), &sources).warnings;
    let named: Vec<_> = warnings
        .iter()
        .map(|warning| warning.hint.as_str())
        .collect();
    assert_eq!(named, ["ROMIO_HINTS", "PARIO_HINTS"]);

    let lines = hints_file(&directory, "lines", "lonely\ndirect_read true\n= 4\n");
    let resolved = Hints::resolve(&Info::new(), &variables(None, Some(lines)));
    assert_eq!(resolved.warnings.len(), 2);
    assert!(resolved.hints.direct_read);

    let binary = directory.path().join("binary");
    std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    let huge = directory.path().join("huge");
    std::fs::write(&huge, vec![b'#'; 2 << 20]).unwrap();
    for path in [binary.as_path(), huge.as_path(), Path::new("/dev/zero")] {
        let sources = variables(None, Some(path.into()));
        assert_eq!(
            Hints::resolve(&Info::new(), &sources).warnings.len(),
            1,
            "{path:?}"
        );
    }
}

#[test]
fn later_calls_change_what_may_change() {
    let sources = variables(Some("pario_list_pieces=7".into()), None);
    let mut hints = Hints::resolve(&Info::new(), &sources).hints;
    let warnings = hints.update(&info(&[
        ("ind_rd_buffer_size", "1m"),
        ("ind_wr_buffer_size", "none"),
        ("pario_list_pieces", "9"),
        ("pario_rmw", "locked"),
        ("filename", "elsewhere"),
    ]));
    assert_eq!(hints.ind_rd_buffer_size, 1 << 20);
    assert_eq!(hints.pario_list_pieces, 7, "the environment is stronger");
    assert_eq!(hints.pario_rmw, Rmw::Automatic, "agreed at open");
    assert_eq!(hints.filename, None, "reported only");
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].hint, "ind_wr_buffer_size");
}

#[test]
fn adjustments_carry_their_reason() {
    let mut hints = resolved("direct_read", "true");
    hints.adjust("tmpfs has no O_DIRECT", |hints| {
        hints.direct_read = false;
        hints.direct_write = false;
    });
    let adjusted = Source::Adjusted("tmpfs has no O_DIRECT".into());
    assert_eq!(hints.source("direct_read"), Some(&adjusted));
    assert_eq!(
        hints.source("direct_write"),
        Some(&Source::Default),
        "it did not change"
    );
    assert!(
        hints
            .explain()
            .contains("direct_read = false  [adjusted: tmpfs has no O_DIRECT]")
    );
}

#[test]
fn rank_zero_counts_in_what_is_the_files() {
    let rank_zero = Hints::resolve(
        &info(&[
            ("file_perm", "600"),
            ("ind_rd_buffer_size", "1"),
            ("direct_read", "true"),
        ]),
        &Sources::none(),
    )
    .hints;
    let mut own = resolved("ind_rd_buffer_size", "2");
    own.direct_read = true;
    let differences = own.agree(&rank_zero);
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].hint, "file_perm");
    assert_eq!(
        (&differences[0].own, differences[0].other.as_deref()),
        (&None, Some("600"))
    );
    assert!(differences[0].to_string().contains("`600` on rank 0"));
    assert_eq!(own.file_perm, Some(0o600));
    assert_eq!(own.ind_rd_buffer_size, 2, "each rank its own");
    assert_eq!(
        own.source("file_perm"),
        Some(&Source::Adjusted("rank 0's value is used".into()))
    );
    assert_eq!(own.source("direct_read"), Some(&Source::Call));
    assert_eq!(own.differences(&rank_zero), []);
    let shared = Hints::DEFINITIONS
        .iter()
        .filter(|d| d.scope == Scope::File)
        .count();
    assert!(shared > 0);
}

#[test]
fn info_lists_what_is_in_force() {
    let mut hints = resolved("file_perm", "0600");
    hints.filename = Some("/data/a file".to_owned());
    let listed = hints.to_info();
    assert_eq!(listed.get("file_perm"), Some("600"));
    assert_eq!(listed.get("filename"), Some("/data/a file"));
    assert_eq!(listed.get("ind_rd_buffer_size"), Some("4194304"));
    assert_eq!(listed.get("pario_driver"), None);
    // What get_info returns can be given to another open.
    let again = Hints::resolve(&listed, &Sources::none());
    assert_eq!(again.warnings, []);
    assert_eq!(again.hints.differences(&hints), []);

    hints.filename = Some("n".repeat(pario_hints::MAX_VALUE_LEN + 1));
    assert_eq!(
        hints.to_info().get("filename"),
        None,
        "too long for an info"
    );
}

#[test]
fn romio_s_variable_forces_a_driver_unless_pario_s_does() {
    let forced = |name: &str| (name == "ROMIO_FSTYPE_FORCE").then(|| "ufs:".into());
    let hints = Hints::resolve(&Info::new(), &Sources::from_variables(forced)).hints;
    assert_eq!(hints.pario_driver.as_deref(), Some("ufs"));
    let both = |name: &str| match name {
        "ROMIO_FSTYPE_FORCE" => Some("ufs:".into()),
        "PARIO_HINTS" => Some("pario_driver=mem".into()),
        _ => None,
    };
    let hints = Hints::resolve(&Info::new(), &Sources::from_variables(both)).hints;
    assert_eq!(hints.pario_driver.as_deref(), Some("mem"));
}

#[test]
fn measured_values_are_used_unless_hints_are_set() {
    let mut hints = Hints::default();
    hints.set_measured(16 << 10, Some(2 << 20));
    assert_eq!(hints.call_bytes(), 16 << 10);
    assert_eq!(hints.sieve_extent(SievedAccess::Other), 32 << 10);
    assert_eq!(hints.sieve_extent(SievedAccess::LocalStorage), 24 << 10);
    assert_eq!(hints.cached_window_bytes(), 512 << 10, "32 calls");
    let explained = hints.explain();
    assert!(
        explained.contains("pario_call_bytes = 16384  [measured]"),
        "{explained}"
    );
    // They reach other ranks, and stay when other hints change.
    let sent = Hints::from_wire(&hints.to_wire()).unwrap();
    assert_eq!(sent, hints);
    hints.update(&Info::from_pairs([("pario_sieve_extent", "1k")]).unwrap());
    assert_eq!(
        (
            hints.sieve_extent(SievedAccess::MemoryWrite),
            hints.call_bytes()
        ),
        (1 << 10, 16 << 10)
    );

    let mut hints = resolved("pario_call_bytes", "2k");
    hints.set_measured(16 << 10, None);
    assert_eq!(
        (hints.call_bytes(), hints.sieve_extent(SievedAccess::Other)),
        (2 << 10, 4 << 10)
    );
    assert_eq!(hints.cached_window_bytes(), 64 << 10);
    let mut hints = resolved("pario_sieve_extent", "0");
    hints.set_measured(16 << 10, None);
    assert_eq!(hints.sieve_extent(SievedAccess::Other), 0);

    let mut hints = Hints::default();
    hints.set_measured(8 << 10, Some(32 << 10));
    let sent = Hints::from_wire(&hints.to_wire()).unwrap();
    assert_eq!(sent.pario_cache_bytes, Some(64 << 10), "the least allowed");
}

/// Rank 0's values count, measured ones among them, whatever a rank has passed.
#[test]
fn ranks_with_other_hints_agree_on_measured_values() {
    for (name, value) in [("pario_sieve_extent", "1m"), ("pario_call_bytes", "64")] {
        let (mut first, mut other) = (Hints::default(), resolved(name, value));
        other.agree(&first);
        for hints in [&mut first, &mut other] {
            hints.set_measured(4 << 10, Some(1 << 20));
        }
        assert!(first.differences(&other).is_empty(), "{name}");
        let extent = |hints: &Hints| hints.sieve_extent(SievedAccess::Other);
        assert_eq!(extent(&first), extent(&other), "{name}");
    }
}

#[test]
fn windows_stay_in_half_of_the_cache() {
    let window = |cache: &str| resolved("pario_cache_bytes", cache).cached_window_bytes() >> 10;
    let sizes = ["64k", "256k", "300k", "512k", "1g"].map(window);
    assert_eq!(sizes, [64, 128, 128, 256, 256]);
    assert_eq!(Hints::default().cached_window_bytes(), 256 << 10);
}
