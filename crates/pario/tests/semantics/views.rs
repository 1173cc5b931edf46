//! Rules 21 to 23: views, types, representations and modes.
#![allow(unsafe_code)] // memory by absolute address has no safe form

use std::fs;

use pario::{
    Basic, Datatype, Displacement, ErrorKind, File, Info, Mode, Order, Seek, Source, Target, View,
};
use pario_transport::Rank;

use crate::common::{NEW, alone, byte, directory, info, ranks};

const METHODS: [&str; 4] = ["direct", "list", "sieve", "automatic"];

#[test]
fn rule_21_a_filetype_that_shows_bytes_twice_reads_them_twice() {
    let directory = directory();
    let path = directory.path().join("overlap");
    let content: Vec<u8> = (0..64).collect();
    fs::write(&path, &content).unwrap();
    // Displacements that do not decrease but repeat, and tiles that overlap.
    let int = Datatype::basic(Basic::Int32);
    let filetypes = [
        Datatype::indexed_block(1, &[0, 0, 1], &int).unwrap(),
        Datatype::resized(&Datatype::contiguous(2, &int).unwrap(), 0, 4).unwrap(),
    ];
    let shown = [[0, 0, 1, 2, 2, 3, 4, 4, 5], [0, 1, 1, 2, 2, 3, 3, 4, 4]];
    for method in METHODS {
        for (filetype, shown) in filetypes.iter().zip(&shown) {
            alone(|comm| {
                let hints = info(&[("pario_read_method", method)]);
                let file = File::open(&comm, &path, Mode::READ_ONLY, &hints)?;
                file.set_view(&View::new(4, &int, filetype))?;
                let mut got = [0i32; 9];
                assert_eq!(file.read_at(0, &mut got)?.bytes(), 36);
                for (index, (got, place)) in got.iter().zip(shown).enumerate() {
                    let at = 4 + 4 * place;
                    assert_eq!(
                        got.to_ne_bytes(),
                        content[at..at + 4],
                        "{method}: item {index}"
                    );
                }
                file.close()
            });
        }
    }
}

#[test]
fn rule_21_tiles_that_interleave_are_written_where_they_lie() {
    let directory = directory();
    // Bytes 0 and 5, tiled every 2: even bytes and odd ones, none twice.
    let pair = Datatype::hindexed(&[(1, 0), (1, 5)], &byte()).unwrap();
    let tile = Datatype::resized(&pair, 0, 2).unwrap();
    let places = [0, 5, 2, 7, 4, 9, 6, 11];
    for method in METHODS {
        let path = directory.path().join(method);
        fs::write(&path, [99; 12]).unwrap();
        alone(|comm| {
            let hints = info(&[
                ("pario_write_method", method),
                ("pario_read_method", method),
                ("pario_rmw", "locked"),
            ]);
            let file = File::open(&comm, &path, NEW, &hints)?;
            file.set_view(&View::new(0, &byte(), &tile))?;
            let mine: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
            file.write_at(0, &mine)?;
            let mut back = [0u8; 8];
            file.read_at(0, &mut back)?;
            assert_eq!(back, mine, "{method}");
            for (etype, place) in places.iter().enumerate() {
                assert_eq!(file.byte_offset(etype as u64)?, *place);
            }
            file.close()
        });
        let bytes = fs::read(&path).unwrap();
        for (index, byte) in bytes.iter().enumerate() {
            let at = places.iter().position(|place| *place == index as u64);
            assert_eq!(
                *byte,
                at.map_or(99, |at| at as u8 + 1),
                "{method}: byte {index}"
            );
        }
    }
}

#[test]
fn rule_21_what_is_forbidden_in_a_view_and_no_more() {
    let directory = directory();
    let path = directory.path().join("forbidden");
    let int = Datatype::basic(Basic::Int32);
    let double = Datatype::basic(Basic::Double);
    let forbidden = [
        (
            "a displacement below zero",
            &int,
            Datatype::hindexed(&[(1, -4)], &int),
        ),
        (
            "displacements that decrease",
            &int,
            Datatype::indexed(&[(1, 3), (1, 0)], &int),
        ),
        ("half an etype", &double, Ok(int.clone())),
        (
            "one and a half etypes",
            &double,
            Datatype::contiguous(3, &int),
        ),
    ];
    let allowed = [
        (
            "a hole at the start",
            &int,
            Datatype::hindexed(&[(1, 4)], &int),
        ),
        ("a hole at the end", &int, Datatype::resized(&int, 0, 400)),
        (
            "an empty block",
            &int,
            Datatype::indexed(&[(1, 0), (0, 7), (1, 2)], &int),
        ),
        ("no data at all", &int, Datatype::contiguous(0, &int)),
        (
            "a hole of half an etype",
            &int,
            Datatype::hindexed(&[(1, 0), (1, 6)], &int),
        ),
        ("another type than the etype", &int, Ok(double.clone())),
        (
            "an extent that is not a multiple of the etype's",
            &int,
            Datatype::resized(&int, -2, 9),
        ),
    ];
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        for (what, etype, filetype) in &forbidden {
            let filetype = filetype.as_ref().unwrap();
            let error = file
                .set_view(&View::new(0, etype, filetype))
                .expect_err(what);
            assert_eq!(error.kind(), ErrorKind::Type, "{what}: {error}");
            assert_eq!(file.view().etype().size(), 1, "the old view stays");
        }
        for (what, etype, filetype) in &allowed {
            let filetype = filetype.as_ref().unwrap();
            file.set_view(&View::new(0, etype, filetype))
                .unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        file.close()
    });
}

/// Views that both ROMIO and OMPIO take, with the places they give the bytes:
/// those of the filetype, in its order, counted in data bytes of the etype.
#[test]
fn rule_21_etypes_with_holes_and_bounds_of_their_own() {
    let directory = directory();
    let int = Datatype::basic(Basic::Int32);
    let two = Datatype::contiguous(2, &int).unwrap();
    // 8 bytes every 12, and 4 bytes with 4 before them.
    let every_12 = Datatype::resized(&two, 0, 12).unwrap();
    let behind_4 = Datatype::resized(&int, 4, 8).unwrap();
    let part = |of: &Datatype| Datatype::subarray(&[4], &[2], &[1], Order::C, of).unwrap();
    let cases = [
        ("alone", &every_12, every_12.clone(), vec![(0, 8), (12, 8)]),
        ("dense", &every_12, two.clone(), vec![(0, 16)]),
        (
            "apart",
            &every_12,
            Datatype::hvector(2, 1, 20, &every_12).unwrap(),
            vec![(0, 8), (20, 8)],
        ),
        (
            "in a part",
            &every_12,
            part(&every_12),
            vec![(12, 8), (24, 8)],
        ),
        (
            "with a bound in a part",
            &behind_4,
            part(&behind_4),
            vec![(8, 4), (16, 4), (40, 4), (48, 4)],
        ),
    ];
    for (what, etype, filetype, places) in cases {
        let path = directory.path().join(what);
        fs::write(&path, [0; 80]).unwrap();
        alone(|comm| {
            let file = File::open(&comm, &path, NEW, &Info::new())?;
            file.set_view(&View::new(3, etype, &filetype))?;
            file.write_at(0, &[7u8; 16][..])?;
            file.close()
        });
        let mut wanted = [0; 80];
        for (offset, len) in places {
            wanted[3 + offset..][..len].fill(7);
        }
        assert_eq!(fs::read(&path).unwrap(), wanted, "{what}");
    }
}

/// Numbers of the type `long`, which external32 stores in four bytes.
fn longs(numbers: &[i64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

#[test]
fn rule_22_element_strides_scale_with_the_representation_and_byte_strides_do_not() {
    let directory = directory();
    let long = Datatype::basic(Basic::Long);
    let cases = [
        (
            "elements",
            Datatype::vector(2, 1, 2, &long).unwrap(),
            [0, 8, 12, 20],
        ),
        (
            "bytes",
            Datatype::hvector(2, 1, 16, &long).unwrap(),
            [0, 16, 20, 36],
        ),
    ];
    // Windows of three bytes cut every element.
    let hints = info(&[
        ("pario_rmw", "locked"),
        ("pario_write_method", "sieve"),
        ("pario_read_method", "sieve"),
        ("ind_wr_buffer_size", "3"),
        ("ind_rd_buffer_size", "3"),
    ]);
    for (name, filetype, places) in &cases {
        for hints in [&Info::new(), &hints] {
            let path = directory.path().join(name);
            alone(|comm| {
                let file = File::open(&comm, &path, NEW, hints)?;
                let view = View::new(0, &long, filetype).representation("external32");
                file.set_view(&view)?;
                let numbers = longs(&[1, -2, 3, 70_000]);
                let status = file.write_at(0, Source::typed(&numbers, 4, &long)?)?;
                assert_eq!(status.count(&long), Some(4), "counts are native");
                for (etype, place) in places.iter().enumerate() {
                    assert_eq!(file.byte_offset(etype as u64)?, *place, "{name}");
                }
                let mut back = vec![0; 32];
                file.read_at(0, Target::typed(&mut back, 4, &long)?)?;
                assert_eq!(back, numbers, "{name}");
                file.close()
            });
            let bytes = fs::read(&path).unwrap();
            for (place, number) in places.iter().zip([1i32, -2, 3, 70_000]) {
                let at = *place as usize;
                assert_eq!(bytes[at..at + 4], number.to_be_bytes(), "{name}");
            }
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn rule_22_extents_follow_the_representation() {
    let directory = directory();
    let path = directory.path().join("extents");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let long = Datatype::basic(Basic::Long);
        let strided = Datatype::vector(3, 1, 2, &long)?;
        assert_eq!(file.type_extent(&strided)?, 40);
        file.set_view(&View::bytes().representation("external32"))?;
        assert_eq!(file.type_extent(&long)?, 4);
        assert_eq!(file.type_extent(&strided)?, 20);
        assert_eq!(file.type_extent(&Datatype::hvector(3, 1, 16, &long)?)?, 36);
        file.close()
    });
}

#[test]
fn rule_23_a_sequential_file_allows_only_shared_pointer_calls() {
    let directory = directory();
    let path = directory.path().join("tape");
    alone(|comm| {
        let both = Mode::READ_WRITE | Mode::SEQUENTIAL;
        let error = File::open(&comm, &path, both | Mode::CREATE, &Info::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mode);
        let mode = Mode::CREATE | Mode::WRITE_ONLY | Mode::SEQUENTIAL;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let rejected = [
            file.write_at(0, &[1u8]).map(drop),
            file.write_at_all(0, &[1u8]).map(drop),
            file.write(&[1u8]).map(drop),
            file.write_all(&[1u8]).map(drop),
            file.iwrite_at(0, vec![1u8]).map(drop),
            file.iwrite(vec![1u8]).map(drop),
            file.seek(0, Seek::Set),
            file.seek_shared(0, Seek::Set),
            file.position().map(drop),
            file.set_size(0),
            file.preallocate(0),
            file.set_view(&View::bytes()),
        ];
        for (number, result) in rejected.into_iter().enumerate() {
            let error = result.expect_err("a call that needs an offset");
            assert_eq!(
                error.kind(),
                ErrorKind::UnsupportedOperation,
                "{number}: {error}"
            );
        }
        file.write_shared(&[1u8, 2])?;
        file.iwrite_shared(vec![3u8])?.wait()?;
        file.write_ordered(&[4u8])?;
        file.close()?;
        let mode = Mode::READ_ONLY | Mode::SEQUENTIAL;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        assert_eq!(
            file.read_at(0, &mut [0u8]).unwrap_err().kind(),
            ErrorKind::UnsupportedOperation
        );
        let mut two = [0u8; 2];
        file.read_shared(&mut two)?;
        assert_eq!(two, [1, 2]);
        file.set_view(&View::bytes().at(Displacement::Current))?;
        assert_eq!(file.view().displacement(), Displacement::Bytes(2));
        assert_eq!(file.iread_shared(vec![0u8; 5])?.wait()?.1[..2], [3, 4]);
        file.close()
    });
}

#[test]
fn rule_23_append_starts_at_the_end_and_does_not_stick_to_it() {
    let directory = directory();
    let path = directory.path().join("append");
    fs::write(&path, [1; 10]).unwrap();
    ranks(2, |comm| {
        let mode = Mode::WRITE_ONLY | Mode::APPEND;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        assert_eq!((file.position()?, file.position_shared()?), (10, 10));
        if comm.rank() == Rank(0) {
            file.write_at(0, &[2u8])?;
            file.write(&[3u8])?;
        }
        comm.barrier()?;
        file.set_view(&View::bytes())?;
        assert_eq!((file.position()?, file.position_shared()?), (0, 0));
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3]);
}

#[test]
fn rule_23_set_view_resets_both_pointers() {
    let directory = directory();
    let path = directory.path().join("reset");
    for method in ["memory", "file", "owner"] {
        ranks(3, |comm| {
            let hints = info(&[("pario_shared_pointer", method)]);
            let file = File::open(&comm, &path, NEW, &hints)?;
            for round in 0..10 {
                file.write(&[1u8; 5])?;
                file.write_shared(&[2u8; 5])?;
                file.set_view(&View::bytes().at(Displacement::Bytes(round)))?;
                assert_eq!((file.position()?, file.position_shared()?), (0, 0));
                // No rank moves the pointer before all have looked.
                file.comm().barrier()?;
            }
            file.close()
        });
    }
}

#[test]
fn rule_23_shared_pointer_calls_need_identical_views() {
    let directory = directory();
    let path = directory.path().join("identical");
    ranks(2, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let mine = View::bytes().at(Displacement::Bytes(u64::from(comm.rank().0)));
        file.set_view(&mine)?;
        let calls = [
            file.write_shared(&[1u8]).map(drop),
            file.read_shared(&mut [1u8]).map(drop),
            file.iwrite_shared(vec![1u8]).map(drop),
            file.write_ordered(&[1u8]).map(drop),
            file.read_ordered(&mut [1u8]).map(drop),
        ];
        for call in calls {
            assert_eq!(call.unwrap_err().kind(), ErrorKind::NotSame);
        }
        file.write_at(0, &[1u8])?;
        // Equal types that were built apart are the same view.
        let built = Datatype::vector(2, 1, 2, &byte())?;
        file.set_view(&View::new(0, &byte(), &built))?;
        file.write_ordered(&[1u8])?;
        file.close()
    });
}

#[test]
fn rule_23_the_view_given_back_is_a_copy_of_its_own() {
    let directory = directory();
    let path = directory.path().join("copies");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let initial = file.view();
        assert_eq!(initial.displacement(), Displacement::Bytes(0));
        assert_eq!((initial.etype().size(), initial.filetype().size()), (1, 1));
        assert_eq!(initial.representation_name(), "native");
        let int = Datatype::basic(Basic::Int32);
        let filetype = Datatype::resized(&int, 0, 12)?;
        file.set_view(&View::new(7, &int, &filetype))?;
        drop((int, filetype));
        let copy = file.view();
        file.set_view(&View::bytes())?;
        file.close()?;
        drop(file);
        assert_eq!(copy.displacement(), Displacement::Bytes(7));
        assert_eq!((copy.filetype().size(), copy.filetype().extent()), (4, 12));
        Ok(())
    });
}

#[test]
fn rule_23_a_filetype_without_data_is_legal() {
    let directory = directory();
    let path = directory.path().join("empty");
    fs::write(&path, [1; 10]).unwrap();
    ranks(2, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let nothing = Datatype::contiguous(0, &byte())?;
        file.set_view(&View::new(3, &byte(), &nothing))?;
        assert_eq!(file.read_at_all(0, &mut [0u8; 5])?.bytes(), 0);
        assert_eq!(file.write_at_all(0, &[0u8; 0])?.bytes(), 0);
        let error = file.write_at(0, &[9u8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert_eq!(file.byte_offset(0)?, 3);
        file.seek(0, Seek::End)?;
        assert_eq!(file.position()?, 0);
        // An etype without data too.
        file.set_view(&View::new(3, &nothing, &nothing))?;
        assert_eq!(file.read(&mut [0u8; 0])?.bytes(), 0);
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [1; 10]);
}

#[test]
fn rule_23_memory_by_absolute_address() {
    let directory = directory();
    let path = directory.path().join("bottom");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let (low, high) = ([1u8, 2, 3], [4u8, 5]);
        let mut addresses = [(3, low.as_ptr() as i64), (2, high.as_ptr() as i64)];
        let absolute = Datatype::hindexed(&addresses, &byte())?;
        // SAFETY: the type names the bytes of two arrays that live on.
        let source = unsafe { Source::from_raw(std::ptr::null(), 1, &absolute)? };
        file.write_at(0, source)?;
        let (mut low, mut high) = ([0u8; 3], [0u8; 2]);
        addresses = [(3, low.as_mut_ptr() as i64), (2, high.as_mut_ptr() as i64)];
        let absolute = Datatype::hindexed(&addresses, &byte())?;
        // SAFETY: as above, and no one else uses them.
        let target = unsafe { Target::from_raw(std::ptr::null_mut(), 1, &absolute)? };
        file.read_at(0, target)?;
        assert_eq!((low, high), ([1, 2, 3], [4, 5]));
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [1, 2, 3, 4, 5]);
}

#[test]
fn rule_23_byte_offsets_have_64_bits() {
    let directory = directory();
    let path = directory.path().join("far");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let double = Datatype::basic(Basic::Double);
        let sparse = Datatype::resized(&double, 0, 1 << 30)?;
        file.set_view(&View::new(1 << 40, &double, &sparse))?;
        let etype = 1u64 << 32;
        assert_eq!(file.byte_offset(etype)?, (1 << 40) + (1 << 62));
        file.seek(1 << 32, Seek::Set)?;
        assert_eq!(file.position()?, etype);
        let error = file.byte_offset(1 << 34).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        file.close()
    });
}

/// HDF5 makes filetypes whose extent is smaller than their span: one tile
/// shows no byte twice, and no access goes on to the next.
#[test]
fn rule_21_tiles_may_overlap_where_no_access_reaches_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiles");
    let results = pario_transport::threads::run(2, |comm| {
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let byte = Datatype::basic(Basic::Byte);
        // Bytes 0..2 and 10..12, in an extent of 11: tile 1 would begin with
        // the last byte of tile 0.
        let pieces = Datatype::hindexed(&[(2, 0), (2, 10)], &byte)?;
        let filetype = Datatype::resized(&pieces, 0, 11)?;
        let rank = u64::from(comm.rank().0);
        file.set_view(&View::new(2 * rank, &byte, &filetype))?;
        let mine = [rank as u8 + 1; 4];
        assert_eq!(file.write_at_all(0, &mine)?.bytes(), 4);
        let mut back = [0u8; 4];
        assert_eq!(file.read_at_all(0, &mut back)?.bytes(), 4);
        assert_eq!(back, mine);
        // Past the first tile it is the program's fault, but no one hangs and
        // no byte outside is touched.
        assert_eq!(file.write_at_all(0, &[9u8; 8])?.bytes(), 8);
        file.set_view(&View::bytes())?;
        let mut all = [0u8; 30];
        file.read_at(0, &mut all)?;
        assert!(all[4..10].iter().all(|byte| *byte == 0), "{all:?}");
        file.close()
    });
    for result in results {
        result.unwrap().unwrap();
    }
}

#[test]
fn hints_that_one_rank_brings_with_its_view_are_heard_by_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hints");
    let results = pario_transport::threads::run(3, |comm| {
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let mut info = Info::new();
        if comm.rank().0 == 0 {
            info.set("cb_buffer_size", "65536").unwrap();
        }
        file.set_view_with(&View::bytes(), &info)?;
        let told = file.info();
        assert_eq!(told.get("cb_buffer_size"), Some("65536"));
        file.set_view_with(&View::bytes(), &Info::new())?;
        assert_eq!(file.info().get("cb_buffer_size"), Some("65536"));
        file.close()
    });
    for result in results {
        result.unwrap().unwrap();
    }
}
