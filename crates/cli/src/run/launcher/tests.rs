use super::super::variables::Verbosity;
use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// The command line as typed, and the names of variables in the launcher's environment.
fn passed_on(launcher: Launcher, line: &str, hints: &[(String, String)]) -> (String, Vec<String>) {
    let library = Path::new("/p.so");
    let variables = Variables::clean(library, hints, Verbosity::AsBefore).unwrap();
    let line = launcher.pass_on(&variables, &words(line));
    let text = line.words.join(OsStr::new(" "));
    let names = line.environment.iter();
    (
        text.into_string().unwrap(),
        names
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect(),
    )
}

fn line(launcher: Launcher, text: &str) -> String {
    passed_on(launcher, text, &[]).0
}

#[test]
fn each_launcher_gets_its_own_options() {
    for (launcher, expected) in [
        (
            Launcher::OpenMpi,
            "-x LD_PRELOAD=/p.so -n 2 ./a : -x LD_PRELOAD=/p.so -n 1 ./b",
        ),
        (
            Launcher::Hydra,
            "-genv LD_PRELOAD /p.so -n 2 ./a : -n 1 ./b",
        ),
        (Launcher::Jsrun, "-E LD_PRELOAD=/p.so -n 2 ./a : -n 1 ./b"),
        (
            Launcher::Aprun,
            "-e LD_PRELOAD=/p.so -n 2 ./a : -e LD_PRELOAD=/p.so -n 1 ./b",
        ),
        (
            Launcher::Slurm,
            "--export=ALL,LD_PRELOAD=/p.so -n 2 ./a : -n 1 ./b",
        ),
        (Launcher::Environment, "-n 2 ./a : -n 1 ./b"),
    ] {
        assert_eq!(
            line(launcher, "-n 2 ./a : -n 1 ./b"),
            expected,
            "{launcher:?}"
        );
    }
    let (_, environment) = passed_on(Launcher::Environment, "-n 2 ./a", &[]);
    assert_eq!(environment, ["LD_PRELOAD"]);
}

#[test]
fn a_value_of_ld_preload_is_kept() {
    for (launcher, given, expected) in [
        (
            Launcher::OpenMpi,
            "-x LD_PRELOAD=/t.so ./a",
            "-x LD_PRELOAD=/t.so:/p.so ./a",
        ),
        (
            Launcher::OpenMpi,
            "-x LD_PRELOAD ./a",
            "-x LD_PRELOAD=/p.so ./a",
        ),
        (
            Launcher::OpenMpi,
            "-n 2 env LD_PRELOAD=/t.so ./a",
            "-n 2 env LD_PRELOAD=/t.so:/p.so ./a",
        ),
        (
            Launcher::Hydra,
            "-genv LD_PRELOAD /t.so ./a",
            "-genv LD_PRELOAD /t.so:/p.so ./a",
        ),
        (
            Launcher::Hydra,
            "-n 1 -env LD_PRELOAD /t.so ./a",
            "-n 1 -env LD_PRELOAD /t.so:/p.so ./a",
        ),
    ] {
        assert_eq!(line(launcher, given), expected);
    }
}

#[test]
fn slurm_exports_what_it_was_asked_to_and_ours() {
    assert_eq!(
        line(Launcher::Slurm, "-n 2 --export=HOME,A=1 ./a"),
        "-n 2 --export=HOME,A=1,LD_PRELOAD=/p.so ./a"
    );
    for nothing in ["--export=NONE ./a", "--export=nil ./a", "--export NONE ./a"] {
        assert_eq!(
            line(Launcher::Slurm, nothing),
            "--export=LD_PRELOAD=/p.so ./a"
        );
    }
    assert_eq!(
        line(Launcher::Slurm, "--export A,LD_PRELOAD=/t.so,B -n 1 ./a"),
        "--export=A,B,LD_PRELOAD=/t.so:/p.so -n 1 ./a",
        "a tool stays in front"
    );
    assert_eq!(
        line(Launcher::Slurm, "--export LD_PRELOAD=/t.so,ALL ./a"),
        "--export=ALL,LD_PRELOAD=/t.so:/p.so ./a"
    );
    assert_eq!(
        line(Launcher::Slurm, "-J test -l --export=ALL,A=1 ./a"),
        "-J test -l --export=ALL,A=1,LD_PRELOAD=/p.so ./a",
        "a job may have the name of a program"
    );
    assert_eq!(
        line(Launcher::Slurm, "--export=ALL,LD_PRELOAD ./a"),
        "--export=ALL,LD_PRELOAD=/p.so ./a"
    );
    let hints = [("cb_config_list".to_owned(), "a:1,b:1".to_owned())];
    let (text, environment) = passed_on(Launcher::Slurm, "./a", &hints);
    assert_eq!(text, "--export=ALL,LD_PRELOAD=/p.so,PARIO_HINTS ./a");
    assert_eq!(environment, ["PARIO_HINTS"]);
}

#[test]
fn words_of_the_program_are_not_slurms() {
    for (given, expected) in [
        ("-n 2 ./a --export=x", "-n 2 ./a --export=x"),
        ("--label sh --export x", "--label sh --export x"),
        ("-l ./absent --export=x", "-l ./absent --export=x"),
        ("./a --export=NONE", "./a --export=NONE"),
        (
            "-n 2 --mpi=pmi2 ./a --export=x",
            "-n 2 --mpi=pmi2 ./a --export=x",
        ),
    ] {
        let expected = format!("--export=ALL,LD_PRELOAD=/p.so {expected}");
        assert_eq!(line(Launcher::Slurm, given), expected);
    }
    assert_eq!(
        line(Launcher::Slurm, "--export-file=f --export=A ./a --export=x"),
        "--export-file=f --export=A,LD_PRELOAD=/p.so ./a --export=x"
    );
}

#[test]
fn launchers_are_recognised_by_their_version_texts() {
    for (text, launcher) in [
        ("mpirun (Open MPI) 4.1.4", Launcher::OpenMpi),
        ("mpirun.openmpi (OpenRTE) 4.1.4", Launcher::OpenMpi),
        ("prterun (PRRTE) 3.0.5", Launcher::OpenMpi),
        ("HYDRA build details:\n    Version: 4.0.2", Launcher::Hydra),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.18",
            Launcher::Hydra,
        ),
        ("HPE MPT 2.28", Launcher::Environment),
        ("", Launcher::Environment),
    ] {
        assert_eq!(Launcher::of_words(text), launcher, "{text}");
    }
    assert_eq!(
        Launcher::of(Path::new("/opt/slurm/bin/srun")),
        Launcher::Slurm
    );
    assert_eq!(Launcher::of(Path::new("/bin/sh")), Launcher::Environment);
}
