//! The smallest ELF shared library that the dynamic linker loads: headers, names, and a dynamic
//! section that lists the libraries it needs.
//!
//! Numbers follow the System V ABI, chapters 4 and 5. The file is one loaded segment, writable
//! because linkers store addresses in the dynamic section, and has no section headers: those are
//! for the link editor.

use std::fmt;

const MAGIC: [u8; 4] = *b"\x7fELF";
const CLASS_AT: usize = 4;
const CLASS_64: u8 = 2;
const DATA_AT: usize = 5;
const VERSION: u8 = 1;

/// The byte order of this machine, in ELF's encoding.
const DATA_HERE: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

const IDENTIFICATION_BYTES: usize = 16;
const HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: u64 = 56;
const DYNAMIC_ENTRY_BYTES: u64 = 16;
const SYMBOL_BYTES: u64 = 24;

/// Offsets of type, machine and flags in the header.
const TYPE_AT: usize = 16;
const MACHINE_AT: usize = 18;
const FLAGS_AT: usize = 48;
const TYPE_SHARED: u16 = 3;

const SEGMENT_LOAD: u32 = 1;
const SEGMENT_DYNAMIC: u32 = 2;
const SEGMENT_STACK: u32 = 0x6474_e551;
const READ_WRITE: u32 = 4 | 2;

const TAG_END: u64 = 0;
const TAG_NEEDED: u64 = 1;
const TAG_HASH: u64 = 4;
const TAG_STRINGS: u64 = 5;
const TAG_SYMBOLS: u64 = 6;
const TAG_STRINGS_BYTES: u64 = 10;
const TAG_SYMBOL_BYTES: u64 = 11;
const TAG_NAME: u64 = 14;

/// The largest page size in use.
const PAGE_MAX: u64 = 0x1_0000;

/// A hash table without symbols: one bucket, one chain (of the symbol that stands for none).
const EMPTY_HASH: [u32; 4] = [1, 1, 0, 0];

/// The machine that a library is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    machine: u16,
    flags: u32,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.machine {
            62 => f.write_str("x86-64"),
            183 => f.write_str("AArch64"),
            21 => f.write_str("64-bit PowerPC"),
            243 => f.write_str("RISC-V"),
            machine => write!(f, "machine {machine}"),
        }
    }
}

impl Kind {
    /// The machine of a library, from its contents.
    pub(super) fn of(file: &[u8]) -> Result<Kind, String> {
        if file.len() < HEADER_BYTES as usize || file[..4] != MAGIC {
            return Err("is not an ELF file".to_owned());
        }
        if file[CLASS_AT] != CLASS_64 || file[DATA_AT] != DATA_HERE {
            return Err("is not a 64-bit library of this machine's byte order".to_owned());
        }
        let half = |at: usize| u16::from_ne_bytes([file[at], file[at + 1]]);
        if half(TYPE_AT) != TYPE_SHARED {
            return Err("is not a shared library".to_owned());
        }
        let flags = file[FLAGS_AT..FLAGS_AT + 4].try_into();
        Ok(Kind {
            machine: half(MACHINE_AT),
            flags: u32::from_ne_bytes(flags.expect("four bytes were taken")),
        })
    }
}

/// An empty library of that name that needs others, given by their paths, in that order.
pub(super) fn library(kind: Kind, name: &str, needed: &[&str]) -> Result<Vec<u8>, String> {
    let mut strings = Strings::default();
    let name = strings.add(name)?;
    let needed = needed.iter().map(|it| strings.add(it));
    let needed = needed.collect::<Result<Vec<u64>, String>>()?;
    let segments = 3;
    let hash = HEADER_BYTES + segments * PROGRAM_HEADER_BYTES;
    let symbols = hash + size_of_val(&EMPTY_HASH) as u64;
    let dynamic = symbols + SYMBOL_BYTES;
    let mut entries: Vec<(u64, u64)> = needed.iter().map(|at| (TAG_NEEDED, *at)).collect();
    let fixed = 7;
    let text = dynamic + (entries.len() as u64 + fixed) * DYNAMIC_ENTRY_BYTES;
    entries.extend([
        (TAG_NAME, name),
        (TAG_HASH, hash),
        (TAG_STRINGS, text),
        (TAG_SYMBOLS, symbols),
        (TAG_STRINGS_BYTES, strings.0.len() as u64),
        (TAG_SYMBOL_BYTES, SYMBOL_BYTES),
        (TAG_END, 0),
    ]);
    let end = text + strings.0.len() as u64;

    let mut file = Writer(header(kind, segments as u16));
    file.segment(SEGMENT_LOAD, 0..end, PAGE_MAX);
    file.segment(SEGMENT_DYNAMIC, dynamic..text, size_of::<u64>() as u64);
    file.segment(SEGMENT_STACK, 0..0, 1);
    for word in EMPTY_HASH {
        file.word(word);
    }
    file.0.resize(dynamic as usize, 0);
    for (tag, value) in entries {
        file.double(tag);
        file.double(value);
    }
    file.0.extend(strings.0);
    debug_assert_eq!(file.0.len() as u64, end);
    Ok(file.0)
}

fn header(kind: Kind, segments: u16) -> Vec<u8> {
    let mut file = Writer(MAGIC.to_vec());
    file.0.extend([CLASS_64, DATA_HERE, VERSION]);
    file.0.resize(IDENTIFICATION_BYTES, 0);
    file.half(TYPE_SHARED);
    file.half(kind.machine);
    file.word(u32::from(VERSION));
    file.double(0); // no entry point
    file.double(HEADER_BYTES); // program headers follow
    file.double(0); // no section headers
    file.word(kind.flags);
    file.half(HEADER_BYTES as u16);
    file.half(PROGRAM_HEADER_BYTES as u16);
    file.half(segments);
    file.half(0); // size, number and names of section headers
    file.half(0);
    file.half(0);
    file.0
}

/// Bytes of a file, numbers in this machine's order.
struct Writer(Vec<u8>);

impl Writer {
    fn half(&mut self, number: u16) {
        self.0.extend(number.to_ne_bytes());
    }

    fn word(&mut self, number: u32) {
        self.0.extend(number.to_ne_bytes());
    }

    fn double(&mut self, number: u64) {
        self.0.extend(number.to_ne_bytes());
    }

    /// A program header; addresses in memory are those in the file.
    fn segment(&mut self, kind: u32, range: std::ops::Range<u64>, alignment: u64) {
        self.word(kind);
        self.word(READ_WRITE);
        for number in [range.start, range.start, range.start] {
            self.double(number);
        }
        for number in [range.end - range.start, range.end - range.start, alignment] {
            self.double(number);
        }
    }
}

/// The table of names; the first byte is the empty name.
struct Strings(Vec<u8>);

impl Default for Strings {
    fn default() -> Self {
        Strings(vec![0])
    }
}

impl Strings {
    fn add(&mut self, text: &str) -> Result<u64, String> {
        if text.is_empty() || text.contains('\0') {
            return Err(format!("{text:?} cannot be the name of a library"));
        }
        let at = self.0.len() as u64;
        self.0.extend(text.as_bytes());
        self.0.push(0);
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_of_the_kind_that_was_asked_for() {
        let kind = Kind {
            machine: 183,
            flags: 5,
        };
        let file = library(kind, "libshim.so", &["/a/libpario.so", "/b/libmpi.so"]).unwrap();
        assert_eq!(Kind::of(&file), Ok(kind));
        assert_eq!(kind.to_string(), "AArch64");
        assert!(file.ends_with(b"\0libshim.so\0/a/libpario.so\0/b/libmpi.so\0"));
    }

    #[test]
    fn other_files_are_rejected() {
        assert!(Kind::of(b"#!/bin/sh").is_err());
        let file = library(
            Kind {
                machine: 62,
                flags: 0,
            },
            "a",
            &[],
        )
        .unwrap();
        for (at, value) in [(0, 0), (CLASS_AT, 1), (DATA_AT, 9), (TYPE_AT, 2)] {
            let mut other = file.clone();
            other[at] = value;
            assert!(Kind::of(&other).is_err(), "byte {at}");
        }
    }
}
