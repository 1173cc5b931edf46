/* ranks: 3
 * One rank is killed and the launcher lets the others go on: their collective calls fail instead of waiting.
 */
#include "exercise.h"

enum { KILLED_RANK = 1 };

int main(int argc, char **argv) {
    MPI_File file;
    int record = 7, code;
    check_begin(argc, argv);
    CHECK_OK(MPI_File_open(check.comm, check_path("data"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write_at_all(file, 4 * check.rank, &record, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (check.rank == KILLED_RANK) {
        kill(getpid(), SIGKILL);
    }
    if (!strcmp(argv[2], "blocking")) {
        code = MPI_File_write_at_all(file, 4 * check.rank, &record, 1, MPI_INT, MPI_STATUS_IGNORE);
    } else {
        MPI_Request request;
        int done = 0;
        CHECK_OK(MPI_File_iwrite_at_all(file, 4 * check.rank, &record, 1, MPI_INT, &request));
        if (!strcmp(argv[2], "wait")) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        else do code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            while (code == MPI_SUCCESS && !done);
    }
    printf("survivors: rank %d: %s\n", check.rank, code == MPI_SUCCESS ? "no error" : check_error_text(code));
    fflush(stdout);
    /* The MPI cannot be finalized without the rank that is gone. */
    _exit(0);
}
