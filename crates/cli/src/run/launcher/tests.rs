use super::super::variables::Verbosity;
use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// The line as one would type it, and the names of variables in the launcher's environment.
fn passed_on(means: Means, line: &str, hints: &[(String, String)]) -> (String, Vec<String>) {
    let library = Path::new("/p.so");
    let variables = Variables::clean(library, hints, Verbosity::AsBefore).unwrap();
    let line = means.pass_on(&variables, &words(line));
    let text = line.words.join(OsStr::new(" "));
    let names = line.environment.iter();
    (
        text.into_string().unwrap(),
        names
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect(),
    )
}

fn line(means: Means, text: &str) -> String {
    passed_on(means, text, &[]).0
}

#[test]
fn each_launcher_is_told_in_its_own_words() {
    for (means, expected) in [
        (
            Means::OpenMpi,
            "-x LD_PRELOAD=/p.so -n 2 ./a : -x LD_PRELOAD=/p.so -n 1 ./b",
        ),
        (Means::Hydra, "-genv LD_PRELOAD /p.so -n 2 ./a : -n 1 ./b"),
        (Means::Jsrun, "-E LD_PRELOAD=/p.so -n 2 ./a : -n 1 ./b"),
        (
            Means::Aprun,
            "-e LD_PRELOAD=/p.so -n 2 ./a : -e LD_PRELOAD=/p.so -n 1 ./b",
        ),
        (
            Means::Slurm,
            "--export=ALL,LD_PRELOAD=/p.so -n 2 ./a : -n 1 ./b",
        ),
        (Means::Environment, "-n 2 ./a : -n 1 ./b"),
    ] {
        assert_eq!(line(means, "-n 2 ./a : -n 1 ./b"), expected, "{means:?}");
    }
    let (_, environment) = passed_on(Means::Environment, "-n 2 ./a", &[]);
    assert_eq!(environment, ["LD_PRELOAD"]);
}

#[test]
fn a_wish_for_preloading_is_kept() {
    for (means, given, expected) in [
        (
            Means::OpenMpi,
            "-x LD_PRELOAD=/t.so ./a",
            "-x LD_PRELOAD=/t.so:/p.so ./a",
        ),
        (
            Means::OpenMpi,
            "-x LD_PRELOAD ./a",
            "-x LD_PRELOAD=/p.so ./a",
        ),
        (
            Means::OpenMpi,
            "-n 2 env LD_PRELOAD=/t.so ./a",
            "-n 2 env LD_PRELOAD=/t.so:/p.so ./a",
        ),
        (
            Means::Hydra,
            "-genv LD_PRELOAD /t.so ./a",
            "-genv LD_PRELOAD /t.so:/p.so ./a",
        ),
        (
            Means::Hydra,
            "-n 1 -env LD_PRELOAD /t.so ./a",
            "-n 1 -env LD_PRELOAD /t.so:/p.so ./a",
        ),
    ] {
        assert_eq!(line(means, given), expected);
    }
}

#[test]
fn slurm_exports_what_it_was_told_and_ours() {
    assert_eq!(
        line(Means::Slurm, "-n 2 --export=HOME,A=1 ./a"),
        "-n 2 --export=HOME,A=1,LD_PRELOAD=/p.so ./a"
    );
    for nothing in ["--export=NONE ./a", "--export=nil ./a", "--export NONE ./a"] {
        assert_eq!(line(Means::Slurm, nothing), "--export=LD_PRELOAD=/p.so ./a");
    }
    assert_eq!(
        line(Means::Slurm, "--export A,LD_PRELOAD=/t.so,B -n 1 ./a"),
        "--export=A,B,LD_PRELOAD=/t.so:/p.so -n 1 ./a",
        "a tool stays in front"
    );
    assert_eq!(
        line(Means::Slurm, "--export LD_PRELOAD=/t.so,ALL ./a"),
        "--export=ALL,LD_PRELOAD=/t.so:/p.so ./a"
    );
    assert_eq!(
        line(Means::Slurm, "-J test -l --export=ALL,A=1 ./a"),
        "-J test -l --export=ALL,A=1,LD_PRELOAD=/p.so ./a",
        "a job may have the name of a program"
    );
    assert_eq!(
        line(Means::Slurm, "--export=ALL,LD_PRELOAD ./a"),
        "--export=ALL,LD_PRELOAD=/p.so ./a"
    );
    let hints = [("cb_config_list".to_owned(), "a:1,b:1".to_owned())];
    let (text, environment) = passed_on(Means::Slurm, "./a", &hints);
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
        assert_eq!(line(Means::Slurm, given), expected);
    }
    assert_eq!(
        line(Means::Slurm, "--export-file=f --export=A ./a --export=x"),
        "--export-file=f --export=A,LD_PRELOAD=/p.so ./a --export=x"
    );
}

#[test]
fn launchers_are_known_by_what_they_say() {
    for (said, means) in [
        ("mpirun (Open MPI) 4.1.4", Means::OpenMpi),
        ("mpirun.openmpi (OpenRTE) 4.1.4", Means::OpenMpi),
        ("prterun (PRRTE) 3.0.5", Means::OpenMpi),
        ("HYDRA build details:\n    Version: 4.0.2", Means::Hydra),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.18",
            Means::Hydra,
        ),
        ("HPE MPT 2.28", Means::Environment),
        ("", Means::Environment),
    ] {
        assert_eq!(Means::of_words(said), means, "{said}");
    }
    assert_eq!(Means::of(Path::new("/opt/slurm/bin/srun")), Means::Slurm);
    assert_eq!(Means::of(Path::new("/bin/sh")), Means::Environment);
}
