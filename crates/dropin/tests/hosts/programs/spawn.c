/* ranks: 1 2
 * Files on a communicator with spawned processes, which were started with pario or without it, and on the
 * communicators of either side. Nobody waits for ever, and all data is there.
 */
#include "exercise.h"

enum { CHILDREN = 2, RECORD = 1000 };

static void write_and_read(MPI_Comm comm, const char *path) {
    int rank, size;
    unsigned char mine[RECORD], all[RECORD * 8];
    MPI_File file;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    check_fill(mine, rank * RECORD, RECORD, 5);
    CHECK_OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write_at_all(file, (MPI_Offset)rank * RECORD, mine, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    MPI_Barrier(comm);
    CHECK_OK(MPI_File_read_at_all(file, 0, all, size * RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(check_filled(all, 0, size * RECORD, 5) == size * RECORD, "all %d ranks wrote", size);
    CHECK_OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    MPI_Comm parent, between, merged;
    check_begin(argc, argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *without[] = {"-u", "LD_PRELOAD", argv[0], argv[1], NULL};
        char *with[] = {argv[1], NULL};
        int bare = argc > 2;
        write_and_read(MPI_COMM_WORLD, check_path("parents"));
        int code = MPI_Comm_spawn(bare ? "env" : argv[0], bare ? without : with, CHILDREN, MPI_INFO_NULL, 0,
                                  MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
        CHECK_OK(code);
        MPI_Intercomm_merge(between, 0, &merged);
    } else {
        between = parent;
        MPI_Intercomm_merge(between, 1, &merged);
        write_and_read(MPI_COMM_WORLD, check_path("children"));
    }
    write_and_read(merged, check_path("merged"));
    write_and_read(merged, check_path("merged-again"));
    /* One side does not free it: the end of the MPI copes. */
    if (parent == MPI_COMM_NULL) MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&between);
    return check_end();
}
