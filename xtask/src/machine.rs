//! A virtual machine without KVM, image or root: Debian's user-mode Linux, which runs a kernel as a process on this
//! machine's own files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::shell::{self, Outcome, program};
use crate::tools;

/// Debian's packages that every machine needs.
const PACKAGES: [&str; 2] = ["user-mode-linux", "busybox-static"];

/// The scripts that run inside, and the names they have there.
const SCRIPTS: [(&str, &str); 3] = [
    ("init.sh", include_str!("../vm/init.sh")),
    ("guest.sh", include_str!("../vm/guest.sh")),
    ("on.sh", include_str!("../vm/on.sh")),
];

/// Shell functions of tests.
pub(crate) const PARTS: &str = include_str!("../vm/parts.sh");

/// Libraries that are preloaded: into user-mode Linux, and into ranks of MPICH.
const PRELOAD: (&str, &str) = ("preload", include_str!("../vm/preload.c"));
const FINALIZE: (&str, &str) = ("finalize", include_str!("../vm/finalize.c"));

/// The kernel and the packages, unpacked.
pub(crate) struct Machine {
    directory: PathBuf,
}

/// What runs in a machine. All scripts are for bash.
pub(crate) struct Guest<'a> {
    /// Variables of the scripts.
    pub(crate) settings: &'a [(&'a str, &'a str)],
    /// Starts servers and mounts file systems.
    pub(crate) setup: &'a str,
    /// Devices and other arguments of the kernel.
    pub(crate) devices: &'a [String],
    /// Its output is the result.
    pub(crate) script: &'a str,
    pub(crate) time_limit: Duration,
}

impl Machine {
    /// Downloads and unpacks what is missing of the packages, and those that they depend on unless they are installed
    /// here. The error says why there can be no machine here.
    pub(crate) fn prepare(packages: &[&str]) -> Outcome<Machine> {
        if !cfg!(target_arch = "x86_64") {
            return Err("user-mode Linux runs on x86-64 only".into());
        }
        let directory = shell::target_directory().join("vm");
        let machine = Machine { directory };
        let packages = [&PACKAGES[..], packages].concat();
        let complete = machine.directory.join("complete");
        let unpacked = fs::read_to_string(&complete).unwrap_or_default();
        let is_missing = |name: &&&str| !unpacked.lines().any(|line| line == **name);
        let missing: Vec<&str> = packages.iter().filter(is_missing).copied().collect();
        if !missing.is_empty() {
            machine.download(&missing)?;
            machine.unpack()?;
            let text = format!("{unpacked}{}\n", missing.join("\n"));
            fs::write(&complete, text).map_err(|error| cannot("write", &complete, &error))?;
        }
        machine.compile()?;
        Ok(machine)
    }

    fn root(&self) -> PathBuf {
        self.directory.join("root")
    }

    /// A file of a package, which was unpacked unless it is installed here.
    fn find(&self, file: &str) -> Outcome<PathBuf> {
        let places = [self.root().join(file), Path::new("/").join(file)];
        let found = places.into_iter().find(|place| place.exists());
        found.ok_or_else(|| format!("the packages contain no {file}"))
    }

    fn archives(&self) -> PathBuf {
        self.directory.join("archives")
    }

    fn library(&self, (name, _): (&str, &str)) -> PathBuf {
        self.directory.join(format!("{name}.so"))
    }

    /// The library that ranks of MPICH need to end.
    pub(crate) fn finalize(&self) -> PathBuf {
        self.library(FINALIZE)
    }

    fn download(&self, packages: &[&str]) -> Outcome {
        let partial = self.archives().join("partial");
        fs::create_dir_all(&partial).map_err(|error| cannot("make", &partial, &error))?;
        tools::apt_download(packages, &self.archives())
    }

    /// Unpacks as if installed: Debian's `/lib` is a link to `/usr/lib`.
    fn unpack(&self) -> Outcome {
        let root = self.root();
        for name in ["bin", "sbin", "lib", "lib64"] {
            let target = root.join("usr").join(name);
            fs::create_dir_all(&target).map_err(|error| cannot("make", &target, &error))?;
            let link = root.join(name);
            if !link.exists() {
                let linked = std::os::unix::fs::symlink(format!("usr/{name}"), &link);
                linked.map_err(|error| cannot("make", &link, &error))?;
            }
        }
        // There is nothing to unpack if everything is installed here.
        let unpack = "shopt -s nullglob; for f in \"$1\"/*.deb; do \
                      dpkg-deb --fsys-tarfile \"$f\" | tar -x --keep-directory-symlink -C \"$2\"; rm \"$f\"; done";
        let mut command = program("bash", &["-euo", "pipefail", "-c", unpack, "unpack"]);
        command.arg(self.archives()).arg(&root);
        shell::run(command)?;
        let modules = root.join("usr/lib/modules");
        if !modules.exists() {
            let linked = std::os::unix::fs::symlink("uml/modules", &modules);
            linked.map_err(|error| cannot("make", &modules, &error))?;
        }
        Ok(())
    }

    fn compile(&self) -> Outcome {
        for library @ (name, text) in [PRELOAD, FINALIZE] {
            let source = self.directory.join(format!("{name}.c"));
            fs::write(&source, text).map_err(|error| cannot("write", &source, &error))?;
            let mut command = program("cc", &["-O2", "-fPIC", "-shared", "-o"]);
            command.arg(self.library(library)).arg(&source);
            shell::run(command)?;
        }
        Ok(())
    }

    /// Runs a guest and returns what its script printed.
    pub(crate) fn run(&self, guest: &Guest<'_>) -> Outcome<String> {
        let run = self.directory.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&run).map_err(|error| cannot("make", &run, &error))?;
        let result = self.run_in(&run, guest);
        // Nothing in it is needed any more.
        let _ = fs::remove_dir_all(&run);
        result
    }

    fn run_in(&self, run: &Path, guest: &Guest<'_>) -> Outcome<String> {
        let setting = |(name, value): &(&str, &str)| format!("{name}='{value}'\n");
        let settings: String = guest.settings.iter().map(setting).collect();
        let files = [
            ("settings", settings.as_str()),
            ("setup.sh", guest.setup),
            ("command.sh", guest.script),
        ];
        for (name, text) in SCRIPTS.iter().copied().chain(files) {
            let path = run.join(name);
            fs::write(&path, text).map_err(|error| cannot("write", &path, &error))?;
        }
        let console = run.join("console");
        let ended = self.boot(run, &console, guest)?;
        let output = fs::read_to_string(run.join("output")).unwrap_or_default();
        let status = fs::read_to_string(run.join("status")).unwrap_or_default();
        match status.trim() {
            "0" => Ok(output),
            "" => {
                let console = fs::read_to_string(&console).unwrap_or_default();
                let lines: Vec<_> = console.lines().collect();
                let last = lines[lines.len().saturating_sub(15)..].join("\n");
                Err(format!(
                    "the virtual machine ended without a result ({ended}); output:\n{output}\nconsole:\n{last}"
                ))
            }
            code => Err(format!("the tests failed with {code}:\n{output}")),
        }
    }

    fn boot(&self, run: &Path, console: &Path, guest: &Guest<'_>) -> Outcome<String> {
        let busybox = self.find("bin/busybox")?;
        let console =
            fs::File::create(console).map_err(|error| cannot("write", console, &error))?;
        let errors = console
            .try_clone()
            .map_err(|error| format!("cannot share the console: {error}"))?;
        let mut command = Command::new("timeout");
        command
            .arg("--kill-after=5")
            .arg(guest.time_limit.as_secs().to_string())
            .arg(self.find("usr/bin/linux.uml")?)
            .args(["mem=2G", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
            .args(["panic=1", "con=null", "con0=null,fd:1", "ssl=null"])
            .args(guest.devices)
            .args([
                format!("uml_dir={}/", run.display()),
                format!("init={}", busybox.display()),
                // Variables of the first process, and its arguments.
                format!("PACKAGES={}", self.root().display()),
                format!("RUN={}", run.display()),
                format!("BUSYBOX={}", busybox.display()),
                "--".to_owned(),
                "sh".to_owned(),
                run.join("init.sh").display().to_string(),
            ])
            .env("LD_PRELOAD", self.library(PRELOAD))
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors);
        let status = command
            .status()
            .map_err(|error| format!("cannot start the virtual machine: {error}"))?;
        Ok(status.to_string())
    }
}

fn cannot(action: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}
