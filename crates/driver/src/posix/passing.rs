//! Descriptions handed from one rank to others of the same node, as control messages of local
//! sockets.
//!
//! A socket has a name that the kernel chooses, in no file system. Any process of the node can
//! send to it, so messages without the token of the receiver are discarded.
//!
//! This file may contain `unsafe`: sockets through libc.
#![allow(unsafe_code)]

use std::{
    io,
    mem::{MaybeUninit, offset_of, size_of},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use libc::{c_int, c_void};

/// Random bytes that only the ranks of a file know.
const TOKEN_BYTES: usize = 16;

/// Bytes before the name in a socket's address.
const NAME_AT: usize = offset_of!(libc::sockaddr_un, sun_path);

/// One open description of a file for several ranks, and what they coordinate their writes by.
#[derive(Debug)]
pub struct SharedDescription {
    pub(super) file: OwnedFd,
    /// A file in memory, on which the ranks take locks.
    pub(super) lock_file: OwnedFd,
}

/// Where one rank receives a [`SharedDescription`].
#[derive(Debug)]
pub struct Mailbox {
    socket: OwnedFd,
    address: Vec<u8>,
}

fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    checked(fd as isize)?;
    // SAFETY: just created, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn unnamed() -> libc::sockaddr_un {
    // SAFETY: plain integers, for which zero is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    address
}

/// Space for a control message with two descriptors, aligned as its header is.
#[repr(C)]
union Control {
    header: libc::cmsghdr,
    bytes: [u8; 64],
}

/// The length of a control message with two descriptors, without padding at its end.
fn control_bytes() -> u32 {
    // SAFETY: only computes a number.
    unsafe { libc::CMSG_LEN(2 * size_of::<c_int>() as u32) }
}

impl Mailbox {
    /// A mailbox that nobody knows yet.
    pub fn new() -> io::Result<Mailbox> {
        let socket = socket()?;
        let mut address = unnamed();
        let mut len = NAME_AT as libc::socklen_t;
        // SAFETY: an address without a name, for which the kernel chooses one; then its address
        // is stored in a variable of sufficient size.
        unsafe {
            let fd = socket.as_raw_fd();
            checked(libc::bind(fd, (&raw const address).cast(), len) as isize)?;
            len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
            checked(libc::getsockname(fd, (&raw mut address).cast(), &raw mut len) as isize)?;
        }
        let name = address.sun_path[..(len as usize).saturating_sub(NAME_AT)].iter();
        let mut bytes = vec![0u8; TOKEN_BYTES];
        // SAFETY: the buffer has the given length.
        let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), TOKEN_BYTES, 0) };
        if checked(filled)? != TOKEN_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend(name.map(|&byte| byte as u8));
        Ok(Mailbox {
            socket,
            address: bytes,
        })
    }

    /// What the sender needs to know: token and name.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// What has been sent. Does not wait: the sender has finished by now.
    pub fn receive(self) -> io::Result<SharedDescription> {
        loop {
            let (token, descriptors) = self.next()?;
            if token != self.address[..TOKEN_BYTES] {
                continue;
            }
            let [file, lock_file] = <[OwnedFd; 2]>::try_from(descriptors)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            return Ok(SharedDescription { file, lock_file });
        }
    }

    /// The token of the next message, and its descriptors.
    fn next(&self) -> io::Result<([u8; TOKEN_BYTES], Vec<OwnedFd>)> {
        let mut token = [0u8; TOKEN_BYTES];
        let mut part = libc::iovec {
            iov_base: token.as_mut_ptr().cast(),
            iov_len: TOKEN_BYTES,
        };
        let mut control = MaybeUninit::<Control>::zeroed();
        // SAFETY: plain integers and pointers, for which zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        // SAFETY: all parts of the message outlive the call and have the given lengths.
        checked(unsafe {
            libc::recvmsg(
                self.socket.as_raw_fd(),
                &raw mut message,
                libc::MSG_CMSG_CLOEXEC,
            )
        })?;
        let mut descriptors = Vec::new();
        // SAFETY: the kernel has filled in the control messages, which the macros walk over;
        // the descriptors in them are new and have no other owner.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(&raw const message);
            while let Some(found) = header.as_ref() {
                if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                    let data = libc::CMSG_DATA(header).cast::<c_int>();
                    let bytes = found.cmsg_len - libc::CMSG_LEN(0) as usize;
                    for at in 0..bytes / size_of::<c_int>() {
                        let fd = data.add(at).read_unaligned();
                        descriptors.push(OwnedFd::from_raw_fd(fd));
                    }
                }
                header = libc::CMSG_NXTHDR(&raw const message, header);
            }
        }
        Ok((token, descriptors))
    }
}

impl SharedDescription {
    /// Sends it to the mailbox with this address. Does not wait.
    pub fn send(&self, address: &[u8]) -> io::Result<()> {
        let mut target = unnamed();
        let (token, name) = address
            .split_at_checked(TOKEN_BYTES)
            .filter(|(_, name)| (1..=target.sun_path.len()).contains(&name.len()))
            .ok_or(io::ErrorKind::InvalidInput)?;
        for (place, byte) in target.sun_path.iter_mut().zip(name) {
            *place = *byte as libc::c_char;
        }
        let mut part = libc::iovec {
            iov_base: token.as_ptr().cast_mut().cast::<c_void>(),
            iov_len: token.len(),
        };
        let mut control = MaybeUninit::<Control>::zeroed();
        // SAFETY: plain integers and pointers, for which zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut target).cast();
        message.msg_namelen = (NAME_AT + name.len()) as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control_bytes() as _;
        let descriptors = [self.file.as_raw_fd(), self.lock_file.as_raw_fd()];
        let socket = socket()?;
        // SAFETY: the control buffer has space for the header and two descriptors; all parts of
        // the message outlive the call and have the given lengths.
        checked(unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = control_bytes() as _;
            libc::CMSG_DATA(header)
                .cast::<[c_int; 2]>()
                .write_unaligned(descriptors);
            libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
        })
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posix::sys;
    use std::os::fd::AsFd;

    fn described() -> SharedDescription {
        SharedDescription {
            file: sys::memory_file(c"one").unwrap(),
            lock_file: sys::memory_file(c"other").unwrap(),
        }
    }

    fn inode(fd: &OwnedFd) -> u64 {
        sys::identity(fd.as_fd()).unwrap().inode
    }

    #[test]
    fn descriptions_arrive_in_order() {
        let mailbox = Mailbox::new().unwrap();
        let sent = described();
        sent.send(mailbox.address()).unwrap();
        let received = mailbox.receive().unwrap();
        assert_eq!(inode(&sent.file), inode(&received.file));
        assert_eq!(inode(&sent.lock_file), inode(&received.lock_file));
        assert_ne!(sent.file.as_raw_fd(), received.file.as_raw_fd());
    }

    #[test]
    fn messages_of_strangers_are_discarded() {
        let mailbox = Mailbox::new().unwrap();
        let mut guessed = mailbox.address().to_vec();
        guessed[3] ^= 1;
        described().send(&guessed).unwrap();
        let sent = described();
        sent.send(mailbox.address()).unwrap();
        let received = mailbox.receive().unwrap();
        assert_eq!(inode(&sent.file), inode(&received.file));
    }

    #[test]
    fn nothing_sent_is_an_error_at_once() {
        let mailbox = Mailbox::new().unwrap();
        let error = mailbox.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let gone = Mailbox::new().unwrap().address().to_vec();
        described().send(&gone).unwrap_err();
        described().send(&[0; 3]).unwrap_err();
    }
}
