use super::protocol::Described;
use super::*;

/// A made-up comparison of two MPIs: see `figures::tests::section`.
pub(super) fn comparison() -> Comparison {
    let mpi = |name: &str| Mpi {
        name: name.to_owned(),
        launcher: "mpirun".into(),
        named_library: None,
        described: Described {
            flavour: "MPICH".to_owned(),
            library: "/lib/libmpi.so".to_owned(),
            version: "MPI <&> more".to_owned(),
        },
    };
    Comparison {
        machine: Machine {
            date: "2000-02-29".to_owned(),
            pario: "0",
            facts: vec![("Processors", "2 of <some>".to_owned())],
        },
        command: "pario bench compare".to_owned(),
        scale: 1.0,
        repeats: 3,
        mpis: vec![mpi("MPI A"), mpi("MPI B")],
        patterns: patterns::named(&["tile".to_owned(), "small".to_owned()]).unwrap(),
        sections: vec![figures::tests::section()],
        notes: Vec::new(),
        faults: vec!["MPI A: wrong".to_owned()],
    }
}

#[test]
fn workers_get_what_the_user_wants() {
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }
    let words = "compare --workload tile,small --hint a=b --scale 0.5 --mode indep --ranks 2,4";
    let arguments = Line::parse_from(words.split(' ')).arguments;
    assert_eq!(arguments.options.ranks, [2, 4]);
    let parent = tempfile::tempdir().unwrap();
    let case = Case {
        arguments: &arguments,
        library: Path::new("/lib/libpario.so"),
        directory: &Scratch::new(Some(parent.path())).unwrap(),
        mode: Mode::Indep,
        ranks: 4,
    };
    let passed = |side| {
        let words = case.worker_arguments(&comparison().mpis[0], side, 2);
        words.join(" ".as_ref()).into_string().unwrap()
    };
    for expected in [
        "--mode indep",
        "--scale 0.5",
        "--round 2",
        "--workload tile,small",
        "--hint a=b",
    ] {
        assert!(
            passed(Side::Own).contains(expected),
            "{}",
            passed(Side::Own)
        );
    }
    assert!(!passed(Side::Own).contains("--library"));
    assert!(passed(Side::Pario).ends_with("--library /lib/libpario.so"));
}

#[test]
fn scales_have_limits() {
    assert_eq!(parse_scale("0.01"), Ok(0.01));
    for wrong in ["0", "-1", "33", "NaN", "x"] {
        assert!(parse_scale(wrong).is_err(), "{wrong}");
    }
}
