/* ranks: 1 2 3 4 7
 * Split collective access: the six pairs, what may happen between begin and end, and what may not.
 */
#include "check.h"

enum { LENGTH = 4096 };

static MPI_File file;
static unsigned char data[LENGTH], back[LENGTH];

static MPI_Offset position(void) {
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    return at;
}

static void expect_back(long long at, MPI_Status *status) {
    CHECK_COUNT(*status, MPI_BYTE, LENGTH);
    CHECK_FILLED(back, at, LENGTH, 1);
    memset(back, 0, LENGTH);
}

static void pairs(void) {
    MPI_Status status;
    long long base = (long long)check.rank * LENGTH, all = (long long)check.size * LENGTH;
    check_fill(data, base, LENGTH, 1);
    CHECK_OK(MPI_File_write_at_all_begin(file, base, data, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_write_at_all_end(file, data, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_EQ(position(), 0);
    CHECK_OK(MPI_File_read_at_all_begin(file, base, back, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_read_at_all_end(file, back, &status));
    expect_back(base, &status);

    CHECK_OK(MPI_File_seek(file, all + base, MPI_SEEK_SET));
    check_fill(data, all + base, LENGTH, 1);
    CHECK_OK(MPI_File_write_all_begin(file, data, LENGTH, MPI_BYTE));
    CHECK_EQ(position(), all + base + LENGTH);
    CHECK_OK(MPI_File_write_all_end(file, data, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_OK(MPI_File_seek(file, all + base, MPI_SEEK_SET));
    CHECK_OK(MPI_File_read_all_begin(file, back, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_read_all_end(file, back, &status));
    expect_back(all + base, &status);

    CHECK_OK(MPI_File_seek_shared(file, 2 * all, MPI_SEEK_SET));
    check_fill(data, 2 * all + base, LENGTH, 1);
    CHECK_OK(MPI_File_write_ordered_begin(file, data, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_write_ordered_end(file, data, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_OK(MPI_File_seek_shared(file, 2 * all, MPI_SEEK_SET));
    CHECK_OK(MPI_File_read_ordered_begin(file, back, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_read_ordered_end(file, back, &status));
    expect_back(2 * all + base, &status);

    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    unsigned char *expected = malloc((size_t)all * 3);
    check_fill(expected, 0, (size_t)all * 3, 1);
    CHECK_FILE(check_path("data"), 0, expected, (size_t)all * 3);
    free(expected);

    CHECK_OK(MPI_File_write_at_all_begin(file, 0, NULL, 0, MPI_BYTE));
    CHECK_OK(MPI_File_write_at_all_end(file, NULL, MPI_STATUS_IGNORE));
}

/* Independent access and messages are allowed meanwhile; another file's split call, too. */
static void meanwhile(void) {
    MPI_Status status;
    MPI_File other;
    long long base = (long long)check.rank * LENGTH;
    const char *path = check_path("other");
    unsigned char small[100];
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &other));
    check_fill(data, base, LENGTH, 1);
    CHECK_OK(MPI_File_write_at_all_begin(file, base, data, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_read_at(file, check.size * LENGTH + base, small, 100, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, 100);
    CHECK_FILLED(small, check.size * LENGTH + base, 100, 1);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_OK(MPI_File_iread_at(file, check.size * LENGTH + base, small, 100, MPI_BYTE, &request));
    CHECK_OK(MPI_File_write_at_all_begin(other, base, data, LENGTH, MPI_BYTE));
    int sum = 0;
    MPI_Allreduce(&check.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_OK(MPI_File_write_at_all_end(file, data, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_OK(MPI_File_write_at_all_end(other, data, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_OK(MPI_File_close(&other));
    CHECK_FILE(path, base, data, LENGTH);
    check_remove(path);
}

/* One at a time on a handle, ended by its own end. */
static void violations(void) {
    MPI_Status status;
    long long base = (long long)check.rank * LENGTH;
    CHECK_FAILS(MPI_File_write_all_end(file, data, &status));
    CHECK_FAILS(MPI_File_read_at_all_end(file, data, &status));
    CHECK_FAILS(MPI_File_read_ordered_end(file, data, &status));
    check_fill(data, base, LENGTH, 1);
    CHECK_OK(MPI_File_write_at_all_begin(file, base, data, LENGTH, MPI_BYTE));
    CHECK_FAILS(MPI_File_write_at_all_begin(file, base, back, LENGTH, MPI_BYTE));
    CHECK_FAILS(MPI_File_read_all_begin(file, back, LENGTH, MPI_BYTE));
    CHECK_FAILS(MPI_File_read_ordered_begin(file, back, LENGTH, MPI_BYTE));
    CHECK_FAILS(MPI_File_write_all_end(file, data, &status));
    CHECK_FAILS(MPI_File_read_at_all_end(file, data, &status));
    CHECK_FAILS(MPI_File_write_at_all(file, base, data, LENGTH, MPI_BYTE, &status));
    CHECK_FAILS(MPI_File_read_all(file, back, LENGTH, MPI_BYTE, &status));
    CHECK_FAILS(MPI_File_write_ordered(file, data, LENGTH, MPI_BYTE, &status));
    /* A view may be set, as with ROMIO and OMPIO. */
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK_FAILS(MPI_File_set_size(file, 10));
    CHECK_FAILS(MPI_File_sync(file));
    MPI_File copy = file;
    CHECK_FAILS(MPI_File_close(&copy));
    /* None of it disturbed the call that is under way. */
    CHECK_OK(MPI_File_write_at_all_end(file, data, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_FILE(check_path("data"), base, data, LENGTH);
    CHECK_EQ(check_size(check_path("data")), 3LL * check.size * LENGTH);
}

/* What the mode of the file does not allow is known at begin, on all ranks, and leaves nothing to be ended. */
static void wrong_modes(void) {
    const char *path = check_path("modes");
    MPI_Status status;
    MPI_Request request;
    MPI_File other;
    check_make_shared(path, LENGTH, 1);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &other));
    for (int i = 0; i < 2; i++) {
        CHECK_CLASS(MPI_File_write_at_all_begin(other, 0, data, LENGTH, MPI_BYTE), MPI_ERR_READ_ONLY);
        CHECK_CLASS(MPI_File_write_all_begin(other, data, LENGTH, MPI_BYTE), MPI_ERR_READ_ONLY);
        CHECK_CLASS(MPI_File_write_ordered_begin(other, data, LENGTH, MPI_BYTE), MPI_ERR_READ_ONLY);
        CHECK_FAILS(MPI_File_write_all_end(other, data, &status));
        CHECK_CLASS(MPI_File_iwrite_at_all(other, 0, data, LENGTH, MPI_BYTE, &request), MPI_ERR_READ_ONLY);
        CHECK_CLASS(MPI_File_iwrite_all(other, data, LENGTH, MPI_BYTE, &request), MPI_ERR_READ_ONLY);
        CHECK_OK(MPI_File_read_at_all_begin(other, 0, back, LENGTH, MPI_BYTE));
        CHECK_OK(MPI_File_read_at_all_end(other, back, &status));
        CHECK_COUNT(status, MPI_BYTE, LENGTH);
    }
    CHECK_OK(MPI_File_close(&other));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &other));
    CHECK_CLASS(MPI_File_read_all_begin(other, back, LENGTH, MPI_BYTE), MPI_ERR_ACCESS);
    CHECK_CLASS(MPI_File_iread_all(other, back, LENGTH, MPI_BYTE, &request), MPI_ERR_ACCESS);
    CHECK_OK(MPI_File_close(&other));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &other));
    CHECK_CLASS(MPI_File_write_all_begin(other, data, LENGTH, MPI_BYTE), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_iwrite_at_all(other, 0, data, LENGTH, MPI_BYTE, &request), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_OK(MPI_File_close(&other));
    check_remove(path);
}

static void past_the_end(void) {
    MPI_Status status;
    long long all = (long long)check.size * LENGTH;
    CHECK_OK(MPI_File_read_at_all_begin(file, 3 * all - 10, back, LENGTH, MPI_BYTE));
    CHECK_OK(MPI_File_read_at_all_end(file, back, &status));
    CHECK_COUNT(status, MPI_BYTE, 10);
    CHECK_FILLED(back, 3 * all - 10, 10, 1);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("data");
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    pairs();
    meanwhile();
    violations();
    wrong_modes();
    past_the_end();
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    return check_end();
}
