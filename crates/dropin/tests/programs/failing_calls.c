/* ranks: 2 3
 * Thousands of nonblocking collective calls that fail on one rank: starting them waits for no other rank, which is
 * in a receive meanwhile, and each fails on all ranks when it is completed.
 */
#include "check.h"

enum { CALLS = 6000 };

int main(int argc, char **argv) {
    static MPI_Request requests[CALLS];
    static char byte;
    MPI_File file;
    int token = 0, failed = 0;
    check_begin(argc, argv);
    const char *path = check_path("data");
    check_remove(path);
    CHECK_OK(MPI_File_open(check.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (check.rank > 0) MPI_Recv(&token, 1, MPI_INT, 0, 0, check.comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < CALLS; i++) {
        CHECK_OK(MPI_File_iread_at_all(file, check.rank == 0 ? -5 : 0, &byte, 1, MPI_CHAR, &requests[i]));
    }
    for (int to = 1; check.rank == 0 && to < check.size; to++) MPI_Send(&token, 1, MPI_INT, to, 0, check.comm);
    for (int i = 0; i < CALLS; i++) {
        int class = 0, code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
        failed += class == MPI_ERR_ARG;
    }
    CHECK_EQ(failed, CALLS);
    CHECK_OK(MPI_File_close(&file));
    return check_end();
}
