//! BeeGFS through a double whose structures are those of `beegfs_ioctl.h`.

use std::{fs, path::Path, sync::Arc};

use crate::{
    Access, Coherence, Create, Creation, Driver, FileSystem, LockReach, OpenHow, Posix,
    ServerCount, StripingRequest, doubles::beegfs::BeegfsDouble,
};

fn driver(double: &Arc<BeegfsDouble>) -> Posix {
    Posix::new()
        .assuming(FileSystem::BeeGfs)
        .with_control(double.clone())
}

fn how(unit: u64, servers: u32) -> OpenHow {
    let request = StripingRequest {
        servers: Some(ServerCount::Exactly(servers)),
        unit: Some(unit),
        ..StripingRequest::default()
    };
    OpenHow::new(Access::ReadWrite)
        .create(Create::IfMissing)
        .striping(request)
}

#[test]
fn new_files_have_the_requested_stripes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double = Arc::new(BeegfsDouble::new(directory.path()));
    let file = driver(&double).open(&path, &how(1 << 20, 3)).unwrap();
    assert!(matches!(file.creation(), Some(Creation::Set { .. })));
    let striping = file.facts().striping.unwrap();
    assert_eq!((striping.unit, striping.count), (1 << 20, 3));
    // An existing file keeps its stripes.
    let again = driver(&double).open(&path, &how(1 << 21, 2)).unwrap();
    assert_eq!(again.creation(), None);
    assert_eq!(again.facts().striping, Some(striping));
    let exclusive = how(1 << 20, 3).create(Create::Exclusive);
    let error = driver(&double).open(&path, &exclusive).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn without_hints_nothing_is_set() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double = Arc::new(BeegfsDouble::new(directory.path()));
    let how = OpenHow {
        striping: StripingRequest::default(),
        ..how(0, 0)
    };
    let file = driver(&double).open(&path, &how).unwrap();
    assert_eq!(file.creation(), None);
    assert_eq!(double.created(), 0);
    assert_eq!(file.facts().striping.unwrap().unit, 512 << 10);
}

#[test]
fn impossible_stripes_are_refused_and_the_file_exists() {
    let directory = tempfile::tempdir().unwrap();
    let double = Arc::new(BeegfsDouble::new(directory.path()));
    for (index, unit) in [4096, 3 << 20, 1 << 40].into_iter().enumerate() {
        let path = directory.path().join(index.to_string());
        let file = driver(&double).open(&path, &how(unit, 3)).unwrap();
        let Some(Creation::Refused { reason }) = file.creation() else {
            panic!("{:?}", file.creation());
        };
        assert!(reason.contains(&unit.to_string()), "{reason}");
        assert!(fs::exists(Path::new(&path)).unwrap());
    }
}

/// By default each client has write-back buffers and locks of its own.
#[test]
fn what_other_nodes_see_follows_from_the_settings_of_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let settings = directory.path().join("settings");
    let facts = |double: BeegfsDouble| {
        let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
        let file = driver(&Arc::new(double)).open(&path, &how).unwrap();
        (file.facts().coherence, file.facts().locks)
    };
    let double = || BeegfsDouble::new(directory.path());
    assert_eq!(facts(double()), (Coherence::WithinNode, LockReach::Node));
    for (text, expected) in [
        ("", (Coherence::WithinNode, LockReach::Node)),
        (
            "tuneFileCacheType = none\ntuneUseGlobalFileLocks = 1\n",
            (Coherence::Everywhere, LockReach::Everywhere),
        ),
    ] {
        fs::write(&settings, text).unwrap();
        let found = facts(double().with_configuration(&settings));
        assert_eq!(found, expected, "{text:?}");
    }
}
