//! `cargo xtask install` into a separate directory: the installation works from there.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn installed() -> PathBuf {
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefix");
    let _ = fs::remove_dir_all(&prefix);
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("install")
        .arg(&prefix)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    prefix.canonicalize().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the installed command without the build's environment.
fn pario(prefix: &Path, arguments: &[&str]) -> Output {
    Command::new(prefix.join("bin/pario"))
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap()
}

#[test]
fn the_installed_tree_works() {
    let prefix = installed();
    let library = prefix.join("lib/libpario.so");

    let version = pario(&prefix, &["--version"]);
    let expected = concat!("pario ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(text(&version.stdout), expected);

    // The command finds the library next to it, and the dynamic linker loads it.
    let preload = format!("LD_PRELOAD={}", library.display());
    let run = pario(&prefix, &["run", "--", "env"]);
    assert!(
        text(&run.stdout).lines().any(|it| it == preload),
        "{}",
        text(&run.stdout)
    );
    assert_eq!(text(&run.stderr), "", "the dynamic linker reports an error");
    let maps = pario(&prefix, &["run", "--", "cat", "/proc/self/maps"]);
    assert!(text(&maps.stdout).contains(library.to_str().unwrap()));
    let doctor = pario(&prefix, &["doctor"]);
    let found = format!("{}, can be preloaded", library.display());
    assert!(
        text(&doctor.stdout).contains(&found),
        "{}",
        text(&doctor.stdout)
    );

    for (file, part) in [
        ("share/man/man1/pario.1", "pario"),
        ("share/man/man1/pario-run.1", "mpirun"),
        ("share/bash-completion/completions/pario", "doctor"),
        ("share/zsh/site-functions/_pario", "doctor"),
        ("share/fish/vendor_completions.d/pario.fish", "doctor"),
        ("share/doc/pario/README.md", "pario"),
        ("share/doc/pario/docs/hints.md", "cb_nodes"),
        ("lib/pkgconfig/pario.pc", "-lpario"),
    ] {
        let found = fs::read_to_string(prefix.join(file)).unwrap();
        assert!(found.contains(part), "{file} lacks {part}");
    }
    let mut files = vec![prefix.clone()];
    while let Some(directory) = files.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            assert!(
                !path.to_str().unwrap().ends_with(".new"),
                "{path:?} was left behind"
            );
            if path.is_dir() {
                files.push(path);
            }
        }
    }
    programs_use_it(&prefix);
    fs::remove_dir_all(&prefix).unwrap();
}

/// MPI launchers and their libraries.
const MPIS: [(&str, &str); 2] = [
    ("mpirun.mpich", "libmpich.so.12"),
    ("mpirun.openmpi", "libmpi.so.40"),
];

/// A program that looks up MPI's functions by name uses pario: preloaded, and through a shim.
fn programs_use_it(prefix: &Path) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/file_by_ctypes.py");
    for (launcher, library) in MPIS {
        let Some(mpi) = loaded_file(prefix, library) else {
            println!("skipped: {library} is not installed");
            continue;
        };
        let shim = prefix.join("shim.so");
        let shim = shim.to_str().unwrap();
        let made = pario(prefix, &["shim", "--mpi", &mpi, "--output", shim]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let command = prefix.join("bin/pario");
        for (start, how, library) in [
            (
                &[command.to_str().unwrap(), "run", "--", launcher][..],
                "global",
                mpi.as_str(),
            ),
            (&[launcher][..], "shim", shim),
        ] {
            let file = prefix.join("data");
            let output = Command::new(start[0])
                .args(&start[1..])
                .args(["-n", "2", "/usr/bin/python3"])
                .arg(&program)
                .args([how, library])
                .arg(&file)
                .env("PARIO_VERBOSE", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
                .output()
                .unwrap();
            let message = text(&output.stderr);
            assert!(output.status.success(), "{launcher}, {how}: {message}");
            assert!(
                message.contains("pario: MPI: "),
                "{launcher}, {how}: not in use: {message}"
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), "rank0rank1");
            fs::remove_file(&file).unwrap();
        }
        fs::remove_file(shim).unwrap();
    }
}

/// The path of an MPI's library, as found by `pario doctor`.
fn loaded_file(prefix: &Path, library: &str) -> Option<String> {
    let report = text(&pario(prefix, &["doctor"]).stdout);
    let words = report
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let mut files = words.filter(|word| word.starts_with('/'));
    files
        .find(|file| file.contains(&format!("/{library}")))
        .map(str::to_owned)
}
