//! Files that are striped over servers.

use std::ops::Range;

/// Round-robin striping over servers, from byte 0 of the file on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Striping {
    /// Bytes in a row on one server; not zero.
    pub unit: u64,
    /// Servers; not zero.
    pub count: u64,
}

/// A part of the file on one server (Chaarawi 2011's fcache).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPart {
    /// Which server, from 0 on.
    pub server: u64,
    /// Where it starts in the server's own object.
    pub local_offset: u64,
    /// Its length.
    pub len: u64,
}

impl Striping {
    /// The server of a byte.
    pub fn server_of(&self, file_byte: u64) -> u64 {
        file_byte / self.unit % self.count
    }

    /// Which servers hold a range of the file, and where.
    pub fn parts(self, file: Range<u64>) -> impl Iterator<Item = ServerPart> {
        let mut at = file.start;
        std::iter::from_fn(move || {
            if at >= file.end {
                return None;
            }
            let stripe = at / self.unit;
            let within = at % self.unit;
            let len = (self.unit - within).min(file.end - at);
            at += len;
            Some(ServerPart {
                server: stripe % self.count,
                local_offset: stripe / self.count * self.unit + within,
                len,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_name_server_and_place() {
        let striping = Striping { unit: 10, count: 3 };
        let parts: Vec<_> = striping.parts(25..62).collect();
        let expected = [(2, 5, 5), (0, 10, 10), (1, 10, 10), (2, 10, 10), (0, 20, 2)];
        let expected = expected.map(|(server, local_offset, len)| ServerPart {
            server,
            local_offset,
            len,
        });
        assert_eq!(parts, expected);
        assert_eq!(striping.server_of(29), 2);
    }
}
