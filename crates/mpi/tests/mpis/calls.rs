//! The host's functions, each in a way whose outcome is known.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use pario_mpi::host::{Comparison, GeneralizedCallbacks};
use pario_mpi::{ErrorClass, Flavour, Runtime, Threads};

pub(crate) fn environment(runtime: &Runtime) {
    let (host, world) = (runtime.host(), runtime.world());
    println!(
        "{} in {}: {}",
        host.flavour().name(),
        host.path(),
        host.version()
    );
    let is_standard = host.path().contains("_abi");
    assert_eq!(host.flavour() == Flavour::Standard, is_standard);
    let is_open_mpi = host.version().contains("Open MPI");
    assert_eq!(host.flavour() == Flavour::OpenMpi, is_open_mpi);
    assert!(host.is_initialized() && !host.is_finalized() && host.has_world());
    assert!(host.threads().unwrap() >= Threads::Single);
    assert!(host.standard_version().unwrap() >= (3, 0));
    assert_eq!(
        (
            host.comm_rank(world).unwrap(),
            host.comm_size(world).unwrap()
        ),
        (0, 1)
    );

    let copy = host.comm_dup(world).unwrap();
    assert_eq!(
        host.comm_compare(world, copy).unwrap(),
        Comparison::Congruent
    );
    assert_eq!(
        host.comm_compare(world, world).unwrap(),
        Comparison::Identical
    );
    assert!(!host.comm_is_inter(copy).unwrap());
    let shared = host.comm_split_shared(copy, 0).unwrap();
    assert_eq!(host.comm_size(shared).unwrap(), 1);
    assert_eq!(host.comm_split(copy, None, 0).unwrap(), None);
    let part = host
        .comm_split(copy, Some(3), 0)
        .unwrap()
        .expect("a colour was given");

    let (all, mine) = (
        host.comm_group(world).unwrap(),
        host.comm_group(part).unwrap(),
    );
    assert_eq!(
        host.group_compare(all, mine).unwrap(),
        Comparison::Identical
    );
    assert_eq!(host.group_size(mine).unwrap(), 1);
    assert_eq!(
        host.group_translate_ranks(mine, &[0], all).unwrap(),
        [Some(0)]
    );
    let nobody = host.predefined().group_empty;
    assert_eq!(
        host.group_translate_ranks(mine, &[0], nobody).unwrap(),
        [None]
    );
    for group in [all, mine] {
        host.group_free(group).unwrap();
    }
    for comm in [part, shared, copy] {
        host.comm_free(comm).unwrap();
    }
    assert!(host.function("File_open").is_some());
    assert!(host.function("File_no_such_function").is_none());
}

pub(crate) fn messages(runtime: &Runtime) {
    let host = runtime.host();
    let comm = host.comm_dup(runtime.world()).unwrap();
    assert_eq!(host.iprobe(None, None, comm).unwrap(), None);
    assert!(host.improbe(Some(0), Some(7), comm).unwrap().is_none());

    let (data, mut taken) = ([1_u8, 2, 3, 4, 5], [0_u8; 8]);
    // SAFETY: the buffers outlive the requests, which are completed below.
    let mut sent = unsafe { host.isend(&raw const data[..], 0, 7, comm).unwrap() };
    let matched = loop {
        if let Some(matched) = host.improbe(None, Some(7), comm).unwrap() {
            break matched;
        }
    };
    assert_eq!(
        (
            matched.probed.source,
            matched.probed.tag,
            matched.probed.bytes
        ),
        (0, 7, 5)
    );
    // SAFETY: the buffer is ours.
    unsafe { host.mrecv(matched, &mut taken[..]) }.unwrap();
    assert_eq!(taken[..5], data);
    host.wait(&mut sent).unwrap();
    assert_eq!(sent, host.predefined().request_null);

    // SAFETY: as above.
    let (mut received, mut sent) = unsafe {
        (
            host.irecv(&raw mut taken[..], Some(0), None, comm).unwrap(),
            host.issend(&raw const data[1..3], 0, 9, comm).unwrap(),
        )
    };
    let waited = host.wait(&mut received).unwrap();
    assert_eq!((waited.source, waited.tag, waited.bytes), (0, 9, 2));
    while !host.is_complete(&mut sent).unwrap() {}
    assert_eq!(sent, host.predefined().request_null);

    // SAFETY: as above.
    let mut received = unsafe { host.irecv(&raw mut taken[..], None, None, comm).unwrap() };
    assert!(!host.is_complete(&mut received).unwrap());
    host.send(&data[..1], 0, 1, comm).unwrap();
    while host.test(&mut received).unwrap().is_none() {}
    host.wait(&mut received).unwrap();
    let too_long = host.comm_size(comm).map(|_| usize::MAX).unwrap();
    // SAFETY: refused before the memory is looked at.
    let refused =
        unsafe { host.isend(ptr::slice_from_raw_parts(ptr::null(), too_long), 0, 1, comm) };
    assert_eq!(refused.unwrap_err().class, Some(ErrorClass::Count));
    host.comm_free(comm).unwrap();
}

pub(crate) fn collectives(runtime: &Runtime) {
    let (host, world) = (runtime.host(), runtime.world());
    host.barrier(world).unwrap();
    let mut data = *b"bytes";
    host.bcast(&mut data, 0, world).unwrap();
    assert_eq!(host.allgather(&data, world).unwrap(), data);
    assert_eq!(host.allgatherv(&data, world).unwrap(), [data.to_vec()]);
    assert_eq!(host.allgatherv(&[], world).unwrap(), [Vec::new()]);
    let numbers = [u64::MAX, 3, 1 << 40];
    for op in [host.predefined().op_max, host.predefined().op_bor] {
        assert_eq!(host.allreduce(&numbers, op, world).unwrap(), numbers);
    }
}

pub(crate) fn infos(runtime: &Runtime) {
    let host = runtime.host();
    let pairs = [
        ("cb_nodes", "4"),
        ("pario_method", "two-phase"),
        ("empty", ""),
    ];
    let long_key = "k".repeat(host.constants().max_info_key);
    let long_value = "v".repeat(host.constants().max_info_val);
    // Values without a byte are refused by some hosts: not part of this test.
    let kept: Vec<_> = pairs
        .iter()
        .copied()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let given = kept
        .iter()
        .copied()
        .chain([(long_key.as_str(), "x"), ("long", &long_value)]);
    let info = host.info_from_pairs(given).unwrap();
    let found = host.info_pairs(info).unwrap();
    let expected: Vec<_> = kept
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(
        host.info_get(info, "cb_nodes").unwrap().as_deref(),
        Some("4")
    );
    assert_eq!(host.info_get(info, "nothing").unwrap(), None);
    let longest = "v".repeat(host.constants().max_info_val - 1);
    host.info_set(info, "longest", &longest).unwrap();
    assert_eq!(host.info_get(info, "longest").unwrap(), Some(longest));
    let copy = host.info_dup(info).unwrap();
    host.info_free(info).unwrap();
    assert_eq!(host.info_pairs(copy).unwrap().len(), kept.len() + 1);
    host.info_free(copy).unwrap();
    assert_eq!(host.info_pairs(host.predefined().info_null).unwrap(), []);
}

static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn query(extra: *mut c_void, status: *mut c_void) -> c_int {
    let host = pario_mpi::Host::current().expect("it runs");
    // SAFETY: the host passes a status of its own.
    unsafe {
        host.write_status(status, extra.addr() as u64)
            .expect("a status takes bytes")
    };
    0
}

unsafe extern "C" fn free(_extra: *mut c_void) -> c_int {
    FREED.fetch_add(1, Ordering::Relaxed);
    0
}

unsafe extern "C" fn cancel(_extra: *mut c_void, _complete: c_int) -> c_int {
    0
}

pub(crate) fn statuses(runtime: &Runtime) {
    let host = runtime.host();
    let fields = host.flavour().status();
    // Statuses of C programs are not initialised.
    let mut memory = vec![0xa5a5_a5a5_a5a5_a5a5_u64; 3 * fields.size / 8 + 1];
    let statuses: *mut c_void = memory.as_mut_ptr().cast();
    // SAFETY: the array holds three statuses.
    unsafe {
        for (index, bytes) in [0, 12_345, 5 << 32].into_iter().enumerate() {
            let status = host.status_at(statuses, index);
            host.write_status(status, bytes).unwrap();
            let error = status.byte_add(fields.error).cast::<c_int>();
            assert_eq!(error.read() as u32, 0xa5a5_a5a5);
            host.write_status_error(status, 77);
            assert_eq!(error.read(), 77);
            let (byte, mut found) = (host.predefined().byte, -1);
            (host.functions.get_elements_x)(status, byte.0, &mut found);
            assert_eq!(u64::try_from(found), Ok(bytes));
            let mut flag = -1;
            (host.functions.test_cancelled)(status, &mut flag);
            assert_eq!(flag, 0);
            (host.functions.status_set_cancelled)(status, 1);
            (host.functions.test_cancelled)(status, &mut flag);
            assert_ne!(flag, 0);
        }
        let none = host.statuses_ignore();
        assert!(host.is_status_ignored(host.status_at(none, 5)));
        host.write_status(host.status_ignore(), 1).unwrap();
        host.write_status_error(host.status_ignore(), 1);
    }

    let callbacks = GeneralizedCallbacks {
        query,
        free,
        cancel,
    };
    let extra = ptr::without_provenance_mut(4711);
    // SAFETY: the callbacks take any number.
    let mut request = unsafe { host.grequest_start(callbacks, extra).unwrap() };
    assert_eq!(host.test(&mut request).unwrap(), None);
    host.grequest_complete(request).unwrap();
    assert_eq!(host.wait(&mut request).unwrap().bytes, 4711);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
}

pub(crate) fn errors(runtime: &Runtime) {
    let host = runtime.host();
    for &class in ErrorClass::ALL {
        let code = host.error_class(class);
        assert_eq!(host.class_of(code), Some(class), "{}", class.name());
        assert!(!host.error_string(code).is_empty(), "{}", class.name());
    }
    let comm = host.comm_dup(runtime.world()).unwrap();
    let handler = host.predefined().errors_are_fatal;
    host.comm_set_errhandler(comm, handler).unwrap();
    assert_eq!(host.comm_get_errhandler(comm).unwrap(), handler);
    host.comm_return_errors(comm).unwrap();
    let error = host.send(b"x", 5, 0, comm).unwrap_err();
    assert_eq!(
        (error.function, error.class),
        ("MPI_Send", Some(ErrorClass::Rank))
    );
    assert!(error.to_string().contains("MPI_ERR_RANK"), "{error}");

    let class = host.add_error_class().unwrap();
    let code = host.add_error_code(class).unwrap();
    host.add_error_string(code, &"a text of mine ".repeat(100))
        .unwrap();
    assert_eq!(host.class_number_of(code), class);
    assert_eq!(host.class_of(code), None);
    assert!(host.error_string(code).starts_with("a text of mine"));
    host.comm_free(comm).unwrap();
}

static DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn note_delete(
    _object: u64,
    _key: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    DELETED.fetch_add(value.addr(), Ordering::Relaxed);
    0
}

pub(crate) fn attributes(runtime: &Runtime) {
    let host = runtime.host();
    let comm = host.comm_dup(runtime.world()).unwrap();
    // SAFETY: the callback takes any number.
    let key = unsafe {
        host.comm_create_keyval(None, note_delete, ptr::null_mut())
            .unwrap()
    };
    assert_ne!(key, host.constants().keyval_invalid);
    assert_eq!(host.comm_get_attr(comm, key).unwrap(), None);
    host.comm_set_attr(comm, key, ptr::without_provenance_mut(5))
        .unwrap();
    let copy = host.comm_dup(comm).unwrap();
    assert_eq!(host.comm_get_attr(copy, key).unwrap(), None);
    let value = host
        .comm_get_attr(comm, key)
        .unwrap()
        .map(|value| value.addr());
    assert_eq!(value, Some(5));
    host.comm_delete_attr(comm, key).unwrap();
    assert_eq!(DELETED.load(Ordering::Relaxed), 5);
    host.comm_set_attr(copy, key, ptr::without_provenance_mut(6))
        .unwrap();
    host.comm_free(copy).unwrap();
    assert_eq!(DELETED.load(Ordering::Relaxed), 11);
    host.comm_free_keyval(key).unwrap();

    let predefined = host.predefined();
    let type_made = host.type_contiguous(3, predefined.int).unwrap();
    // Intel's library of the standard ABI does not find objects of programs again.
    let is_broken = host.flavour() == Flavour::Standard && host.version().contains("Intel");
    let derived = if is_broken { predefined.int } else { type_made };
    for datatype in [predefined.byte, predefined.datatype_null, derived] {
        assert_eq!(
            host.type_from_fortran(host.type_to_fortran(datatype)),
            datatype
        );
    }
    let made = if is_broken {
        predefined.comm_self
    } else {
        comm
    };
    for comm in [made, predefined.comm_world, predefined.comm_null] {
        assert_eq!(host.comm_from_fortran(host.comm_to_fortran(comm)), comm);
    }
    let (info, request) = (predefined.info_null, predefined.request_null);
    assert_eq!(host.info_from_fortran(host.info_to_fortran(info)), info);
    assert_eq!(
        host.request_from_fortran(host.request_to_fortran(request)),
        request
    );
    let (handler, op) = (predefined.errors_return, predefined.op_sum);
    assert_eq!(
        host.errhandler_from_fortran(host.errhandler_to_fortran(handler)),
        handler
    );
    assert_eq!(host.op_from_fortran(host.op_to_fortran(op)), op);
    let group = predefined.group_empty;
    assert_eq!(host.group_from_fortran(host.group_to_fortran(group)), group);
    host.type_free(type_made).unwrap();
    host.comm_free(comm).unwrap();
}
