"""Writes a file by MPI-IO through ctypes: functions are looked up by name, in the library that the
first argument names ("shim FILE") or in what the program has loaded ("global LIBMPI")."""

import ctypes
import sys

how, library, path = sys.argv[1:]
loaded = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
mpi = loaded if how == "shim" else ctypes.CDLL(None)

mpi.MPI_Init(None, None)
if hasattr(mpi, "ompi_mpi_comm_world"):

    def constant(name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))

    world, info, byte = map(constant, ("ompi_mpi_comm_world", "ompi_mpi_info_null", "ompi_mpi_byte"))
    ignore = ctypes.c_void_p(0)
else:
    world, info, byte = map(ctypes.c_int, (0x44000000, 0x1C000000, 0x4C00010D))
    ignore = ctypes.c_void_p(1)

rank = ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
CREATE, READ_WRITE = 1, 8
file = ctypes.c_void_p()
if mpi.MPI_File_open(world, path.encode(), CREATE | READ_WRITE, info, ctypes.byref(file)) != 0:
    sys.exit("MPI_File_open failed")
text = ctypes.create_string_buffer(b"rank%d" % rank.value, 5)
offset = ctypes.c_longlong(5 * rank.value)
if mpi.MPI_File_write_at_all(file, offset, text, 5, byte, ignore) != 0:
    sys.exit("MPI_File_write_at_all failed")
if mpi.MPI_File_close(ctypes.byref(file)) != 0:
    sys.exit("MPI_File_close failed")
mpi.MPI_Finalize()
