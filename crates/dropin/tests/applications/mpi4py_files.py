"""mpi4py's File: views, collective, ordered and nonblocking access.

Arguments: the file, `write` or `read`. What is in the file does not depend on the ranks.
"""

import array
import sys

from mpi4py import MPI

PIECE = 16
PIECES = 600
RECORDS = 60

checks = 0


def check(condition, what):
    global checks
    if not condition:
        print(f"FAIL rank {comm.rank}: {what}", flush=True)
        comm.Abort(1)
    checks += 1


def piece(number):
    return array.array("i", [number * 1000 + i for i in range(PIECE)])


def strided(file, writes):
    """Pieces go round the ranks, through a view."""
    mine = range(comm.rank, PIECES, comm.size)
    ours = array.array("i")
    for number in mine:
        ours.extend(piece(number))
    filetype = MPI.INT.Create_contiguous(PIECE).Create_resized(0, PIECE * 4 * comm.size)
    filetype.Commit()
    file.Set_view(comm.rank * PIECE * 4, MPI.INT, filetype)
    status = MPI.Status()
    if writes:
        file.Write_all(ours, status)
    else:
        theirs = array.array("i", bytes(4 * len(ours)))
        file.Read_all(theirs, status)
        check(ours == theirs, "the strided part is as it was written")
    check(status.Get_count(MPI.INT) == len(ours), "the status counts all")
    file.Set_view(0)


def records(file, writes):
    """Whole records after the strided part: nonblocking, then ordered."""
    base = PIECES * PIECE * 4
    size = PIECE * 4
    mine = range(comm.rank, RECORDS, comm.size)
    buffers = [piece(10000 + n) if writes else array.array("i", bytes(size)) for n in mine]
    start = file.Iwrite_at if writes else file.Iread_at
    requests = [start(base + n * size, b) for n, b in zip(mine, buffers)]
    MPI.Request.Waitall(requests)
    for n, b in zip(mine, buffers):
        check(b == piece(10000 + n), "a record is as it was written")
    file.Seek_shared(base + RECORDS * size)
    share = RECORDS // comm.size + (comm.rank < RECORDS % comm.size)
    first = comm.exscan(share) or 0
    ours = array.array("i")
    for n in range(first, first + share):
        ours.extend(piece(20000 + n))
    if writes:
        file.Write_ordered(ours)
    else:
        theirs = array.array("i", bytes(4 * len(ours)))
        file.Read_ordered(theirs)
        check(ours == theirs, "the ordered records are as they were written")


comm = MPI.COMM_WORLD
path, how = sys.argv[1:]
mode = MPI.MODE_CREATE | MPI.MODE_RDWR if how == "write" else MPI.MODE_RDONLY
file = MPI.File.Open(comm, path, mode)
strided(file, how == "write")
records(file, how == "write")
comm.Barrier()  # the others have written, too
check(file.Get_size() == (PIECES + 2 * RECORDS) * PIECE * 4, "the size is right")
file.Close()
try:
    MPI.File.Open(comm, path + ".absent", MPI.MODE_RDONLY)
    check(False, "a file that is not there cannot be opened")
except MPI.Exception as error:
    check(error.Get_error_class() == MPI.ERR_NO_SUCH_FILE, f"the class is right: {error}")
total = comm.reduce(checks)
if comm.rank == 0:
    print(f"mpi4py_files: {total} checks passed", flush=True)
