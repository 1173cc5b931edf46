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
    code = MPI_File_write_at_all(file, 4 * check.rank, &record, 1, MPI_INT, MPI_STATUS_IGNORE);
    printf("survivors: rank %d: %s\n", check.rank, code == MPI_SUCCESS ? "no error" : check_error_text(code));
    fflush(stdout);
    /* The MPI cannot be finalized without the rank that is gone. */
    _exit(0);
}
