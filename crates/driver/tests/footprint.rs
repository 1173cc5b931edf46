//! What the drivers leave in the host process: threads only once there is work,
//! with signals blocked, and close-on-exec descriptors. A single test, so that
//! nothing else runs in the process.

use std::{fs, path::Path, sync::mpsc};

use pario_driver::{
    Access, AsyncMethod, Batch, Create, Driver, Handle, IoMode, OpenHow, Outcome, Posix, Uring,
};

#[test]
fn footprint() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let path = directory.path().join("file");
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    let how = how.reads(IoMode::Direct).writes(IoMode::Buffered);
    let open = |driver: &dyn Driver, method| {
        let how = how.clone().asynchronous(method);
        driver.open(&path, &how).expect("the file can be opened")
    };

    let files = [
        open(&Posix::new(), AsyncMethod::Pool),
        open(&Uring, AsyncMethod::Uring),
    ];
    for file in &files {
        file.transfer(&Batch::write(0, b"data"))
            .into_result()
            .expect("writing works");
    }
    assert!(
        blocked_signals().is_empty(),
        "no threads before there is work"
    );

    files.iter().for_each(|file| write_in_background(&**file));
    let blocked = blocked_signals();
    assert_eq!(blocked.len(), 2, "one thread for each method");
    for mask in blocked {
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGUSR1,
            libc::SIGALRM,
            libc::SIGCHLD,
        ] {
            assert!(
                mask & (1 << (signal - 1)) != 0,
                "signal {signal} in {mask:#x}"
            );
        }
    }

    let flags = descriptor_flags(directory.path());
    assert!(
        flags.len() >= 6,
        "two files twice, a ring and a counter: {flags:?}"
    );
    for (name, flags) in flags {
        assert!(flags & libc::O_CLOEXEC as u32 != 0, "{name} survives exec");
    }
}

fn write_in_background(file: &dyn Handle) {
    let (sender, receiver) = mpsc::channel();
    let done = move |outcome: Outcome| sender.send(outcome.bytes).expect("heard");
    file.submit(Batch::write(0, b"data"), Box::new(done));
    assert_eq!(receiver.recv(), Ok(4));
}

/// The signal masks of our threads.
fn blocked_signals() -> Vec<u64> {
    let mut masks = Vec::new();
    for task in fs::read_dir("/proc/self/task").expect("available on Linux") {
        let task = task.expect("a thread").path();
        // A thread of the test harness may have exited.
        let Ok(status) = fs::read_to_string(task.join("status")) else {
            continue;
        };
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.expect("available on Linux").trim().to_owned()
        };
        if field("Name:").starts_with("pario-") {
            masks.push(u64::from_str_radix(&field("SigBlk:"), 16).expect("a mask"));
        }
    }
    masks
}

/// Our descriptors: of files in the directory, and without a file.
fn descriptor_flags(directory: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").expect("available on Linux") {
        let link = entry.expect("a descriptor").path();
        let Ok(target) = fs::read_link(&link) else {
            continue;
        };
        let name = target.display().to_string();
        if !target.starts_with(directory) && !name.starts_with("anon_inode:") {
            continue;
        }
        let number = link.file_name().expect("a number").to_owned();
        let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(number)).expect("info");
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .expect("flags");
        found.push((name, u32::from_str_radix(flags.trim(), 8).expect("octal")));
    }
    found
}
