/* ranks: 1 2 3 4
 * Files that are left open when MPI is finalized: what was written is there, nobody waits, and those that
 * were to be deleted are gone.
 */
#include "check.h"

int main(int argc, char **argv) {
    enum { FILES = 3, LENGTH = 5000 };
    unsigned char data[LENGTH];
    MPI_File files[FILES], alone;
    check_begin(argc, argv);
    const char *own = strdup(check_own_path("own"));
    check_fill(data, check.rank * LENGTH, LENGTH, 1);
    for (int i = 0; i < FILES; i++) {
        char leaf[16];
        snprintf(leaf, sizeof leaf, "shared%d", i);
        check_remove(check_path(leaf));
        CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path(leaf), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &files[i]));
        CHECK_OK(MPI_File_write_at_all(files[i], check.rank * LENGTH, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    /* A shared pointer in use; a file of one rank; a request that nobody waited for. */
    char mark = 'x';
    CHECK_OK(MPI_File_write_shared(files[1], &mark, 0, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &alone));
    CHECK_OK(MPI_File_write(alone, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    /* One rank closes its own, the others leave theirs. */
    if (check.rank == 0) CHECK_OK(MPI_File_close(&alone));
    /* Files that last no longer than they are open. */
    MPI_File gone, own_gone;
    const int until_close = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    const char *temporary = strdup(check_path("temporary")), *own_temporary = strdup(check_own_path("own_temporary"));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, temporary, until_close, MPI_INFO_NULL, &gone));
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, own_temporary, until_close, MPI_INFO_NULL, &own_gone));
    CHECK_OK(MPI_File_write_at_all(gone, check.rank * LENGTH, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    check_barrier();
    int failed = check_sum();
    MPI_Finalize();

    long after = check.failed;
    CHECK_FILE(own, 0, data, LENGTH);
    for (int i = 0; i < FILES; i++) {
        char leaf[16];
        snprintf(leaf, sizeof leaf, "shared%d", i);
        CHECK_FILE(check_path(leaf), check.rank * LENGTH, data, LENGTH);
        /* Other ranks may still be looking: the directory goes with the run. */
    }
    CHECK_EQ(check_size(own_temporary), -1);
    /* The first rank removes it, maybe a moment later than this one looks. */
    for (int looks = 0; check_size(temporary) != -1 && looks < 200; looks++) check_sleep_ms(10);
    CHECK_EQ(check_size(temporary), -1);
    check_print();
    return failed || check.failed != after;
}
