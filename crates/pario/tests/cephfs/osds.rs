//! What the OSDs of the test cluster remember of their requests.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
};

use pario_driver::Direction;

/// A request that an OSD has served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) direction: Direction,
    /// Which object of the file.
    pub(crate) object: u64,
    /// Offset in the object.
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The requests that an OSD has served for a file, in the order in which they arrived.
pub(crate) fn requests(osd: u32, inode: u64) -> Vec<Request> {
    let answer = ask(osd, "dump_historic_ops");
    let mut found: Vec<_> = answer
        .split("\"description\": \"")
        .skip(1)
        .filter_map(|text| {
            let (description, rest) = text.split_once('"')?;
            let (_, time) = rest.split_once("\"initiated_at\": \"")?;
            let time = time.split_once('"')?.0.to_owned();
            Some((time, parse(description, inode)?))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.into_iter().map(|(_, request)| request).collect()
}

/// `osd_op(client.1.0:5 2.9 2:9d4d:::INODE.OBJECT:head [write OFFSET~LENGTH ...] ...)`
fn parse(description: &str, inode: u64) -> Option<Request> {
    let (_, rest) = description.split_once(&format!(":::{inode:x}."))?;
    let (object, rest) = rest.split_once(':')?;
    let (direction, rest) = match rest.split_once("[write ") {
        Some((_, rest)) => (Direction::Write, rest),
        None => (Direction::Read, rest.split_once("[read ")?.1),
    };
    let end = rest.find(|it: char| !it.is_ascii_digit() && it != '~')?;
    let (offset, len) = rest[..end].split_once('~')?;
    Some(Request {
        direction,
        object: u64::from_str_radix(object, 16).ok()?,
        offset: offset.parse().ok()?,
        len: len.parse().ok()?,
    })
}

/// The answer to a command that is sent to the admin socket of an OSD.
fn ask(osd: u32, command: &str) -> String {
    let configuration = std::env::var_os("CEPH_CONF").expect("CEPH_CONF is set");
    let directory = PathBuf::from(configuration).with_file_name("run");
    let mut socket = UnixStream::connect(directory.join(format!("osd.{osd}.asok"))).unwrap();
    write!(socket, "{{\"prefix\": \"{command}\"}}\0").unwrap();
    let mut len = [0; 4];
    socket.read_exact(&mut len).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(len) as usize];
    socket.read_exact(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn descriptions_of_requests() {
    let text = "osd_op(client.4144.0:57 2.9 2:9d4d9d8a:::10000000003.0000000a:head \
                [write 65536~4096 [fadvise_dontneed]] snapc 1=[] ondisk+write e15)";
    let request = Request {
        direction: Direction::Write,
        object: 10,
        offset: 65536,
        len: 4096,
    };
    assert_eq!(parse(text, 0x100_0000_0003), Some(request));
    assert_eq!(parse(text, 7), None);
    let text = "osd_op(client.1.0:5 2.9 2:9d:::7.00000000:head [read 0~10] e15)";
    assert_eq!(parse(text, 7).unwrap().direction, Direction::Read);
    assert_eq!(
        parse(
            "osd_op(client.1.0:5 2.9 2:9d:::7.00000000:head [stat] e1)",
            7
        ),
        None
    );
}
