/* ranks: 1 2 3
 * Files are usable until every callback of MPI_Finalize has run: libraries such as HDF5 write and close
 * their files when their attribute of MPI_COMM_SELF is deleted, which was set before any file was opened.
 */
#include "check.h"

enum { LENGTH = 5 };

static MPI_File kept;
static int called;

static int write_and_close(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    MPI_Offset size = -1;
    called++;
    CHECK_OK(MPI_File_write_at(kept, (MPI_Offset)check.rank * LENGTH, "hello", LENGTH, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_get_size(kept, &size));
    CHECK(size >= (MPI_Offset)(check.rank + 1) * LENGTH, "the file has %lld bytes", (long long)size);
    CHECK_OK(MPI_File_close(&kept));
    return MPI_SUCCESS;
}

/* Set after the file was opened, so it runs first. */
static int write_first(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    CHECK(called == 0, "the callback that was set last runs first");
    CHECK_OK(MPI_File_write_at(kept, (MPI_Offset)check.rank * LENGTH, "-----", LENGTH, MPI_CHAR, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

static void at_finalize(MPI_Comm_delete_attr_function *callback) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("kept");
    check_remove(path);
    at_finalize(write_and_close);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &kept));
    at_finalize(write_first);
    check_barrier();
    int failed = check_sum();
    MPI_Finalize();

    long after = check.failed;
    CHECK(called == 1, "the callback was called %d times", called);
    CHECK_FILE(path, check.rank * LENGTH, (const unsigned char *)"hello", LENGTH);
    check_print();
    return failed || check.failed != after;
}
