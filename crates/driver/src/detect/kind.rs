//! Classification of file systems by magic number and type name.

use crate::FileSystem;

/// The kind of file system. The type name from the mount table decides where
/// the magic number is ambiguous.
pub(super) fn classify(magic: u32, type_name: &str) -> FileSystem {
    match magic {
        0xef53 => FileSystem::Ext,
        0x5846_5342 => FileSystem::Xfs,
        0x9123_683e => FileSystem::Btrfs,
        0x2fc1_2fc1 => FileSystem::Zfs,
        0xf2f5_2010 => FileSystem::F2fs,
        // tmpfs, ramfs, hugetlbfs
        0x0102_1994 | 0x8584_58f6 | 0x9584_58f6 => FileSystem::Tmpfs,
        0x794c_7630 => FileSystem::Overlay,
        0x6969 => FileSystem::Nfs,
        // smb, cifs, smb2
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => FileSystem::Smb,
        0x0bd0_0bd0 => FileSystem::Lustre,
        0x4750_4653 => FileSystem::Gpfs,
        0x00c3_6400 => FileSystem::Ceph,
        0x1983_0326 => FileSystem::BeeGfs,
        0xaad7_aaea => FileSystem::PanFs,
        0x2003_0528 => FileSystem::OrangeFs,
        0x0102_1997 => FileSystem::HostShare,
        0x6573_5546 => fuse(type_name),
        _ => by_name(type_name).unwrap_or_else(|| FileSystem::Other(other(magic, type_name))),
    }
}

/// FUSE has a single magic number; the mount table names the file system behind
/// it.
fn fuse(type_name: &str) -> FileSystem {
    match type_name.strip_prefix("fuse.").unwrap_or_default() {
        "glusterfs" => FileSystem::Gluster,
        _ if type_name == "virtiofs" => FileSystem::HostShare,
        subtype => FileSystem::Fuse {
            subtype: subtype.to_owned(),
        },
    }
}

/// Clients that are not in the mainline kernel and have changed their magic
/// numbers.
fn by_name(type_name: &str) -> Option<FileSystem> {
    match type_name {
        "lustre" => Some(FileSystem::Lustre),
        "gpfs" => Some(FileSystem::Gpfs),
        "beegfs" => Some(FileSystem::BeeGfs),
        "panfs" => Some(FileSystem::PanFs),
        "pvfs2" => Some(FileSystem::OrangeFs),
        "zfs" => Some(FileSystem::Zfs),
        _ => None,
    }
}

fn other(magic: u32, type_name: &str) -> String {
    if type_name.is_empty() {
        format!("type {magic:#x}")
    } else {
        type_name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Coherence;

    #[test]
    fn magic_numbers_and_type_names() {
        assert_eq!(classify(0xef53, "ext4"), FileSystem::Ext);
        assert_eq!(classify(0x6573_5546, "fuse.glusterfs"), FileSystem::Gluster);
        let sshfs = classify(0x6573_5546, "fuse.sshfs");
        assert_eq!(sshfs.to_string(), "fuse.sshfs");
        assert_eq!(sshfs.coherence(), Coherence::Unknown);
        // DAOS's dfuse, which caches on each node.
        let dfuse = classify(0x6573_5546, "fuse.daos");
        assert_eq!(dfuse.to_string(), "fuse.daos");
        assert_eq!(dfuse.coherence(), Coherence::Unknown);
        assert_eq!(classify(0x6573_5546, "fuseblk").to_string(), "fuse");
        assert_eq!(classify(0x1234, "gpfs"), FileSystem::Gpfs);
        assert_eq!(classify(0x1234, "newfs").to_string(), "newfs");
        assert_eq!(classify(0x1234, "").to_string(), "type 0x1234");
        assert_eq!(classify(0x6969, "nfs4").coherence(), Coherence::WithinNode);
    }
}
