//! Requests as the OSDs of a Ceph cluster remember them: the records of what each has done, through its
//! admin socket.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use pario_driver::Direction;

use super::request::Request;

/// The admin sockets of OSDs.
#[derive(Debug)]
pub(super) struct Records(BTreeMap<u64, PathBuf>);

impl Records {
    /// Those in a directory.
    pub(super) fn find(directory: &Path) -> io::Result<Records> {
        let mut sockets = BTreeMap::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let number = path.file_name().and_then(|name| osd(name.to_str()?));
            if let Some(number) = number {
                sockets.insert(number, path);
            }
        }
        match sockets.is_empty() {
            true => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it has no socket of an OSD, such as osd.0.asok",
            )),
            false => Ok(Records(sockets)),
        }
    }

    /// The requests for a file that each OSD has carried out, in the order of their arrival.
    pub(super) fn requests(&self, inode: u64) -> io::Result<Vec<Request>> {
        let mut requests = Vec::new();
        for (osd, socket) in &self.0 {
            let answer = ask(socket, "dump_historic_ops")?;
            requests.extend(of_answer(&answer, *osd, inode)?);
        }
        Ok(requests)
    }
}

/// The number in `osd.0.asok`, `ceph-osd.0.asok` or `osd.0.1234.asok`.
fn osd(name: &str) -> Option<u64> {
    let (_, rest) = name.strip_suffix(".asok")?.split_once("osd.")?;
    rest.split('.').next()?.parse().ok()
}

fn of_answer(answer: &[u8], osd: u64, inode: u64) -> io::Result<Vec<Request>> {
    let answer: serde_json::Value = serde_json::from_slice(answer)?;
    let mut found: Vec<_> = answer["ops"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|operation| {
            let request = parse(operation["description"].as_str()?, osd, inode)?;
            Some((operation["initiated_at"].as_str()?, request))
        })
        .collect();
    found.sort_by_key(|(time, _)| *time);
    Ok(found.into_iter().map(|(_, request)| request).collect())
}

/// `osd_op(client.1.0:5 2.9 2:9d4d:::INODE.OBJECT:head [write OFFSET~LENGTH ...] ...)`
fn parse(description: &str, server: u64, inode: u64) -> Option<Request> {
    let (_, rest) = description.split_once(&format!(":::{inode:x}."))?;
    let (object, rest) = rest.split_once(':')?;
    let (direction, rest) = match rest.split_once("[write ") {
        Some((_, rest)) => (Direction::Write, rest),
        None => (Direction::Read, rest.split_once("[read ")?.1),
    };
    let end = rest.find(|it: char| !it.is_ascii_digit() && it != '~')?;
    let (offset, len) = rest[..end].split_once('~')?;
    Some(Request {
        server,
        direction,
        object: u64::from_str_radix(object, 16).ok()?,
        offset: offset.parse().ok()?,
        len: len.parse().ok()?,
    })
}

/// The answer to a command.
fn ask(socket: &Path, command: &str) -> io::Result<Vec<u8>> {
    let mut socket = UnixStream::connect(socket)?;
    write!(socket, "{{\"prefix\": \"{command}\"}}\0")?;
    let mut len = [0; 4];
    socket.read_exact(&mut len)?;
    let mut answer = vec![0; u32::from_be_bytes(len) as usize];
    socket.read_exact(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_known_by_their_names() {
        let names = ["osd.0.asok", "ceph-osd.12.asok", "osd.3.4711.asok"];
        assert_eq!(names.map(osd), [Some(0), Some(12), Some(3)]);
        assert_eq!(["mds.a.asok", "osd.1", "osd.x.asok"].map(osd), [None; 3]);
    }

    #[test]
    fn records_are_in_the_order_of_arrival() {
        let write = "osd_op(client.4144.0:57 2.9 2:9d4d9d8a:::10000000003.0000000a:head \
                     [write 65536~4096 [fadvise_dontneed]] snapc 1=[] ondisk+write e15)";
        let read = "osd_op(client.1.0:5 2.9 2:9d:::10000000003.00000000:head [read 0~10] e15)";
        let other = "osd_op(client.1.0:5 2.9 2:9d:::7.00000000:head [read 0~10] e15)";
        let operation = |description: &str, time: &str| {
            format!("{{\"description\": \"{description}\", \"initiated_at\": \"{time}\"}}")
        };
        let answer = format!(
            "{{\"ops\": [{}, {}, {}, {}]}}",
            operation(write, "2026-01-01T00:00:02"),
            operation(read, "2026-01-01T00:00:01"),
            operation(other, "2026-01-01T00:00:00"),
            operation("osd_op(x :::10000000003.00000000:head [stat] e1)", "2026"),
        );
        let found = of_answer(answer.as_bytes(), 5, 0x100_0000_0003).unwrap();
        let expected = [
            (Direction::Read, 0, 0, 10),
            (Direction::Write, 10, 65536, 4096),
        ];
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.direction, it.object, it.offset, it.len))
            .collect();
        assert_eq!(found, expected);
    }
}
