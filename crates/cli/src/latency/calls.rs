//! The calls that are timed.

/// What a function does, and when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Open and close, on a communicator that has had a file before.
    Open,
    /// The same on a new communicator each time.
    OpenFresh,
    /// `MPI_File_set_view`.
    SetView,
    /// `MPI_File_seek`.
    Seek,
    /// `MPI_File_sync`.
    Sync,
    /// `MPI_File_get_size`.
    Size,
    /// Blocking.
    Blocking(Place),
    /// Returns a request.
    Nonblocking(Place),
    /// A split call, with a second function that ends it.
    Split(Place),
}

/// Whether a function takes an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Offset,
    Pointer,
}

/// One family of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) form: Form,
}

const fn call(name: &'static str, form: Form) -> Call {
    Call { name, form }
}

/// Requests in flight at a time, for calls that return one.
pub(super) const IN_FLIGHT: [usize; 3] = [1, 16, 256];

/// All calls. Writes come before the reads that need their data.
pub(super) const CALLS: [Call; 32] = {
    use Form::{Blocking, Nonblocking, Split};
    use Place::{Offset, Pointer};
    [
        call("open_close", Form::Open),
        call("open_close_fresh", Form::OpenFresh),
        call("set_view", Form::SetView),
        call("seek", Form::Seek),
        call("sync", Form::Sync),
        call("get_size", Form::Size),
        call("write_at", Blocking(Offset)),
        call("read_at", Blocking(Offset)),
        call("write", Blocking(Pointer)),
        call("read", Blocking(Pointer)),
        call("write_at_all", Blocking(Offset)),
        call("read_at_all", Blocking(Offset)),
        call("write_all", Blocking(Pointer)),
        call("read_all", Blocking(Pointer)),
        call("write_shared", Blocking(Pointer)),
        call("read_shared", Blocking(Pointer)),
        call("write_ordered", Blocking(Pointer)),
        call("read_ordered", Blocking(Pointer)),
        call("iwrite_at", Nonblocking(Offset)),
        call("iread_at", Nonblocking(Offset)),
        call("iwrite", Nonblocking(Pointer)),
        call("iread", Nonblocking(Pointer)),
        call("iwrite_shared", Nonblocking(Pointer)),
        call("iread_shared", Nonblocking(Pointer)),
        call("iwrite_at_all", Nonblocking(Offset)),
        call("iread_at_all", Nonblocking(Offset)),
        call("iwrite_all", Nonblocking(Pointer)),
        call("iread_all", Nonblocking(Pointer)),
        call("write_at_all_begin", Split(Offset)),
        call("read_at_all_begin", Split(Offset)),
        call("write_ordered_begin", Split(Pointer)),
        call("read_ordered_begin", Split(Pointer)),
    ]
};

/// The calls with these names, or all.
pub(super) fn named(names: &[String]) -> Result<Vec<Call>, String> {
    if names.is_empty() {
        return Ok(CALLS.to_vec());
    }
    let find = |name: &String| {
        let found = CALLS.iter().find(|call| call.name == name);
        found.copied().ok_or_else(|| {
            let known: Vec<_> = CALLS.iter().map(|call| call.name).collect();
            format!("unknown call `{name}`; calls are {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) call: Call,
    /// Per rank, per call.
    pub(super) bytes: u64,
    pub(super) in_flight: usize,
}

/// The rows of some calls, each once: calls without data have one row.
pub(super) fn rows(calls: &[Call], sizes: &[u64]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &call in calls {
        let (sizes, in_flight): (&[u64], &[usize]) = match call.form {
            Form::Nonblocking(_) => (sizes, &IN_FLIGHT),
            Form::Blocking(_) | Form::Split(_) => (sizes, &[1]),
            _ => (&[0], &[1]),
        };
        for &bytes in sizes {
            for &in_flight in in_flight {
                let row = Row {
                    call,
                    bytes,
                    in_flight,
                };
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_distinct_and_calls_without_data_have_one() {
        let calls = named(&["sync".to_owned(), "iwrite".to_owned()]).unwrap();
        let rows = rows(&calls, &[0, 8, 0]);
        assert_eq!(rows.len(), 1 + 2 * IN_FLIGHT.len());
        let error = named(&["bogus".to_owned()]).unwrap_err();
        assert!(error.contains("unknown call `bogus`"), "{error}");
    }
}
