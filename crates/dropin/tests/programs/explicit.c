/* ranks: 1 2 3 4 7
 * Access at explicit offsets, each rank alone and all together.
 */
#include "check.h"

static MPI_File file;

static void basics(void) {
    enum { INTS = 1000 };
    int data[INTS], back[INTS];
    MPI_Status status;
    MPI_Offset at = (MPI_Offset)check.rank * INTS;
    for (int collective = 0; collective < 2; collective++) {
        for (int i = 0; i < INTS; i++) data[i] = check.rank * 10000 + i + collective;
        memset(back, 0, sizeof back);
        if (collective) CHECK_OK(MPI_File_write_at_all(file, at, data, INTS, MPI_INT, &status));
        else CHECK_OK(MPI_File_write_at(file, at, data, INTS, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, INTS);
        if (collective) CHECK_OK(MPI_File_read_at_all(file, at, back, INTS, MPI_INT, &status));
        else CHECK_OK(MPI_File_read_at(file, at, back, INTS, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, INTS);
        CHECK(memcmp(data, back, sizeof data) == 0, "rank reads what it wrote, collective %d", collective);
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        CHECK_OK(MPI_File_sync(file));
        /* The neighbour's. */
        int other = (check.rank + 1) % check.size;
        CHECK_OK(MPI_File_read_at(file, (MPI_Offset)other * INTS + 5, back, 3, MPI_INT, &status));
        CHECK_EQ(back[2], other * 10000 + 7 + collective);
        check_barrier();
    }
    MPI_Offset pointer = -1;
    CHECK_OK(MPI_File_get_position(file, &pointer));
    CHECK_EQ(pointer, 0);
    CHECK_OK(MPI_File_get_position_shared(file, &pointer));
    CHECK_EQ(pointer, 0);
}

/* Nothing to move is fine, also for some ranks only and without a buffer. */
static void nothing(void) {
    MPI_Status status;
    int word = 77;
    CHECK_OK(MPI_File_write_at(file, 5, NULL, 0, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 0);
    CHECK_OK(MPI_File_read_at(file, 1 << 20, NULL, 0, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 0);
    int some = check.rank % 2;
    CHECK_OK(MPI_File_write_at_all(file, 900000 + check.rank, &word, some, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, some);
    int back = 0;
    CHECK_OK(MPI_File_read_at_all(file, 900000 + check.rank, some ? &back : NULL, some, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, some);
    if (some) CHECK_EQ(back, 77);
    CHECK_OK(MPI_File_write_at_all(file, 0, NULL, 0, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 0);
}

static void ignored_status(void) {
    int word = check.rank, back = -1;
    CHECK_OK(MPI_File_write_at(file, 70000 + check.rank, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_read_at(file, 70000 + check.rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(back, word);
    CHECK_OK(MPI_File_write_at_all(file, 80000 + check.rank, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    back = -1;
    CHECK_OK(MPI_File_read_at_all(file, 80000 + check.rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(back, word);
}

static void refusals(void) {
    int word = 0;
    MPI_Status status;
    CHECK_CLASS(MPI_File_write_at(file, -1, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_read_at(file, -1, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_write_at(file, 0, &word, -1, MPI_INT, &status), MPI_ERR_COUNT, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_read_at(file, 0, &word, -1, MPI_INT, &status), MPI_ERR_COUNT, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_write_at(file, 0, &word, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_read_at(file, 0, &word, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_write_at_all(file, -5, &word, 1, MPI_INT, &status), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_read_at_all(file, 0, &word, -1, MPI_INT, &status), MPI_ERR_COUNT, MPI_ERR_ARG);
    /* Not a whole number of etypes. */
    CHECK_FAILS(MPI_File_write_at(file, 0, &word, 3, MPI_BYTE, &status));
    CHECK_FAILS(MPI_File_read_at(file, 0, &word, 3, MPI_BYTE, &status));
}

/* What the mode forbids. */
static void modes(void) {
    const char *path = check_path("modes");
    check_make_shared(path, 100, 3);
    MPI_File other;
    char byte = 0;
    MPI_Status status;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &other));
    CHECK_CLASS(MPI_File_write_at(other, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
    CHECK_CLASS(MPI_File_write_at_all(other, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
    CHECK_OK(MPI_File_read_at_all(other, 5, &byte, 1, MPI_BYTE, &status));
    CHECK_FILLED(&byte, 5, 1, 3);
    CHECK_OK(MPI_File_close(&other));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &other));
    CHECK_CLASS(MPI_File_read_at(other, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_ACCESS, MPI_ERR_AMODE);
    CHECK_CLASS(MPI_File_read_at_all(other, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_ACCESS, MPI_ERR_AMODE);
    byte = (char)check.rank;
    CHECK_OK(MPI_File_write_at_all(other, 10 + check.rank, &byte, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_close(&other));
    CHECK_FILE(path, 10 + check.rank, &byte, 1);
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("data");
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    basics();
    nothing();
    ignored_status();
    refusals();
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    modes();
    return check_end();
}
