"""h5py over MPI: collective and independent writes of a chunked and a contiguous dataset.

Arguments: the file, `write` or `read`. What is in the file does not depend on the ranks.
"""

import sys

import h5py
import numpy
from mpi4py import MPI

ROWS, COLUMNS = 120, 70

comm = MPI.COMM_WORLD
path, how = sys.argv[1:]
checks = 0


def check(condition, what):
    global checks
    if not condition:
        print(f"FAIL rank {comm.rank}: {what}", flush=True)
        comm.Abort(1)
    checks += 1


check(h5py.get_config().mpi, "h5py is built with MPI")
whole = numpy.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS)
low, high = (COLUMNS * rank // comm.size for rank in (comm.rank, comm.rank + 1))
with h5py.File(path, "w" if how == "write" else "r", driver="mpio", comm=comm) as file:
    if how == "write":
        chunked = file.create_dataset("chunked", whole.shape, "f8", chunks=(16, 16))
        plain = file.create_dataset("plain", whole.shape, "f8")
        with chunked.collective:
            chunked[:, low:high] = whole[:, low:high]
        plain[comm.rank :: comm.size, :] = whole[comm.rank :: comm.size, :] + 0.5
    else:
        chunked, plain = file["chunked"], file["plain"]
        with chunked.collective:
            check((chunked[:, low:high] == whole[:, low:high]).all(), "chunked is as it was written")
        rows = plain[comm.rank :: comm.size, :]
        check((rows == whole[comm.rank :: comm.size, :] + 0.5).all(), "plain is as it was written")
total = comm.reduce(checks)
if comm.rank == 0:
    print(f"h5py_files: {total} checks passed", flush=True)
