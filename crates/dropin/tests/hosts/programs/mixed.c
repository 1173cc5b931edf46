/* ranks: 4
 * Files of a job in which the last rank has no pario: those that it takes part in are the host's, the others
 * pario's, and nobody waits for anyone.
 */
#include "served.h"

static void use(MPI_Comm comm, const char *name, const char *what) {
    MPI_File file;
    MPI_Info used;
    int rank, size;
    char byte = 'x', back = 0;
    const char *path = check_path(name);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK_OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_get_info(file, &used));
    CHECK_OK(MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    MPI_Barrier(comm);
    CHECK_OK(MPI_File_read_at_all(file, (rank + 1) % size, &back, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_EQ(back, byte);
    if (rank == 0) printf("mixed: %s served by %s\n", what, is_pario(used) ? "pario" : "the host");
    fflush(stdout);
    MPI_Info_free(&used);
    CHECK_OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, check.rank % 2, check.rank, &half);
    /* Ranks come to their first file at different times. */
    check_sleep_ms(20 * (check.size - check.rank));
    use(half, check.rank % 2 ? "odd" : "even", check.rank % 2 ? "odd" : "even");
    use(MPI_COMM_WORLD, "world", "world");
    use(half, check.rank % 2 ? "odd" : "even", check.rank % 2 ? "odd again" : "even again");
    MPI_Comm_free(&half);
    return check_end();
}
