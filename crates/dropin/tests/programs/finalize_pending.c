/* ranks: 1 2 3 4
 * MPI is finalized in the middle of everything: pending reads and writes, an active split call, a shared pointer in
 * use, atomic mode, and files whose communicator is gone. The job ends, and what was written is there.
 */
#include "check.h"

enum { LENGTH = 200000 };

static unsigned char data[LENGTH], back[3][LENGTH];

static MPI_File open_on(MPI_Comm comm, const char *path) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    return file;
}

int main(int argc, char **argv) {
    MPI_Request request;
    MPI_Comm comm;
    check_begin(argc, argv);
    long long at = (long long)check.rank * LENGTH;
    check_fill(data, at, LENGTH, 1);
    const char *plain = check_path("plain"), *together = check_path("together"), *split = check_path("split");
    const char *gone = check_path("gone"), *ordered = check_path("ordered"), *own = check_own_path("own");
    char early[CHECK_PATH];
    snprintf(early, sizeof early, "%s", check_path("early"));

    MPI_File file = open_on(check.comm, plain);
    CHECK_OK(MPI_File_write_at(file, at, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_iread_at(file, at, back[0], LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_File_iwrite_at(file, at, data, LENGTH, MPI_BYTE, &request));

    file = open_on(check.comm, together);
    CHECK_OK(MPI_File_iwrite_at_all(file, at, data, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_File_iread_at_all(file, at, back[1], LENGTH, MPI_BYTE, &request));

    file = open_on(check.comm, split);
    CHECK_OK(MPI_File_set_atomicity(file, 1));
    CHECK_OK(MPI_File_write_at_all_begin(file, at, data, LENGTH, MPI_BYTE));

    MPI_Comm_dup(check.comm, &comm);
    file = open_on(comm, gone);
    MPI_Comm_free(&comm);
    CHECK_OK(MPI_File_write_at_all(file, at, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_iread_at(file, at, back[2], LENGTH, MPI_BYTE, &request));

    file = open_on(check.comm, ordered);
    CHECK_OK(MPI_File_write_ordered(file, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_iwrite_shared(file, data, 0, MPI_BYTE, &request));

    file = open_on(MPI_COMM_SELF, own);
    CHECK_OK(MPI_File_iwrite(file, data, LENGTH, MPI_BYTE, &request));

    /* One whose request is freed, and waits for nobody. */
    file = open_on(check.comm, early);
    CHECK_OK(MPI_File_iwrite_at(file, at, data, LENGTH, MPI_BYTE, &request));
    MPI_Request_free(&request);
    check_barrier();
    int failed = check_sum();
    MPI_Finalize();

    long after = check.failed;
    CHECK_FILE(plain, at, data, LENGTH);
    CHECK_FILE(together, at, data, LENGTH);
    CHECK_FILE(split, at, data, LENGTH);
    CHECK_FILE(gone, at, data, LENGTH);
    CHECK_FILE(ordered, at, data, LENGTH);
    CHECK_FILE(own, 0, data, LENGTH);
    CHECK_FILE(early, at, data, LENGTH);
    check_print();
    return failed || check.failed != after;
}
