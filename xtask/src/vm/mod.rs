//! `cargo xtask vm`: pario on file systems of the kernel that are mounted twice, as on two nodes, in a virtual machine.

mod virtiofs;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::artifacts;
use crate::machine::{Guest, Machine, PARTS};
use crate::shell::{self, Outcome};
use virtiofs::Servers;

/// For one part of a machine's script, and for all of it. The machine has one processor, which may be shared.
const PART_SECONDS: u32 = 1200;
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// A file system, which its setup mounts as `/mnt/a` and `/mnt/b`.
struct Mounts {
    name: &'static str,
    /// What the client caches, as the setup's mount option or the server's says.
    cache: &'static str,
    packages: &'static [&'static str],
    setup: &'static str,
    /// The test of the package `pario` that these mounts pass, and the variable that names them.
    test: (&'static str, &'static str),
}

const INCOHERENT: (&str, &str) = ("fuse_mounts", "PARIO_FUSE_MOUNTS");
const COHERENT: (&str, &str) = ("coherent_mounts", "PARIO_COHERENT_MOUNTS");

const fn ninep(cache: &'static str) -> Mounts {
    Mounts {
        name: "9p",
        cache,
        packages: &["diod"],
        setup: include_str!("../../vm/9p.sh"),
        test: INCOHERENT,
    }
}

const fn virtiofs(cache: &'static str) -> Mounts {
    Mounts {
        name: VIRTIOFS,
        cache,
        packages: &[],
        setup: include_str!("../../vm/virtiofs.sh"),
        test: INCOHERENT,
    }
}

const VIRTIOFS: &str = "virtiofs";

const ALL: [Mounts; 7] = [
    ninep("none"),
    ninep("mmap"),
    ninep("loose"),
    Mounts {
        name: "SMB",
        cache: "strict",
        packages: &["samba"],
        setup: include_str!("../../vm/smb.sh"),
        test: INCOHERENT,
    },
    virtiofs("auto"),
    virtiofs("never"),
    Mounts {
        name: "CephFS",
        cache: "",
        packages: &["ceph-mon", "ceph-osd", "ceph-mds", "ceph-common"],
        setup: include_str!("../../vm/ceph.sh"),
        test: COHERENT,
    },
];

/// Runs the tests on the file systems whose titles contain a word, and prints what they print.
pub(crate) fn run(word: &str) -> Outcome {
    let mut failures = Vec::new();
    for mounts in chosen(word)? {
        let started = Instant::now();
        println!("{}", mounts.title());
        match mounts.run(&mounts.script()?) {
            Ok(output) => print!("{output}"),
            Err(failure) => {
                println!("{failure}");
                failures.push(mounts.title());
            }
        }
        println!("took {:.0} s", started.elapsed().as_secs_f64());
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failures.join("; "))),
    }
}

/// Runs a script for bash on the file systems whose titles contain a word.
pub(crate) fn run_script(script: &Path, word: &str) -> Outcome {
    let text = fs::read_to_string(script)
        .map_err(|error| format!("cannot read {}: {error}", script.display()))?;
    for mounts in chosen(word)? {
        println!("{}", mounts.title());
        print!("{}", mounts.run(&text)?);
    }
    Ok(())
}

fn chosen(word: &str) -> Outcome<Vec<&'static Mounts>> {
    let chosen: Vec<_> = ALL.iter().filter(|it| it.title().contains(word)).collect();
    match chosen.is_empty() {
        false => Ok(chosen),
        true => {
            let titles: Vec<_> = ALL.iter().map(Mounts::title).collect();
            Err(format!(
                "no file system `{word}`; there are {}",
                titles.join(", ")
            ))
        }
    }
}

impl Mounts {
    fn title(&self) -> String {
        match self.cache {
            "" => self.name.to_owned(),
            cache => format!("{} cache={cache}", self.name),
        }
    }

    fn run(&self, script: &str) -> Outcome<String> {
        let machine = Machine::prepare(self.packages)?;
        let servers = match self.name {
            VIRTIOFS => Some(Servers::start(&scratch(), self.cache)?),
            _ => None,
        };
        let devices = servers.as_ref().map(Servers::devices);
        machine.run(&Guest {
            settings: &[("CACHE", self.cache)],
            setup: self.setup,
            devices: &devices.unwrap_or_default(),
            script,
            time_limit: TIME_LIMIT,
        })
    }

    fn script(&self) -> Outcome<String> {
        let (test, variable) = self.test;
        let test = artifacts::test_program("pario", test)?;
        let programs = artifacts::compiled_mounted_programs()?;
        Ok(format!(
            "{PARTS}export PART_SECONDS={PART_SECONDS} {variable}=/mnt/a:/mnt/b\n\
             part tests {} --ignored --test-threads=1\n\
             part programs {} --test-threads=1 {}\n\
             end_parts\n",
            test.display(),
            programs.display(),
            artifacts::MOUNTED,
        ))
    }
}

fn scratch() -> PathBuf {
    shell::target_directory().join(format!("vm/virtiofs-{}", std::process::id()))
}
