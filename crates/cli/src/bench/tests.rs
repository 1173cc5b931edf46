//! A short form of every workload with every method, verified.

use std::path::Path;

use super::options::Options;
use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn options(line: &str) -> Options {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    <Line as clap::Parser>::try_parse_from(words)
        .unwrap()
        .options
}

/// Runs the comparison in a new directory and returns its output.
fn bench(line: &str) -> Result<String, Failure> {
    let directory = tempfile::tempdir().unwrap();
    bench_in(directory.path(), line)
}

fn bench_in(directory: &Path, line: &str) -> Result<String, Failure> {
    let mut options = options(line);
    options.dir = Some(directory.to_owned());
    let mut out = Vec::new();
    measure(&options, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Rows of verified methods.
fn verified(text: &str) -> usize {
    text.matches("every byte").count()
}

#[test]
fn every_workload_is_right_with_every_usual_method() {
    for ranks in [1, 3, 4] {
        let line = format!("--workload all --scale 0.004 --repeat 1 --ranks {ranks}");
        let text = bench(&line).unwrap();
        let rows = (method::usual().len() + 1) * WORKLOADS.len();
        let unfit = text
            .lines()
            .filter_map(|line| line.strip_prefix("not applicable: "));
        let names = unfit.filter_map(|line| line.split_once(": "));
        let unfit: usize = names.map(|(names, _)| names.split(", ").count()).sum();
        assert_eq!(verified(&text) + unfit, rows, "{text}");
    }
}

#[test]
fn striped_files_have_aggregators_per_server() {
    let methods = "one-per-server,resonant,resonant-prefetch,two-phase+group-cyclic,\
                   two-phase+static-cyclic,two-phase+by-server,two-phase+persistent";
    for workload in ["demo", "steps", "noncontig:elements=64"] {
        let sizes = "--scale 0.02 --repeat 1 --hint pario_assume_striping=4096,3";
        let text = bench(&format!("-w {workload} -m {methods} {sizes}")).unwrap();
        assert_eq!(verified(&text), 8, "{text}");
    }
}

#[test]
fn simulated_nodes_exchange_by_messages() {
    let methods = "automatic,two-phase+messages,two-phase+alltoall,two-phase+two-layer";
    for workload in ["dist3d", "hpio", "cyclic", "btio"] {
        let sizes = "--scale 0.01 --repeat 1 --ranks 4 --nodes 2";
        let text = bench(&format!("-w {workload} -m {methods} {sizes}")).unwrap();
        assert_eq!(verified(&text), 5, "{text}");
    }
}

#[test]
fn directories_without_a_mount_are_accessed_by_their_driver() {
    let directory = Path::new("mem:/directory");
    let sizes = "--scale 0.01 --repeats 1 --nodes 2";
    let line = format!("-w hpio,cyclic -m automatic,independent,list+uring {sizes}");
    let text = bench_in(directory, &line).unwrap();
    assert_eq!(verified(&text), 2 * 2, "{text}");
    let unfit = "not applicable: raw POSIX, list+uring: it makes system calls";
    assert_eq!(text.matches(unfit).count(), 2, "{text}");
    for option in ["--cold", "--beside"] {
        let failure = bench_in(directory, option).unwrap_err().to_string();
        let expected = format!("{option} needs a mounted directory, which mem:/directory is not");
        assert_eq!(failure, expected);
    }
}

#[test]
fn a_sweep_measures_each_value() {
    let line = "-w strided -m automatic --sweep record=8,64,4K --scale 0.01 --repeat 1 --csv";
    let text = bench(line).unwrap();
    assert_eq!(text.lines().count(), 1 + 3 * 2 * 2, "{text}");
    for value in ["record=8,", "record=64,", "record=4K,"] {
        assert_eq!(text.matches(value).count(), 4, "{text}");
    }
}

#[test]
fn wrong_arguments_are_explained() {
    for (line, reason) in [
        (
            "-w nothing",
            "unknown workload `nothing`; workloads are dist3d",
        ),
        ("-w hpio:colour=red", "hpio: unknown parameter `colour`"),
        ("-w hpio:region=0", "hpio: region must be at least 1"),
        ("-w hpio:region=1G,count=1G", "choose smaller sizes"),
        ("-m telepathy", "unknown method `telepathy`"),
        ("--sweep record", "write name=values"),
        (
            "--sweep record=4",
            "unknown parameter `record`; parameters are size",
        ),
        ("--hint colour=red", "unknown hint `colour`"),
        ("-w btio --size 7", "--size is for dist3d"),
        (
            "-w strided:record=1M --scale 4096 --ranks 64",
            "choose a smaller --scale",
        ),
        ("--ranks 2 --nodes 3", "2 ranks cannot occupy 3 nodes"),
        (
            "--size 2x2x2 --ranks 64",
            "choose a larger --size or fewer --ranks",
        ),
    ] {
        let failure = bench(line).unwrap_err().to_string();
        assert!(failure.contains(reason), "{line}: {failure}");
    }
}

#[test]
fn rows_are_named_after_what_runs() {
    let hint = "--hint pario_algorithm=individual";
    let line = format!("-w hpio -m two-phase,automatic {hint} --scale 0.01 --repeats 1");
    let text = bench(&line).unwrap();
    assert!(
        !text.contains("two-phase") && !text.contains("automatic"),
        "{text}"
    );
    assert_eq!(text.matches("\nindividual ").count(), 1, "{text}");
}
