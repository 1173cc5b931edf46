//! The project's development tasks: `cargo xtask test`, `fuzz-mpi`, `ceph`, `fuse`, `nfs`, `vm`, `lint`, `docs`,
//! `hosts`, `install`.
//!
//! No dependencies, so that it builds in a second and on a machine with only Rust.

mod artifacts;
mod ceph;
mod dependencies;
mod docs;
mod fuse;
mod hosts;
mod install;
mod licence;
mod lint;
mod machine;
mod nfs;
mod readme;
mod shell;
mod test;
mod tools;
mod unsafe_files;
mod vm;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test          run every test, installing what they need
  test --long   the same with hundreds of thousands of random cases and longer fuzzing
  test --full   the same with every program under every MPI; writes docs/hosts.md
  fuzz-mpi --minutes N [NAME]
                random cases under real MPIs, with their own MPI-IO and with pario; NAME selects hosts and ranks
  ceph          tests on a CephFS with four OSDs, which is started for them (Debian's packages)
  ceph --all    the same with programs under MPIs, and mounts
  ceph -- COMMAND
                a command with CEPH_CONF set, for such a CephFS
  fuse          tests on GlusterFS and sshfs, each mounted twice through FUSE (Debian's packages)
  nfs           programs on two nodes of an NFS server in a virtual machine (Debian's user-mode Linux)
  nfs --long [WORD]
                the same with more programs, rounds, nodes and mount options; WORD selects machines (NFS 3, 4 nodes)
  nfs --run FILE [VERSION NODE...]
                a script for bash where the tests run; by default with NFS 4.2 and nodes a and b
  nfs --rpcs    RPCs per call of some patterns on two and four nodes, with the MPI's own MPI-IO and with pario
  vm [WORD]     tests on 9p, SMB, virtiofs and the kernel's CephFS client, each mounted twice in the virtual machine; WORD
                selects some of them
  vm --run FILE WORD
                a script for bash where these tests run, with the mounts /mnt/a and /mnt/b
  hosts         install the MPIs and libraries for the tests, those from PyPI below target/hosts
  lint          formatting, clippy, rustdoc, the list of unsafe files, dependencies, generated pages
  docs          regenerate the pages that are generated from code (docs/hints.md)
  install DIR   build and install command, library, manual pages, completions and pkg-config file below DIR
";

fn run_ceph(scope: ceph::Scope) -> shell::Outcome {
    ceph::test(scope, |_| ()).map_err(|unable| match unable {
        ceph::Unable::NoCluster(reason) | ceph::Unable::Failed(reason) => reason,
    })
}

fn run_nfs(effort: nfs::Effort, word: &str) -> shell::Outcome {
    nfs::run(effort, word).map_err(|unable| match unable {
        nfs::Unable::NoMachine(reason) | nfs::Unable::Failed(reason) => reason,
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(test::Effort::Normal),
        ["test", "--long"] => test::run(test::Effort::Long),
        ["test", "--full"] => test::run(test::Effort::Full),
        ["fuzz-mpi", "--minutes", minutes] => test::fuzz_mpi(minutes, "differential"),
        ["fuzz-mpi", "--minutes", minutes, name] => test::fuzz_mpi(minutes, name),
        ["ceph"] => run_ceph(ceph::Scope::Driver),
        ["ceph", "--all"] => run_ceph(ceph::Scope::All),
        ["ceph", "--", command @ ..] => ceph::run(command),
        ["fuse"] => fuse::run(),
        ["nfs"] => run_nfs(nfs::Effort::Normal, ""),
        ["nfs", "--run", script] => nfs::run_script(script.as_ref(), "4.2", "a b"),
        ["nfs", "--run", script, version, names @ ..] => {
            nfs::run_script(script.as_ref(), version, &names.join(" "))
        }
        ["nfs", "--rpcs"] => nfs::count_rpcs(),
        ["nfs", "--long"] => run_nfs(nfs::Effort::Long, ""),
        ["nfs", "--long", word] => run_nfs(nfs::Effort::Long, word),
        ["vm"] => vm::run(""),
        ["vm", "--run", script, word] => vm::run_script(script.as_ref(), word),
        ["vm", word] => vm::run(word),
        ["hosts"] => hosts::install(),
        ["lint"] => lint::run(),
        ["docs"] => docs::regenerate(),
        ["install", prefix] => install::run(prefix.as_ref()),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown command {arguments:?}\n\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
