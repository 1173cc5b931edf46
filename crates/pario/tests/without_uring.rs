//! A kernel that does not allow io_uring, as in most containers: hints that ask
//! for it are dropped with a warning, and so is the driver's prefix. A process
//! of its own, because it gives up the right for good.
#![allow(unsafe_code)] // a filter of system calls
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::{Arc, Mutex};

use common::{NEW, alone, directory, every, info};
use pario::{File, set_warning_handler};
use pario_driver::require_uring;

/// Makes `io_uring_setup` fail in this thread and those that it starts.
fn forbid_uring() {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let errno = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        // The number of the system call comes first.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_io_uring_setup as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, errno),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program before the calls return.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
            0
        );
    }
}

/// A name, hints, and how many warnings they bring.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], usize);

#[test]
fn what_asks_for_io_uring_works_without_it() {
    forbid_uring();
    assert!(require_uring().is_err(), "io_uring is forbidden");
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = warnings.clone();
    set_warning_handler(move |warning| seen.lock().unwrap().push(warning.to_owned()));
    let directory = directory();
    let plain = directory.path().join("file").display().to_string();
    let prefixed = format!("uring:{plain}");
    let cases: [Case<'_>; 5] = [
        (&plain, &[], 0),
        (&plain, &[("pario_async", "uring")], 1),
        (&plain, &[("pario_driver", "uring")], 1),
        (
            &plain,
            &[("pario_driver", "uring"), ("pario_async", "uring")],
            1,
        ),
        (&prefixed, &[], 0),
    ];
    for (name, hints, warned) in cases {
        alone(|comm| {
            let file = File::open(&comm, name, NEW, &info(hints))?;
            file.set_view(&every(20, 10, 0))?;
            let mine = vec![7u8; 100];
            file.iwrite_at(0, mine.clone())?.wait()?;
            file.write_at(100, &mine)?;
            let (status, back) = file.iread_at(0, vec![0u8; 200])?.wait()?;
            assert_eq!((status.bytes(), back), (200, vec![7; 200]));
            file.close()
        });
        let told = std::mem::take(&mut *warnings.lock().unwrap());
        assert_eq!(told.len(), warned, "{name} {hints:?}: {told:?}");
    }
}
